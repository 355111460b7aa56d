//! Records to lines: the body of a text heap dump.

use super::record::{HeapArray, HeapClass, HeapObject, Root, RootKind};
use std::io::{self, Write};

pub(super) fn root(out: &mut impl Write, root: &Root<'_>) -> io::Result<()> {
    write!(out, "ROOT {:x} (kind=<", root.object)?;
    match root.kind {
        RootKind::Thread { thread, trace } => writeln!(out, "thread>, id={thread}, trace={trace})"),
        RootKind::ThreadBlock { thread } => writeln!(out, "thread block>, thread={thread})"),
        RootKind::NativeStack { thread } => writeln!(out, "native stack>, thread={thread})"),
        RootKind::JniGlobal { reference, trace } => {
            writeln!(out, "JNI global ref>, id={reference:x}, trace={trace})")
        }
        RootKind::JniLocal { thread, frame } => {
            writeln!(out, "JNI local ref>, thread={thread}, frame={frame})")
        }
        RootKind::JavaStack { thread, frame } => {
            writeln!(out, "Java stack>, thread={thread}, frame={frame})")
        }
        RootKind::SystemClass { name } => {
            out.write_all(b"system class>, name=")?;
            out.write_all(name)?;
            out.write_all(b")\n")
        }
        RootKind::BusyMonitor => out.write_all(b"busy monitor>)\n"),
        RootKind::Unknown => out.write_all(b"unknown>)\n"),
    }
}

pub(super) fn object(out: &mut impl Write, object: &HeapObject<'_>) -> io::Result<()> {
    write!(
        out,
        "OBJ {:x} (sz={}, trace={}, class=",
        object.id, object.size, object.trace
    )?;
    out.write_all(object.class)?;
    writeln!(out, "@{:x})", object.class_id)?;
    for (name, target) in &object.fields {
        out.write_all(b"\t")?;
        out.write_all(name)?;
        // A second tab aligns the column if a name is shorter than a tab stop.
        let tabs = if name.len() < 8 { "\t\t" } else { "\t" };
        writeln!(out, "{tabs}{target:x}")?;
    }
    Ok(())
}

pub(super) fn array(out: &mut impl Write, array: &HeapArray<'_>) -> io::Result<()> {
    let HeapArray {
        id,
        size,
        trace,
        length,
        ..
    } = array;
    write!(
        out,
        "ARR {id:x} (sz={size}, trace={trace}, nelems={length}, elem type="
    )?;
    out.write_all(array.class)?;
    match array.class_id {
        Some(class) => writeln!(out, "@{class:x})")?,
        None => out.write_all(b")\n")?,
    }
    for (index, target) in &array.elements {
        writeln!(out, "\t[{index}]\t\t{target:x}")?;
    }
    Ok(())
}

pub(super) fn class(out: &mut impl Write, class: &HeapClass<'_>) -> io::Result<()> {
    write!(out, "CLS {:x} (name=", class.id)?;
    out.write_all(class.name)?;
    writeln!(out, ", trace={})", class.trace)?;
    let references = [
        ("super", class.superclass),
        ("loader", class.loader),
        ("signers", class.signers),
        ("domain", class.domain),
    ];
    for (name, target) in references.iter().filter(|(_, target)| *target != 0) {
        writeln!(out, "\t{name}\t\t{target:x}")?;
    }
    for (name, target) in &class.statics {
        out.write_all(b"\tstatic ")?;
        out.write_all(name)?;
        writeln!(out, "\t{target:x}")?;
    }
    for (index, target) in &class.constants {
        writeln!(out, "\tconstant pool entry {index}\t{target:x}")?;
    }
    Ok(())
}
