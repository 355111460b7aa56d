//! Records to lines: exactly the bytes that the original agent prints for them.

use super::record::{
    AllocationStackRow, EstimateRow, Frame, Monitor, MonitorThread, MonitorWait, RankRow,
    ReferenceRow, SiteOrder, SiteRow, TextLine, TextRecord, Trace,
};
use std::io::{self, Write};

/// The explanation after the header: the BSD-licensed `jvm.hprof.txt` of JDK 8, verbatim.
pub const PRELUDE: &[u8] = include_bytes!("prelude.txt");

/// Writes one record with its line ends. The titles of a table are written with its begin (SITES) or with the row of
/// rank 1 (other tables, which have no titles when they have no rows).
///
/// # Errors
/// Those of `out`.
pub fn write_record(out: &mut impl Write, record: &TextRecord<'_>) -> io::Result<()> {
    match record {
        TextRecord::Header(header) => {
            out.write_all(b"JAVA PROFILE ")?;
            out.write_all(header.version)?;
            out.write_all(b", created ")?;
            out.write_all(header.created)?;
            out.write_all(b"\n\n")
        }
        TextRecord::Prelude(text) => {
            out.write_all(text)?;
            out.write_all(b"\n--------\n\n")
        }
        TextRecord::ThreadStart(start) => {
            write!(
                out,
                "THREAD START (obj={:x}, id = {}, name=\"",
                start.object, start.thread
            )?;
            out.write_all(start.name)?;
            out.write_all(b"\", group=\"")?;
            out.write_all(start.group)?;
            out.write_all(b"\")\n")
        }
        TextRecord::ThreadEnd { thread } => writeln!(out, "THREAD END (id = {thread})"),
        TextRecord::Trace(one) => trace(out, one),
        TextRecord::SitesBegin { order, date } => sites_begin(out, *order, date),
        TextRecord::Site(row) => site(out, row),
        TextRecord::SitesEnd => out.write_all(b"SITES END\n"),
        TextRecord::NativeBegin { interval, date } => {
            write!(out, "NATIVE BEGIN (interval = {interval} bytes) ")?;
            line(out, date)?;
            site_titles(out, "library")
        }
        TextRecord::NativeEnd => out.write_all(b"NATIVE END\n"),
        TextRecord::CpuBegin { kind, total, date } => {
            write!(out, "{} BEGIN (total = {total}) ", kind.title())?;
            line(out, date)
        }
        TextRecord::Cpu(row) => ranked(out, row, "method", ""),
        TextRecord::CpuEnd(kind) => writeln!(out, "{} END", kind.title()),
        TextRecord::OldBegin => out.write_all(b"count callee caller time\n"),
        TextRecord::Old(row) => {
            write!(out, "{} ", row.count)?;
            out.write_all(row.callee)?;
            out.write_all(b" ")?;
            out.write_all(row.caller)?;
            writeln!(out, " {}", row.time)
        }
        TextRecord::Wait(event) => wait(out, event),
        TextRecord::MonitorDumpBegin => out.write_all(b"MONITOR DUMP BEGIN\n"),
        TextRecord::MonitorThread(one) => monitor_thread(out, one),
        TextRecord::Monitor(one) => monitor(out, one),
        TextRecord::MonitorDumpEnd => out.write_all(b"MONITOR DUMP END\n"),
        TextRecord::LockTimeBegin { total, date } => {
            write!(out, "LOCK TIME BEGIN (total = {total} ms) ")?;
            line(out, date)
        }
        TextRecord::LockTime(row) => ranked(out, row, "lock", ""),
        TextRecord::LockTimeEnd => out.write_all(b"LOCK TIME END\n"),
        TextRecord::MonitorTimeBegin { total, date } => {
            write!(out, "MONITOR TIME BEGIN (total = {total} ms) ")?;
            line(out, date)
        }
        TextRecord::MonitorTime(row) => ranked(out, row, "monitor", " (Java)"),
        TextRecord::MonitorTimeEnd => out.write_all(b"MONITOR TIME END\n"),
        TextRecord::HeapBegin {
            objects,
            bytes,
            date,
        } => {
            write!(out, "HEAP DUMP BEGIN ({objects} objects, {bytes} bytes) ")?;
            line(out, date)
        }
        TextRecord::Root(one) => super::write_heap::root(out, one),
        TextRecord::Object(one) => super::write_heap::object(out, one),
        TextRecord::Array(one) => super::write_heap::array(out, one),
        TextRecord::Class(one) => super::write_heap::class(out, one),
        TextRecord::HeapEnd => out.write_all(b"HEAP DUMP END\n"),
        TextRecord::EstimatesBegin {
            interval,
            time_ms,
            date,
        } => {
            write!(
                out,
                "CLASS ESTIMATES BEGIN (interval = {interval} bytes, time = {time_ms} ms) "
            )?;
            line(out, date)?;
            out.write_all(b"rank   live bytes (95 % interval)  alloc'ed bytes (95 % interval)  bytes/s class\n")
        }
        TextRecord::Estimate(row) => estimate(out, row),
        TextRecord::EstimatesEnd => out.write_all(b"CLASS ESTIMATES END\n"),
        TextRecord::AllocationStacksBegin { samples, date } => {
            allocation_stacks_begin(out, *samples, date)
        }
        TextRecord::AllocationStack(row) => allocation_stack(out, row),
        TextRecord::AllocationStacksEnd => out.write_all(b"ALLOCATION STACKS END\n"),
        TextRecord::ReferencesBegin { global, weak, date } => {
            write!(
                out,
                "JNI REFERENCES BEGIN (global = {global}, weak = {weak}) "
            )?;
            line(out, date)?;
            out.write_all(b"rank   kind remaining   created   deleted   cleared     bytes oldest (ms) thread trace class\n")
        }
        TextRecord::Reference(row) => reference(out, row),
        TextRecord::ReferencesEnd => out.write_all(b"JNI REFERENCES END\n"),
        TextRecord::Note(text) => {
            out.write_all(b"NOTE: ")?;
            line(out, text)
        }
    }
}

