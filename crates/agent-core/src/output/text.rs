//! The text form (facts: section 3).

use super::sink::Sink;
use super::{
    Context, Emit, SitesSection, ThreadRecord, WaitRecord, class_of, known_thread, monitor_threads,
    shown, source_name, top_name, trace_of,
};
use crate::catalog::{Class, ResolvedTrace};
use crate::ids::{ObjectIds, thread_serial, trace_serial};
use crate::mutf8::encode;
use hprof_text::{
    AllocationStackRow, CpuKind, EstimateRow, Frame, Header, Monitor, MonitorThread, MonitorWait,
    OldRow, PRELUDE, RankRow, ReferenceRow, SiteOrder, SiteRow, TextRecord, ThreadStart, Trace,
    write_record,
};
use profile::{ContentionTable, CostTable, Estimate, Ranked, SampleTable, SiteTable, StackShare};
use std::io::Write;
use std::path::Path;
use vmpi::{ClassId, HeapSummary, MonitorInfo, ThreadId, ThreadStack, VmError};

/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// Writes the text form.
pub(crate) struct TextOutput {
    pub(super) sink: Sink,
    pub(super) ids: ObjectIds,
    /// `cpu=old` writes no header and no threads.
    bare: bool,
}

impl TextOutput {
    pub(crate) fn new(sink: Sink, ids: ObjectIds, bare: bool) -> TextOutput {
        TextOutput { sink, ids, bare }
    }

    pub(super) fn put(&mut self, record: &TextRecord<'_>) {
        // The sink stores its failures and returns none.
        let _ = write_record(&mut self.sink, record);
    }

    fn site(&mut self, context: &mut Context<'_>, table: &SiteTable, ranked: &Ranked) {
        let site = table.sites()[ranked.row];
        let (live, allocated) = shown(table, ranked.row);
        let class = context.catalog.class(context.vm, class_of(site.class));
        self.put(&TextRecord::Site(SiteRow {
            rank: ranked.rank,
            share: ranked.share * 100.0,
            accumulated: ranked.accumulated * 100.0,
            live_bytes: live.bytes,
            live_objects: live.objects,
            allocated_bytes: allocated.bytes,
            allocated_objects: allocated.objects,
            trace: trace_serial(trace_of(site.trace)).0,
            class: &encode(&class.name),
        }));
    }

    fn rank_row(&mut self, ranked: &Ranked, count: u64, trace: u32, name: &str, monitor: bool) {
        let name = encode(name);
        let row = RankRow {
            rank: ranked.rank,
            share: ranked.share * 100.0,
            accumulated: ranked.accumulated * 100.0,
            count,
            trace,
            name: &name,
        };
        self.put(&if monitor {
            TextRecord::MonitorTime(row)
        } else {
            TextRecord::Cpu(row)
        });
    }

    /// A table of times by stack.
    fn times_of(
        &mut self,
        context: &mut Context<'_>,
        kind: CpuKind,
        table: &CostTable,
        cutoff: f64,
    ) {
        let total = table.total_ns() / MS as i64;
        self.put(&TextRecord::CpuBegin {
            kind,
            total,
            date: context.date.as_bytes(),
        });
        for ranked in table.rank(cutoff) {
            let (trace, cost) = table.rows()[ranked.row];
            let trace = context.catalog.trace(context.vm, trace_of(trace));
            self.rank_row(
                &ranked,
                cost.calls,
                trace.serial.0,
                &top_name(&trace),
                false,
            );
        }
        self.put(&TextRecord::CpuEnd(kind));
    }
}

impl Emit for TextOutput {
    fn begin(&mut self, context: &mut Context<'_>, _unix_ms: u64) {
        if !self.bare {
            let created = context.date.as_bytes();
            self.put(&TextRecord::Header(Header {
                version: b"1.0.1",
                created,
            }));
            self.put(&TextRecord::Prelude(PRELUDE));
        }
    }

