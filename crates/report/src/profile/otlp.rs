//! Profiles in the format of an OpenTelemetry collector (OTLP 1.9, `v1development`): the protobuf of
//! `ExportProfilesServiceRequest`, encoded by hand.
//!
//! Data that profiles share (texts, functions, locations, stacks, attributes) is in tables of the request and referred
//! to by index; entry 0 of each table means none. A profile of OTLP has one metric.

use ::profile::write::ThreadNames;
use ::profile::write::protobuf::Message;
use ::profile::{FrameId, Line, Metric, Profile, WeightedStack};
use std::collections::HashMap;

/// Profiles of one range of time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The stacks.
    pub profile: &'a Profile,
    /// The metrics to send.
    pub metrics: &'a [Metric],
    /// When it began.
    pub from_ms: u64,
    /// When it ended.
    pub to_ms: u64,
}

/// The request that exports profiles of a program. `attributes` are those of the resource, such as `service.name`.
pub fn write(parts: &[Part<'_>], attributes: &[(String, String)]) -> Vec<u8> {
    let mut tables = Tables::default();
    let mut scope = Message::default();
    let mut scope_of_code = Message::default();
    scope_of_code.bytes(1, b"tenure");
    scope_of_code.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
    scope.bytes(1, &scope_of_code.0);
    for part in parts {
        for metric in part.metrics {
            let profile = tables.profile(part, *metric);
            scope.bytes(2, &profile.0);
        }
    }
    let mut resource = Message::default();
    for (key, value) in attributes {
        let mut attribute = Message::default();
        attribute.bytes(1, key.as_bytes());
        attribute.bytes(2, &text_value(value).0);
        resource.bytes(1, &attribute.0);
    }
    let mut all = Message::default();
    all.bytes(1, &resource.0);
    all.bytes(2, &scope.0);
    let mut request = Message::default();
    request.bytes(1, &all.0);
    request.bytes(2, &tables.dictionary().0);
    request.0
}

/// A text as a value of type `AnyValue`.
fn text_value(text: &str) -> Message {
    let mut value = Message::default();
    value.bytes(1, text.as_bytes());
    value
}

/// The index of each entry of a table; the first one is 1.
struct Table<K>(HashMap<K, u64>, Message);

impl<K> Default for Table<K> {
    fn default() -> Table<K> {
        Table(HashMap::new(), Message::default())
    }
}

impl<K: std::hash::Hash + Eq> Table<K> {
    /// The index of an entry, which is added to field `field` of the dictionary when it is new.
    fn number(&mut self, field: u32, key: K, entry: impl FnOnce() -> Message) -> u64 {
        let next = self.0.len() as u64 + 1;
        *self.0.entry(key).or_insert_with(|| {
            self.1.bytes(field, &entry().0);
            next
        })
    }
}

/// Fields of `ProfilesDictionary`.
mod field {
    pub(super) const MAPPING: u32 = 1;
    pub(super) const LOCATION: u32 = 2;
    pub(super) const FUNCTION: u32 = 3;
    pub(super) const LINK: u32 = 4;
    pub(super) const STRING: u32 = 5;
    pub(super) const ATTRIBUTE: u32 = 6;
    pub(super) const STACK: u32 = 7;
}

#[derive(Default)]
struct Tables {
    strings: Table<String>,
    functions: Table<[u64; 3]>,
    locations: Table<(u64, u64)>,
    stacks: Table<Vec<u64>>,
    threads: Table<String>,
}

impl Tables {
    fn string(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let bytes = || Message(text.as_bytes().to_vec());
        self.strings.number(field::STRING, text.to_owned(), bytes)
    }

    fn location(&mut self, name: &str, system_name: &str, file: &str, line: u64) -> u64 {
        let key = [name, system_name, file].map(|text| self.string(text));
        let function = self.functions.number(field::FUNCTION, key, || {
            let mut function = Message::default();
            for (field, text) in (1..).zip(key) {
                function.number(field, text);
            }
            function
        });
        self.locations
            .number(field::LOCATION, (function, line), || {
                let mut place = Message::default();
                place.number(1, function);
                place.number(2, line);
                let mut location = Message::default();
                location.bytes(3, &place.0);
                location
            })
    }

    fn frame(&mut self, profile: &Profile, id: FrameId) -> u64 {
        let frame = profile.stacks.frame(id);
        let method = profile.stacks.method(frame.method);
        let name = profile.frame_name(frame);
        let system_name = format!("{name}{}", profile.names.get(method.signature));
        let line = match frame.line {
            Line::Number(line) => u64::from(line),
            _ => 0,
        };
        self.location(&name, &system_name, profile.names.get(method.source), line)
    }

    /// A stack, innermost frame first, preceded by the class.
    fn stack(&mut self, profile: &Profile, stack: &WeightedStack) -> u64 {
        let mut locations = Vec::new();
        if let Some(class) = stack.class {
            let name = format!("[{}]", profile.names.get(class));
            locations.push(self.location(&name, &name, "", 0));
        }
        for id in profile.stacks.frames(stack.trace) {
            locations.push(self.frame(profile, *id));
        }
        self.stacks.number(field::STACK, locations.clone(), || {
            let mut entry = Message::default();
            entry.packed(1, locations);
            entry
        })
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut kind = Message::default();
        kind.number(1, self.string(name));
        kind.number(2, self.string(unit));
        kind
    }

    /// One profile: the stacks of a metric.
    fn profile(&mut self, part: &Part<'_>, metric: Metric) -> Message {
        let mut out = Message::default();
        let kind = self.value_type(metric.name(), metric.unit());
        out.bytes(1, &kind.0);
        let threads = ThreadNames::of(part.profile);
        let mut order = Vec::new();
        let mut values: HashMap<(u64, u64), u64> = HashMap::new();
        for stack in part.profile.stacks(metric) {
            let number = self.stack(part.profile, &stack);
            let thread = threads.get(part.profile, stack.trace);
            let thread = thread.map_or(0, |name| self.thread(name));
            let value = values.entry((number, thread)).or_insert_with_key(|key| {
                order.push(*key);
                0
            });
            *value = value.saturating_add(stack.value);
        }
        for key in order {
            let (stack, thread) = key;
            let mut sample = Message::default();
            sample.number(1, stack);
            if thread != 0 {
                sample.packed(2, [thread]);
            }
            sample.packed(4, [values[&key]]);
            out.bytes(2, &sample.0);
        }
        out.fixed(3, part.from_ms.saturating_mul(1_000_000));
        let time_ms = part.to_ms.saturating_sub(part.from_ms);
        out.number(4, time_ms.saturating_mul(1_000_000));
        let samples = part.profile.samples.as_ref();
        if let Some(samples) = samples.filter(|table| table.interval_ns > 0) {
            let kind = self.value_type("cpu", "nanoseconds");
            out.bytes(5, &kind.0);
            out.number(6, samples.interval_ns);
        }
        out
    }

    /// The attribute with the name of a thread.
    fn thread(&mut self, name: String) -> u64 {
        let key = self.string("thread.name");
        let value = text_value(&name);
        self.threads.number(field::ATTRIBUTE, name, || {
            let mut attribute = Message::default();
            attribute.number(1, key);
            attribute.bytes(2, &value.0);
            attribute
        })
    }

    /// The tables, each with its empty first entry.
    fn dictionary(self) -> Message {
        let mut all = Message::default();
        for (field, entries) in [
            (field::MAPPING, Message::default()),
            (field::LOCATION, self.locations.1),
            (field::FUNCTION, self.functions.1),
            (field::LINK, Message::default()),
            (field::STRING, self.strings.1),
            (field::ATTRIBUTE, self.threads.1),
            (field::STACK, self.stacks.1),
        ] {
            all.bytes(field, &[]);
            all.0.extend(entries.0);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a message: their numbers, each with its integer value or its bytes.
    #[derive(Debug)]
    struct Fields(Vec<(u64, u64, Vec<u8>)>);

    impl Fields {
        fn of(mut bytes: &[u8]) -> Fields {
            let mut fields = Vec::new();
            while !bytes.is_empty() {
                let key = varint(&mut bytes);
                let (number, value, text) = match key & 7 {
                    0 => (key >> 3, varint(&mut bytes), Vec::new()),
                    1 => {
                        let (eight, rest) = bytes.split_at(8);
                        bytes = rest;
                        let value = u64::from_le_bytes(eight.try_into().expect("eight"));
                        (key >> 3, value, Vec::new())
                    }
                    2 => {
                        let length = varint(&mut bytes) as usize;
                        let (text, rest) = bytes.split_at(length);
                        bytes = rest;
                        (key >> 3, 0, text.to_vec())
                    }
                    other => panic!("kind {other}"),
                };
                fields.push((number, value, text));
            }
            Fields(fields)
        }

        fn number(&self, field: u64) -> u64 {
            let found = self.0.iter().find(|one| one.0 == field);
            found.map_or(0, |one| one.1)
        }

        fn all(&self, field: u64) -> Vec<Fields> {
            self.raw(field)
                .into_iter()
                .map(|text| Fields::of(&text))
                .collect()
        }

        fn raw(&self, field: u64) -> Vec<Vec<u8>> {
            let found = self.0.iter().filter(|one| one.0 == field);
            found.map(|one| one.2.clone()).collect()
        }

        /// Numbers in a packed list.
        fn list(&self, field: u64) -> Vec<u64> {
            let mut numbers = Vec::new();
            for packed in self.raw(field) {
                let mut rest = &packed[..];
                while !rest.is_empty() {
                    numbers.push(varint(&mut rest));
                }
            }
            numbers
        }
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return value;
            }
        }
    }

    #[test]
    fn stacks_and_values_come_back_through_the_tables() {
        let profile = crate::profile::tests::profile();
        let part = Part {
            profile: &profile,
            metrics: &[Metric::Samples, Metric::Blocked],
            from_ms: 1000,
            to_ms: 16_000,
        };
        let attributes = [("service.name".to_owned(), "shop".to_owned())];
        let request = Fields::of(&write(&[part], &attributes));
        let dictionary = &request.all(2)[0];
        let strings: Vec<String> = dictionary
            .raw(5)
            .into_iter()
            .map(|text| String::from_utf8(text).expect("text"))
            .collect();
        assert_eq!(strings[0], "");
        let text = |at: u64| strings[at as usize].as_str();
        let (locations, functions) = (dictionary.all(2), dictionary.all(3));
        let (stacks, attributes) = (dictionary.all(7), dictionary.all(6));
        for first in [&locations[0], &functions[0], &stacks[0], &attributes[0]] {
            assert!(first.0.is_empty(), "entry 0 is none");
        }
        let all = &request.all(1)[0];
        let service = &all.all(1)[0].all(1)[0];
        assert_eq!(service.raw(1), [b"service.name"]);
        assert_eq!(service.all(2)[0].raw(1), [b"shop"]);
        let profiles = all.all(2)[0].all(2);
        let kinds: Vec<[&str; 2]> = profiles
            .iter()
            .map(|one| [1, 2].map(|field| text(one.all(1)[0].number(field))))
            .collect();
        assert_eq!(kinds, [["samples", "count"], ["delay", "nanoseconds"]]);
        assert_eq!(profiles[0].number(3), 1_000_000_000);
        assert_eq!(profiles[0].number(4), 15_000_000_000);
        let rows = |profile: &Fields| -> Vec<(Vec<String>, u64, String)> {
            let row = |sample: &Fields| {
                let stack = stacks[sample.number(1) as usize].list(1);
                let names = stack.iter().map(|location| {
                    let line = &locations[*location as usize].all(3)[0];
                    let name = text(functions[line.number(1) as usize].number(1));
                    format!("{name}:{}", line.number(2))
                });
                let thread = sample.list(2).first().map(|at| {
                    let attribute = &attributes[*at as usize];
                    assert_eq!(text(attribute.number(1)), "thread.name");
                    String::from_utf8(attribute.all(2)[0].raw(1)[0].clone()).expect("text")
                });
                (
                    names.collect(),
                    sample.list(4)[0],
                    thread.unwrap_or_default(),
                )
            };
            profile.all(2).iter().map(row).collect()
        };
        let row = |names: &[&str], value, thread: &str| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            (names, value, thread.to_owned())
        };
        assert_eq!(
            rows(&profiles[0]),
            [
                row(&["demo.Cpu.hot:3", "demo.Cpu.main:14"], 9, ""),
                row(&["demo.Cpu.<init>:9", "demo.Cpu.main:15"], 3, "main"),
            ]
        );
        let blocked = rows(&profiles[1]);
        assert_eq!((blocked.len(), blocked[0].1), (1, 40_000_000));
        assert_eq!(blocked[0].0[0], "[java.lang.Object]:0");
    }
}
