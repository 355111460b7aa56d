//! Sizes of objects as a text in the dump. A dump that is a part of another one needs it, because the distances
//! between its objects do not show their sizes.

use std::fmt::Write;

/// The prefix of the text; readers that do not know it ignore the text.
const MARK: &str = "tenure: object sizes:";

/// Sizes of objects, for which HPROF has no field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredSizes {
    /// Bytes before the first field of an instance.
    pub header: u32,
    /// Bytes of the header of an array.
    pub array_header: u32,
    /// Bytes of a reference.
    pub reference: u32,
    /// Sizes are multiples of this.
    pub alignment: u32,
    /// Distances between objects that agreed with these sizes; `samples` is the number of all measured ones.
    pub agreeing: u64,
    /// See `agreeing`.
    pub samples: u64,
    /// Class id and size of an instance.
    pub classes: Vec<(u64, u64)>,
}

impl MeasuredSizes {
    /// The text of a UTF8 record.
    pub fn to_text(&self) -> String {
        let mut text = MARK.to_owned();
        for number in [
            self.header,
            self.array_header,
            self.reference,
            self.alignment,
        ] {
            let _ = write!(text, " {number}");
        }
        let _ = write!(text, " {} {}", self.agreeing, self.samples);
        for (class, size) in &self.classes {
            let _ = write!(text, " {class:x}={size}");
        }
        text
    }

    /// Parses such a text; `None` for any other text, and for numbers that no VM has.
    pub fn parse(text: &[u8]) -> Option<MeasuredSizes> {
        let text = text.strip_prefix(MARK.as_bytes())?;
        let mut words = std::str::from_utf8(text)
            .ok()?
            .strip_prefix(' ')?
            .split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let mut small = || number().and_then(|n| u32::try_from(n).ok());
        let (header, array_header) = (small()?, small()?);
        let (reference, alignment) = (small()?, small()?);
        let (agreeing, samples) = (number()?, number()?);
        let classes = words.map(|word| {
            let (class, size) = word.split_once('=')?;
            Some((u64::from_str_radix(class, 16).ok()?, size.parse().ok()?))
        });
        let sizes = MeasuredSizes {
            header,
            array_header,
            reference,
            alignment,
            agreeing,
            samples,
            classes: classes.collect::<Option<_>>()?,
        };
        sizes.are_possible().then_some(sizes)
    }

    fn are_possible(&self) -> bool {
        let alignment = u64::from(self.alignment);
        let mut sizes = self.classes.iter().map(|class| class.1);
        self.header <= 64
            && self.array_header <= 64
            && matches!(self.reference, 4 | 8)
            && (8..=256).contains(&self.alignment)
            && self.alignment.is_power_of_two()
            && self.agreeing <= self.samples
            && sizes.all(|size| (1..1 << 20).contains(&size) && size.is_multiple_of(alignment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_a_text_and_back() {
        let sizes = MeasuredSizes {
            header: 12,
            array_header: 16,
            reference: 4,
            alignment: 8,
            agreeing: 2181,
            samples: 2253,
            classes: vec![(0x7_04db_fe08, 32), (0x10, 16)],
        };
        let text = sizes.to_text();
        assert_eq!(
            text,
            "tenure: object sizes: 12 16 4 8 2181 2253 704dbfe08=32 10=16"
        );
        assert_eq!(MeasuredSizes::parse(text.as_bytes()), Some(sizes));
        for text in [
            "",
            "tenure: object sizes:",
            "tenure: object sizes: 12 16 4 8 2 1",
            "tenure: object sizes: 12 16 5 8 1 2",
            "tenure: object sizes: 12 16 4 8 1 2 secret",
            "tenure: object sizes: 12 16 4 8 1 2 10=20",
            "tenure: object sizes: 12 16 4 8 1 2 10=9999999999",
        ] {
            assert_eq!(MeasuredSizes::parse(text.as_bytes()), None, "{text}");
        }
    }
}
