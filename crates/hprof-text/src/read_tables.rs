//! Lines to records: the lines that begin and end a table, and the rows between them.

use super::lines::{Lines, Scan};
use super::read::State;
use super::record::{
    AllocationStackRow, CpuKind, EstimateRow, Monitor, MonitorThread, MonitorWait, OldRow, RankRow,
    ReferenceRow, SiteOrder, SiteRow, TextRecord,
};

/// True for lines of column titles, which have no data.
pub(super) fn is_title(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    text.starts_with(b"percent ") || text.starts_with(b"rank ")
}

/// A line that begins or ends a table (with the state after it), or a line outside of tables.
pub(super) fn boundary(line: &[u8]) -> Option<(TextRecord<'_>, Option<State>)> {
    let alone = match line {
        b"SITES END" => TextRecord::SitesEnd,
        b"NATIVE END" => TextRecord::NativeEnd,
        b"MONITOR DUMP END" => TextRecord::MonitorDumpEnd,
        b"LOCK TIME END" => TextRecord::LockTimeEnd,
        b"MONITOR TIME END" => TextRecord::MonitorTimeEnd,
        b"HEAP DUMP END" => TextRecord::HeapEnd,
        b"ALLOCATION STACKS END" => TextRecord::AllocationStacksEnd,
        b"CLASS ESTIMATES END" => TextRecord::EstimatesEnd,
        b"JNI REFERENCES END" => TextRecord::ReferencesEnd,
        b"MONITOR DUMP BEGIN" => {
            return Some((TextRecord::MonitorDumpBegin, Some(State::MonitorDump)));
        }
        b"count callee caller time" => return Some((TextRecord::OldBegin, Some(State::Old))),
        _ => {
            return cpu_end(line)
                .or_else(|| wait(line).map(|record| (record, None)))
                .or_else(|| begin(line));
        }
    };
    Some((alone, Some(State::Outside)))
}

/// The end of a table of CPU or wall-clock time.
fn cpu_end(line: &[u8]) -> Option<(TextRecord<'_>, Option<State>)> {
    let title = line.strip_suffix(b" END")?;
    let mut kinds = CpuKind::ALL.into_iter();
    let kind = kinds.find(|kind| kind.title().as_bytes() == title)?;
    Some((TextRecord::CpuEnd(kind), Some(State::Outside)))
}

fn begin(line: &[u8]) -> Option<(TextRecord<'_>, Option<State>)> {
    let mut scan = Scan(line);
    if scan.accept("NOTE: ") {
        return Some((TextRecord::Note(scan.rest()), None));
    }
    let (record, state) = if scan.accept("SITES BEGIN (ordered by ") {
        let order = match scan.until(") ")? {
            b"live bytes" => SiteOrder::LiveBytes,
            b"allocated bytes" => SiteOrder::AllocatedBytes,
            _ => return None,
        };
        (
            TextRecord::SitesBegin {
                order,
                date: scan.rest(),
            },
            State::Sites,
        )
    } else if scan.accept("NATIVE BEGIN (interval = ") {
        let interval = scan.number()?;
        scan.word(" bytes) ")?;
        let date = scan.rest();
        (TextRecord::NativeBegin { interval, date }, State::Sites)
    } else if scan.accept("LOCK TIME BEGIN (total = ") {
        let total = scan.number()?;
        scan.word(" ms) ")?;
        let date = scan.rest();
        (TextRecord::LockTimeBegin { total, date }, State::LockTime)
    } else if scan.accept("MONITOR TIME BEGIN (total = ") {
        let total = scan.number()?;
        scan.word(" ms) ")?;
        (
            TextRecord::MonitorTimeBegin {
                total,
                date: scan.rest(),
            },
            State::MonitorTime,
        )
    } else if scan.accept("CLASS ESTIMATES BEGIN (interval = ") {
        let interval = scan.number()?;
        scan.word(" bytes, time = ")?;
        let time_ms = scan.number()?;
        scan.word(" ms) ")?;
        let date = scan.rest();
        (
            TextRecord::EstimatesBegin {
                interval,
                time_ms,
                date,
            },
            State::Estimates,
        )
    } else if scan.accept("ALLOCATION STACKS BEGIN (samples = ") {
        let samples = scan.number()?;
        scan.word(") ")?;
        let date = scan.rest();
        let begin = TextRecord::AllocationStacksBegin { samples, date };
        (begin, State::AllocationStacks)
    } else if scan.accept("JNI REFERENCES BEGIN (global = ") {
        let global = scan.number()?;
        scan.word(", weak = ")?;
        let weak = scan.number()?;
        scan.word(") ")?;
        let date = scan.rest();
        let begin = TextRecord::ReferencesBegin { global, weak, date };
        (begin, State::References)
    } else if scan.accept("HEAP DUMP BEGIN (") {
        let objects = scan.number()?;
        scan.word(" objects, ")?;
        let bytes = scan.number()?;
        scan.word(" bytes) ")?;
        (
            TextRecord::HeapBegin {
                objects,
                bytes,
                date: scan.rest(),
            },
            State::Heap,
        )
    } else {
        let mut kinds = CpuKind::ALL.into_iter();
        let kind = kinds.find(|kind| scan.accept(kind.title()))?;
        scan.word(" BEGIN (total = ")?;
        let total = scan.signed()?;
        scan.word(") ")?;
        (
            TextRecord::CpuBegin {
                kind,
                total,
                date: scan.rest(),
            },
            State::Cpu,
        )
    };
    Some((record, Some(state)))
}

