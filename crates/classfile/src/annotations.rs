//! Type annotations of code: they are copied, and their offsets are adjusted.

use crate::error::Error;
use crate::reader::Reader;
use crate::relocate::Map;

const BAD: Error = Error::Attribute("RuntimeTypeAnnotations");
/// The deepest nesting of annotations within annotations that is processed.
const MAX_DEPTH: u32 = 64;

/// Rewrites a Runtime(In)VisibleTypeAnnotations attribute of a Code attribute.
pub(crate) fn rewrite(content: &[u8], map: &Map) -> Result<Vec<u8>, Error> {
    let mut out = content.to_vec();
    let mut reader = Reader::new(content);
    for _ in 0..reader.u2()? {
        rewrite_target(&mut reader, map, &mut out)?;
        let path = reader.u1()?;
        reader.take(2 * usize::from(path))?;
        skip_annotation(&mut reader, 0)?;
    }
    Ok(out)
}

fn put(out: &mut [u8], at: usize, value: usize) -> Result<(), Error> {
    let value = u16::try_from(value).map_err(|_| Error::TooLarge)?;
    out.get_mut(at..at + 2)
        .ok_or(BAD)?
        .copy_from_slice(&value.to_be_bytes());
    Ok(())
}

fn rewrite_target(reader: &mut Reader<'_>, map: &Map, out: &mut [u8]) -> Result<(), Error> {
    match reader.u1()? {
        0x00 | 0x01 | 0x16 => {
            reader.take(1)?;
        }
        0x10..=0x12 | 0x17 | 0x42 => {
            reader.take(2)?;
        }
        0x13..=0x15 => {}
        0x40 | 0x41 => {
            for _ in 0..reader.u2()? {
                let at = reader.at();
                let (start, len) = (usize::from(reader.u2()?), usize::from(reader.u2()?));
                reader.u2()?;
                let new_start = map.range_start(start)?;
                put(out, at, new_start)?;
                put(
                    out,
                    at + 2,
                    map.label(start + len)?.checked_sub(new_start).ok_or(BAD)?,
                )?;
            }
        }
        target @ 0x43..=0x4b => {
            let at = reader.at();
            put(out, at, map.site(usize::from(reader.u2()?))?)?;
            if target >= 0x47 {
                reader.u1()?;
            }
        }
        _ => return Err(BAD),
    }
    Ok(())
}

fn skip_annotation(reader: &mut Reader<'_>, depth: u32) -> Result<(), Error> {
    reader.u2()?;
    for _ in 0..reader.u2()? {
        reader.u2()?;
        skip_value(reader, depth)?;
    }
    Ok(())
}

fn skip_value(reader: &mut Reader<'_>, depth: u32) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(BAD);
    }
    match reader.u1()? {
        b'e' => {
            reader.take(4)?;
        }
        b'@' => skip_annotation(reader, depth + 1)?,
        b'[' => {
            for _ in 0..reader.u2()? {
                skip_value(reader, depth + 1)?;
            }
        }
        _ => {
            reader.take(2)?;
        }
    }
    Ok(())
}
