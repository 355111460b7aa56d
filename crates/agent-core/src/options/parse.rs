//! The parser: splits tokens as the original did, then calls one setter per kind of value.

use super::{
    Events, Format, Frames, Keep, Mode, OptionError, OptionFault, Options, Parsed, Rotation,
    SampledAlloc, Target, USUAL_EVENT_FILE, Value, WhenExhausted, default_name, find,
};
use profile::write::Form;
use std::time::Duration;

/// Longest option name in bytes.
const MAX_NAME: usize = 15;
/// Longest value in bytes (C's `FILENAME_MAX`).
const MAX_VALUE: usize = 4096;
/// Longest value of a switch in bytes.
const MAX_SWITCH: usize = 79;
/// Most frames of a stack in the stream of VM events.
const MOST_EVENT_FRAMES: u32 = 64;
/// Frames of such a stack if there is also a profile: reading them takes most of the time.
const USUAL_EVENT_FRAMES: u32 = 4;
/// Frames of a stack in the forms of other tools, if nothing says what is recorded.
const USUAL_DEPTH: u32 = 64;
/// Longest port in bytes.
const MAX_PORT: usize = 15;

/// Reads an option string, with the content of [`super::ENVIRONMENT`] when it is set.
///
/// # Errors
/// The first fault, with the original's text and the whole string.
pub fn parse(command_line: &str, environment: Option<&str>) -> Result<Parsed, OptionError> {
    if command_line == "help" {
        return Ok(Parsed::Help);
    }
    let mut text = command_line.to_owned();
    if let Some(extra) = environment.filter(|extra| !extra.is_empty()) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(extra);
    }
    let mut parser = Parser {
        options: Options::blank(text.clone()),
        modifier: None,
        output_seen: false,
        form_seen: false,
        depth_seen: false,
        keep: None,
        wall_at_interval: false,
        events: None,
        events_depth: None,
        events_target: None,
    };
    match parser.run(&text) {
        Ok(()) => Ok(Parsed::Run(Box::new(parser.options))),
        Err(fault) => Err(OptionError {
            fault,
            options: text,
        }),
    }
}

/// The address of a collector.
fn address(rest: &mut &str) -> Result<Target, OptionFault> {
    let host = token(rest, ':', MAX_VALUE)
        .ok_or(OptionFault::NetColon)?
        .to_owned();
    if host == "unix" {
        let path = token(rest, ',', MAX_VALUE).ok_or(OptionFault::NetPort)?;
        return Ok(Target::Unix(path.to_owned()));
    }
    let port = token(rest, ',', MAX_PORT).ok_or(OptionFault::NetPort)?;
    let port = leading_number(port).0;
    Ok(Target::Net { host, port })
}

/// Options of this agent that only modify what others select, and the options that each of them needs. Without those,
/// they do not select the original's default, which is a heap dump and counts of all allocations.
const MODIFIERS: [(&str, &str); 12] = [
    ("frames", "cpu=samples or wall=TIME"),
    ("safepoint", "cpu=samples or wall=TIME"),
    ("stacks", "heap=sites or heap=all"),
    ("exact", "heap=sites or heap=all"),
    ("tracked", "heap=sites or alloc=SIZE"),
    ("live", "alloc=SIZE"),
    ("events-file", "events=SIZE"),
    ("events-net", "events=SIZE"),
    ("events-depth", "events=SIZE"),
    ("keep", "loop=TIME"),
    ("cow-limit", "oom=snapshot"),
    (
        "memory",
        "an option that selects what is recorded, such as cpu=samples",
    ),
];

struct Parser {
    options: Options,
    /// The first of [`MODIFIERS`] that was given.
    modifier: Option<(&'static str, &'static str)>,
    output_seen: bool,
    /// `format`, `modern` or `compat` was given.
    form_seen: bool,
    /// `depth` was given.
    depth_seen: bool,
    keep: Option<Keep>,
    /// `wall=y`: at the interval of `interval`.
    wall_at_interval: bool,
    /// `events`: mean bytes between two objects.
    events: Option<u32>,
    /// `events-depth`.
    events_depth: Option<u32>,
    /// `events-file` or `events-net`.
    events_target: Option<Target>,
}

