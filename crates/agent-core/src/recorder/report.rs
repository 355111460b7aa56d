//! What is written at a dump, and in which order (facts: sections 1 and 3).

use super::Recorder;
use crate::options::{Format, Mode};
use crate::output::{SitesSection, rows_by_either};
use profile::{CostTable, Ranked, Sampling, SiteOrder, SiteTable};
use std::io::Write;
use std::time::Duration;
use vmpi::{Event, TraceId, Vm};

/// Something that is missing or not measured as requested.
#[derive(Debug)]
pub(super) struct Note {
    text: String,
    /// A collector has it already.
    is_written: bool,
}

impl Recorder {
    /// Writes everything that the options request: monitors, heap, sites, samples, times. Afterwards CPU and monitor
    /// costs restart at zero; sites continue.
    pub(super) fn dump(&mut self, vm: &dyn Vm) {
        let options = self.options.clone();
        if options.heap.dump {
            // Thread stacks must have their numbers before the traces are written.
            let _ = vm.all_stacks();
        }
        self.pull(vm);
        self.progress("Dumping");
        if options.monitor {
            self.progress(" contended monitor usage ...");
            self.monitors(vm);
        }
        if options.heap.references {
            // References are written before the dump, because they are roots of it.
            self.progress(" JNI references ...");
            self.references(vm, options.heap.dump);
        }
        if options.heap.dump {
            self.progress(" Java heap ...");
            self.heap(vm);
        }
        if options.heap.sites || options.sampled.is_some() {
            self.progress(" allocation sites ...");
            self.sites(vm, 0, options.cutoff);
        }
        if options.heap.native.is_some() {
            self.progress(" native allocations ...");
            self.native(vm, options.cutoff);
        }
        if options.cpu.samples {
            self.progress(" CPU usage by sampling running threads ...");
            self.cpu_samples(vm, options.cutoff);
        }
        if options.cpu.wall.is_some() {
            self.progress(" elapsed time of running and waiting threads ...");
            self.wall_times(vm, options.cutoff);
        }
        if options.cpu.times && !options.cpu.old {
            self.progress(" CPU usage by timing methods ...");
            self.cpu_times(vm, options.cutoff);
        }
        if options.cpu.old {
            self.progress(" CPU usage in old prof format ...");
            self.call_pairs(vm);
        }
        self.progress(" done.\n");
        self.tables.samples.clear();
        self.tables.costs.clear();
        self.tables
            .wall
            .tables
            .iter_mut()
            .for_each(CostTable::clear);
        self.tables.contention.clear();
        self.tables.parks.clear();
        self.flush();
    }

    /// Writes the counts until now: blocks of native code, allocation sites, JNI references (with their handles if bit
    /// 3 of the flags is set; the lower bits are the flags of ALLOC SITES).
    pub(super) fn counts(&mut self, vm: &dyn Vm, flags: u16, cutoff: f64) {
        self.pull(vm);
        if self.options.heap.native.is_some() {
            self.native(vm, cutoff);
        }
        self.sites(vm, flags & 7, cutoff);
        if self.options.heap.references {
            self.references(vm, flags & 8 != 0);
        }
        self.new_notes(vm);
    }

    /// Writes the notes that the collector does not have yet. All notes are written once more at the end, with their
    /// final numbers.
    fn new_notes(&mut self, vm: &dyn Vm) {
        let new = self.degraded.iter_mut().filter(|note| !note.is_written);
        let new: Vec<String> = new
            .map(|note| {
                note.is_written = true;
                note.text.clone()
            })
            .collect();
        for text in new {
            self.note(vm, &text);
        }
    }

    /// Notes about what is missing or not measured as requested.
    fn remarks(&mut self, vm: &dyn Vm) {
        let degraded: Vec<String> = self.degraded.iter().map(|note| note.text.clone()).collect();
        for text in degraded {
            self.note(vm, &text);
        }
        for text in [self.interval_remark(), self.wall_remark()] {
            text.into_iter().for_each(|text| self.note(vm, &text));
        }
        for (what, count) in std::mem::take(&mut self.lost) {
            self.note(vm, &format!("{count} lost: {what}"));
        }
        self.flush();
    }

