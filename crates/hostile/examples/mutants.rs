//! Runs many mutants of dumps and indexes through every analysis, each within 10 seconds of
//! processor time and all within 2 GiB of address space, and reports the results.
//! `mutants N [SEED] [FROM]`; `mutants --write NUMBER FILE [SEED]` writes one.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is a program of its own"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::panic::catch_unwind;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use hostile::mutate::random::Random;
use hostile::trial::{Taken, Trial};

/// Longest processor time of one mutant.
const TIME: Duration = Duration::from_secs(10);
/// Longest time of one that waits for something, or for a busy machine.
const WAIT: Duration = Duration::from_secs(300);
/// Address space of the process that runs them, in KiB.
const MEMORY_KIB: u64 = 2 << 20;

static PANIC: Mutex<String> = Mutex::new(String::new());

/// What a child says of a mutant.
struct Line {
    number: u64,
    kind: String,
    took: Duration,
    peak_kib: u64,
    came: String,
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let mut cells = text.split('\t');
        Some(Line {
            number: cells.next()?.parse().ok()?,
            took: Duration::from_micros(cells.next()?.parse().ok()?),
            peak_kib: cells.next()?.parse().ok()?,
            kind: cells.next()?.to_owned(),
            came: cells.next()?.to_owned(),
        })
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let number = line.and_then(|l| l.split_whitespace().next());
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Runs a range, a line for each.
fn child(seed: u64, from: u64, until: u64) {
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut printed) = PANIC.lock() {
            *printed = info.to_string().replace(['\n', '\t'], " ");
        }
    }));
    let trial = Trial::new(seed);
    let mut out = std::io::stdout().lock();
    for number in from..until {
        // Begins a new peak.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let start = Instant::now();
        let ran = catch_unwind(std::panic::AssertUnwindSafe(|| trial.run(number)));
        let took = start.elapsed().as_micros();
        let (kind, came) = match ran {
            Ok((kind, taken)) => (kind, format!("{taken:?}")),
            Err(_) => {
                let printed = PANIC.lock().map(|p| p.clone()).unwrap_or_default();
                let kind = catch_unwind(std::panic::AssertUnwindSafe(|| trial.mutant(number)));
                let kind = kind.ok().flatten().map_or("index".to_owned(), |m| m.kind);
                (kind, format!("PANIC {printed}"))
            }
        };
        let line = format!("{number}\t{took}\t{}\t{kind}\t{came}\n", peak_kib());
        out.write_all(line.as_bytes()).expect("the parent listens");
    }
}

/// What a child and its threads have used, in user and kernel mode.
fn processor_time(child: &Child) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let words = behind_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = words.filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

