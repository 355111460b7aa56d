//! Sizes of objects, which the dump does not state. HotSpot writes only field bytes, but object ids are addresses, so
//! the distance to the next object is the size if there is no gap between them. The layout of the VM is derived from
//! these distances.

use crate::{LayoutInfo, LayoutModel};
use hprof::{
    BasicType, FileOffset, HeapVisitor, IdSize, Instance, MeasuredSizes, ObjectArray,
    PrimitiveArray, Stretch, walk,
};
use rustc_hash::FxHashMap;

/// The first objects of one class in file order, the same for any number of threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstGaps(Vec<Sample>);

/// An object of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sample {
    /// Offset of its record.
    pub(crate) at: u64,
    pub(crate) id: u64,
    /// The id of the next object in the file, until [`FirstGaps::measure`] finds the next one by address; 0 if it is not
    /// needed for that.
    pub(crate) next: u64,
}

/// Larger distances are gaps, not sizes.
pub(crate) const LARGEST_GAP: u64 = 1 << 16;

impl FirstGaps {
    /// Enough samples of one class.
    const ENOUGH: usize = 64;

    #[inline(always)]
    pub(crate) fn wanted(&self) -> bool {
        self.0.len() < Self::ENOUGH
    }

    /// Adds an object; a worker adds them in file order.
    pub(crate) fn add(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// Sets the next object by address, which `next` returns; objects without one near them are dropped.
    pub(crate) fn measure(&mut self, next: impl Fn(&Sample) -> Option<u64>) {
        self.0.retain_mut(|sample| {
            sample.next = next(sample).unwrap_or(0);
            (1..LARGEST_GAP).contains(&sample.next.saturating_sub(sample.id))
        });
    }

    pub(crate) fn merge(&mut self, other: FirstGaps) {
        self.0.extend(other.0);
        self.0.sort_unstable();
        self.0.truncate(Self::ENOUGH);
    }

    pub(crate) fn votes(&self) -> GapVotes {
        let mut votes = GapVotes::default();
        for sample in &self.0 {
            votes.add((sample.next - sample.id) as u32);
        }
        votes
    }
}

/// The most frequent distances from the instances of one class to the next object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GapVotes {
    votes: [(u32, u16); 4],
    n: u16,
    smallest: u32,
}

impl GapVotes {
    /// Contended fields have 128 bytes on both sides.
    pub(crate) const CONTENDED: std::ops::Range<u64> = 240..1024;

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

    /// The size that these distances indicate. A gap makes a distance larger, so no object is larger than the smallest
    /// distance. A size above the formula (contended fields, fields that the VM injects, at most `most_extra` bytes) is
    /// accepted if most distances agree on it. For a class that is not known for contended fields, many distances must
    /// agree, in a heap in which most distances are sizes: if objects are missing, all distances of a class may have
    /// the same gap.
    pub(crate) fn size(
        &self,
        least: u64,
        formula: u64,
        most_extra: u64,
        is_contended: bool,
        has_holes: bool,
    ) -> u64 {
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
        let is_believed = is_contended || !has_holes && votes >= 8;
        let contended = Self::CONTENDED.contains(&extra) && is_believed;
        if agreed && (extra <= most_extra || contended) {
            smallest
        } else {
            formula
        }
    }
}

