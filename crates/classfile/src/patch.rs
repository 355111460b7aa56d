//! Patches a whole class.

use crate::annotations;
use crate::class::{Class, Code, Method, is_oldest};
use crate::edit::{Insertion, LocalType, MethodEdit};
use crate::error::Error;
use crate::frames::{self, Added};
use crate::pool::PoolBuilder;
use crate::reader::Reader;
use crate::relocate::{Map, relocate};

/// Decides what to insert.
pub trait Instrument {
    /// Called for each method that has code, in class file order.
    fn method(&mut self, class: &Class<'_>, edit: &mut MethodEdit<'_>);
}

/// A patched class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    /// The class file.
    pub bytes: Vec<u8>,
    /// How many methods were changed.
    pub changed: usize,
    /// Methods that were to be changed but could not, by index.
    pub skipped: Vec<(usize, Error)>,
}

/// HotSpot never compiles methods over this size (`HugeMethodLimit`); a smaller method is not made larger than that.
const HUGE_METHOD: usize = 8000;

const NOP: u8 = 0x00;
const ATHROW: u8 = 0xbf;

/// The result of an edit, after the borrow of the pool has ended.
struct Plan {
    insertions: Vec<Insertion>,
    locals: Vec<LocalType>,
    extra_stack: u16,
    least_len: usize,
}

/// Patches a class file; `None` if nothing was to be changed. If no method could be changed, the result is the original
/// bytes.
pub fn patch(bytes: &[u8], instrument: &mut dyn Instrument) -> Result<Option<Patched>, Error> {
    let class = Class::parse(bytes)?;
    let mut pool = PoolBuilder::new(class.pool.len());
    let mut replaced: Vec<((usize, usize), Vec<u8>)> = Vec::new();
    let mut skipped = Vec::new();
    for method in &class.methods {
        let Some(code) = &method.code else { continue };
        let Some(mut edit) = MethodEdit::new(method, code, &mut pool) else {
            skipped.push((method.index, Error::Code { at: 0 }));
            continue;
        };
        instrument.method(&class, &mut edit);
        if edit.is_empty() {
            continue;
        }
        let instructions = std::mem::take(&mut edit.instructions);
        let MethodEdit {
            insertions,
            locals,
            extra_stack,
            least_len,
            ..
        } = edit;
        let plan = Plan {
            insertions,
            locals,
            extra_stack,
            least_len,
        };
        let result = relocate(code.bytes, &instructions, &plan.insertions).and_then(|moved| {
            // A class initializer runs once, so it is not compiled in any case.
            let may_be_compiled = code.bytes.len() <= HUGE_METHOD && method.name != b"<clinit>";
            if may_be_compiled && moved.0.len() > HUGE_METHOD {
                return Err(Error::TooLarge);
            }
            write_code(&class, method, code, &plan, &moved, &mut pool)
        });
        match result {
            Ok(content) => replaced.push((code.range, content)),
            Err(error) => skipped.push((method.index, error)),
        }
    }
    if replaced.is_empty() && skipped.is_empty() {
        return Ok(None);
    }
    let changed = replaced.len();
    Ok(Some(Patched {
        bytes: assemble(&class, &pool, &replaced)?,
        changed,
        skipped,
    }))
}

/// Writes the file: version, pool with the appended constants, the rest with replaced Code attributes.
fn assemble(
    class: &Class<'_>,
    pool: &PoolBuilder,
    replaced: &[((usize, usize), Vec<u8>)],
) -> Result<Vec<u8>, Error> {
    const COUNT_AT: usize = 8;
    let growth: usize = replaced.iter().map(|(_, content)| content.len()).sum();
    let mut out = Vec::with_capacity(class.bytes.len() + pool.bytes().len() + growth);
    out.extend_from_slice(&class.bytes[..COUNT_AT]);
    out.extend(pool.count()?.to_be_bytes());
    out.extend_from_slice(&class.bytes[COUNT_AT + 2..class.after_pool]);
    out.extend_from_slice(pool.bytes());
    let mut copied = class.after_pool;
    for ((start, end), content) in replaced {
        out.extend_from_slice(&class.bytes[copied..*start]);
        // The name index is copied, the length is new.
        out.extend_from_slice(&class.bytes[*start..*start + 2]);
        out.extend((content.len() as u32).to_be_bytes());
        out.extend_from_slice(content);
        copied = *end;
    }
    out.extend_from_slice(&class.bytes[copied..]);
    Ok(out)
}