fn start(seed: u64, from: u64, until: u64) -> (Child, Receiver<String>) {
    let limited = format!("ulimit -v {MEMORY_KIB} && exec \"$0\" \"$@\"");
    let mut child = Command::new("sh")
        .args(["-c", &limited])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--child", &seed.to_string()])
        .args([from.to_string(), until.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("starting the child");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let (send, receive) = sync_channel(1000);
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    (child, receive)
}

#[derive(Default)]
struct Row {
    mutants: u64,
    taken: [u64; 4],
    bad: u64,
    slowest: Duration,
    peak_kib: u64,
}

#[derive(Default)]
struct Summary {
    rows: BTreeMap<String, Row>,
    slowest: Vec<(Duration, u64, String)>,
    largest: Vec<(u64, u64, String)>,
    bad: Vec<String>,
    busy: Duration,
}

impl Summary {
    fn add(&mut self, line: &Line) {
        // `Super=Own` and all other values of a field are one row, packed ones another.
        let kind = line.kind.split(['=', '(']).next().unwrap_or_default();
        let row = self.rows.entry(kind.to_owned()).or_default();
        row.mutants += 1;
        row.slowest = row.slowest.max(line.took);
        row.peak_kib = row.peak_kib.max(line.peak_kib);
        let all = Taken::ALL.iter().map(|t| format!("{t:?}"));
        match all.into_iter().position(|t| t == line.came) {
            Some(at) => row.taken[at] += 1,
            None => {
                row.bad += 1;
                self.bad
                    .push(format!("{} {}: {}", line.number, line.kind, line.came));
            }
        }
        self.busy += line.took;
        keep(
            &mut self.slowest,
            (line.took, line.number, line.kind.clone()),
        );
        keep(
            &mut self.largest,
            (line.peak_kib, line.number, line.kind.clone()),
        );
    }

    fn text(&self, head: &str) -> String {
        let mut out = head.to_owned();
        let sum = |f: &dyn Fn(&Row) -> u64| self.rows.values().map(f).sum::<u64>();
        let count = sum(&|r| r.mutants).max(1);
        let _ = writeln!(
            out,
            "mutants {count}, bad {} (panic, crash, longer than {} s or out of {} GiB)\n\
             {:.0} a second",
            sum(&|r| r.bad),
            TIME.as_secs(),
            MEMORY_KIB >> 20,
            count as f64 / self.busy.as_secs_f64().max(1e-9),
        );
        let _ = writeln!(
            out,
            "\n{:<24}{:>9}{:>9}{:>9}{:>9}{:>11}{:>6}{:>12}{:>10}",
            "kind",
            "mutants",
            "whole",
            "damaged",
            "refused",
            "unreadable",
            "bad",
            "slowest ms",
            "peak MiB"
        );
        for (kind, row) in &self.rows {
            let [whole, damaged, refused, unreadable] = row.taken;
            let _ = writeln!(
                out,
                "{kind:<24}{:>9}{whole:>9}{damaged:>9}{refused:>9}{unreadable:>11}{:>6}{:>12.1}{:>10.1}",
                row.mutants,
                row.bad,
                row.slowest.as_secs_f64() * 1e3,
                row.peak_kib as f64 / 1024.0
            );
        }
        out.push_str("\nslowest:\n");
        for (took, number, kind) in &self.slowest {
            let _ = writeln!(
                out,
                "  {:>8.1} ms  {number} {kind}",
                took.as_secs_f64() * 1e3
            );
        }
        out.push_str("\nmost memory:\n");
        for (kib, number, kind) in &self.largest {
            let _ = writeln!(out, "  {:>8.1} MiB  {number} {kind}", *kib as f64 / 1024.0);
        }
        for bad in self.bad.iter().take(200) {
            let _ = writeln!(out, "BAD {bad}");
        }
        out
    }
}

/// Keeps the ten largest.
fn keep<T: Ord>(list: &mut Vec<T>, one: T) {
    if list.len() < 10 || list.last().is_some_and(|last| one > *last) {
        list.push(one);
        list.sort_by(|a, b| b.cmp(a));
        list.truncate(10);
    }
}

fn run(count: u64, seed: u64, from: u64) -> Summary {
    let mut summary = Summary::default();
    let (mut next, until) = (from, from + count);
    while next < until {
        let (mut child, lines) = start(seed, next, until);
        let (mut before, mut since) = (Duration::ZERO, Instant::now());
        let ended = loop {
            match lines.recv_timeout(Duration::from_secs(1)) {
                Ok(text) => {
                    (before, since) = (processor_time(&child), Instant::now());
                    let Some(line) = Line::parse(&text) else {
                        continue;
                    };
                    next = line.number + 1;
                    let is_known = Taken::ALL.iter().any(|t| format!("{t:?}") == line.came);
                    if !is_known {
                        eprintln!("{text}");
                    }
                    summary.add(&line);
                    if next % 20_000 == 0 {
                        eprintln!("{next}: {} bad", summary.bad.len());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let used = processor_time(&child).saturating_sub(before);
                    if used > TIME || since.elapsed() > WAIT {
                        let _ = child.kill();
                        break format!("HANG ({used:?} of processor time)");
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break "CRASH".to_owned(),
            }
        };
        let status = child.wait().expect("the child's end");
        if next < until {
            let line = Line {
                number: next,
                kind: "?".to_owned(),
                took: since.elapsed(),
                peak_kib: 0,
                came: format!("{ended} {status}"),
            };
            eprintln!("{next}: {}", line.came);
            summary.add(&line);
            next += 1;
        }
    }
    summary
}

fn output_of(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output();
    let text = out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    text.unwrap_or_default()
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| -> u64 {
        words
            .get(at)
            .map_or(default, |w| w.parse().expect("a number"))
    };
    match words.first().map(String::as_str) {
        Some("--child") => {
            child(number(1, 1), number(2, 0), number(3, 0));
            return ExitCode::SUCCESS;
        }
        Some("--write") => {
            let trial = Trial::new(number(3, 1));
            let Some(made) = trial.mutant(number(1, 0)) else {
                let damage = Random::new(number(3, 1), number(1, 0)).word();
                println!("a damaged index ({damage:#x}), no file");
                return ExitCode::FAILURE;
            };
            println!("{}: must be {:?}", made.kind, made.must);
            std::fs::write(&words[2], made.data).expect("writing it");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let (count, seed, from) = (number(0, 10_000), number(1, 1), number(2, 0));
    let began = Instant::now();
    let summary = run(count, seed, from);
    let changed = output_of("git", &["status", "--porcelain", "--untracked-files=no"]);
    let head = format!(
        "Mutants of dumps, packed dumps and indexes through every analysis (./x mutants {count} {seed} {from}).\n\
         {} UTC, commit {}{}, {} in all\n",
        output_of("date", &["-u", "+%Y-%m-%d %H:%M"]),
        output_of("git", &["rev-parse", "--short=10", "HEAD"]),
        if changed.is_empty() {
            ""
        } else {
            " with changes"
        },
        format_args!("{:.0} s", began.elapsed().as_secs_f64()),
    );
    println!("{}", summary.text(&head));
    match summary.bad.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
