//! Sizes of objects: what the dump does not say. HotSpot writes only field bytes, but object ids
//! are addresses, so the distance to the next object is the size wherever no hole lies between.
//! From those distances the layout of the VM is solved (analyzer-features section 5.4).

use crate::{LayoutInfo, LayoutModel};
use hprof::{
    BasicType, FileOffset, HeapVisitor, IdSize, Instance, ObjectArray, PrimitiveArray, Stretch,
    walk,
};

/// The first distances of one class in the order of the file, with their offsets: the same ones
/// however many threads looked.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstGaps(Vec<(u64, u32)>);

impl FirstGaps {
    /// Enough samples of one class.
    const ENOUGH: usize = 64;

    #[inline(always)]
    pub(crate) fn wanted(&self) -> bool {
        self.0.len() < Self::ENOUGH
    }

    /// Notes a distance; one worker goes forward in the file.
    pub(crate) fn add(&mut self, at: u64, gap: u32) {
        self.0.push((at, gap));
    }

    pub(crate) fn merge(&mut self, other: FirstGaps) {
        self.0.extend(other.0);
        self.0.sort_unstable();
        self.0.truncate(Self::ENOUGH);
    }

    pub(crate) fn votes(&self) -> GapVotes {
        let mut votes = GapVotes::default();
        for (_, gap) in &self.0 {
            votes.add(*gap);
        }
        votes
    }
}

/// Distances from the instances of one class to the next object: the few most usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GapVotes {
    votes: [(u32, u16); 4],
    n: u16,
    smallest: u32,
}

impl GapVotes {
    /// Contended fields have 128 bytes on both sides.
    const CONTENDED: std::ops::Range<u64> = 240..1024;

    fn add(&mut self, gap: u32) {
        self.smallest = if self.n == 0 {
            gap
        } else {
            self.smallest.min(gap)
        };
        self.n += 1;
        if let Some(v) = self.votes.iter_mut().find(|v| v.0 == gap || v.1 == 0) {
            *v = (gap, v.1 + 1);
        }
    }

    pub(crate) fn samples(&self) -> u64 {
        u64::from(self.n)
    }

    pub(crate) fn votes_for(&self, gap: u64) -> u64 {
        self.votes
            .iter()
            .find(|v| u64::from(v.0) == gap && v.1 > 0)
            .map_or(0, |v| u64::from(v.1))
    }

    /// The size these distances speak for. Holes only ever make a distance larger, so no object
    /// is larger than the smallest one; a size above the formula (contended fields, fields that
    /// the VM injects, at most `most_extra` bytes) is believed when most distances agree on it.
    pub(crate) fn size(&self, least: u64, formula: u64, most_extra: u64) -> u64 {
        let smallest = u64::from(self.smallest);
        if self.n == 0 || smallest < least || smallest == formula {
            return formula;
        }
        if smallest < formula {
            return smallest;
        }
        let votes = self.votes_for(smallest);
        let agreed = votes >= 3 && votes * 5 >= u64::from(self.n) * 4;
        let extra = smallest - formula;
        if agreed && (extra <= most_extra || Self::CONTENDED.contains(&extra)) {
            smallest
        } else {
            formula
        }
    }
}

/// The numbers that sizes are made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SizeRules {
    pub(crate) model: LayoutModel,
    pub(crate) header: u64,
    pub(crate) array_header: u64,
    pub(crate) reference: u64,
    pub(crate) alignment: u64,
    /// Width of ids in the file.
    pub(crate) id_bytes: u64,
    /// Per basic type: bytes before the first element, and bytes of an element.
    arrays: [(u64, u64); 12],
    /// Array samples that agree with the rules, and all of them.
    pub(crate) agreeing: u64,
    pub(crate) samples: u64,
    /// False when ids are serial numbers rather than addresses.
    pub(crate) addresses: bool,
    /// Slots of the id map are `1 << shift` apart.
    pub(crate) shift: u32,
}

