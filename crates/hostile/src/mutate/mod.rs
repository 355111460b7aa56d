//! Damaged dumps that know what a dump is: a length becomes huge, an id its own, classes extend
//! each other in a circle. The same number of the same seed is always the same mutant.
//!
//! [`named`] has the kinds of damage with what a reader must do; [`field`] writes over the fields
//! that [`fields`] finds; [`shapes`] are whole dumps that are deep or wide.

pub mod field;
pub mod fields;
pub mod index;
pub mod named;
pub mod random;
mod seeds;
pub mod shapes;

pub use seeds::seeds;

use fields::Fields;
use random::Random;
use testkit::dump::{IdSize, gzip, gzip_members, zip};

/// What a reader must do about a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Must {
    /// Say that it cannot be read.
    Error,
    /// That, or answer with the damage listed.
    ErrorOrDamaged,
    /// Come back.
    Anything,
    /// Say what the file is, and that it has no objects.
    NoObjects,
    /// Answer, the damage listed.
    Damaged,
    /// Answer; whether there is damage is a matter of taste.
    Read,
    /// Have as many objects as whole sub-records come before the cut, the damage listed.
    Census,
    /// As many objects, damaged or not.
    CensusOrWhole,
    /// Answer as for the good file.
    Same,
    /// That, and perhaps note something.
    SameOrNoted,
    /// That but for rows of `byte[]`.
    SameButBytes,
    /// Answer as for the good file, the damage listed.
    SameDamaged,
}

/// A good dump and where its fields are.
#[derive(Clone, Debug)]
pub struct Base {
    /// The file, not packed.
    pub data: Vec<u8>,
    /// Its fields.
    pub fields: Fields,
    /// Bytes of its ids.
    pub id_size: IdSize,
}

impl Base {
    /// A good dump.
    ///
    /// # Panics
    /// When it is none.
    pub fn new(data: Vec<u8>) -> Base {
        let fields = Fields::of(&data);
        assert!(named::is_rich(&fields), "a dump with nothing to damage");
        let id_size = match fields.ids {
            4 => IdSize::Four,
            _ => IdSize::Eight,
        };
        Base {
            data,
            fields,
            id_size,
        }
    }
}

/// A damaged file.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Kind of damage, `cut-sub`; the same for many mutants.
    pub kind: String,
    /// What a reader must do.
    pub must: Must,
    /// The file.
    pub data: Vec<u8>,
}

/// Every kind of damage to a dump, `times` each at places of its choice.
pub fn every(base: &Base, times: u64, seed: u64) -> Vec<Mutant> {
    let mut all = Vec::new();
    for (n, kind) in (0..).zip(named::KINDS) {
        for time in 0..times {
            let mut r = Random::new(seed, n << 32 | time);
            all.extend((kind.make)(base, &mut r).map(|data| Mutant {
                kind: kind.name.to_owned(),
                must: kind.must,
                data,
            }));
        }
    }
    let mut r = Random::new(seed, u64::MAX);
    for what in base.fields.kinds() {
        for how in field::HOW {
            all.extend(field::one(base, what, *how, &mut r));
        }
    }
    all
}

/// The mutant of this number: the largest of every shape first, then one damage or several,
/// packed or not.
pub fn mutant(bases: &[Base], seed: u64, number: u64) -> Mutant {
    if let Some((name, make)) = shapes::LARGEST.get(number as usize) {
        let base = &bases[seed as usize % bases.len()];
        return Mutant {
            kind: format!("{name} at its largest"),
            must: Must::Read,
            data: make(base.id_size),
        };
    }
    let mut r = Random::new(seed, number);
    let base = r.of(bases);
    let mut made = if r.one_in(3) {
        let kind = r.of(named::KINDS);
        (kind.make)(base, &mut r).map(|data| Mutant {
            kind: kind.name.to_owned(),
            must: kind.must,
            data,
        })
    } else {
        None
    }
    .unwrap_or_else(|| field::some(base, &mut r));
    if r.one_in(20) {
        made.must = Must::Anything;
        let (name, data) = match r.below(3) {
            0 => ("gzip", gzip(&made.data)),
            1 => (
                "gzip-members",
                gzip_members(&made.data, 500.max(made.data.len() / 20)),
            ),
            _ => ("zip", zip(&made.data, "heap.hprof")),
        };
        made.kind = format!("{name}({})", made.kind);
        made.data = data;
    }
    made
}