/// `WAIT: MONITOR %s, timeout=%d, thread %d` and `WAITED: MONITOR %s, time_waited=%d, thread %d`.
fn wait(line: &[u8]) -> Option<TextRecord<'_>> {
    let mut scan = Scan(line);
    let done = scan.accept("WAITED: MONITOR ");
    if !done {
        scan.word("WAIT: MONITOR ")?;
    }
    let monitor = scan.until(if done { ", time_waited=" } else { ", timeout=" })?;
    let time = scan.signed()?;
    scan.word(", thread ")?;
    let thread = scan.serial()?;
    scan.done().then_some(TextRecord::Wait(MonitorWait {
        done,
        monitor,
        time,
        thread,
    }))
}

/// A row of SITES.
pub(super) fn site(line: &[u8]) -> Option<TextRecord<'_>> {
    let mut scan = Scan(line);
    Some(TextRecord::Site(SiteRow {
        rank: scan.blanks().serial()?,
        share: scan.blanks().percent()?,
        accumulated: scan.blanks().percent()?,
        live_bytes: scan.blanks().number()?,
        live_objects: scan.blanks().number()?,
        allocated_bytes: scan.blanks().number()?,
        allocated_objects: scan.blanks().number()?,
        trace: scan.blanks().serial()?,
        class: Some(scan.blanks().rest()).filter(|class| !class.is_empty())?,
    }))
}

fn ranked(line: &[u8]) -> Option<RankRow<'_>> {
    let mut scan = Scan(line);
    Some(RankRow {
        rank: scan.blanks().serial()?,
        share: scan.blanks().percent()?,
        accumulated: scan.blanks().percent()?,
        count: scan.blanks().number()?,
        trace: scan.blanks().serial()?,
        name: Some(scan.blanks().rest()).filter(|name| !name.is_empty())?,
    })
}

/// A row of CLASS ESTIMATES.
pub(super) fn estimate(line: &[u8]) -> Option<TextRecord<'_>> {
    let mut scan = Scan(line);
    let rank = scan.blanks().serial()?;
    let mut interval = || {
        let value = scan.blanks().number()?;
        scan.word(" (")?;
        let low = scan.number()?;
        scan.word("..")?;
        let high = scan.number()?;
        scan.word(")")?;
        Some([value, low, high])
    };
    let (live_bytes, allocated_bytes) = (interval()?, interval()?);
    Some(TextRecord::Estimate(EstimateRow {
        rank,
        live_bytes,
        allocated_bytes,
        rate: scan.blanks().number()?,
        class: Some(scan.blanks().rest()).filter(|class| !class.is_empty())?,
    }))
}

/// A row of ALLOCATION STACKS.
pub(super) fn allocation_stack(line: &[u8]) -> Option<TextRecord<'_>> {
    let mut scan = Scan(line);
    let rank = scan.blanks().serial()?;
    let share = scan.blanks().percent()?;
    scan.word(" (")?;
    let low = scan.percent()?;
    scan.word("..")?;
    let high = scan.percent()?;
    scan.word(")")?;
    Some(TextRecord::AllocationStack(AllocationStackRow {
        rank,
        share: [share, low, high],
        samples: scan.blanks().number()?,
        objects: scan.blanks().number()?,
        bytes: scan.blanks().number()?,
        site: scan.blanks().serial()?,
        trace: scan.blanks().serial()?,
        class: Some(scan.blanks().rest()).filter(|class| !class.is_empty())?,
    }))
}

