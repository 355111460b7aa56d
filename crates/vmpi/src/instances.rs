//! The live objects of one class, as the VM lists them while the program runs: when and where each was allocated, how
//! large it is, and, if the VM may run code of the program, the results of methods of the objects.

use std::fmt;
use std::str::FromStr;

use crate::class_options::{ClassOptions, Share};
use crate::content::Fill;
use crate::ids::TraceId;

/// Request the `toString` of objects.
pub const TEXT: u8 = 1;
/// Request their `hashCode`.
pub const HASH: u8 = 2;
/// Request which of them are equal, by `hashCode` and `equals`.
pub const EQUAL: u8 = 4;
/// Request their order, by `compareTo`.
pub const ORDER: u8 = 8;

/// The most objects that are listed.
pub const MOST: u32 = 50_000;

/// A request. As text: `NUMBER SAMPLE ASK LIMIT CLASS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceQuery {
    /// The number of the request, which the answer repeats.
    pub number: u32,
    /// The most objects that are listed, a random sample of all.
    pub sample: u32,
    /// What is requested of them: [`TEXT`], [`HASH`], [`EQUAL`], [`ORDER`].
    pub ask: u8,
    /// The most characters of a text.
    pub text_limit: u32,
    /// The class, as in Java source.
    pub class: String,
}

impl fmt::Display for InstanceQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            sample,
            ask,
            text_limit,
            class,
        } = self;
        write!(f, "{number} {sample} {ask} {text_limit} {class}")
    }
}

/// A text that is not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected NUMBER SAMPLE ASK LIMIT CLASS")]
pub struct NoQuery;

impl FromStr for InstanceQuery {
    type Err = NoQuery;

    fn from_str(text: &str) -> Result<Self, NoQuery> {
        fn number<T: FromStr>(word: &str) -> Result<T, NoQuery> {
            word.parse().map_err(|_| NoQuery)
        }
        let words: Vec<&str> = text.splitn(5, ' ').collect();
        let [count, sample, ask, limit, class] = words[..] else {
            return Err(NoQuery);
        };
        Ok(Self {
            number: number(count)?,
            sample: number(sample)?,
            ask: number(ask)?,
            text_limit: number(limit)?,
            class: class.to_owned(),
        })
    }
}

/// One class with the requested name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedClass {
    /// A description of its loader; empty for the boot loader.
    pub loader: String,
    /// Its current options; `None` if its objects are not recorded any more.
    pub options: Option<ClassOptions>,
}

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedObject {
    /// The index of its class.
    pub class: u32,
    /// The stack that allocated it.
    pub trace: TraceId,
    /// The allocation time, in milliseconds since 1970. It is exact or a little too early.
    pub born_ms: u64,
    /// Its `System.identityHashCode`.
    pub identity: i32,
    /// Its size and capacity.
    pub fill: Fill,
    /// The results of its methods.
    pub answer: OwnAnswer,
}

/// The results of an object's methods. A result is missing if it was not requested or the method threw an exception.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAnswer {
    /// `hashCode`.
    pub hash: Option<i32>,
    /// `toString`, cut to the limit.
    pub text: Option<String>,
    /// Equal objects have the same number, from 1; 0 if not requested.
    pub group: u32,
    /// The position in the order of `compareTo`, from 1; objects that compare as equal have the same position. 0 if not
    /// requested.
    pub rank: u32,
    /// A description of the first exception that was thrown.
    pub fault: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The number of the request.
    pub number: u32,
    /// Live objects that are tracked.
    pub objects: u64,
    /// Whether code of the program may be run.
    pub own_code: bool,
    /// Requests that failed, and why, one per line.
    pub notes: Vec<String>,
    /// The classes with this name.
    pub classes: Vec<ListedClass>,
    /// The objects, a sample of all.
    pub rows: Vec<ListedObject>,
}

/// Stands for a missing number.
const NONE: u64 = u64::MAX;

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_be_bytes());
    out.extend(text.as_bytes());
}

fn put_maybe(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_text(out, text);
    }
}