/// Splits off the next token. `None` if it is empty or longer than `max`.
fn token<'a>(rest: &mut &'a str, separator: char, max: usize) -> Option<&'a str> {
    let (token, tail) = rest.split_once(separator).unwrap_or((rest, ""));
    if token.is_empty() || token.len() > max {
        return None;
    }
    *rest = tail;
    Some(token)
}

impl Parser {
    fn run(&mut self, text: &str) -> Result<(), OptionFault> {
        let mut rest = text;
        while !rest.is_empty() {
            let name = token(&mut rest, '=', MAX_NAME).ok_or(OptionFault::General)?;
            let Some(row) = find(name) else {
                return Err(OptionFault::Unknown(name.to_owned()));
            };
            let modifier = MODIFIERS.iter().find(|(name, _)| *name == row.name);
            self.modifier = self.modifier.or(modifier.copied());
            match row.value {
                Value::Switch => {
                    let fault = OptionFault::Value {
                        option: row.name,
                        demand: "y|n",
                    };
                    let on = match token(&mut rest, ',', MAX_SWITCH) {
                        Some("y") => true,
                        Some("n") => false,
                        _ => return Err(fault),
                    };
                    self.switch(row.name, on);
                }
                _ if row.name.ends_with("net") => self.go_to(row.name, &mut rest, address)?,
                Value::Text => self.text(row.name, &mut rest)?,
                _ => {
                    let value = token(&mut rest, ',', MAX_VALUE)
                        .ok_or_else(|| OptionFault::Syntax(syntax(row.name)))?;
                    self.value(row.name, value)?;
                }
            }
        }
        self.finish()
    }

    fn switch(&mut self, name: &str, on: bool) {
        self.form_seen |= ["modern", "compat"].contains(&name);
        let options = &mut self.options;
        match name {
            "monitor" => options.monitor = on,
            "lineno" => options.traces.line_numbers = on,
            "thread" => options.traces.per_thread = on,
            "doe" => options.dump_on_exit = on,
            "msa" => options.thread_cpu_clock = on,
            "force" => options.output.force = on,
            "verbose" => options.verbose = on,
            "primfields" => options.primitives.fields = on,
            "primarrays" => options.primitives.arrays = on,
            "safepoint" => options.cpu.safepoint = on,
            "exact" => options.exact = on,
            "own" => options.heap.own_code = on,
            "insecure" => options.output.insecure = on,
            "jni" => options.heap.references = on,
            "live" => {
                let interval = options.sampled.map_or(0, |sampled| sampled.interval);
                options.sampled = Some(SampledAlloc { interval, live: on });
            }
            "modern" => options.mode = if on { Mode::Modern } else { Mode::Compat },
            "compat" => options.mode = if on { Mode::Compat } else { Mode::Modern },
            _ => {}
        }
    }

    fn text(&mut self, name: &str, rest: &mut &str) -> Result<(), OptionFault> {
        match name {
            "exitpause" => {
                return Err(OptionFault::Removed {
                    option: "exitpause",
                    instead: "cmd",
                });
            }
            "precrash" => {
                return Err(OptionFault::Removed {
                    option: "precrash",
                    instead: "precrash -p",
                });
            }
            _ => {}
        }
        if name == "secret-file" {
            let file = token(rest, ',', MAX_VALUE);
            let file = file.ok_or(OptionFault::Syntax("secret-file=filename"))?;
            self.options.output.secret_file = Some(file.to_owned());
            return Ok(());
        }
        let syntax = match name {
            "file" => "file=filename",
            _ => "events-file=filename",
        };
        self.go_to(name, rest, |rest| {
            let file = token(rest, ',', MAX_VALUE).ok_or(OptionFault::Syntax(syntax))?;
            Ok(Target::File(file.to_owned()))
        })
    }

