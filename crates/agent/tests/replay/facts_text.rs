//! Facts of a text profile.

use std::collections::HashMap;

use hprof_text::{CpuKind, Frame, TextLine, TextReader, TextRecord, write_record};

use super::facts::{Facts, Site, Volume, plain};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn frame(frame: &Frame<'_>) -> String {
    let line = match frame.line {
        TextLine::Number(number) => number.to_string(),
        _ => "?".to_owned(),
    };
    let class = plain(&text(frame.class));
    format!("{class}.{}:{line}", text(frame.method))
}

/// Reads everything, and checks that each byte is as the original would have printed it: what is
/// read and written again must be the same, and no trace is missing or written twice.
pub(crate) fn read(bytes: &[u8]) -> Facts {
    let mut facts = Facts::default();
    let mut traces = HashMap::from([(300_000, Vec::new())]);
    let mut reader = TextReader::new(bytes);
    let mut again = Vec::new();
    for record in reader.by_ref() {
        write_record(&mut again, &record).expect("memory");
        one(&mut facts, &mut traces, &record);
    }
    for diagnostic in reader.diagnostics().iter() {
        facts.problems.push(format!("{diagnostic:?}"));
    }
    if again != bytes {
        let at = again.iter().zip(bytes).position(|(a, b)| a != b);
        let at = at.unwrap_or(again.len().min(bytes.len()));
        let from = at.saturating_sub(40);
        let piece = text(&bytes[from..bytes.len().min(at + 40)]);
        facts
            .problems
            .push(format!("not the original's format at {at}: {piece:?}"));
    }
    facts
}

fn one(facts: &mut Facts, traces: &mut HashMap<u32, Vec<String>>, record: &TextRecord<'_>) {
    // The original prints the empty trace now and then; a serial has one meaning all the same.
    let known = |facts: &mut Facts, serial: u32| {
        traces.get(&serial).cloned().unwrap_or_else(|| {
            facts.problems.push(format!("no TRACE {serial}"));
            Vec::new()
        })
    };
    match record {
        TextRecord::Trace(trace) => {
            let frames = trace.frames.iter().map(frame).collect();
            if traces.insert(trace.serial, frames).is_some() && trace.serial != 300_000 {
                facts.problems.push(format!("TRACE {} twice", trace.serial));
            }
        }
        TextRecord::ThreadStart(start) => {
            *facts.threads.entry(text(start.name)).or_default() += 1;
        }
        TextRecord::SitesBegin { order, .. } => {
            facts.section(&format!("SITES by {order:?}"));
            facts.sites.push(Vec::new());
        }
        TextRecord::Site(row) => {
            let site = Site {
                class: plain(&text(row.class)),
                frames: known(facts, row.trace),
                live: Volume {
                    objects: row.live_objects,
                    bytes: row.live_bytes,
                },
                allocated: Volume {
                    objects: row.allocated_objects,
                    bytes: row.allocated_bytes,
                },
            };
            facts.sites.last_mut().expect("begun").push(site);
        }
        TextRecord::CpuBegin { kind, total, .. } => {
            facts.section(&format!("CPU {kind:?}"));
            match kind {
                CpuKind::Samples => facts.samples.push((total.unsigned_abs(), Vec::new())),
                CpuKind::Time => facts.calls.push(Vec::new()),
                CpuKind::Running | CpuKind::Waiting => {}
            }
        }
        TextRecord::Cpu(row) => {
            let row = (known(facts, row.trace), row.count);
            match facts.sections.last().map(String::as_str) {
                Some("CPU Time") => facts.calls.last_mut().expect("begun").push(row),
                _ => facts.samples.last_mut().expect("begun").1.push(row),
            }
        }
        TextRecord::OldBegin => {
            facts.section("CPU old");
            facts.pairs.push(Vec::new());
        }
        TextRecord::Old(row) => {
            let row = (text(row.callee), text(row.caller), row.count);
            facts.pairs.last_mut().expect("begun").push(row);
        }
        TextRecord::Wait(wait) => {
            let key = (text(wait.monitor), wait.done);
            *facts.waits.entry(key).or_default() += 1;
        }
        TextRecord::MonitorDumpBegin => {
            facts.section("MONITOR DUMP");
            facts.monitors.clear();
        }
        TextRecord::MonitorThread(thread) => drop(known(facts, thread.trace)),
        TextRecord::Monitor(one) => facts.monitors.push((
            text(one.name),
            one.owner.map(|owner| owner.1),
            one.waiters.len(),
            one.notify_waiters.len(),
        )),
        TextRecord::MonitorTimeBegin { .. } => facts.section("MONITOR TIME"),
        TextRecord::MonitorTime(row) => drop(known(facts, row.trace)),
        TextRecord::HeapBegin { .. } => {
            facts.section("HEAP DUMP");
            facts.objects.clear();
        }
        TextRecord::Object(object) => {
            let frames = known(facts, object.trace);
            facts.object(plain(&text(object.class)), frames);
        }
        TextRecord::Array(array) => {
            let frames = known(facts, array.trace);
            facts.object(plain(&text(array.class)), frames);
        }
        TextRecord::Note(note) => facts.problems.push(format!("NOTE: {}", text(note))),
        _ => {}
    }
}
