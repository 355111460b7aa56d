//! How large and how full all live objects are, summed up by allocation site, as the VM reads it while the program
//! runs. This is the data for a table of all classes, without a row per object.

use crate::ids::{ClassId, TraceId};

/// Values of objects. If not all objects are examined, some represent others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// The number of values; if they represent others, this and the sum are estimates.
    pub count: f64,
    /// Their sum, exact up to 2^53.
    pub sum: f64,
    /// The largest examined value.
    pub max: u64,
    /// The variance of the sum; 0 if every object was examined.
    pub variance: f64,
}

impl Sum {
    /// Adds the value of an object that represents `weight` objects, because objects are examined with the probability
    /// `1 / weight` (Horvitz and Thompson).
    pub fn add(&mut self, value: u64, weight: f64) {
        let number = value as f64;
        self.count += weight;
        self.sum += weight * number;
        self.max = self.max.max(value);
        self.variance += weight * (weight - 1.0) * number * number;
    }

    /// Adds the values of other objects.
    pub fn merge(&mut self, other: &Sum) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.variance += other.variance;
    }

    /// Whether no object has such a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
    }
}

/// The live objects of one class that one stack allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteFill {
    /// Their class.
    pub class: ClassId,
    /// The stack.
    pub trace: TraceId,
    /// The number of elements of each object, by the rules of [`crate::content`].
    pub size: Sum,
    /// The number of elements for which each object has space.
    pub capacity: Sum,
    /// The bytes of the arrays that provide this space.
    pub capacity_bytes: Sum,
}

/// An answer. Objects without size and capacity are in no row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fills {
    /// The number of the request.
    pub number: u32,
    /// Live objects of classes that have a size or a capacity. Objects that were freed before they were read are not
    /// counted.
    pub objects: u64,
    /// Objects that were read; if they are fewer than all, sums are estimates.
    pub read: u64,
    /// Objects that were counted for another class; they are in no row and no other number.
    pub left_out: u64,
    /// There are too many stacks and threads, so each row has all objects of a class, without a stack.
    pub by_class: bool,
    /// CPU time of the request, in microseconds.
    pub cpu_us: u64,
    /// The sums.
    pub rows: Vec<SiteFill>,
}

const HEAD: usize = 37;
const SUM: usize = 32;
const ROW: usize = 8 + 3 * SUM;

fn put_sum(out: &mut Vec<u8>, sum: &Sum) {
    out.extend(sum.count.to_be_bytes());
    out.extend(sum.sum.to_be_bytes());
    out.extend(sum.max.to_be_bytes());
    out.extend(sum.variance.to_be_bytes());
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .fold(0, |word, byte| word << 8 | u32::from(*byte))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) << 32 | u64::from(word(bytes, at + 4))
}

/// Decodes a sum; values that are negative or not a number count as zero.
fn sum(bytes: &[u8]) -> Sum {
    let real = |at: usize| Some(f64::from_bits(long(bytes, at))).filter(|n| n.is_finite());
    let real = |at: usize| real(at).unwrap_or(0.0).max(0.0);
    Sum {
        count: real(0),
        sum: real(8),
        max: long(bytes, 16),
        variance: real(24),
    }
}

impl Fills {
    /// Encodes the answer, with the numbers that classes and traces have in a profile.
    #[must_use]
    pub fn encode(&self, mut numbers: impl FnMut(ClassId, TraceId) -> (u32, u32)) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + ROW * self.rows.len());
        out.extend(self.number.to_be_bytes());
        for number in [self.objects, self.read, self.cpu_us, self.left_out] {
            out.extend(number.to_be_bytes());
        }
        out.push(u8::from(self.by_class));
        for row in &self.rows {
            let (class, trace) = numbers(row.class, row.trace);
            out.extend(class.to_be_bytes());
            out.extend(trace.to_be_bytes());
            for sum in [&row.size, &row.capacity, &row.capacity_bytes] {
                put_sum(&mut out, sum);
            }
        }
        out
    }

    /// Decodes the bytes of [`Fills::encode`]; classes and traces have those numbers. `None` for other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Fills> {
        let (head, rows) = bytes.split_at_checked(HEAD)?;
        let rows = rows.chunks_exact(ROW);
        if !rows.remainder().is_empty() {
            return None;
        }
        let row = |row: &[u8]| SiteFill {
            class: ClassId(word(row, 0)),
            trace: TraceId(word(row, 4)),
            size: sum(&row[8..]),
            capacity: sum(&row[8 + SUM..]),
            capacity_bytes: sum(&row[8 + 2 * SUM..]),
        };
        Some(Fills {
            number: word(head, 0),
            objects: long(head, 4),
            read: long(head, 12),
            cpu_us: long(head, 20),
            left_out: long(head, 28),
            by_class: head[36] != 0,
            rows: rows.map(row).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fills() -> Fills {
        let mut size = Sum::default();
        size.add(3, 1.0);
        size.add(9, 2.5);
        let row = SiteFill {
            class: ClassId(7),
            trace: TraceId(8),
            size,
            ..SiteFill::default()
        };
        Fills {
            number: 5,
            objects: 1 << 33,
            read: 2,
            cpu_us: 77,
            left_out: 3,
            by_class: true,
            rows: vec![row, SiteFill::default()],
        }
    }

    #[test]
    fn answers_survive_their_bytes_and_damaged_ones_are_no_answer() {
        let whole = fills();
        let bytes = whole.encode(|class, trace| (class.0, trace.0));
        assert_eq!(Fills::decode(&bytes), Some(whole));
        for cut in 0..bytes.len() {
            let is_whole = cut >= HEAD && (cut - HEAD).is_multiple_of(ROW);
            assert_eq!(Fills::decode(&bytes[..cut]).is_some(), is_whole, "{cut}");
        }
        let nonsense = vec![0xff; HEAD + ROW];
        let read = Fills::decode(&nonsense).expect("long enough");
        assert_eq!(read.rows[0].size.sum, 0.0);
    }

    /// Each object of a known population is examined with its own probability.
    #[test]
    fn sums_of_a_part_are_those_of_the_whole_within_their_variance() {
        let mut random = crate::Random::new(7);
        let (runs, objects) = (400, 500_u64);
        let truth: f64 = (0..objects).map(|n| (n % 50) as f64).sum();
        let (mut inside, mut mean) = (0, 0.0);
        for _ in 0..runs {
            let mut sum = Sum::default();
            for n in 0..objects {
                let chance = if n % 2 == 0 { 0.1 } else { 0.5 };
                if random.uniform() < chance {
                    sum.add(n % 50, 1.0 / chance);
                }
            }
            mean += sum.sum / f64::from(runs);
            inside += i32::from((sum.sum - truth).abs() <= 1.96 * sum.variance.sqrt());
        }
        assert!((mean / truth - 1.0).abs() < 0.02, "{mean} {truth}");
        assert!(inside >= runs * 92 / 100, "{inside} of {runs}");
    }
}
