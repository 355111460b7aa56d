//! Moves code: computes new offsets from insertions, and adjusts all references to them.
//!
//! There are two maps, because code may be inserted before an instruction: its *label* is the target of jumps to it (so
//! that inserted code runs), its *site* is the position of the instruction itself (branches are relative to it, and a
//! frame identifies an uninitialised object by the site of its `new`).

use crate::edit::{Insertion, Place};
use crate::error::Error;
use crate::instruction::{Instruction, Shape, TABLESWITCH};
use crate::reader::Reader;

const NOWHERE: u32 = u32::MAX;

/// The new position of each old offset.
#[derive(Debug)]
pub(crate) struct Map {
    labels: Vec<u32>,
    sites: Vec<u32>,
}

impl Map {
    /// The target of a jump to `pc`; `pc` may be the end of the code.
    pub(crate) fn label(&self, pc: usize) -> Result<usize, Error> {
        lookup(&self.labels, pc)
    }

    /// The position of the instruction at `pc`.
    pub(crate) fn site(&self, pc: usize) -> Result<usize, Error> {
        lookup(&self.sites, pc)
    }

    /// The start of a range of a debug table: a range that began at the start of the method still does.
    pub(crate) fn range_start(&self, pc: usize) -> Result<usize, Error> {
        if pc == 0 { Ok(0) } else { self.label(pc) }
    }
}

fn lookup(map: &[u32], pc: usize) -> Result<usize, Error> {
    match map.get(pc) {
        Some(&to) if to != NOWHERE => Ok(to as usize),
        _ => Err(Error::Code { at: pc }),
    }
}

/// Bytes of a switch without its opcode and padding.
fn switch_body<'a>(instruction: &Instruction<'a>) -> &'a [u8] {
    let aligned = ((instruction.pc + 4) & !3) - instruction.pc;
    instruction.bytes.get(aligned..).unwrap_or_default()
}

fn padded_start(site: usize) -> usize {
    (site + 4) & !3
}

/// Returns the new code and the map to it. `insertions` are in order of insertion.
pub(crate) fn relocate(
    code: &[u8],
    instructions: &[Instruction<'_>],
    insertions: &[Insertion],
) -> Result<(Vec<u8>, Map), Error> {
    let mut sorted: Vec<&Insertion> = insertions.iter().collect();
    sorted.sort_by_key(|insertion| (insertion.pc, insertion.place));
    let map = lay_out(code.len(), instructions, &sorted)?;
    let new_len = map.label(code.len())?;
    if new_len > usize::from(u16::MAX) {
        return Err(Error::TooLarge);
    }
    let mut out = Vec::with_capacity(new_len);
    let mut pending = sorted.into_iter().peekable();
    for instruction in instructions {
        while let Some(insertion) = pending.next_if(|insertion| insertion.pc <= instruction.pc) {
            if insertion.pc != instruction.pc {
                return Err(Error::Code { at: insertion.pc });
            }
            out.extend_from_slice(&insertion.bytes);
        }
        emit(instruction, &map, &mut out)?;
    }
    if let Some(insertion) = pending.next() {
        return Err(Error::Code { at: insertion.pc });
    }
    Ok((out, map))
}

fn lay_out(
    code_len: usize,
    instructions: &[Instruction<'_>],
    sorted: &[&Insertion],
) -> Result<Map, Error> {
    let mut map = Map {
        labels: vec![NOWHERE; code_len + 1],
        sites: vec![NOWHERE; code_len + 1],
    };
    let mut at = 0;
    let mut pending = sorted.iter().peekable();
    for instruction in instructions {
        let mut before = 0;
        while let Some(insertion) = pending.next_if(|insertion| insertion.pc == instruction.pc) {
            if insertion.place == Place::Before {
                before += insertion.bytes.len();
            } else {
                at += insertion.bytes.len();
            }
        }
        map.labels[instruction.pc] = at as u32;
        at += before;
        map.sites[instruction.pc] = at as u32;
        at = match instruction.shape() {
            Shape::Switch => padded_start(at) + switch_body(instruction).len(),
            _ => at + instruction.bytes.len(),
        };
        if at > usize::from(u16::MAX) {
            return Err(Error::TooLarge);
        }
    }
    map.labels[code_len] = at as u32;
    Ok(map)
}

/// The new relative offset of a branch from `pc` by `offset`.
fn branch(map: &Map, pc: usize, offset: i64) -> Result<i64, Error> {
    let target = usize::try_from(pc as i64 + offset).map_err(|_| Error::Code { at: pc })?;
    Ok(map.label(target)? as i64 - map.site(pc)? as i64)
}

fn emit(instruction: &Instruction<'_>, map: &Map, out: &mut Vec<u8>) -> Result<(), Error> {
    let Instruction { pc, bytes, .. } = *instruction;
    match instruction.shape() {
        Shape::Plain => out.extend_from_slice(bytes),
        Shape::Branch16 => {
            let offset = instruction
                .index()
                .ok_or(Error::Code { at: pc })?
                .cast_signed();
            let moved = branch(map, pc, i64::from(offset))?;
            let moved = i16::try_from(moved).map_err(|_| Error::TooLarge)?;
            out.push(bytes[0]);
            out.extend(moved.to_be_bytes());
        }
        Shape::Branch32 => {
            out.push(bytes[0]);
            relocate_words(map, pc, &mut Reader::new(&bytes[1..]), 1, out)?;
        }
        Shape::Switch => {
            out.push(bytes[0]);
            out.resize(padded_start(map.site(pc)?), 0);
            emit_switch(instruction, map, out)?;
        }
    }
    Ok(())
}

/// Copies `count` 32-bit branch offsets and adjusts them.
fn relocate_words(
    map: &Map,
    pc: usize,
    words: &mut Reader<'_>,
    count: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    for _ in 0..count {
        let moved = branch(map, pc, i64::from(words.i4()?))?;
        let moved = i32::try_from(moved).map_err(|_| Error::TooLarge)?;
        out.extend(moved.to_be_bytes());
    }
    Ok(())
}

fn emit_switch(instruction: &Instruction<'_>, map: &Map, out: &mut Vec<u8>) -> Result<(), Error> {
    let (pc, body) = (instruction.pc, switch_body(instruction));
    let mut words = Reader::new(body);
    relocate_words(map, pc, &mut words, 1, out)?;
    if instruction.opcode == TABLESWITCH {
        out.extend_from_slice(words.take(8)?);
        relocate_words(map, pc, &mut words, body.len() / 4 - 3, out)?;
    } else {
        out.extend_from_slice(words.take(4)?);
        for _ in 0..body.len() / 8 - 1 {
            out.extend_from_slice(words.take(4)?);
            relocate_words(map, pc, &mut words, 1, out)?;
        }
    }
    Ok(())
}