fn line(out: &mut impl Write, text: &[u8]) -> io::Result<()> {
    out.write_all(text)?;
    out.write_all(b"\n")
}

fn trace(out: &mut impl Write, trace: &Trace<'_>) -> io::Result<()> {
    write!(out, "TRACE {}:", trace.serial)?;
    if let Some(thread) = trace.thread {
        write!(out, " (thread={thread})")?;
    }
    if let Some(phase) = trace.phase {
        out.write_all(b" (from ")?;
        out.write_all(phase)?;
        out.write_all(b" phase of JVM)")?;
    }
    out.write_all(b"\n")?;
    if trace.frames.is_empty() {
        out.write_all(b"\t<empty>\n")?;
    }
    trace.frames.iter().try_for_each(|one| frame(out, one))
}

fn frame(out: &mut impl Write, frame: &Frame<'_>) -> io::Result<()> {
    out.write_all(b"\t")?;
    out.write_all(frame.class)?;
    out.write_all(b".")?;
    out.write_all(frame.method)?;
    out.write_all(b"(")?;
    out.write_all(frame.source)?;
    match frame.line {
        TextLine::Number(number) => writeln!(out, ":{number})"),
        TextLine::Unknown => out.write_all(b":Unknown line)\n"),
        TextLine::Compiled => out.write_all(b":Compiled method)\n"),
        TextLine::Native => out.write_all(b":Native method)\n"),
        TextLine::Absent => out.write_all(b")\n"),
    }
}

fn sites_begin(out: &mut impl Write, order: SiteOrder, date: &[u8]) -> io::Result<()> {
    let order = match order {
        SiteOrder::LiveBytes => "live bytes",
        SiteOrder::AllocatedBytes => "allocated bytes",
    };
    write!(out, "SITES BEGIN (ordered by {order}) ")?;
    line(out, date)?;
    site_titles(out, "class")
}

fn site_titles(out: &mut impl Write, of: &str) -> io::Result<()> {
    writeln!(
        out,
        "          percent          live          alloc'ed  stack {of}"
    )?;
    out.write_all(b" rank   self  accum     bytes objs     bytes  objs trace name\n")
}