    fn class_loaded(&mut self, _: &mut Context<'_>, _: ClassId, _: &Class) {}

    fn class_unloaded(&mut self, _: &mut Context<'_>, _: ClassId, _: bool) {}

    fn thread_started(&mut self, _: &mut Context<'_>, thread: &ThreadRecord<'_>) {
        if !self.bare {
            let (name, group) = (encode(&thread.info.name), encode(&thread.info.group));
            self.put(&TextRecord::ThreadStart(ThreadStart {
                object: self.ids.id(thread.info.object).0,
                thread: thread_serial(thread.thread).0,
                name: &name,
                group: &group,
            }));
        }
    }

    fn thread_ended(&mut self, _: &mut Context<'_>, thread: ThreadId) {
        if !self.bare {
            self.put(&TextRecord::ThreadEnd {
                thread: thread_serial(thread).0,
            });
        }
    }

    fn trace(&mut self, _: &mut Context<'_>, trace: &ResolvedTrace) {
        let names: Vec<_> = trace
            .frames
            .iter()
            .map(|frame| {
                let source = encode(source_name(&frame.source));
                (
                    encode(&frame.class_name),
                    encode(&frame.method),
                    source,
                    frame.line,
                )
            })
            .collect();
        let frames = names.iter().map(|(class, method, source, line)| Frame {
            class,
            method,
            source,
            line: *line,
        });
        self.put(&TextRecord::Trace(Trace {
            serial: trace.serial.0,
            thread: trace.thread.map(|thread| thread.0),
            phase: None,
            frames: frames.collect(),
        }));
    }

    fn sites(&mut self, context: &mut Context<'_>, section: &SitesSection<'_>) {
        let order = match section.order {
            profile::SiteOrder::LiveBytes => SiteOrder::LiveBytes,
            profile::SiteOrder::AllocatedBytes => SiteOrder::AllocatedBytes,
        };
        self.put(&TextRecord::SitesBegin {
            order,
            date: context.date.as_bytes(),
        });
        for ranked in section.rows {
            self.site(context, section.table, ranked);
        }
        self.put(&TextRecord::SitesEnd);
    }

    fn estimates(&mut self, context: &mut Context<'_>, table: &SiteTable, interval: u64) {
        let time_ns = context.vm.elapsed_ns();
        let (time_ms, date) = (time_ns / MS, context.date.as_bytes());
        self.put(&TextRecord::EstimatesBegin {
            interval,
            time_ms,
            date,
        });
        let whole = |one: Estimate| [one.value, one.low, one.high].map(|part| part.round() as u64);
        for (at, one) in table.estimate_classes().iter().enumerate() {
            let class = context.catalog.class(context.vm, class_of(one.class));
            let allocated = one.estimate.allocated_bytes;
            self.put(&TextRecord::Estimate(EstimateRow {
                rank: at as u32 + 1,
                live_bytes: whole(one.estimate.live_bytes),
                allocated_bytes: whole(allocated),
                rate: allocated.per_second(time_ns).value.round() as u64,
                class: &encode(&class.name),
            }));
        }
        self.put(&TextRecord::EstimatesEnd);
    }

    fn allocation_stacks(&mut self, context: &mut Context<'_>, samples: u64, rows: &[StackShare]) {
        let date = context.date.as_bytes();
        self.put(&TextRecord::AllocationStacksBegin { samples, date });
        for row in rows {
            let class = context.catalog.class(context.vm, class_of(row.of.class));
            let share = [row.share.value, row.share.low, row.share.high];
            self.put(&TextRecord::AllocationStack(AllocationStackRow {
                rank: row.rank,
                share: share.map(|part| part * 100.0),
                samples: row.of.samples,
                objects: row.allocated.objects,
                bytes: row.allocated.bytes,
                site: trace_serial(trace_of(row.of.site)).0,
                trace: trace_serial(trace_of(row.of.stack)).0,
                class: &encode(&class.name),
            }));
        }
        self.put(&TextRecord::AllocationStacksEnd);
    }

    fn native(
        &mut self,
        context: &mut Context<'_>,
        table: &SiteTable,
        rows: &[Ranked],
        interval: u64,
    ) {
        let date = context.date.as_bytes();
        self.put(&TextRecord::NativeBegin { interval, date });
        for ranked in rows {
            self.site(context, table, ranked);
        }
        self.put(&TextRecord::NativeEnd);
    }

    fn samples(&mut self, context: &mut Context<'_>, table: &SampleTable, cutoff: f64) {
        let kind = CpuKind::Samples;
        let total = i64::try_from(table.total()).unwrap_or(i64::MAX);
        self.put(&TextRecord::CpuBegin {
            kind,
            total,
            date: context.date.as_bytes(),
        });
        for ranked in table.rank(cutoff) {
            let (trace, count) = table.rows()[ranked.row];
            let trace = context.catalog.trace(context.vm, trace_of(trace));
            self.rank_row(&ranked, count, trace.serial.0, &top_name(&trace), false);
        }
        self.put(&TextRecord::CpuEnd(kind));
    }

    fn wall(
        &mut self,
        context: &mut Context<'_>,
        is_waiting: bool,
        table: &CostTable,
        cutoff: f64,
    ) {
        let kind = match is_waiting {
            true => CpuKind::Waiting,
            false => CpuKind::Running,
        };
        self.times_of(context, kind, table, cutoff);
    }

    fn times(&mut self, context: &mut Context<'_>, table: &CostTable, cutoff: f64) {
        self.times_of(context, CpuKind::Time, table, cutoff);
    }

    fn call_pairs(&mut self, context: &mut Context<'_>, table: &CostTable) {
        self.put(&TextRecord::OldBegin);
        for row in table.rank_by_calls() {
            let (trace, cost) = table.rows()[row];
            let trace = context.catalog.trace(context.vm, trace_of(trace));
            let name = |at: usize, unknown: &str| {
                trace.frames.get(at).map_or(unknown.to_owned(), |frame| {
                    format!("{}.{}{}", frame.class_name, frame.method, frame.signature)
                })
            };
            self.put(&TextRecord::Old(OldRow {
                count: cost.calls,
                callee: &encode(&name(0, "<unknown callee>")),
                caller: &encode(&name(1, "<unknown caller>")),
                time: cost.total_ns / MS as i64,
            }));
        }
    }

    fn contention(&mut self, context: &mut Context<'_>, table: &ContentionTable, cutoff: f64) {
        let total = table.total_ns() / MS;
        self.put(&TextRecord::MonitorTimeBegin {
            total,
            date: context.date.as_bytes(),
        });
        for ranked in table.rank(cutoff) {
            let row = table.rows()[ranked.row];
            let class = context.catalog.class(context.vm, class_of(row.class));
            let trace = trace_serial(trace_of(row.trace)).0;
            self.rank_row(&ranked, row.count, trace, &class.signature, true);
        }
        self.put(&TextRecord::MonitorTimeEnd);
    }

    fn locks(&mut self, context: &mut Context<'_>, table: &ContentionTable, cutoff: f64) {
        self.put(&TextRecord::LockTimeBegin {
            total: table.total_ns() / MS,
            date: context.date.as_bytes(),
        });
        for ranked in table.rank(cutoff) {
            let row = table.rows()[ranked.row];
            let class = context.catalog.class(context.vm, class_of(row.class));
            self.put(&TextRecord::LockTime(RankRow {
                rank: ranked.rank,
                share: ranked.share * 100.0,
                accumulated: ranked.accumulated * 100.0,
                count: row.count,
                trace: trace_serial(trace_of(row.trace)).0,
                name: &encode(&class.name),
            }));
        }
        self.put(&TextRecord::LockTimeEnd);
    }

    fn references(&mut self, context: &mut Context<'_>, all: &vmpi::References, _: bool) {
        let count = |weak: bool| {
            let rows = all.rows.iter().filter(|row| row.weak == weak);
            rows.map(|row| row.created - row.deleted).sum()
        };
        self.put(&TextRecord::ReferencesBegin {
            global: count(false),
            weak: count(true),
            date: context.date.as_bytes(),
        });
        for (at, row) in all.rows.iter().enumerate() {
            let class = context.catalog.class(context.vm, row.class);
            self.put(&TextRecord::Reference(ReferenceRow {
                rank: at as u32 + 1,
                weak: row.weak,
                created: row.created,
                deleted: row.deleted,
                cleared: row.cleared,
                bytes: row.bytes,
                oldest_ms: row.oldest_ns / MS,
                thread: known_thread(row.thread),
                trace: trace_serial(row.trace).0,
                class: &encode(match &*class.name {
                    "" => "<unknown class>",
                    name => name,
                }),
            }));
        }
        self.put(&TextRecord::ReferencesEnd);
    }

    fn wait(&mut self, _: &mut Context<'_>, wait: &WaitRecord<'_>) {
        let monitor = encode(wait.signature);
        self.put(&TextRecord::Wait(MonitorWait {
            done: wait.done,
            monitor: &monitor,
            time: wait.time_ms,
            thread: thread_serial(wait.thread).0,
        }));
    }

    fn monitors(
        &mut self,
        context: &mut Context<'_>,
        threads: &[ThreadStack],
        monitors: &[MonitorInfo],
    ) {
        self.put(&TextRecord::MonitorDumpBegin);
        for (thread, status, trace) in monitor_threads(context.catalog, threads) {
            self.put(&TextRecord::MonitorThread(MonitorThread {
                thread: thread_serial(thread).0,
                trace: trace_serial(trace).0,
                status: private_records::thread_status(status).as_bytes(),
            }));
        }
        let serials = |ids: &[ThreadId]| ids.iter().map(|id| thread_serial(*id).0).collect();
        // As in the original, only owned monitors are shown.
        for monitor in monitors.iter().filter(|monitor| monitor.owner.is_some()) {
            let class = context.catalog.class(context.vm, monitor.class);
            let owner = monitor
                .owner
                .map(|owner| (thread_serial(owner).0, monitor.entry_count));
            self.put(&TextRecord::Monitor(Monitor {
                name: &encode(&class.signature),
                owner,
                waiters: serials(&monitor.waiting_to_enter),
                notify_waiters: serials(&monitor.waiting_to_be_notified),
            }));
        }
        self.put(&TextRecord::MonitorDumpEnd);
    }

    fn heap(
        &mut self,
        context: &mut Context<'_>,
        summary: HeapSummary,
        scratch: Option<&Path>,
    ) -> Result<(), VmError> {
        if let Some(scratch) = scratch {
            match super::native_heap::write_text(self, context, summary, scratch) {
                Ok(()) => return Ok(()),
                Err(VmError::Unsupported(_)) => {}
                Err(error) => self.note(context, &format!("the heap was walked: {error}")),
            }
        }
        self.put(&TextRecord::HeapBegin {
            objects: summary.live_objects,
            bytes: summary.live_bytes,
            date: context.date.as_bytes(),
        });
        let result = super::text_heap::walk(self, context);
        self.put(&TextRecord::HeapEnd);
        result
    }

    fn heap_summary(&mut self, _: &mut Context<'_>, _: HeapSummary) {}

    fn note(&mut self, _: &mut Context<'_>, text: &str) {
        let one_line = text.replace(['\n', '\r'], " ");
        self.put(&TextRecord::Note(one_line.as_bytes()));
    }

    fn flush(&mut self) {
        let _ = self.sink.flush();
    }

    fn take_failure(&mut self) -> Option<String> {
        self.sink.take_failure()
    }
}