/// Rounds up.
pub(crate) fn up(n: u64, to: u64) -> u64 {
    if to.is_power_of_two() {
        (n + to - 1) & !(to - 1)
    } else {
        n.div_ceil(to) * to
    }
}

impl SizeRules {
    fn new(
        model: LayoutModel,
        header: u64,
        array_header: u64,
        reference: u64,
        alignment: u64,
    ) -> SizeRules {
        let mut arrays = [(0, 0); 12];
        for kind in BasicType::ALL {
            let element = if *kind == BasicType::Object {
                reference
            } else {
                kind.size(8) as u64
            };
            let base = match model {
                LayoutModel::Plain => 0,
                LayoutModel::Mat if *kind == BasicType::Object => array_header,
                LayoutModel::Mat => up(array_header, reference),
                LayoutModel::Measured => up(array_header, element),
            };
            arrays[*kind as usize] = (base, element);
        }
        SizeRules {
            model,
            header,
            array_header,
            reference,
            alignment,
            id_bytes: 8,
            arrays,
            agreeing: 0,
            samples: 0,
            addresses: true,
            shift: 3,
        }
    }

    /// The rules that a solved layout stands for.
    pub(crate) fn of(layout: &LayoutInfo) -> SizeRules {
        SizeRules::new(
            layout.model,
            u64::from(layout.header),
            u64::from(layout.array_header),
            u64::from(layout.reference),
            u64::from(layout.alignment.max(1)),
        )
    }

    /// Size of an array.
    #[inline(always)]
    pub(crate) fn array(&self, element: BasicType, len: u32) -> u64 {
        let (base, size) = self.arrays[element as usize];
        up(base + u64::from(len) * size, self.alignment)
    }

    /// Width of a field in the heap.
    pub(crate) fn field(&self, kind: BasicType) -> u64 {
        self.arrays[kind as usize].1
    }

    pub(crate) fn info(&self, confidence: f64, samples: u64) -> LayoutInfo {
        LayoutInfo {
            model: self.model,
            header: self.header as u32,
            array_header: self.array_header as u32,
            reference: self.reference as u32,
            alignment: self.alignment as u32,
            confidence,
            samples,
        }
    }
}

/// Looks at a part of the dump and solves the layout. `mat` reads all of it, because MAT's rules
/// depend on every array and every gap.
pub(crate) fn solve(model: LayoutModel, data: &[u8], ids: IdSize, units: &[Stretch]) -> SizeRules {
    let width = ids.bytes() as u64;
    let mut sample = Sampler {
        low_bits: 0,
        gcd: 0,
        before: None,
        arrays: Vec::new(),
        mat: MatRule::default(),
    };
    let pieces = if model == LayoutModel::Mat {
        units.to_vec()
    } else {
        spread(units)
    };
    for piece in pieces {
        sample.before = None;
        // Damage ends the sampling of a piece; the real passes report it.
        let _ = walk(data, ids, piece.from, piece.until, piece.end, &mut sample);
    }
    let shift = sample.low_bits.trailing_zeros().min(3);
    let addresses = sample.low_bits != 0 && shift >= 3;
    let mut rules = match model {
        LayoutModel::Plain => SizeRules::new(model, 0, 0, width, 1),
        LayoutModel::Mat => {
            let reference = if width == 8 && sample.mat.overlap {
                4
            } else {
                width
            };
            let alignment = sample.mat.gcd.clamp(8, 256);
            SizeRules::new(
                model,
                width + reference,
                width + reference + 4,
                reference,
                alignment,
            )
        }
        LayoutModel::Measured if addresses => sample.best(width),
        LayoutModel::Measured if width == 4 => SizeRules::new(model, 8, 12, 4, 8),
        LayoutModel::Measured => SizeRules::new(model, 12, 16, 4, 8),
    };
    rules.id_bytes = width;
    rules.addresses = addresses;
    rules.shift = if sample.low_bits == 0 { 3 } else { shift };
    rules
}

