//! The gzipped protobuf of `pprof` (its `profile.proto`), encoded by hand: nine messages.

use super::ThreadNames;
use super::protobuf::Message;
use crate::{FrameId, Line, Metric, Profile, WeightedStack};
use flate2::{Compression, GzBuilder};
use std::collections::HashMap;
use std::io::Write;

/// The gzipped profile: one sample per stack and thread, with a value for each metric. If stacks are separated by
/// thread, the label `thread` is the name of the thread.
pub fn write(profile: &Profile, metrics: &[Metric]) -> Vec<u8> {
    let plain = encode(profile, metrics);
    // No time stamp, so that the same profile always gives the same bytes.
    let mut gzip = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::default());
    let _ = gzip.write_all(&plain);
    gzip.finish().unwrap_or_default()
}

/// Field numbers of message Profile.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Strings, functions and locations, each with its id.
struct Tables<'a> {
    profile: &'a Profile,
    strings: Vec<String>,
    string_ids: HashMap<String, u64>,
    functions: HashMap<(u64, u64, u64), u64>,
    locations: HashMap<(u64, u64), u64>,
    out: Message,
}

impl Tables<'_> {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(id) = self.string_ids.get(text) {
            return *id;
        }
        let id = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.string_ids.insert(text.to_owned(), id);
        id
    }

    fn function(&mut self, name: &str, system_name: &str, file: &str) -> u64 {
        let key = (
            self.string(name),
            self.string(system_name),
            self.string(file),
        );
        let next = self.functions.len() as u64 + 1;
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let mut function = Message::default();
        function.number(1, next);
        function.number(2, key.0);
        function.number(3, key.1);
        function.number(4, key.2);
        self.out.bytes(field::FUNCTION, &function.0);
        self.functions.insert(key, next);
        next
    }

    fn location(&mut self, function: u64, line: u64) -> u64 {
        let next = self.locations.len() as u64 + 1;
        if let Some(id) = self.locations.get(&(function, line)) {
            return *id;
        }
        let mut place = Message::default();
        place.number(1, function);
        place.number(2, line);
        let mut location = Message::default();
        location.number(1, next);
        location.bytes(4, &place.0);
        self.out.bytes(field::LOCATION, &location.0);
        self.locations.insert((function, line), next);
        next
    }

    fn frame(&mut self, id: FrameId) -> u64 {
        let profile = self.profile;
        let frame = profile.stacks.frame(id);
        let method = profile.stacks.method(frame.method);
        let name = profile.frame_name(frame);
        let system_name = format!("{name}{}", profile.names.get(method.signature));
        let function = self.function(&name, &system_name, profile.names.get(method.source));
        let line = match frame.line {
            Line::Number(line) => u64::from(line),
            _ => 0,
        };
        self.location(function, line)
    }

    /// Locations of a stack, innermost first, preceded by the class.
    fn stack(&mut self, stack: &WeightedStack) -> Vec<u64> {
        let profile = self.profile;
        let mut locations = Vec::new();
        if let Some(class) = stack.class {
            let name = format!("[{}]", profile.names.get(class));
            let function = self.function(&name, &name, "");
            locations.push(self.location(function, 0));
        }
        for id in profile.stacks.frames(stack.trace) {
            locations.push(self.frame(*id));
        }
        locations
    }
}

fn encode(profile: &Profile, metrics: &[Metric]) -> Vec<u8> {
    let mut tables = Tables {
        profile,
        strings: Vec::new(),
        string_ids: HashMap::new(),
        functions: HashMap::new(),
        locations: HashMap::new(),
        out: Message::default(),
    };
    tables.string("");
    for metric in metrics {
        let kind = value_type(&mut tables, metric.name(), metric.unit());
        tables.out.bytes(field::SAMPLE_TYPE, &kind.0);
    }
    let threads = ThreadNames::of(profile);
    let thread_label = tables.string("thread");
    let mut order = Vec::new();
    let mut values: HashMap<(Vec<u64>, u64), Vec<u64>> = HashMap::new();
    for (column, metric) in metrics.iter().enumerate() {
        for stack in profile.stacks(*metric) {
            let locations = tables.stack(&stack);
            let thread = threads.get(profile, stack.trace);
            let thread = thread.map_or(0, |name| tables.string(&name));
            let row = values.entry((locations, thread)).or_insert_with_key(|key| {
                order.push(key.clone());
                vec![0; metrics.len()]
            });
            row[column] = row[column].saturating_add(stack.value);
        }
    }
    for key in order {
        let row = values.remove(&key).unwrap_or_default();
        let (locations, thread) = key;
        let mut sample = Message::default();
        sample.packed(1, locations);
        sample.packed(2, row);
        if thread != 0 {
            let mut label = Message::default();
            label.number(1, thread_label);
            label.number(2, thread);
            sample.bytes(3, &label.0);
        }
        tables.out.bytes(field::SAMPLE, &sample.0);
    }
    if let Some(samples) = profile
        .samples
        .as_ref()
        .filter(|table| table.interval_ns > 0)
    {
        let kind = value_type(&mut tables, "cpu", "nanoseconds");
        tables.out.bytes(field::PERIOD_TYPE, &kind.0);
        tables.out.number(field::PERIOD, samples.interval_ns);
    }
    let notes = profile.notes.iter().chain(&profile.agent_notes);
    let comments: Vec<u64> = notes.map(|note| tables.string(note)).collect();
    if !comments.is_empty() {
        tables.out.packed(field::COMMENT, comments);
    }
    let default = metrics.first().map(|metric| tables.string(metric.name()));
    let mut out = tables.out;
    out.number(
        field::TIME_NANOS,
        profile.created_ms.saturating_mul(1_000_000),
    );
    out.number(field::DEFAULT_SAMPLE_TYPE, default.unwrap_or(0));
    for text in &tables.strings {
        out.bytes(field::STRING_TABLE, text.as_bytes());
    }
    out.0
}

fn value_type(tables: &mut Tables<'_>, name: &str, unit: &str) -> Message {
    let mut kind = Message::default();
    kind.number(1, tables.string(name));
    kind.number(2, tables.string(unit));
    kind
}

#[cfg(test)]
mod tests;