/// The content of the new Code attribute.
fn write_code(
    class: &Class<'_>,
    method: &Method<'_>,
    code: &Code<'_>,
    plan: &Plan,
    (bytes, map): &(Vec<u8>, Map),
    pool: &mut PoolBuilder,
) -> Result<Vec<u8>, Error> {
    let max_stack = code
        .max_stack
        .checked_add(plan.extra_stack)
        .ok_or(Error::TooLarge)?;
    let added_slots: u16 = plan.locals.iter().map(|local| local.slots()).sum();
    let max_locals = code
        .max_locals
        .checked_add(added_slots)
        .ok_or(Error::TooLarge)?;
    let len = bytes.len().max(plan.least_len);
    if len > usize::from(u16::MAX) {
        return Err(Error::TooLarge);
    }
    let unreached = len - bytes.len();
    let mut out = Vec::with_capacity(len + 64);
    if is_oldest(class.version) {
        out.push(u8::try_from(max_stack).map_err(|_| Error::TooLarge)?);
        out.push(u8::try_from(max_locals).map_err(|_| Error::TooLarge)?);
        out.extend((len as u16).to_be_bytes());
    } else {
        out.extend(max_stack.to_be_bytes());
        out.extend(max_locals.to_be_bytes());
        out.extend((len as u32).to_be_bytes());
    }
    out.extend_from_slice(bytes);
    if unreached > 0 {
        out.resize(out.len() + unreached - 1, NOP);
        out.push(ATHROW);
    }
    out.extend((code.handlers.len() as u16).to_be_bytes());
    for [start, end, handler, catch] in &code.handlers {
        for pc in [start, end, handler] {
            out.extend((map.label(usize::from(*pc))? as u16).to_be_bytes());
        }
        out.extend(catch.to_be_bytes());
    }
    let added = Added {
        locals: &plan.locals,
        max_locals: code.max_locals,
        unreached: (unreached > 0).then_some(bytes.len()),
    };
    let mut attributes = Vec::with_capacity(code.attributes.len() + 1);
    let mut has_frames = false;
    for (name, content) in &code.attributes {
        let moved = match class.pool.utf8(*name)? {
            frames::TABLE => {
                has_frames = true;
                frames::rewrite(content, map, class, method, &added, pool)?
            }
            b"LineNumberTable" => move_lines(content, map)?,
            b"LocalVariableTable" | b"LocalVariableTypeTable" => move_variables(content, map)?,
            b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                annotations::rewrite(content, map)?
            }
            _ => content.to_vec(),
        };
        attributes.push((*name, moved));
    }
    if unreached > 0 && !has_frames && class.version.0 >= frames::FIRST_VERSION {
        let frames = frames::rewrite(&frames::NONE, map, class, method, &added, pool)?;
        attributes.push((pool.utf8(frames::TABLE), frames));
    }
    out.extend((attributes.len() as u16).to_be_bytes());
    for (name, content) in attributes {
        out.extend(name.to_be_bytes());
        out.extend((content.len() as u32).to_be_bytes());
        out.extend(content);
    }
    Ok(out)
}

fn move_lines(content: &[u8], map: &Map) -> Result<Vec<u8>, Error> {
    let mut reader = Reader::new(content);
    let count = reader.u2()?;
    let mut out = Vec::with_capacity(content.len());
    out.extend(count.to_be_bytes());
    for _ in 0..count {
        let (start, line) = (usize::from(reader.u2()?), reader.u2()?);
        out.extend((map.range_start(start)? as u16).to_be_bytes());
        out.extend(line.to_be_bytes());
    }
    Ok(out)
}

fn move_variables(content: &[u8], map: &Map) -> Result<Vec<u8>, Error> {
    const BAD: Error = Error::Attribute("LocalVariableTable");
    let mut reader = Reader::new(content);
    let count = reader.u2()?;
    let mut out = Vec::with_capacity(content.len());
    out.extend(count.to_be_bytes());
    for _ in 0..count {
        let (start, len) = (usize::from(reader.u2()?), usize::from(reader.u2()?));
        let new_start = map.range_start(start)?;
        let new_len = map.label(start + len)?.checked_sub(new_start).ok_or(BAD)?;
        out.extend((new_start as u16).to_be_bytes());
        out.extend((new_len as u16).to_be_bytes());
        out.extend_from_slice(reader.take(6)?);
    }
    Ok(out)
}
