//! speedscope's JSON file format: shared frames; for each metric one sampled profile, followed by one for each thread.

use super::label;
use ::profile::write::ThreadNames;
use ::profile::{Line, Metric, Profile, WeightedStack};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The most threads that have profiles of their own.
const MOST_THREADS: usize = 50;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The document.
pub fn write(profile: &Profile, metrics: &[Metric], title: &str) -> String {
    let mut frames = Frames {
        profile,
        threads: ThreadNames::of(profile),
        list: Vec::new(),
        ids: HashMap::new(),
    };
    let mut profiles = Vec::new();
    for metric in metrics {
        profiles.push(sampled(&mut frames, *metric, None));
        for thread in threads(&frames, *metric) {
            profiles.push(sampled(&mut frames, *metric, Some(&thread)));
        }
    }
    let document = json!({
        "$schema": SCHEMA,
        "shared": { "frames": frames.list },
        "profiles": profiles,
        "activeProfileIndex": 0,
        "name": title,
        "exporter": concat!("tenure ", env!("CARGO_PKG_VERSION")),
    });
    document.to_string()
}

/// Names of the threads with stacks of a metric, those with the largest sum first; empty if stacks are not separated
/// by thread.
fn threads(frames: &Frames<'_>, metric: Metric) -> Vec<String> {
    let profile = frames.profile;
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for stack in profile.stacks(metric) {
        if let Some(name) = frames.threads.get(profile, stack.trace) {
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(stack.value);
        }
    }
    let mut threads: Vec<_> = sums.into_iter().collect();
    threads.sort_by_key(|(_, value)| Reverse(*value));
    threads.truncate(MOST_THREADS);
    threads.into_iter().map(|(name, _)| name).collect()
}

/// The stacks of a metric, for all threads or for one.
fn sampled(frames: &mut Frames<'_>, metric: Metric, thread: Option<&str>) -> Value {
    let mut samples = Vec::new();
    let mut weights = Vec::new();
    for stack in frames.profile.stacks(metric) {
        let name = frames.threads.get(frames.profile, stack.trace);
        if thread.is_some() && name.as_deref() != thread {
            continue;
        }
        samples.push(frames.stack(&stack));
        weights.push(stack.value);
    }
    let unit = match metric.unit() {
        "count" => "none",
        unit => unit,
    };
    json!({
        "type": "sampled",
        "name": match thread {
            Some(thread) => format!("{}, thread {thread}", label(frames.profile, metric)),
            None => label(frames.profile, metric).to_owned(),
        },
        "unit": unit,
        "startValue": 0,
        "endValue": weights.iter().copied().fold(0, u64::saturating_add),
        "samples": samples,
        "weights": weights,
    })
}

struct Frames<'a> {
    profile: &'a Profile,
    threads: ThreadNames,
    list: Vec<Value>,
    ids: HashMap<(String, String, Option<u32>), usize>,
}

impl Frames<'_> {
    fn stack(&mut self, stack: &WeightedStack) -> Vec<usize> {
        let profile = self.profile;
        let mut ids = Vec::new();
        for id in profile.stacks.frames(stack.trace).iter().rev() {
            let frame = profile.stacks.frame(*id);
            let source = profile.stacks.method(frame.method).source;
            let line = match frame.line {
                Line::Number(line) => Some(line),
                _ => None,
            };
            let file = profile.names.get(source).to_owned();
            ids.push(self.frame(profile.frame_name(frame), file, line));
        }
        if let Some(class) = stack.class {
            ids.push(self.frame(
                format!("[{}]", profile.names.get(class)),
                String::new(),
                None,
            ));
        }
        ids
    }

    fn frame(&mut self, name: String, file: String, line: Option<u32>) -> usize {
        let list = &mut self.list;
        *self
            .ids
            .entry((name, file, line))
            .or_insert_with_key(|(name, file, line)| {
                let mut frame = json!({ "name": name });
                if !file.is_empty() {
                    frame["file"] = json!(file);
                }
                if let Some(line) = line {
                    frame["line"] = json!(line);
                }
                list.push(frame);
                list.len() - 1
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::profile;
    use super::*;

    #[test]
    fn the_document_has_the_shape_of_the_schema() {
        let profile = profile();
        let text = write(&profile, &profile.metrics(), "demo");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(document["$schema"], SCHEMA);
        let frames = document["shared"]["frames"].as_array().expect("frames");
        for frame in frames {
            assert!(frame["name"].is_string());
            assert!(frame.get("line").is_none_or(Value::is_u64));
        }
        let profiles = document["profiles"].as_array().expect("profiles");
        // One stack is that of the thread `main`.
        let of_main = profiles
            .iter()
            .filter(|one| one["name"] == "CPU samples, thread main");
        let of_main: Vec<_> = of_main.map(|one| &one["endValue"]).collect();
        assert_eq!(of_main, [3]);
        let names = profiles
            .iter()
            .map(|one| one["name"].as_str().expect("a name"));
        let whole = names.filter(|name| !name.contains(", thread ")).count();
        assert_eq!(whole, profile.metrics().len());
        let units = [
            "none",
            "nanoseconds",
            "microseconds",
            "milliseconds",
            "seconds",
            "bytes",
        ];
        for one in profiles {
            assert_eq!(one["type"], "sampled");
            assert!(units.contains(&one["unit"].as_str().expect("unit")));
            let samples = one["samples"].as_array().expect("samples");
            let weights = one["weights"].as_array().expect("weights");
            assert_eq!(samples.len(), weights.len());
            let sum: u64 = weights.iter().filter_map(Value::as_u64).sum();
            assert_eq!(one["endValue"].as_u64(), Some(sum));
            for index in samples
                .iter()
                .flat_map(|stack| stack.as_array().expect("a stack"))
            {
                assert!((index.as_u64().expect("an index") as usize) < frames.len());
            }
        }
        assert_eq!(profiles[0]["endValue"], 12);
    }

    #[test]
    fn equal_frames_are_shared() {
        let profile = profile();
        let text = write(&profile, &[Metric::Samples, Metric::CpuTime], "demo");
        // main at line 14 and at line 15, hot, and <init>.
        assert_eq!(text.matches("\"name\":\"demo.").count(), 4);
    }
}