    /// The actual CPU time between two samples of a thread, if it differs from the requested one.
    fn interval_remark(&mut self) -> Option<String> {
        // Readers of the original's form do not know this note, so there it is written only for a larger difference.
        let small = match self.options.mode {
            Mode::Modern => 0.05,
            _ => 0.5,
        };
        let timing = std::mem::take(&mut self.tables.sample_timing);
        let times = timing.intervals_each();
        let requested = self.options.interval.as_secs_f64() * 1000.0;
        (self.options.cpu.samples && times > 1.0 + small).then(|| {
            format!(
                "CPU samples: one stack for {:.2} ms of CPU time on average, which counts for all of it ({requested:.2} ms requested): this system does not interrupt threads more often",
                times * requested
            )
        })
    }

    /// How often threads were actually sampled, and how many samples were dropped, since this output began.
    fn wall_remark(&mut self) -> Option<String> {
        let requested = self.options.cpu.wall?;
        let wall = &mut self.tables.wall;
        let [samples, ns] = std::mem::take(&mut wall.taken);
        let dropped = std::mem::take(&mut wall.dropped);
        let effective = Duration::from_nanos(ns.checked_div(samples).unwrap_or(0));
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        Some(format!(
            "wall-clock samples: {samples}, one of each thread every {:.1} ms on average ({:.1} ms requested); {} dropped (buffer full {}, stack \
             not walkable {}, signal not delivered {})",
            ms(effective),
            ms(requested),
            dropped.total(),
            dropped.buffer_full,
            dropped.no_stack,
            dropped.not_delivered,
        ))
    }

    /// Ends the output with what was recorded, and continues with another one. Allocation counts restart at zero; the
    /// counts of live objects remain.
    pub fn rotate(&mut self, vm: &dyn Vm, out: Box<dyn Write + Send>) {
        if self.out.is_none() || self.ended {
            return;
        }
        self.dump(vm);
        self.remarks(vm);
        self.tables.sites.clear_allocated();
        self.tables.stacks.clear();
        self.tables.native.clear_allocated();
        self.begin_again(vm, out);
        self.flush();
    }

    /// Ends the output: writes the notes, and nothing after them.
    pub(super) fn finish(&mut self, vm: &dyn Vm) {
        self.remarks(vm);
        // This closes the output, because the program may continue for a long time.
        self.out = None;
        self.ended = true;
    }

    /// Something was dropped; the sum is reported at the end.
    pub(super) fn lost(&mut self, what: &str, count: u64) {
        match self.lost.iter_mut().find(|(known, _)| known == what) {
            Some((_, sum)) => *sum += count,
            None => self.lost.push((what.to_owned(), count)),
        }
    }

    /// Something is not measured as requested, which is reported at the end. A note about the memory limit replaces the
    /// previous one, from which it differs only in its numbers.
    pub(super) fn degraded(&mut self, what: &str) {
        const MOST: usize = 256;
        let words = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
        let of_memory = what.starts_with("memory=");
        let known = &self.degraded;
        let known = known
            .iter()
            .position(|known| of_memory && words(&known.text) == words(what));
        match known {
            Some(at) => self.degraded[at].text = what.to_owned(),
            None if self.degraded.len() < MOST => self.degraded.push(Note {
                text: what.to_owned(),
                is_written: false,
            }),
            None => self.lost("further notes", 1),
        }
    }

    /// Prints the progress of a dump, with `verbose=y`.
    fn progress(&mut self, text: &str) {
        if self.options.verbose {
            self.host.say(text);
        }
    }