/// Bytes looked at to solve the layout.
const SAMPLE: u64 = 24 << 20;

/// Pieces of the units, spread over the whole dump.
fn spread(units: &[Stretch]) -> Vec<Stretch> {
    let wanted = 96.min(units.len());
    let piece = SAMPLE / wanted.max(1) as u64;
    (0..wanted)
        .map(|i| units[i * units.len() / wanted])
        .map(|u| Stretch {
            until: u.until.min(u.from + piece),
            ..u
        })
        .collect()
}

#[derive(Default)]
struct MatRule {
    gcd: u64,
    before: u64,
    array: Option<(u64, u64)>,
    overlap: bool,
}

struct Sampler {
    low_bits: u64,
    gcd: u64,
    before: Option<(u64, Option<(BasicType, u32)>)>,
    arrays: Vec<(BasicType, u32, u64)>,
    mat: MatRule,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Sampler {
    #[inline]
    fn object(&mut self, id: u64, array: Option<(BasicType, u32)>) {
        self.low_bits |= id;
        if let Some((from, what)) = self.before.take()
            && id > from
        {
            let gap = id - from;
            if self.gcd != 8 {
                self.gcd = gcd(self.gcd, gap);
            }
            if let Some((kind, len)) = what
                && self.arrays.len() < 1 << 18
            {
                self.arrays.push((kind, len, gap));
            }
        }
        self.before = Some((id, array));
        let mat = &mut self.mat;
        if mat.gcd != 8 && mat.before != 0 {
            mat.gcd = gcd(mat.gcd, id.abs_diff(mat.before));
        }
        mat.before = id;
        if let Some((BasicType::Object, len)) = array {
            if let Some((start, end)) = mat.array {
                mat.overlap |= start < id && id < end;
            }
            mat.array = Some((id, id + 16 + 8 * u64::from(len)));
        }
    }

    /// The hypothesis about headers and reference width that explains most array gaps.
    fn best(&self, width: u64) -> SizeRules {
        const WIDE: &[(u64, u64, u64)] = &[
            (12, 16, 4),
            (8, 12, 4),
            (16, 24, 8),
            (12, 16, 8),
            (16, 20, 8),
            (8, 12, 8),
        ];
        const NARROW: &[(u64, u64, u64)] = &[(8, 12, 4), (12, 16, 4)];
        let alignment = 1 << self.gcd.trailing_zeros().clamp(3, 8);
        let mut best: Option<SizeRules> = None;
        for (header, array_header, reference) in if width == 8 { WIDE } else { NARROW } {
            let mut rules = SizeRules::new(
                LayoutModel::Measured,
                *header,
                *array_header,
                *reference,
                alignment,
            );
            rules.samples = self.arrays.len() as u64;
            let agree =
                |(kind, len, gap): &&(BasicType, u32, u64)| rules.array(*kind, *len) == *gap;
            rules.agreeing = self.arrays.iter().filter(agree).count() as u64;
            if best.as_ref().is_none_or(|b| rules.agreeing > b.agreeing) {
                best = Some(rules);
            }
        }
        best.unwrap_or_else(|| SizeRules::new(LayoutModel::Measured, 12, 16, 4, 8))
    }
}

impl HeapVisitor for Sampler {
    fn class(&mut self, _: FileOffset, class: &hprof::ClassDump<'_>) {
        self.object(class.id.0, None);
        self.before = None;
    }
    #[inline]
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        self.object(i.id.0, None);
    }
    #[inline]
    fn object_array(&mut self, _: FileOffset, a: ObjectArray<'_>) {
        self.object(a.id.0, Some((BasicType::Object, a.len)));
    }
    #[inline]
    fn primitive_array(&mut self, _: FileOffset, a: PrimitiveArray<'_>) {
        self.object(a.id.0, Some((a.element, a.len)));
    }
}