/// A row of JNI REFERENCES.
pub(super) fn reference(line: &[u8]) -> Option<TextRecord<'_>> {
    let mut scan = Scan(line);
    let rank = scan.blanks().serial()?;
    let weak = scan.blanks().accept("weak");
    if !weak {
        scan.word("global")?;
    }
    let remaining = scan.blanks().number()?;
    let row = ReferenceRow {
        rank,
        weak,
        created: scan.blanks().number()?,
        deleted: scan.blanks().number()?,
        cleared: scan.blanks().number()?,
        bytes: scan.blanks().number()?,
        oldest_ms: scan.blanks().number()?,
        thread: scan.blanks().serial()?,
        trace: scan.blanks().serial()?,
        class: Some(scan.blanks().rest()).filter(|class| !class.is_empty())?,
    };
    (row.created.checked_sub(row.deleted) == Some(remaining)).then_some(TextRecord::Reference(row))
}

/// A row of a CPU table.
pub(super) fn cpu(line: &[u8]) -> Option<TextRecord<'_>> {
    ranked(line).map(TextRecord::Cpu)
}

/// A row of LOCK TIME.
pub(super) fn lock_time(line: &[u8]) -> Option<TextRecord<'_>> {
    ranked(line).map(TextRecord::LockTime)
}

/// A row of MONITOR TIME.
pub(super) fn monitor_time(line: &[u8]) -> Option<TextRecord<'_>> {
    let mut row = ranked(line)?;
    row.name = row.name.strip_suffix(b" (Java)")?;
    Some(TextRecord::MonitorTime(row))
}

/// A row of `cpu=old`. A callee's name may contain blanks (Kotlin), so it ends at the first blank after the
/// parenthesis of its signature.
pub(super) fn old(line: &[u8]) -> Option<TextRecord<'_>> {
    let mut scan = Scan(line);
    let count = scan.number()?;
    scan.word(" ")?;
    let rest = scan.rest();
    const UNKNOWN: &[u8] = b"<unknown callee>";
    let end = if rest.starts_with(UNKNOWN) {
        UNKNOWN.len()
    } else {
        let bracket = super::lines::find(rest, b")")?;
        bracket + super::lines::find(&rest[bracket..], b" ")?
    };
    let (callee, rest) = (&rest[..end], rest.get(end + 1..)?);
    let split = super::lines::rfind(rest, b" ")?;
    let mut time = Scan(&rest[split + 1..]);
    let row = OldRow {
        count,
        callee,
        caller: &rest[..split],
        time: time.signed()?,
    };
    time.done().then_some(TextRecord::Old(row))
}

/// A thread or a monitor of a monitor dump.
pub(super) fn monitor_dump<'a>(line: &'a [u8], lines: &mut Lines<'a>) -> Option<TextRecord<'a>> {
    let mut scan = Scan(line);
    scan.blanks();
    if scan.accept("THREAD ") {
        let thread = scan.serial()?;
        scan.word(", trace ")?;
        let trace = scan.serial()?;
        scan.word(", status: ")?;
        let status = scan.rest();
        return Some(TextRecord::MonitorThread(MonitorThread {
            thread,
            trace,
            status,
        }));
    }
    scan.word("MONITOR ")?;
    let name = scan.rest();
    let name = name.strip_suffix(b" unowned").unwrap_or(name);
    let mut monitor = Monitor {
        name,
        ..Monitor::default()
    };
    if let Some(line) = lines.next_if(b"\towner: thread ") {
        let mut scan = Scan(&line.text[b"\towner: thread ".len()..]);
        let owner = scan.serial()?;
        scan.word(", entry count: ")?;
        monitor.owner = Some((owner, scan.serial()?));
    }
    const ENTER: &[u8] = b"\twaiting to enter:";
    if let Some(line) = lines.next_if(ENTER) {
        monitor.waiters = threads(&line.text[ENTER.len()..])?;
    }
    const NOTIFY: &[u8] = b"\twaiting to be notified:";
    if let Some(line) = lines.next_if(NOTIFY) {
        monitor.notify_waiters = threads(&line.text[NOTIFY.len()..])?;
    }
    Some(TextRecord::Monitor(monitor))
}

/// ` thread 1, thread 2`.
fn threads(text: &[u8]) -> Option<Vec<u32>> {
    let mut scan = Scan(text);
    let mut threads = Vec::new();
    while !scan.done() {
        if scan.accept(" <unknown thread>") {
            threads.push(0);
        } else {
            scan.word(" thread ")?;
            threads.push(scan.serial()?);
        }
        scan.accept(",");
    }
    Some(threads)
}