    /// Sets the target of the output or of the stream of VM events, which `read` splits off.
    fn go_to<'t>(
        &mut self,
        name: &str,
        rest: &mut &'t str,
        read: impl FnOnce(&mut &'t str) -> Result<Target, OptionFault>,
    ) -> Result<(), OptionFault> {
        let is_events = name.starts_with("events");
        let is_second = match is_events {
            true => self.events_target.is_some(),
            false => self.output_seen,
        };
        if is_second {
            return Err(OptionFault::TwoOutputs);
        }
        let target = read(rest)?;
        match is_events {
            true => self.events_target = Some(target),
            false => {
                self.options.output.target = target;
                self.output_seen = true;
            }
        }
        Ok(())
    }

    fn value(&mut self, name: &str, value: &str) -> Result<(), OptionFault> {
        self.form_seen |= name == "format";
        self.depth_seen |= name == "depth";
        let options = &mut self.options;
        match (name, value) {
            ("format", "a") => options.output.format = Format::Text,
            ("format", "b") => options.output.format = Format::Binary,
            ("format", _) => return Err(wrong("format", "a|b")),
            ("cpu", "samples" | "y") => options.cpu.samples = true,
            ("cpu", "times" | "old") => {
                options.cpu.times = true;
                options.cpu.old = value == "old";
            }
            ("cpu", _) => return Err(wrong("cpu", "y|samples|times|old")),
            ("heap", "dump") => options.heap.dump = true,
            ("heap", "sites") => options.heap.sites = true,
            ("heap", "all") => {
                options.heap.dump = true;
                options.heap.sites = true;
            }
            ("heap", _) => return Err(wrong("heap", "dump|sites|all")),
            ("depth", _) => {
                let depth = whole_number(value).filter(|n| *n >= 0);
                let depth = depth.ok_or_else(|| wrong("depth", "decimal and >= 0"))?;
                options.traces.depth = u32::try_from(depth).unwrap_or(u32::MAX);
            }
            ("events-depth", _) => {
                let depth = value.parse().ok();
                let depth = depth.ok_or_else(|| wrong("events-depth", "64 at most"))?;
                self.events_depth = Some(depth);
            }
            ("interval", _) => {
                let demand = "decimal and > 0";
                options.interval = time(value).ok_or_else(|| wrong("interval", demand))?;
            }
            ("wall", "y" | "n") => {
                options.cpu.wall = None;
                self.wall_at_interval = value == "y";
            }
            ("wall", _) => {
                let every =
                    time(value).ok_or_else(|| wrong("wall", "y|n or a time such as 10ms"))?;
                options.cpu.wall = Some(every);
                self.wall_at_interval = false;
            }
            ("cutoff", _) => {
                let ratio = value.trim_start().parse::<f64>().ok();
                // C's comparison also accepted "nan".
                let ratio = ratio.filter(|ratio| ratio.is_nan() || *ratio >= 0.0);
                options.cutoff = ratio.ok_or_else(|| wrong("cutoff", "floating point and >= 0"))?;
            }
            ("alloc", _) => {
                // The VM's sampler takes no larger interval: each sample would be counted as too many bytes.
                let bytes = size(value).filter(|n| *n > 0 && i32::try_from(*n).is_ok());
                let expected = "a size such as 512k, up to 2047m";
                let interval = bytes.ok_or_else(|| wrong("alloc", expected))?;
                let live = options.sampled.is_none_or(|sampled| sampled.live);
                options.sampled = Some(SampledAlloc { interval, live });
            }
            ("events", _) => {
                let bytes = size(value).and_then(|bytes| i32::try_from(bytes).ok());
                let bytes = bytes.ok_or_else(|| wrong("events", "a size up to 2047m"))?;
                self.events = Some(bytes.cast_unsigned());
            }
            ("native", _) => {
                let interval = size(value).ok_or_else(|| wrong("native", "a size such as 512k"))?;
                options.heap.native = Some(interval);
            }
            ("stacks", "exact" | "sampled") => options.heap.stacks_sampled = value == "sampled",
            ("stacks", _) => return Err(wrong("stacks", "exact|sampled")),
            ("frames", "java") => options.cpu.frames = Frames::Java,
            ("frames", "native") => options.cpu.frames = Frames::Native,
            ("frames", "kernel") => options.cpu.frames = Frames::Kernel,
            ("frames", _) => return Err(wrong("frames", "java|native|kernel")),
            ("oom", "y") => options.heap.when_exhausted = Some(WhenExhausted::Dump),
            ("oom", "n") => options.heap.when_exhausted = Some(WhenExhausted::Nothing),
            ("oom", "snapshot") => options.heap.when_exhausted = Some(WhenExhausted::Snapshot),
            ("oom", _) => return Err(wrong("oom", "y|n|snapshot")),
            ("cow-limit", _) => {
                let bytes = size(value).ok_or_else(|| wrong("cow-limit", "a size such as 2g"))?;
                options.heap.copy_limit = Some(bytes);
            }
            ("memory", _) => {
                options.memory = memory(value)?;
            }
            ("tracked", _) => {
                let most = value.parse().ok();
                options.tracked =
                    Some(most.ok_or_else(|| wrong("tracked", "a number of objects"))?);
            }
            ("loop", _) => {
                let every = time(value).ok_or_else(|| wrong("loop", "a time such as 60s"))?;
                let keep = Keep::USUAL;
                options.series = Some(Rotation { every, keep });
            }
            ("keep", _) => self.keep = Some(keep(value)?),
            ("duration", _) => {
                let after = time(value).ok_or_else(|| wrong("duration", "a time such as 10m"))?;
                options.duration = Some(after);
            }
            // Masks for the developers of the original: they are parsed and never used.
            _ => {}
        }
        Ok(())
    }