fn site(out: &mut impl Write, row: &SiteRow<'_>) -> io::Result<()> {
    write!(
        out,
        "{:5} {:5.2}% {:5.2}% {:9} {:4} {:9} {:5} {:5} ",
        row.rank,
        row.share,
        row.accumulated,
        row.live_bytes,
        row.live_objects,
        row.allocated_bytes,
        row.allocated_objects,
        row.trace,
    )?;
    line(out, row.class)
}

fn ranked(out: &mut impl Write, row: &RankRow<'_>, title: &str, suffix: &str) -> io::Result<()> {
    if row.rank == 1 {
        writeln!(out, "rank   self  accum   count trace {title}")?;
    }
    let RankRow {
        rank,
        share,
        accumulated,
        count,
        trace,
        name,
    } = row;
    write!(
        out,
        "{rank:4} {share:5.2}% {accumulated:5.2}% {count:7} {trace:5} "
    )?;
    out.write_all(name)?;
    line(out, suffix.as_bytes())
}

fn estimate(out: &mut impl Write, row: &EstimateRow<'_>) -> io::Result<()> {
    write!(out, "{:4}", row.rank)?;
    for [value, low, high] in [row.live_bytes, row.allocated_bytes] {
        write!(out, " {value:10} ({low}..{high})")?;
    }
    write!(out, " {:9} ", row.rate)?;
    line(out, row.class)
}

fn monitor_thread(out: &mut impl Write, one: &MonitorThread<'_>) -> io::Result<()> {
    let (thread, trace) = (one.thread, one.trace);
    write!(out, "    THREAD {thread}, trace {trace}, status: ")?;
    line(out, one.status)
}

fn allocation_stacks_begin(out: &mut impl Write, samples: u64, date: &[u8]) -> io::Result<()> {
    write!(out, "ALLOCATION STACKS BEGIN (samples = {samples}) ")?;
    line(out, date)?;
    out.write_all(b"rank  share of the site (95 % interval) samples   objects     bytes   site  trace class\n")
}

fn allocation_stack(out: &mut impl Write, row: &AllocationStackRow<'_>) -> io::Result<()> {
    let [share, low, high] = row.share;
    write!(
        out,
        "{:4} {share:6.2}% ({low:.2}%..{high:.2}%) {:7} {:9} {:9} {:6} {:6} ",
        row.rank, row.samples, row.objects, row.bytes, row.site, row.trace,
    )?;
    line(out, row.class)
}

fn reference(out: &mut impl Write, row: &ReferenceRow<'_>) -> io::Result<()> {
    write!(
        out,
        "{:4} {:>6} {:9} {:9} {:9} {:9} {:9} {:11} {:6} {:5} ",
        row.rank,
        if row.weak { "weak" } else { "global" },
        row.created.saturating_sub(row.deleted),
        row.created,
        row.deleted,
        row.cleared,
        row.bytes,
        row.oldest_ms,
        row.thread,
        row.trace,
    )?;
    line(out, row.class)
}

fn wait(out: &mut impl Write, event: &MonitorWait<'_>) -> io::Result<()> {
    let (word, time) = if event.done {
        ("WAITED", "time_waited")
    } else {
        ("WAIT", "timeout")
    };
    write!(out, "{word}: MONITOR ")?;
    out.write_all(event.monitor)?;
    writeln!(out, ", {time}={}, thread {}", event.time, event.thread)
}

fn monitor(out: &mut impl Write, monitor: &Monitor<'_>) -> io::Result<()> {
    out.write_all(b"    MONITOR ")?;
    out.write_all(monitor.name)?;
    match monitor.owner {
        Some((thread, entries)) => {
            writeln!(out, "\n\towner: thread {thread}, entry count: {entries}")?;
        }
        None => out.write_all(b" unowned\n")?,
    }
    out.write_all(b"\twaiting to enter:")?;
    threads(out, &monitor.waiters)?;
    out.write_all(b"\twaiting to be notified:")?;
    threads(out, &monitor.notify_waiters)
}

fn threads(out: &mut impl Write, threads: &[u32]) -> io::Result<()> {
    for (index, thread) in threads.iter().enumerate() {
        match thread {
            0 => out.write_all(b" <unknown thread>")?,
            _ => write!(out, " thread {thread}")?,
        }
        if index + 1 < threads.len() {
            out.write_all(b",")?;
        }
    }
    out.write_all(b"\n")
}
