//! Lines to records: the body of a text heap dump.

use super::lines::{Line, Lines, Scan};
use super::record::{HeapArray, HeapClass, HeapObject, Root, RootKind, TextRecord};

/// A `ROOT`, `OBJ`, `ARR` or `CLS` line with the reference lines below it.
pub(super) fn record<'a>(line: &'a [u8], lines: &mut Lines<'a>) -> Option<TextRecord<'a>> {
    let mut scan = Scan(line);
    if scan.accept("ROOT ") {
        return root(scan).map(TextRecord::Root);
    }
    if scan.accept("OBJ ") {
        let mut object = object(scan)?;
        while let Some(field) = reference(lines, field) {
            object.fields.push(field);
        }
        return Some(TextRecord::Object(object));
    }
    if scan.accept("ARR ") {
        let mut array = array(scan)?;
        while let Some(element) = reference(lines, element) {
            array.elements.push(element);
        }
        return Some(TextRecord::Array(array));
    }
    scan.word("CLS ")?;
    let mut class = class(scan)?;
    while reference(lines, |scan| class_reference(scan, &mut class)).is_some() {}
    Some(TextRecord::Class(class))
}

/// The next line if it is a reference line that `parse` accepts.
fn reference<'a, T>(lines: &mut Lines<'a>, parse: impl FnOnce(Scan<'a>) -> Option<T>) -> Option<T> {
    let Line { text, .. } = lines.peek().filter(|line| line.text.starts_with(b"\t"))?;
    let parsed = parse(Scan(&text[1..]))?;
    lines.next();
    Some(parsed)
}

/// The id at the end of a reference line.
fn target(scan: &mut Scan<'_>) -> Option<u64> {
    let id = scan.tabs().hex()?;
    scan.done().then_some(id)
}

fn field(mut scan: Scan<'_>) -> Option<(&[u8], u64)> {
    let name = scan.until("\t")?;
    Some((name, target(&mut scan)?))
}

fn element(mut scan: Scan<'_>) -> Option<(u64, u64)> {
    scan.word("[")?;
    let index = scan.number()?;
    scan.word("]")?;
    Some((index, target(&mut scan)?))
}

fn class_reference<'a>(mut scan: Scan<'a>, class: &mut HeapClass<'a>) -> Option<()> {
    if scan.accept("static ") {
        let name = scan.until("\t")?;
        class.statics.push((name, target(&mut scan)?));
    } else if scan.accept("constant pool entry ") {
        let index = scan.serial()?;
        class.constants.push((index, target(&mut scan)?));
    } else {
        let slot = match scan.until("\t")? {
            b"super" => &mut class.superclass,
            b"loader" => &mut class.loader,
            b"signers" => &mut class.signers,
            b"domain" => &mut class.domain,
            _ => return None,
        };
        *slot = target(&mut scan)?;
    }
    Some(())
}

fn root(mut scan: Scan<'_>) -> Option<Root<'_>> {
    let object = scan.hex()?;
    scan.word(" (kind=<")?;
    let kind = match scan.until(">")? {
        b"thread" => {
            scan.word(", id=")?;
            let thread = scan.serial()?;
            scan.word(", trace=")?;
            RootKind::Thread {
                thread,
                trace: scan.serial()?,
            }
        }
        b"thread block" => {
            scan.word(", thread=")?;
            RootKind::ThreadBlock {
                thread: scan.serial()?,
            }
        }
        b"native stack" => {
            scan.word(", thread=")?;
            RootKind::NativeStack {
                thread: scan.serial()?,
            }
        }
        b"JNI global ref" => {
            scan.word(", id=")?;
            let reference = scan.hex()?;
            scan.word(", trace=")?;
            RootKind::JniGlobal {
                reference,
                trace: scan.serial()?,
            }
        }
        b"JNI local ref" => {
            let (thread, frame) = thread_frame(&mut scan)?;
            RootKind::JniLocal { thread, frame }
        }
        b"Java stack" => {
            let (thread, frame) = thread_frame(&mut scan)?;
            RootKind::JavaStack { thread, frame }
        }
        b"system class" => {
            scan.word(", name=")?;
            let name = scan.rest().strip_suffix(b")")?;
            return Some(Root {
                object,
                kind: RootKind::SystemClass { name },
            });
        }
        b"busy monitor" => RootKind::BusyMonitor,
        b"unknown" => RootKind::Unknown,
        _ => return None,
    };
    scan.word(")")?;
    Some(Root { object, kind })
}

fn thread_frame(scan: &mut Scan<'_>) -> Option<(u32, i32)> {
    scan.word(", thread=")?;
    let thread = scan.serial()?;
    scan.word(", frame=")?;
    Some((thread, i32::try_from(scan.signed()?).ok()?))
}

fn size_and_trace(scan: &mut Scan<'_>) -> Option<(u64, u32)> {
    scan.word(" (sz=")?;
    let size = scan.number()?;
    scan.word(", trace=")?;
    Some((size, scan.serial()?))
}

fn object(mut scan: Scan<'_>) -> Option<HeapObject<'_>> {
    let id = scan.hex()?;
    let (size, trace) = size_and_trace(&mut scan)?;
    scan.word(", class=")?;
    let class = scan.until("@")?;
    let class_id = scan.hex()?;
    scan.word(")")?;
    Some(HeapObject {
        id,
        size,
        trace,
        class,
        class_id,
        fields: Vec::new(),
    })
}

fn array(mut scan: Scan<'_>) -> Option<HeapArray<'_>> {
    let id = scan.hex()?;
    let (size, trace) = size_and_trace(&mut scan)?;
    scan.word(", nelems=")?;
    let length = scan.number()?;
    scan.word(", elem type=")?;
    let kind = scan.rest().strip_suffix(b")")?;
    let (class, class_id) = match super::lines::rfind(kind, b"@") {
        Some(at) => (&kind[..at], Some(Scan(&kind[at + 1..]).hex()?)),
        None => (kind, None),
    };
    Some(HeapArray {
        id,
        size,
        trace,
        length,
        class,
        class_id,
        elements: Vec::new(),
    })
}

fn class(mut scan: Scan<'_>) -> Option<HeapClass<'_>> {
    let id = scan.hex()?;
    scan.word(" (name=")?;
    let name = scan.until(", trace=")?;
    let trace = scan.serial()?;
    scan.word(")")?;
    Some(HeapClass {
        id,
        name,
        trace,
        ..HeapClass::default()
    })
}
