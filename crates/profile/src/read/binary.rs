//! The binary form.

use super::NoProfile;
use crate::cpu::Cost;
use crate::monitors::Contention;
use crate::names::NameId;
use crate::profile::{Profile, Thread};
use crate::sites::{Site, SiteTable, Volume};
use crate::stacks::{Frame, FrameId, Line, Method, TraceId, TraceKey};
use hprof::{
    AllocSite, Diagnostics, IdSize, ObjectId, RawRecord, Record, RecordTag, Serial,
    decode_modified_utf8, map_file, readable_class_name,
};
use rustc_hash::FxHashMap;

pub(super) fn read(data: &[u8]) -> Result<(Profile, Diagnostics), NoProfile> {
    let header = hprof::Header::parse(data).map_err(NoProfile::Header)?;
    let mut builder = Builder::default();
    let ids: IdSize = header.id_size;
    let map = map_file(data, |raw| match raw.decode(ids) {
        Some(record) => builder.record(&record),
        None => builder.extra(raw),
    })
    .map_err(NoProfile::Header)?;
    builder.profile.created_ms = header.timestamp_ms;
    if builder.profile.metrics().is_empty() && builder.traces.is_empty() {
        return Err(NoProfile::OnlyHeap);
    }
    Ok((builder.profile, map.diagnostics))
}

#[derive(Default)]
struct Builder<'a> {
    profile: Profile,
    names: FxHashMap<ObjectId, &'a [u8]>,
    classes: FxHashMap<Serial, NameId>,
    frames: FxHashMap<ObjectId, FrameId>,
    traces: FxHashMap<Serial, TraceId>,
}

impl<'a> Builder<'a> {
    fn name(&mut self, id: ObjectId) -> NameId {
        let bytes = self.names.get(&id).copied().unwrap_or_default();
        self.profile.names.intern(&decode_modified_utf8(bytes))
    }

    fn class(&self, serial: Serial) -> NameId {
        self.classes.get(&serial).copied().unwrap_or_default()
    }

    fn record(&mut self, record: &Record<'a>) {
        match record {
            Record::Utf8 { id, bytes } => {
                self.names.insert(*id, bytes);
            }
            Record::LoadClass { serial, name, .. } => {
                let bytes = self.names.get(name).copied().unwrap_or_default();
                let name = readable_class_name(&decode_modified_utf8(bytes));
                self.classes
                    .insert(*serial, self.profile.names.intern(&name));
            }
            Record::Frame(frame) => self.frame(frame),
            Record::Trace {
                serial,
                thread,
                frames,
            } => {
                let frames: Vec<FrameId> = frames
                    .iter()
                    .filter_map(|id| self.frames.get(id).copied())
                    .collect();
                let thread = (thread.0 != 0).then_some(*thread);
                let key = TraceKey {
                    serial: *serial,
                    thread,
                };
                let id = self.profile.stacks.push_trace(key, &frames);
                self.traces.insert(*serial, id);
            }
            Record::StartThread {
                thread,
                name,
                group,
                ..
            } => {
                let (name, group) = (self.name(*name), self.name(*group));
                let thread = Thread {
                    serial: thread.0,
                    name,
                    group,
                    ended: false,
                };
                self.profile.threads.push(thread);
            }
            Record::EndThread { thread } => {
                let threads = self.profile.threads.iter_mut();
                threads
                    .filter(|one| one.serial == thread.0)
                    .for_each(|one| one.ended = true);
            }
            Record::AllocSites { sites, .. } => self.sites(sites),
            Record::CpuSamples { total, samples } => {
                let mut left = i64::from(*total);
                for (count, serial) in samples {
                    let trace = self.trace(*serial);
                    left -= i64::from(*count);
                    self.profile
                        .samples
                        .get_or_insert_default()
                        .add(trace, u64::from(*count));
                }
                self.profile.samples.get_or_insert_default().unlisted += left.max(0) as u64;
            }
            _ => {}
        }
    }

    fn frame(&mut self, frame: &hprof::Frame) {
        let method = Method {
            class: self.class(frame.class),
            name: self.name(frame.method),
            signature: self.name(frame.signature),
            source: self.name(frame.source),
        };
        let line = match frame.line {
            number if number > 0 => Line::Number(number as u32),
            -2 => Line::Compiled,
            -3 => Line::Native,
            _ => Line::Unknown,
        };
        let method = self.profile.stacks.intern_method(method);
        let id = self.profile.stacks.intern_frame(Frame { method, line });
        self.frames.insert(frame.id, id);
    }

    fn sites(&mut self, sites: &[AllocSite]) {
        let mut table = SiteTable::default();
        for site in sites {
            let class = self.class(site.class);
            let trace = self.trace(site.trace);
            let volume = |objects: u32, bytes: u32| Volume {
                objects: u64::from(objects),
                bytes: u64::from(bytes),
            };
            table.add(Site {
                class,
                trace,
                live: volume(site.live_instances, site.live_bytes),
                allocated: volume(site.instances, site.bytes),
            });
        }
        self.profile.sites = Some(table);
    }

    /// The records of our agent that the format does not have.
    fn extra(&mut self, raw: &RawRecord<'_>) {
        let body = raw.body;
        match raw.known_tag() {
            Some(RecordTag::CpuTimes) if body.len() >= 8 => {
                let mut left = number(&body[..8]) as i64;
                for row in body[8..].chunks_exact(28) {
                    let trace = self.trace(Serial(number(&row[..4]) as u32));
                    let cost = Cost {
                        calls: number(&row[4..12]),
                        self_ns: number(&row[12..20]) as i64,
                        total_ns: number(&row[20..28]) as i64,
                    };
                    left -= cost.self_ns;
                    self.profile.costs.get_or_insert_default().add(trace, cost);
                }
                self.profile.costs.get_or_insert_default().unlisted_ns += left.max(0);
            }
            Some(RecordTag::MonitorTimes) if body.len() >= 8 => {
                let mut left = number(&body[..8]);
                for row in body[8..].chunks_exact(24) {
                    let class = self.class(Serial(number(&row[..4]) as u32));
                    let trace = self.trace(Serial(number(&row[4..8]) as u32));
                    let (count, blocked_ns) = (number(&row[8..16]), number(&row[16..24]));
                    left = left.saturating_sub(blocked_ns);
                    let row = Contention {
                        class,
                        trace,
                        count,
                        blocked_ns,
                    };
                    self.profile.contention.get_or_insert_default().add(row);
                }
                self.profile.contention.get_or_insert_default().unlisted_ns += left;
            }
            Some(RecordTag::WideAllocSites) => {
                let mut table = SiteTable::default();
                for row in body.chunks_exact(40) {
                    let class = self.class(Serial(number(&row[..4]) as u32));
                    let trace = self.trace(Serial(number(&row[4..8]) as u32));
                    let volume = |at: usize| Volume {
                        bytes: number(&row[at..at + 8]),
                        objects: number(&row[at + 8..at + 16]),
                    };
                    table.add(Site {
                        class,
                        trace,
                        live: volume(8),
                        allocated: volume(24),
                    });
                }
                self.profile.sites = Some(table);
            }
            _ => {}
        }
    }

    fn trace(&mut self, serial: Serial) -> TraceId {
        if let Some(id) = self.traces.get(&serial) {
            return *id;
        }
        let id = self.profile.stacks.push_trace(
            TraceKey {
                serial,
                thread: None,
            },
            &[],
        );
        self.traces.insert(serial, id);
        id
    }
}

/// A big-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