    /// The form of a file that ends after a time, with `loop=` or `duration=`, follows its ending, because nothing is
    /// printed for each file of a series.
    fn finish_timed(&mut self) -> Result<(), OptionFault> {
        let options = &mut self.options;
        if let Some(series) = &mut options.series {
            series.keep = self.keep.unwrap_or(series.keep);
            options.verbose = false;
        } else if options.duration.is_none() {
            return Ok(());
        }
        match &options.output.target {
            Target::Net { .. } if options.series.is_some() => {
                Err(wrong("loop", "without net=HOST:PORT"))
            }
            Target::File(name) if name.ends_with(".hprof") && !self.form_seen => {
                options.output.format = Format::Binary;
                options.mode = Mode::Modern;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A file with an end has the form of its ending. Refuses the endings of forms that the agent does not write then, and
    /// of all others otherwise. The original wrote text for every ending, and so does the agent if the options request
    /// text.
    fn finish_ending(&mut self) -> Result<(), OptionFault> {
        /// Forms that the original did not have.
        const OTHERS: [&str; 8] = [
            ".jfr",
            ".pb.gz",
            ".pprof",
            ".collapsed",
            ".folded",
            ".html",
            ".json",
            ".gz",
        ];
        let options = &mut self.options;
        let Target::File(name) = &options.output.target else {
            return Ok(());
        };
        let is_requested = options.series.is_none() && options.names_form();
        if options.records_nothing
            || is_requested
            || !OTHERS.iter().any(|ending| name.ends_with(ending))
        {
            return Ok(());
        }
        let has_end = options.series.is_some() || options.duration.is_some();
        let Some(form) = Form::of_file_name(name).filter(|_| has_end) else {
            return Err(wrong(
                "file",
                ".hprof or .txt, or with loop= or duration= also .jfr, .pb.gz or .collapsed \
                 (tenure run -o and tenure attach -o write these and .html and .json)",
            ));
        };
        if options.names_form() {
            return Err(wrong(
                "format",
                "left out, as compat=y, with loop= and a file= whose ending is that of another form",
            ));
        }
        if options.heap.dump {
            return Err(wrong(
                "heap",
                "sites with this file=: heap dumps need .hprof or .txt",
            ));
        }
        options.output.converted = Some(form);
        options.output.format = Format::Binary;
        options.mode = Mode::Modern;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), OptionFault> {
        self.finish_timed()?;
        let options = &mut self.options;
        if self.wall_at_interval {
            options.cpu.wall = Some(options.interval);
        }
        if options.output.format == Format::Binary && options.mode == Mode::Compat {
            if options.cpu.times {
                return Err(OptionFault::TimesBinary);
            }
            if options.monitor {
                return Err(OptionFault::MonitorBinary);
            }
        }
        options.traces.cost_depth = if options.cpu.old {
            2
        } else {
            options.traces.depth
        };
        if !self.output_seen {
            options.output.target = Target::File(default_name(options.output.format).to_owned());
        }
        // `live` without `alloc` has nothing to track.
        options.sampled = options.sampled.filter(|sampled| sampled.interval > 0);
        let asked = options.heap.dump
            || options.heap.sites
            || options.heap.references
            || options.cpu.samples
            || options.cpu.times
            || options.cpu.wall.is_some()
            || options.monitor
            || options.sampled.is_some()
            || options.heap.native.is_some();
        options.records_nothing =
            !asked && (options.snapshots_when_exhausted() || self.events.is_some());
        if options.tracked.is_some() && (options.exact || options.heap.dump) {
            return Err(wrong("tracked", "without exact=y and heap=dump|all"));
        }
        if options.cpu.frames != Frames::Java && options.cpu.safepoint {
            return Err(wrong("frames", "java with safepoint=y"));
        }
        // Without an output, there are no messages about it.
        options.verbose &= !options.records_nothing;
        self.finish_ending()?;
        let options = &mut self.options;
        if !asked && !options.records_nothing {
            let is_series = options.series.is_some();
            let modifier = self
                .modifier
                .filter(|(name, _)| *name != "keep" || !is_series);
            if let Some((option, needs)) = modifier {
                return Err(OptionFault::Alone { option, needs });
            }
            // A recording in these forms is the one that `tenure` makes. The other default is the original's.
            if options.output.converted.is_some() {
                options.cpu.samples = true;
                if !self.depth_seen {
                    options.traces.depth = USUAL_DEPTH;
                    options.traces.cost_depth = USUAL_DEPTH;
                }
            } else {
                options.heap.dump = true;
                options.heap.sites = true;
            }
        }
        self.finish_events()?;
        self.check_stacks()
    }

    /// Sets the target of the stream of VM events; if nothing else is recorded, it is the value of `file` or `net`.
    fn finish_events(&mut self) -> Result<(), OptionFault> {
        let options = &mut self.options;
        let Some(interval) = self.events else {
            return Ok(());
        };
        let is_alone = options.records_nothing;
        if is_alone && options.series.is_some() {
            return Err(wrong("loop", "with a profile beside events=SIZE"));
        }
        let usual = Target::File(USUAL_EVENT_FILE.to_owned());
        let target = match self.events_target.take() {
            Some(target) => target,
            None if is_alone && self.output_seen => {
                std::mem::replace(&mut options.output.target, usual)
            }
            None => usual,
        };
        if !is_alone && target == options.output.target && !target.is_collector() {
            return Err(wrong(
                "events-file",
                "another file than that of the profile",
            ));
        }
        let usual = match is_alone {
            true => options.traces.depth,
            false => USUAL_EVENT_FRAMES,
        };
        let depth = self.events_depth.unwrap_or(usual);
        if depth > MOST_EVENT_FRAMES {
            return Err(wrong("events-depth", "64 at most"));
        }
        options.events = Some(Events {
            interval,
            depth,
            target,
        });
        Ok(())
    }

    /// `stacks=sampled` needs allocation sites.
    fn check_stacks(&self) -> Result<(), OptionFault> {
        let options = &self.options;
        if !options.heap.stacks_sampled {
            return Ok(());
        }
        if !options.heap.sites || options.sampled.is_some() {
            return Err(wrong(
                "stacks",
                "exact without heap=sites|all, or with alloc=",
            ));
        }
        Ok(())
    }
}

fn wrong(option: &'static str, demand: &'static str) -> OptionFault {
    OptionFault::Value { option, demand }
}

fn syntax(name: &str) -> &'static str {
    match name {
        "format" => "format=a|b",
        "depth" => "depth=DECIMAL",
        "interval" => "interval=DECIMAL",
        "cutoff" => "cutoff=DOUBLE",
        "cpu" => "cpu=y|samples|times|old",
        "heap" => "heap=dump|sites|all",
        "logflags" => "logflags=DECIMAL",
        "debugflags" => "debugflags=DECIMAL",
        "alloc" => "alloc=SIZE",
        "native" => "native=SIZE",
        "events" => "events=SIZE",
        "memory" => "memory=SIZE",
        "stacks" => "stacks=exact|sampled",
        "oom" => "oom=y|n|snapshot",
        "cow-limit" => "cow-limit=SIZE",
        "tracked" => "tracked=OBJECTS",
        "loop" => "loop=TIME",
        "wall" => "wall=TIME",
        "frames" => "frames=java|native|kernel",
        "keep" => "keep=FILES|SIZE",
        "duration" => "duration=TIME",
        _ => "X=DECIMAL",
    }
}

/// Parses as C's `strtol` in base 10: blanks, a sign and digits. Returns the number and the rest.
fn leading_number(text: &str) -> (i64, &str) {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits_at = usize::from(text.starts_with(['+', '-']));
    let digits = text[digits_at..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    if digits == 0 {
        return (0, text);
    }
    let end = digits_at + digits;
    let limit = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    (text[..end].parse().unwrap_or(limit), &text[end..])
}

fn whole_number(text: &str) -> Option<i64> {
    match leading_number(text) {
        (number, "") => Some(number),
        _ => None,
    }
}

/// Parses the value of `keep=`: a number of files, or a number of bytes if it has a unit.
///
/// # Errors
/// The value is neither, or it is 0.
pub fn keep(value: &str) -> Result<Keep, OptionFault> {
    let kept = match value.parse::<u64>() {
        Ok(files) => Some(Keep::Files(files)),
        Err(_) => size(value).map(Keep::Bytes),
    };
    kept.filter(|kept| !matches!(kept, Keep::Files(0) | Keep::Bytes(0)))
        .ok_or_else(|| {
            wrong(
                "keep",
                "a number of files such as 24 or a size such as 500m",
            )
        })
}

/// A time above zero; without a unit it is in milliseconds, as in the original.
pub fn time(text: &str) -> Option<Duration> {
    let (number, unit) = leading_number(text);
    let number = u64::try_from(number).ok().filter(|n| *n > 0)?;
    let nanoseconds = match unit {
        "" | "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    Some(Duration::from_nanos(number.saturating_mul(nanoseconds)))
}

/// The value of `memory=`, in bytes.
///
/// # Errors
/// The value is not a size, or below [`vmpi::Budget::LEAST`].
pub fn memory(value: &str) -> Result<u64, OptionFault> {
    let bytes = size(value).filter(|bytes| *bytes >= vmpi::Budget::LEAST);
    bytes.ok_or(OptionFault::Value {
        option: "memory",
        demand: "a size from 16m on, such as 256m",
    })
}

/// A number of bytes with an optional binary unit.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = leading_number(text);
    let number = u64::try_from(number).ok()?;
    let factor = match unit {
        "" | "b" | "B" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests;
