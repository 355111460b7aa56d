//! StackMapTable: frames are moved to the new offsets, and extended by added locals.
//!
//! A frame has its offset relative to the previous frame, and may describe locals as a difference to it, too. Without
//! added locals the kinds of frames stay the same and only distances change. With added locals every frame is written
//! in full, because the new variables come after all others.

use crate::class::{Class, Method, STATIC};
use crate::edit::LocalType;
use crate::error::Error;
use crate::pool::PoolBuilder;
use crate::reader::Reader;
use crate::relocate::Map;

/// The attribute's name.
pub(crate) const TABLE: &[u8] = b"StackMapTable";
/// The first major version of class files that has it.
pub(crate) const FIRST_VERSION: u16 = 50;
/// A table without frames.
pub(crate) const NONE: [u8; 2] = [0, 0];

const TOP: u8 = 0;
const INTEGER: u8 = 1;
const FLOAT: u8 = 2;
const DOUBLE: u8 = 3;
const LONG: u8 = 4;
const NULL: u8 = 5;
const UNINITIALIZED_THIS: u8 = 6;
const OBJECT: u8 = 7;
const UNINITIALIZED: u8 = 8;

const BAD: Error = Error::Attribute("StackMapTable");
/// The longest table that is written. Real methods stay far below; a damaged one that claims 65,535 locals would need
/// that many bytes in each frame.
const MAX_TABLE: usize = 256 << 10;

/// A verification type: tag, and an index or offset if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Type(u8, u16);

impl Type {
    fn read(reader: &mut Reader<'_>, map: &Map) -> Result<Self, Error> {
        let tag = reader.u1()?;
        Ok(match tag {
            OBJECT => Self(tag, reader.u2()?),
            UNINITIALIZED => {
                let site = map.site(usize::from(reader.u2()?))?;
                Self(tag, site as u16)
            }
            0..=6 => Self(tag, 0),
            _ => return Err(BAD),
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        out.push(self.0);
        if self.0 >= OBJECT {
            out.extend(self.1.to_be_bytes());
        }
    }

    fn slots(self) -> usize {
        if matches!(self.0, LONG | DOUBLE) {
            2
        } else {
            1
        }
    }
}

/// One frame as it was read, with the offsets in its types adjusted.
enum Frame {
    Same,
    Stack(Type),
    Chop(u8),
    Append(Vec<Type>),
    Full(Vec<Type>, Vec<Type>),
}

/// Reads one frame and the distance before it.
fn read_frame(reader: &mut Reader<'_>, map: &Map) -> Result<(u16, Frame), Error> {
    let tag = reader.u1()?;
    Ok(match tag {
        0..=63 => (u16::from(tag), Frame::Same),
        64..=127 => (u16::from(tag - 64), Frame::Stack(Type::read(reader, map)?)),
        247 => (reader.u2()?, Frame::Stack(Type::read(reader, map)?)),
        248..=250 => (reader.u2()?, Frame::Chop(251 - tag)),
        251 => (reader.u2()?, Frame::Same),
        252..=254 => {
            let delta = reader.u2()?;
            let types = (251..tag)
                .map(|_| Type::read(reader, map))
                .collect::<Result<_, _>>()?;
            (delta, Frame::Append(types))
        }
        255 => {
            let delta = reader.u2()?;
            (
                delta,
                Frame::Full(read_types(reader, map)?, read_types(reader, map)?),
            )
        }
        _ => return Err(BAD),
    })
}

fn read_types(reader: &mut Reader<'_>, map: &Map) -> Result<Vec<Type>, Error> {
    let count = reader.u2()?;
    (0..count).map(|_| Type::read(reader, map)).collect()
}

fn write_types(types: &[Type], out: &mut Vec<u8>) -> Result<(), Error> {
    let count = u16::try_from(types.len()).map_err(|_| Error::TooLarge)?;
    out.extend(count.to_be_bytes());
    types.iter().for_each(|kind| kind.write(out));
    Ok(())
}

fn write_frame(frame: &Frame, delta: u16, out: &mut Vec<u8>) -> Result<(), Error> {
    let short = u8::try_from(delta).ok().filter(|delta| *delta < 64);
    match (frame, short) {
        (Frame::Same, Some(delta)) => out.push(delta),
        (Frame::Stack(kind), Some(delta)) => {
            out.push(64 + delta);
            kind.write(out);
        }
        _ => {
            let tag = match frame {
                Frame::Same => 251,
                Frame::Stack(_) => 247,
                Frame::Chop(n) => 251 - n,
                Frame::Append(types) => 251 + types.len() as u8,
                Frame::Full(..) => 255,
            };
            out.push(tag);
            out.extend(delta.to_be_bytes());
            match frame {
                Frame::Stack(kind) => kind.write(out),
                Frame::Append(types) => types.iter().for_each(|kind| kind.write(out)),
                Frame::Full(locals, stack) => {
                    write_types(locals, out)?;
                    write_types(stack, out)?;
                }
                Frame::Same | Frame::Chop(_) => {}
            }
        }
    }
    Ok(())
}

/// Additions to a method: locals after its own, and code after its own.
pub(crate) struct Added<'a> {
    /// Their types.
    pub(crate) locals: &'a [LocalType],
    /// Slots of the method's own locals.
    pub(crate) max_locals: u16,
    /// Where added unreachable code begins, if there is any.
    pub(crate) unreached: Option<usize>,
}

impl Added<'_> {
    /// `locals` with the added ones at their slots.
    fn extend(&self, locals: &[Type]) -> Result<Vec<Type>, Error> {
        let used: usize = locals.iter().map(|local| local.slots()).sum();
        let gap = usize::from(self.max_locals).checked_sub(used).ok_or(BAD)?;
        let mut all = locals.to_vec();
        all.extend(std::iter::repeat_n(Type(TOP, 0), gap));
        all.extend(self.locals.iter().map(|local| match local {
            LocalType::Int => Type(INTEGER, 0),
            LocalType::Long => Type(LONG, 0),
            LocalType::Object(class) => Type(OBJECT, *class),
        }));
        Ok(all)
    }
}