    /// Gets all counts that the VM side has collected since the last call.
    pub(super) fn pull(&mut self, vm: &dyn Vm) {
        let result = vm.flush(&mut |event: &Event<'_>| {
            vmpi::Profiler::notify(self, vm, event);
        });
        if let Err(error) = result {
            self.note(vm, &format!("the last counts are missing: {error}"));
        }
    }

    /// A remark in the profile.
    pub(super) fn note(&mut self, vm: &dyn Vm, text: &str) {
        self.write(vm, |out, context| out.note(context, text));
    }

    /// Writes the traces of a section that are not written yet.
    fn traces(&mut self, vm: &dyn Vm, ids: &[TraceId]) {
        let new: Vec<_> = ids
            .iter()
            .copied()
            .filter(|id| self.printed.insert(*id))
            .collect();
        self.write(vm, |out, context| {
            for id in new {
                let trace = context.catalog.trace(context.vm, id);
                out.trace(context, &trace);
            }
        });
    }

    /// Writes every trace that is not written yet, in the order of serials.
    pub(super) fn all_traces(&mut self, vm: &dyn Vm) {
        let ids = self.catalog.trace_ids();
        self.traces(vm, &ids);
    }

    fn monitors(&mut self, vm: &dyn Vm) {
        let threads = match vm.all_stacks() {
            Ok(threads) => threads,
            Err(error) => {
                self.note(vm, &format!("no thread states: {error}"));
                Vec::new()
            }
        };
        let monitors = vm.monitors().unwrap_or_default();
        self.pull(vm); // Reading the stacks may have defined new traces.
        self.all_traces(vm);
        let table = std::mem::take(&mut self.tables.contention);
        let parks = std::mem::take(&mut self.tables.parks);
        let cutoff = self.options.cutoff;
        self.write(vm, |out, context| {
            out.monitors(context, &threads, &monitors);
            // The original writes no section if there was no contention.
            if table.rows().iter().any(|row| row.count > 0) {
                out.contention(context, &table, cutoff);
            }
            if parks.rows().iter().any(|row| row.count > 0) {
                out.locks(context, &parks, cutoff);
            }
        });
        self.tables.contention = table;
        self.tables.parks = parks;
    }

    pub(super) fn heap(&mut self, vm: &dyn Vm) {
        self.all_traces(vm);
        let summary = vm.heap_summary().unwrap_or_default();
        let mut failure = None;
        let scratch = self.host.scratch();
        self.write(vm, |out, context| {
            failure = out.heap(context, summary, scratch.as_deref()).err()
        });
        if let Some(error) = failure {
            self.note(vm, &format!("the heap dump is incomplete: {error}"));
        }
        self.flush();
    }

    /// Writes the global references of native code. `with_handles`: also the references that exist now, for a dump.
    pub(super) fn references(&mut self, vm: &dyn Vm, with_handles: bool) {
        let all = match vm.references() {
            Ok(all) => all,
            Err(error) => return self.note(vm, &error.to_string()),
        };
        if all.lost > 0 {
            self.lost("JNI references or their stacks", all.lost);
        }
        let traces: Vec<TraceId> = all.rows.iter().map(|row| row.trace).collect();
        self.traces(vm, &traces);
        self.write(vm, |out, context| {
            out.references(context, &all, with_handles)
        });
    }

    /// Writes the live objects of a class for the collector that requested them.
    pub(super) fn instances(&mut self, vm: &dyn Vm, listing: &vmpi::Listing) {
        let traces: Vec<TraceId> = listing.rows.iter().map(|row| row.trace).collect();
        self.traces(vm, &traces);
        self.write(vm, |out, context| out.instances(context, listing));
        self.flush();
    }

    /// Writes how large and how full live objects are, for the collector that requested it.
    pub(super) fn fills(&mut self, vm: &dyn Vm, fills: &vmpi::Fills) {
        let traces: Vec<TraceId> = fills.rows.iter().map(|row| row.trace).collect();
        self.traces(vm, &traces);
        self.write(vm, |out, context| out.fills(context, fills));
        self.flush();
    }

    pub(super) fn sites(&mut self, vm: &dyn Vm, flags: u16, cutoff: f64) {
        self.all_traces(vm);
        for answers in self.answers.take() {
            self.write(vm, |out, context| out.class_options(context, &answers));
        }
        let table = std::mem::take(&mut self.tables.sites);
        let stacks = std::mem::take(&mut self.tables.stacks);
        let samples = stacks.samples();
        let order = if flags & 2 == 0 {
            SiteOrder::LiveBytes
        } else {
            SiteOrder::AllocatedBytes
        };
        // The original's form has the rows of the original, which are cut off by their live volume. Samples do not
        // exist in the original.
        let is_modern = self.options.mode == Mode::Modern;
        let rows = match is_modern || table.is_estimate() || samples > 0 {
            true => rows_by_either(&table, order, cutoff),
            false => table.rank(order, cutoff),
        };
        self.write(vm, |out, context| {
            let section = SitesSection {
                table: &table,
                rows: &rows,
                order,
                cutoff,
                flags,
            };
            out.sites(context, &section);
            match table.sampling {
                Sampling::Interval(interval) => out.estimates(context, &table, interval),
                // Only some objects of some classes were examined, so the counts are estimates.
                Sampling::All if table.is_estimate() => out.estimates(context, &table, 0),
                Sampling::All => {}
            }
            if samples > 0 {
                let rows = stacks.shares(&table, cutoff);
                out.allocation_stacks(context, samples, &rows);
            }
        });
        let left_out = left_out(&table, &rows);
        if left_out >= 0.05 {
            let text = format!(
                "the sites that are left out have {:.0} % of the allocated bytes (cutoff=0 shows them)",
                left_out * 100.0
            );
            self.note(vm, &text);
        }
        self.tables.stacks = stacks;
        self.tables.sites = table;
    }

    pub(super) fn native(&mut self, vm: &dyn Vm, cutoff: f64) {
        let interval = self.options.heap.native.unwrap_or(0);
        let table = std::mem::take(&mut self.tables.native);
        let rows = rows_by_either(&table, SiteOrder::LiveBytes, cutoff);
        let traces: Vec<_> = rows
            .iter()
            .map(|row| crate::output::trace_of(table.sites()[row.row].trace))
            .collect();
        self.traces(vm, &traces);
        self.write(vm, |out, context| {
            out.native(context, &table, &rows, interval);
        });
        self.tables.native = table;
    }

    pub(super) fn cpu_samples(&mut self, vm: &dyn Vm, cutoff: f64) {
        let table = std::mem::take(&mut self.tables.samples);
        let ranked = table.rank(cutoff);
        let traces: Vec<_> = ranked
            .iter()
            .map(|one| crate::output::trace_of(table.rows()[one.row].0))
            .collect();
        self.traces(vm, &traces);
        self.write(vm, |out, context| out.samples(context, &table, cutoff));
        self.tables.samples = table;
    }

    fn wall_times(&mut self, vm: &dyn Vm, cutoff: f64) {
        let tables = std::mem::take(&mut self.tables.wall.tables);
        for (table, is_waiting) in tables.iter().zip([false, true]) {
            self.traces_of_times(vm, table, cutoff);
            self.write(vm, |out, context| {
                out.wall(context, is_waiting, table, cutoff)
            });
        }
        self.tables.wall.tables = tables;
    }

    /// Writes the traces of those rows of a table that are not cut off.
    fn traces_of_times(&mut self, vm: &dyn Vm, table: &CostTable, cutoff: f64) {
        let rows = table.rank(cutoff).into_iter();
        let traces: Vec<_> = rows
            .map(|one| crate::output::trace_of(table.rows()[one.row].0))
            .collect();
        self.traces(vm, &traces);
    }

    fn cpu_times(&mut self, vm: &dyn Vm, cutoff: f64) {
        let table = std::mem::take(&mut self.tables.costs);
        self.traces_of_times(vm, &table, cutoff);
        self.write(vm, |out, context| out.times(context, &table, cutoff));
        self.tables.costs = table;
    }

    fn call_pairs(&mut self, vm: &dyn Vm) {
        let table = std::mem::take(&mut self.tables.costs);
        // The text form names both methods in the row; the binary one refers to traces.
        if self.options.output.format == Format::Binary {
            let rows = table.rows().iter();
            let traces: Vec<_> = rows.map(|(id, _)| crate::output::trace_of(*id)).collect();
            self.traces(vm, &traces);
        }
        self.write(vm, |out, context| out.call_pairs(context, &table));
        self.tables.costs = table;
    }

    pub(super) fn heap_summary(&mut self, vm: &dyn Vm) {
        let (live, allocated) = self.tables.sites.totals();
        let summary = vm.heap_summary().unwrap_or(vmpi::HeapSummary {
            live_bytes: live.bytes,
            live_objects: live.objects,
            allocated_bytes: allocated.bytes,
            allocated_objects: allocated.objects,
        });
        self.write(vm, |out, context| out.heap_summary(context, summary));
    }
}

/// The share of the allocated bytes that is in no row.
fn left_out(table: &SiteTable, rows: &[Ranked]) -> f64 {
    let shares = table.rank(SiteOrder::AllocatedBytes, 0.0).into_iter();
    let mut of_row = vec![0.0; table.sites().len()];
    shares.for_each(|row| of_row[row.row] = row.share);
    let shown: f64 = rows.iter().map(|row| of_row[row.row]).sum();
    of_row.iter().sum::<f64>() - shown
}
