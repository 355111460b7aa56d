//! A pprof profile read by a decoder that shares nothing with the one that writes it: protobuf's
//! wire format, and of `profile.proto` the samples with their types and stacks.

use std::collections::HashMap;

/// What a profile says.
#[derive(Debug)]
pub struct Decoded {
    /// `type/unit` of each value of a sample.
    pub types: Vec<String>,
    /// The samples.
    pub samples: Vec<Sample>,
    /// Between two samples, in the unit of the last type.
    pub period: u64,
    /// Remarks.
    pub comments: Vec<String>,
}

/// A stack with its values.
#[derive(Debug)]
pub struct Sample {
    /// Function and line, innermost first.
    pub frames: Vec<(String, u64)>,
    /// One for each of [`Decoded::types`].
    pub values: Vec<u64>,
}

impl Decoded {
    /// Reads a profile that is not compressed any more.
    ///
    /// # Panics
    ///
    /// If it is not one: the test that asks has failed.
    pub fn of(bytes: &[u8]) -> Decoded {
        let texts: Vec<String> = messages(bytes, 6)
            .iter()
            .map(|text| String::from_utf8(text.to_vec()).expect("UTF-8"))
            .collect();
        assert_eq!(texts[0], "", "the first string is empty");
        let text = |id: u64| texts[id as usize].clone();
        let functions: HashMap<u64, String> = messages(bytes, 5)
            .iter()
            .map(|function| (number(function, 1), text(number(function, 2))))
            .collect();
        let locations: HashMap<u64, (String, u64)> = messages(bytes, 4)
            .iter()
            .map(|location| {
                let line = messages(location, 4)[0];
                let name = functions[&number(line, 1)].clone();
                (number(location, 1), (name, number(line, 2)))
            })
            .collect();
        let types = messages(bytes, 1)
            .into_iter()
            .map(|kind| format!("{}/{}", text(number(kind, 1)), text(number(kind, 2))));
        let samples = messages(bytes, 2).into_iter().map(|sample| {
            let frames = numbers(sample, 1);
            Sample {
                frames: frames.iter().map(|id| locations[id].clone()).collect(),
                values: numbers(sample, 2),
            }
        });
        Decoded {
            types: types.collect(),
            samples: samples.collect(),
            period: number(bytes, 12),
            comments: numbers(bytes, 13).into_iter().map(text).collect(),
        }
    }

    /// The sums of the values of the stacks that have a function whose name contains this.
    pub fn sum(&self, function: &str) -> Vec<u64> {
        let mut sums = vec![0; self.types.len()];
        for sample in &self.samples {
            if sample
                .frames
                .iter()
                .any(|(name, _)| name.contains(function))
            {
                sums.iter_mut()
                    .zip(&sample.values)
                    .for_each(|(sum, value)| *sum += value);
            }
        }
        sums
    }
}

/// A field of a protobuf message: a number, or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a varint of more than ten bytes");
}

/// The fields of a message that have this number.
fn fields(mut message: &[u8], wanted: u64) -> Vec<Field<'_>> {
    let mut out = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut message)),
            2 => {
                let length = varint(&mut message) as usize;
                let (inner, rest) = message.split_at(length);
                message = rest;
                Field::Bytes(inner)
            }
            other => panic!("wire type {other}"),
        };
        if key >> 3 == wanted {
            out.push(field);
        }
    }
    out
}

fn messages(message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let bytes = fields(message, wanted)
        .into_iter()
        .map(|field| match field {
            Field::Bytes(bytes) => bytes,
            Field::Number(number) => panic!("{number} in the place of a message"),
        });
    bytes.collect()
}

/// A number, 0 where it is not said.
fn number(message: &[u8], wanted: u64) -> u64 {
    numbers(message, wanted).first().copied().unwrap_or(0)
}

/// Numbers, packed or one by one.
fn numbers(message: &[u8], wanted: u64) -> Vec<u64> {
    let mut out = Vec::new();
    for field in fields(message, wanted) {
        match field {
            Field::Number(number) => out.push(number),
            Field::Bytes(mut packed) => {
                while !packed.is_empty() {
                    out.push(varint(&mut packed));
                }
            }
        }
    }
    out
}
