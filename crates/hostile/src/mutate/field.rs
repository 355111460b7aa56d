//! Damage to fields: an id becomes zero, its own, another one's, none's or huge; a length nothing
//! or everything.

use super::fields::{Field, What};
use super::random::Random;
use super::{Base, Must, Mutant};

/// What is written over a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Zero.
    Zero,
    /// One.
    One,
    /// One less than it was.
    Less,
    /// One more than it was.
    More,
    /// The largest number with a sign.
    Half,
    /// The smallest.
    Sign,
    /// All ones.
    Max,
    /// The id of what it belongs to.
    Own,
    /// What stands in another field of its kind.
    Other,
    /// The id of any object.
    Object,
    /// The id of any class.
    Class,
    /// An id that nothing has.
    Missing,
}

/// Every way to write over a field.
pub const HOW: &[How] = &[
    How::Zero,
    How::One,
    How::Less,
    How::More,
    How::Half,
    How::Sign,
    How::Max,
    How::Own,
    How::Other,
    How::Object,
    How::Class,
    How::Missing,
];

fn value_of(base: &Base, field: Field, how: How, r: &mut Random) -> u64 {
    let read = |f: Field| {
        let bytes = &base.data[f.at..f.at + f.width];
        bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
    };
    let mut any = |what| {
        let count = base.fields.with(what).len();
        let chosen = base.fields.with(what).nth(r.below(count));
        chosen.map_or(0, read)
    };
    match how {
        How::Zero => 0,
        How::One => 1,
        How::Less => read(field).wrapping_sub(1),
        How::More => read(field).wrapping_add(1),
        How::Half => u64::MAX >> (65 - 8 * field.width),
        How::Sign => 1 << (8 * field.width - 1),
        How::Max => u64::MAX,
        How::Own => field.owner,
        How::Other => any(field.what),
        How::Object => any(What::ObjectId),
        How::Class => any(What::ClassId),
        How::Missing => 0xdead_beef,
    }
}

fn write(base: &Base, data: &mut [u8], field: Field, how: How, r: &mut Random) {
    let value = value_of(base, field, how, r).to_be_bytes();
    data[field.at..field.at + field.width].copy_from_slice(&value[8 - field.width..]);
}

/// Damage to one field of a kind; `None` when the dump has none.
pub fn one(base: &Base, what: What, how: How, r: &mut Random) -> Option<Mutant> {
    let count = base.fields.with(what).len();
    let field = base.fields.with(what).nth(r.below(count))?;
    let mut data = base.data.to_vec();
    write(base, &mut data, field, how, r);
    Some(Mutant {
        kind: format!("{what:?}={how:?}"),
        must: Must::Anything,
        data,
    })
}

/// Damage to one field or to some, each kind of field as often as any other.
pub fn some(base: &Base, r: &mut Random) -> Mutant {
    let kinds = base.fields.kinds();
    let times = *r.of(&[1, 1, 1, 2, 3, 8, 30]);
    if times == 1 {
        let (what, how) = (*r.of(&kinds), *r.of(HOW));
        return one(base, what, how, r).expect("the dump has such a field");
    }
    // A header that cannot be read hides all other damage.
    let kinds: Vec<What> = kinds.into_iter().filter(|k| *k != What::IdWidth).collect();
    let mut data = base.data.to_vec();
    // Some mutants have many fields of one kind damaged.
    let only = r.one_in(3).then(|| *r.of(&kinds));
    for _ in 0..times {
        let what = only.unwrap_or_else(|| *r.of(&kinds));
        let count = base.fields.with(what).len();
        let field = base.fields.with(what).nth(r.below(count));
        let how = *r.of(HOW);
        write(base, &mut data, field.expect("such a field"), how, r);
    }
    let kind = match only {
        Some(what) => format!("{what:?}s"),
        None => "fields".to_owned(),
    };
    Mutant {
        kind,
        must: Must::Anything,
        data,
    }
}