/// Locals at the entry of a method, from its descriptor.
fn entry_locals(
    class: &Class<'_>,
    method: &Method<'_>,
    pool: &mut PoolBuilder,
) -> Result<Vec<Type>, Error> {
    let mut locals = Vec::new();
    if method.access & STATIC == 0 {
        let is_fresh = method.name == b"<init>" && class.name != b"java/lang/Object";
        locals.push(if is_fresh {
            Type(UNINITIALIZED_THIS, 0)
        } else {
            Type(OBJECT, class.this)
        });
    }
    let mut rest = method.descriptor.strip_prefix(b"(").ok_or(BAD)?;
    loop {
        let dims = rest.iter().take_while(|b| **b == b'[').count();
        let base = *rest.get(dims).ok_or(BAD)?;
        let len = match base {
            b')' => return Ok(locals),
            b'L' => dims + 1 + rest.iter().skip(dims).position(|b| *b == b';').ok_or(BAD)?,
            _ => dims + 1,
        };
        let (param, tail) = rest.split_at(len);
        locals.push(match (dims, base) {
            (0, b'L') => Type(OBJECT, pool.class(&param[1..len - 1])),
            (0, b'J') => Type(LONG, 0),
            (0, b'D') => Type(DOUBLE, 0),
            (0, b'F') => Type(FLOAT, 0),
            (0, _) => Type(INTEGER, 0),
            _ => Type(OBJECT, pool.class(param)),
        });
        rest = tail;
    }
}

/// Rewrites a StackMapTable.
pub(crate) fn rewrite(
    content: &[u8],
    map: &Map,
    class: &Class<'_>,
    method: &Method<'_>,
    added: &Added<'_>,
    pool: &mut PoolBuilder,
) -> Result<Vec<u8>, Error> {
    let mut reader = Reader::new(content);
    let count = reader.u2()?;
    let mut out = Vec::with_capacity(content.len() + 16);
    out.extend(count.to_be_bytes());
    let mut locals = if added.locals.is_empty() {
        Vec::new()
    } else {
        entry_locals(class, method, pool)?
    };
    let (mut old, mut new) = (None::<usize>, None::<usize>);
    for _ in 0..count {
        let (delta, frame) = read_frame(&mut reader, map)?;
        let old_pc = old.map_or(0, |pc| pc + 1) + usize::from(delta);
        let new_pc = map.label(old_pc)?;
        let distance = new_pc.checked_sub(new.map_or(0, |pc| pc + 1)).ok_or(BAD)?;
        let distance = u16::try_from(distance).map_err(|_| Error::TooLarge)?;
        let frame = if added.locals.is_empty() {
            frame
        } else {
            let (now, stack) = expand(frame, &locals)?;
            let full = added.extend(&now)?;
            locals = now;
            Frame::Full(full, stack)
        };
        write_frame(&frame, distance, &mut out)?;
        if out.len() > MAX_TABLE {
            return Err(Error::TooLarge);
        }
        (old, new) = (Some(old_pc), Some(new_pc));
    }
    if let Some(pc) = added.unreached {
        let distance = pc.checked_sub(new.map_or(0, |pc| pc + 1)).ok_or(BAD)?;
        let distance = u16::try_from(distance).map_err(|_| Error::TooLarge)?;
        // The frame has an exception on its stack, which the unreachable code throws. No code before may fall through
        // into it.
        let frame = Frame::Full(Vec::new(), vec![Type(NULL, 0)]);
        write_frame(&frame, distance, &mut out)?;
        let count = count.checked_add(1).ok_or(Error::TooLarge)?;
        out[..2].copy_from_slice(&count.to_be_bytes());
    }
    Ok(out)
}

/// Locals and stack of a frame, given the locals before it.
fn expand(frame: Frame, before: &[Type]) -> Result<(Vec<Type>, Vec<Type>), Error> {
    Ok(match frame {
        Frame::Same => (before.to_vec(), Vec::new()),
        Frame::Stack(kind) => (before.to_vec(), vec![kind]),
        Frame::Chop(n) => {
            let keep = before.len().checked_sub(usize::from(n)).ok_or(BAD)?;
            (before[..keep].to_vec(), Vec::new())
        }
        Frame::Append(types) => ([before, &types].concat(), Vec::new()),
        Frame::Full(locals, stack) => (locals, stack),
    })
}