impl Listing {
    /// Encodes the answer, with the numbers that traces have in a profile.
    #[must_use]
    pub fn encode(&self, serial: impl Fn(TraceId) -> u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 64 * self.rows.len());
        out.extend(self.number.to_be_bytes());
        out.extend(self.objects.to_be_bytes());
        out.push(u8::from(self.own_code));
        out.extend((self.notes.len() as u32).to_be_bytes());
        self.notes.iter().for_each(|note| put_text(&mut out, note));
        out.extend((self.classes.len() as u32).to_be_bytes());
        for class in &self.classes {
            put_text(&mut out, &class.loader);
            let options = class.options.unwrap_or_default();
            out.push(options.bits() | u8::from(class.options.is_none()) << 7);
            out.extend(options.share.millionths().to_be_bytes());
        }
        for row in &self.rows {
            let fill = row.fill;
            out.extend(row.class.to_be_bytes());
            out.extend(serial(row.trace).to_be_bytes());
            out.extend(row.born_ms.to_be_bytes());
            out.extend(row.identity.to_be_bytes());
            let (size, capacity) = (fill.size.unwrap_or(NONE), fill.capacity.unwrap_or(NONE));
            for number in [size, capacity, fill.capacity_bytes] {
                out.extend(number.to_be_bytes());
            }
            out.push(u8::from(row.answer.hash.is_some()));
            out.extend(row.answer.hash.unwrap_or(0).to_be_bytes());
            out.extend(row.answer.group.to_be_bytes());
            out.extend(row.answer.rank.to_be_bytes());
            put_maybe(&mut out, row.answer.text.as_deref());
            put_maybe(&mut out, row.answer.fault.as_deref());
        }
        out
    }

    /// Decodes the bytes of [`Listing::encode`]; traces have those numbers. `None` for other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Listing> {
        let mut from = Reader(bytes);
        let mut listing = Listing {
            number: from.word()?,
            objects: from.long()?,
            own_code: from.byte()? != 0,
            ..Listing::default()
        };
        for _ in 0..from.word()? {
            listing.notes.push(from.text()?);
        }
        for _ in 0..from.word()? {
            let loader = from.text()?;
            let (bits, share) = (from.byte()?, from.word()?);
            let share = Share::new(f64::from(share) / 1e6)?;
            let options = ClassOptions::from_bits(bits & 31, share);
            let options = (bits & 1 << 7 == 0).then_some(options);
            listing.classes.push(ListedClass { loader, options });
        }
        while !from.0.is_empty() {
            listing.rows.push(from.object()?);
        }
        Some(listing)
    }
}

/// The remaining bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.word()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn maybe(&mut self) -> Option<Option<String>> {
        match self.byte()? {
            0 => Some(None),
            _ => self.text().map(Some),
        }
    }

    fn object(&mut self) -> Option<ListedObject> {
        let known = |number: u64| Some(number).filter(|number| *number != NONE);
        let mut row = ListedObject {
            class: self.word()?,
            trace: TraceId(self.word()?),
            born_ms: self.long()?,
            identity: self.word()?.cast_signed(),
            ..ListedObject::default()
        };
        row.fill = Fill {
            size: known(self.long()?),
            capacity: known(self.long()?),
            capacity_bytes: self.long()?,
        };
        let (has_hash, hash) = (self.byte()? != 0, self.word()?.cast_signed());
        row.answer = OwnAnswer {
            hash: has_hash.then_some(hash),
            group: self.word()?,
            rank: self.word()?,
            text: self.maybe()?,
            fault: self.maybe()?,
        };
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let share = Share::new(0.25).unwrap();
        let answer = OwnAnswer {
            hash: Some(-7),
            text: Some("äb".to_owned()),
            group: 2,
            rank: 9,
            fault: Some("equals: no".to_owned()),
        };
        let row = ListedObject {
            class: 1,
            trace: TraceId(5),
            born_ms: 1 << 40,
            identity: -1,
            fill: Fill {
                size: Some(3),
                capacity: None,
                capacity_bytes: 80,
            },
            answer,
        };
        Listing {
            number: 4,
            objects: 1 << 33,
            own_code: true,
            notes: vec!["late".to_owned()],
            classes: vec![
                ListedClass::default(),
                ListedClass {
                    loader: "app".to_owned(),
                    options: Some(ClassOptions::from_bits(18, share)),
                },
            ],
            rows: vec![row, ListedObject::default()],
        }
    }

    #[test]
    fn answers_survive_their_bytes_and_damaged_ones_are_no_answer() {
        let whole = listing();
        let bytes = whole.encode(|trace| trace.0);
        assert_eq!(Listing::decode(&bytes), Some(whole.clone()));
        // If the end is cut off between two objects, the rest is a valid answer with fewer objects.
        let mut shorter = whole.clone();
        shorter.rows.pop();
        let less = shorter.encode(|trace| trace.0).len();
        for cut in 0..bytes.len() {
            let read = Listing::decode(&bytes[..cut]);
            let rows = read.map(|listing| listing.rows.len());
            assert!(rows.is_none() || rows <= Some(1), "{cut} {less}");
        }
        // A claimed length is not used for an allocation.
        let mut long = bytes;
        long[13..17].fill(0xff);
        assert_eq!(Listing::decode(&long), None);
    }

    #[test]
    fn questions_are_lines() {
        let query = InstanceQuery {
            number: 7,
            sample: 1000,
            ask: TEXT | ORDER,
            text_limit: 80,
            class: "a.B$C[]".to_owned(),
        };
        assert_eq!(query.to_string(), "7 1000 9 80 a.B$C[]");
        assert_eq!(query.to_string().parse(), Ok(query));
        for wrong in ["", "1 2 3 4", "1 2 x 4 a.B", "1 2 300 4 a.B"] {
            assert_eq!(wrong.parse::<InstanceQuery>(), Err(NoQuery));
        }
    }
}