/// The numbers from which sizes are computed.
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
    /// False if successive objects in the file are not successive by address, as in dumps of ZGC and Shenandoah.
    pub(crate) in_order: bool,
    /// The smallest distance between two objects: CMS gives every object at least 24 bytes.
    pub(crate) least_gap: u64,
    /// Slots of the id map are `1 << shift` apart.
    pub(crate) shift: u32,
    /// Sizes of instances by class id, if the dump has them; distances are then not used.
    pub(crate) stated: Option<FxHashMap<u64, u64>>,
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
            in_order: true,
            least_gap: 0,
            shift: 3,
            stated: None,
        }
    }

    /// Replaces measured sizes with those in the dump.
    pub(crate) fn state(&mut self, sizes: &MeasuredSizes) {
        if self.model != LayoutModel::Measured {
            return;
        }
        let rules = SizeRules::new(
            LayoutModel::Measured,
            u64::from(sizes.header),
            u64::from(sizes.array_header),
            u64::from(sizes.reference),
            u64::from(sizes.alignment),
        );
        *self = SizeRules {
            agreeing: sizes.agreeing,
            samples: sizes.samples,
            stated: Some(sizes.classes.iter().copied().collect()),
            id_bytes: self.id_bytes,
            addresses: self.addresses,
            in_order: self.in_order,
            least_gap: self.least_gap,
            shift: self.shift,
            ..rules
        };
    }

    /// Measured rules with this header and width of references.
    #[cfg(test)]
    pub(crate) fn with(header: u64, reference: u64) -> SizeRules {
        SizeRules::new(LayoutModel::Measured, header, header + 4, reference, 8)
    }

    /// The rules of a derived layout.
    pub(crate) fn of(layout: &LayoutInfo) -> SizeRules {
        SizeRules::new(
            layout.model,
            u64::from(layout.header),
            u64::from(layout.array_header),
            u64::from(layout.reference),
            u64::from(layout.alignment.max(1)),
        )
    }

    /// Whether most distances between objects are not sizes, because objects are missing in the dump.
    pub(crate) fn has_holes(&self) -> bool {
        self.agreeing * 2 < self.samples
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

/// Reads a part of the dump and derives the layout. `mat` reads all of it, because MAT's rules depend on every array
/// and every gap.
pub(crate) fn solve(model: LayoutModel, data: &[u8], ids: IdSize, units: &[Stretch]) -> SizeRules {
    let width = ids.bytes() as u64;
    let mut sample = Sampler::default();
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
    let in_order = sample.backward * 20 <= sample.forward;
    if !in_order && model == LayoutModel::Measured {
        sample = by_address(sample.low_bits, data, ids, units);
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
    rules.least_gap = sample.least_gap.unwrap_or(0);
    rules.in_order = in_order || !addresses;
    rules.shift = if sample.low_bits == 0 { 3 } else { shift };
    rules
}

/// How many distances by address are examined, if the file is in another order.
const NEIGHBOURS: usize = 1 << 20;

/// The distances between neighbours by address. In a large dump the neighbours may be anywhere, so all of it is read,
/// for the objects in one range of addresses.
fn by_address(low_bits: u64, data: &[u8], ids: IdSize, units: &[Stretch]) -> Sampler {
    let collect = |pieces: &[Stretch], window| {
        let mut sample = Sampler {
            low_bits,
            window: Some(window),
            ..Sampler::default()
        };
        for piece in pieces {
            let _ = walk(data, ids, piece.from, piece.until, piece.end, &mut sample);
        }
        sample.objects.sort_unstable_by_key(|o| o.0);
        sample.objects.dedup_by_key(|o| o.0);
        sample
    };
    let length = |pieces: &[Stretch]| pieces.iter().map(|u| u.until - u.from).sum::<u64>();
    let pieces = spread(units);
    let (some, all) = (length(&pieces), length(units));
    let mut sample = collect(&pieces, (0, u64::MAX));
    if some < all {
        // In the middle, where the heap is densest.
        let seen = &sample.objects;
        let wanted = (NEIGHBOURS as f64 * some as f64 / all as f64) as usize;
        let from = seen.len().saturating_sub(wanted) / 2;
        let until = (from + wanted).min(seen.len().saturating_sub(1));
        if let (Some(first), Some(last)) = (seen.get(from), seen.get(until)) {
            sample = collect(units, (first.0, last.0));
        }
    }
    sample.gcd = 0;
    sample.least_gap = None;
    sample.arrays.clear();
    for at in 1..sample.objects.len() {
        let (before, object) = (sample.objects[at - 1], sample.objects[at]);
        sample.gap(object.0 - before.0, before.1);
    }
    sample
}

/// Bytes that are read to derive the layout.
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

/// Element type and length of an array.
type Array = (BasicType, u32);

#[derive(Default)]
struct Sampler {
    low_bits: u64,
    gcd: u64,
    before: Option<(u64, Option<Array>)>,
    arrays: Vec<(BasicType, u32, u64)>,
    mat: MatRule,
    least_gap: Option<u64>,
    /// Neighbours in the file with ascending and with descending addresses.
    forward: u64,
    backward: u64,
    /// Objects with an id in the window, for the order by address.
    objects: Vec<(u64, Option<Array>)>,
    window: Option<(u64, u64)>,
}

/// The most objects that are kept for sorting by address.
const MOST: usize = 4 * NEIGHBOURS;

/// One array in this many may overlap its neighbour, in a damaged dump.
const OVERLAPS: usize = 200;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Sampler {
    #[inline]
    fn object(&mut self, id: u64, array: Option<Array>) {
        self.low_bits |= id;
        if let Some((from, what)) = self.before.take() {
            if id > from {
                self.forward += 1;
                self.gap(id - from, what);
            } else {
                self.backward += 1;
            }
        }
        if let Some((first, last)) = self.window
            && (first..=last).contains(&id)
            && self.objects.len() < MOST
        {
            self.objects.push((id, array));
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
            let end = id.saturating_add(16 + 8 * u64::from(len));
            mat.array = Some((id, end));
        }
    }

    #[inline]
    fn gap(&mut self, gap: u64, what: Option<Array>) {
        self.least_gap = Some(self.least_gap.map_or(gap, |least| least.min(gap)));
        if self.gcd != 8 {
            self.gcd = gcd(self.gcd, gap);
        }
        if let Some((kind, len)) = what
            && self.arrays.len() < 1 << 18
        {
            self.arrays.push((kind, len, gap));
        }
    }

    /// The hypothesis about headers and reference width that explains most distances between arrays. One with
    /// overlapping objects is accepted only if there is no other.
    fn best(&self, width: u64) -> SizeRules {
        const WIDE: &[(u64, u64, u64)] = &[
            (12, 16, 4),
            (8, 12, 4),
            (16, 24, 8),
            (12, 16, 8),
            (16, 20, 8),
            (8, 12, 8),
            (16, 24, 4),
            (16, 20, 4),
        ];
        const NARROW: &[(u64, u64, u64)] = &[(8, 12, 4), (12, 16, 4)];
        // A single object has no neighbour that would show the alignment.
        let alignment = match self.gcd {
            0 => 8,
            gcd => 1 << gcd.trailing_zeros().clamp(3, 8),
        };
        let mut best: Option<(bool, SizeRules)> = None;
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
            // A hole makes a distance larger than the object, and nothing makes it smaller.
            let overlaps =
                |(kind, len, gap): &&(BasicType, u32, u64)| rules.array(*kind, *len) > *gap;
            let overlapping = self.arrays.iter().filter(overlaps).count();
            let possible = overlapping * OVERLAPS <= self.arrays.len();
            let better = |(p, b): &(bool, SizeRules)| (possible, rules.agreeing) > (*p, b.agreeing);
            if best.as_ref().is_none_or(better) {
                best = Some((possible, rules));
            }
        }
        let best = best.map(|(_, rules)| rules);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_hole_behind_all_objects_of_a_class_is_not_their_size() {
        let mut votes = GapVotes::default();
        (0..20).for_each(|_| votes.add(384));
        let size = |is_contended, has_holes| votes.size(28, 32, 8, is_contended, has_holes);
        assert_eq!(size(false, true), 32);
        assert_eq!(size(false, false), 384);
        assert_eq!(size(true, true), 384);
    }
}
