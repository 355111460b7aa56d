//! The option string of `-agentlib:hprof=…`, with the original's grammar, defaults and error
//! texts (facts: `spec/hprof-agent.md` section 1).
//!
//! ```
//! use agent_core::options::{Format, Parsed, parse};
//!
//! let Ok(Parsed::Run(options)) = parse("heap=sites,format=b", None) else { panic!() };
//! assert!(options.heap.sites && !options.heap.dump);
//! assert_eq!(options.output.format, Format::Binary);
//! ```

mod error;
mod file_name;
mod parse;
mod table;

pub use error::{ERROR_PREFIX, OptionError, OptionFault, StartError, TERMINATED};
pub use file_name::{
    Patterns, USUAL_EVENT_FILE, default_name, expand, temporary_name, unique_name,
};
pub use parse::{keep, memory, parse, time};
pub use table::{OPTIONS, OptionRow, Origin, Value, find, help};

use std::time::Duration;

/// The environment variable whose content is appended to the options with a comma.
pub const ENVIRONMENT: &str = "_JAVA_HPROF_OPTIONS";

/// What the option string requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// The whole string was `help`: print [`help`] on standard output and exit with 0.
    Help,
    /// Profile.
    Run(Box<Options>),
}

/// The complete settings of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The option string with the environment's part, as error messages show it.
    pub text: String,
    /// `heap=`.
    pub heap: HeapMode,
    /// `cpu=`.
    pub cpu: CpuMode,
    /// `monitor=y`.
    pub monitor: bool,
    /// `format`, `file`, `net`, `force`.
    pub output: Output,
    /// `depth`, `lineno`, `thread`.
    pub traces: TraceOptions,
    /// `interval`.
    pub interval: Duration,
    /// `cutoff`: rows below this share of the total are not printed.
    pub cutoff: f64,
    /// `doe`: dump when the VM ends.
    pub dump_on_exit: bool,
    /// `msa`: measure thread CPU time instead of elapsed time in `cpu=times`.
    pub thread_cpu_clock: bool,
    /// `verbose`: say on standard error that a dump is being written.
    pub verbose: bool,
    /// `primfields`, `primarrays`.
    pub primitives: Primitives,
    /// `exact=y`: every object is followed by itself, so that live counts are exact.
    pub exact: bool,
    /// `alloc`, `live`.
    pub sampled: Option<SampledAlloc>,
    /// `memory`: bytes that all tables may take, and a quarter of that in the program's heap.
    pub memory: u64,
    /// `tracked`: how many objects may be tracked, 0 for as many as `memory` allows.
    pub tracked: Option<usize>,
    /// `compat` or `modern`.
    pub mode: Mode,
    /// `events`, `events-file`, `events-net`: the stream of VM events.
    pub events: Option<Events>,
    /// Nothing but a snapshot of an exhausted heap or the stream of VM events is wanted: there is no other output.
    pub records_nothing: bool,
    /// `loop`, `keep`: the output is a series of files.
    pub series: Option<Rotation>,
    /// `duration`: the recording ends after this time.
    pub duration: Option<Duration>,
}

/// The stream of VM events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// Mean bytes between two objects that are reported; 0 for all objects.
    pub interval: u32,
    /// Frames of a stack: what `depth` says, if nothing else is recorded.
    pub depth: u32,
    /// Where it goes: what `file` or `net` say, if nothing else is recorded.
    pub target: Target,
}

/// How the files of a recording follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Time that each file is about.
    pub every: Duration,
    /// What of them stays.
    pub keep: Keep,
}

/// What stays of the files of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// So many files.
    Files(u64),
    /// So many bytes, and the newest file in any case.
    Bytes(u64),
}

impl Keep {
    /// What stays by default.
    pub const USUAL: Keep = Keep::Files(24);
}

/// What `heap=` requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapMode {
    /// A heap dump.
    pub dump: bool,
    /// Allocation sites.
    pub sites: bool,
    /// `stacks=sampled`: sites are instructions, whose stacks are sampled.
    pub stacks_sampled: bool,
    /// `native`: blocks of native code are recorded, one in about so many bytes on average; 0 and
    /// 1 for every block.
    pub native: Option<u64>,
    /// `jni=y`: global references of native code.
    pub references: bool,
    /// `oom`: what happens when the Java heap is exhausted for the first time; as the mode has it if not
    /// said ([`Options::dumps_when_exhausted`]).
    pub when_exhausted: Option<WhenExhausted>,
    /// `cow-limit`: bytes that a snapshot may cost.
    pub copy_limit: Option<u64>,
    /// `own=y`: code of the program may be run to answer what is asked of its objects.
    pub own_code: bool,
}

/// What happens when the Java heap is exhausted for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenExhausted {
    /// `oom=n`.
    Nothing,
    /// `oom=y`: what a dump at the end writes is written then, too.
    Dump,
    /// `oom=snapshot`: a copy of the process is read into a file of its own.
    Snapshot,
}

/// What `cpu=` requests. `samples` and `times` may be on together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuMode {
    /// Periodic stack samples.
    pub samples: bool,
    /// Every call counted and timed.
    pub times: bool,
    /// Timed calls are printed as caller and callee pairs (`cpu=old`).
    pub old: bool,
    /// `wall`: time between two wall-clock samples of a thread, running or not.
    pub wall: Option<Duration>,
    /// `safepoint=y`: take stacks at safepoints, as the original did.
    pub safepoint: bool,
    /// `frames`: which frames samples have.
    pub frames: Frames,
}

/// Which frames samples have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// Those of Java.
    #[default]
    Java,
    /// Also those of native code.
    Native,
    /// Also those of native code and, in CPU samples, of the kernel.
    Kernel,
}

/// Where the output goes and in what form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Text or binary.
    pub format: Format,
    /// File or socket.
    pub target: Target,
    /// `force=y`: replace an existing file.
    pub force: bool,
    /// `secret-file`: holds what a collector elsewhere has to know.
    pub secret_file: Option<String>,
    /// `insecure=y`: what is recorded may go to another machine unprotected.
    pub insecure: bool,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `format=a`.
    Text,
    /// `format=b`.
    Binary,
}

/// File or socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file name, exactly as given or the default.
    File(String),
    /// A collector that listens.
    Net {
        /// Name or address.
        host: String,
        /// Port as C's `strtol` reads it: 0 for anything that is no number.
        port: i64,
    },
    /// A collector of this machine that listens at a socket in the file system.
    Unix(String),
}

impl Target {
    /// Whether a collector takes what is recorded.
    pub fn is_collector(&self) -> bool {
        !matches!(self, Target::File(_))
    }
}

/// How stack traces are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Frames of an allocation or sample trace.
    pub depth: u32,
    /// Frames of a `cpu=times` trace: `depth`, or 2 for `cpu=old`.
    pub cost_depth: u32,
    /// Line numbers are printed.
    pub line_numbers: bool,
    /// Traces of different threads are different traces.
    pub per_thread: bool,
}

/// Which primitive values a binary heap dump holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Primitives {
    /// Values of primitive fields.
    pub fields: bool,
    /// Elements of primitive arrays.
    pub arrays: bool,
}

/// Sampled allocation profiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledAlloc {
    /// Mean number of allocated bytes between two samples.
    pub interval: u64,
    /// Sampled objects are followed until they die.
    pub live: bool,
}

/// How close the output stays to the original's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The original's shape.
    Compat,
    /// 1.0.2 with 8-byte ids, true thread stacks, wide totals, file patterns.
    Modern,
}

impl Options {
    /// The settings of an empty option string, before the "nothing asked means `heap=all`" rule.
    pub(crate) fn blank(text: String) -> Options {
        Options {
            text,
            heap: HeapMode::default(),
            cpu: CpuMode::default(),
            monitor: false,
            output: Output {
                format: Format::Text,
                target: Target::File(default_name(Format::Text).to_owned()),
                force: true,
                secret_file: None,
                insecure: false,
            },
            traces: TraceOptions {
                depth: 4,
                cost_depth: 4,
                line_numbers: true,
                per_thread: false,
            },
            interval: Duration::from_millis(10),
            cutoff: 0.0001,
            dump_on_exit: true,
            thread_cpu_clock: false,
            verbose: true,
            primitives: Primitives {
                fields: true,
                arrays: true,
            },
            exact: false,
            sampled: None,
            memory: vmpi::Budget::DEFAULT,
            tracked: None,
            mode: Mode::Compat,
            events: None,
            records_nothing: false,
            series: None,
            duration: None,
        }
    }

    /// True when exact allocation tracking is on: `heap` in any form without `alloc=SIZE`.
    pub fn tracks_every_allocation(&self) -> bool {
        (self.heap.sites || self.heap.dump) && self.sampled.is_none()
    }

    /// Whether the heap is dumped at the first `OutOfMemoryError`. The original did not; its mode
    /// wants to be asked.
    pub fn dumps_when_exhausted(&self) -> bool {
        let by_mode = match self.mode {
            Mode::Modern => WhenExhausted::Dump,
            Mode::Compat => WhenExhausted::Nothing,
        };
        let wanted = self.heap.when_exhausted.unwrap_or(by_mode);
        self.heap.dump && wanted == WhenExhausted::Dump
    }

    /// Whether a snapshot of the heap is made at the first `OutOfMemoryError`, whatever else is recorded.
    pub fn snapshots_when_exhausted(&self) -> bool {
        self.heap.when_exhausted == Some(WhenExhausted::Snapshot)
    }

    /// Whether a collector receives the last counts when the VM ends without a dump. The original sent nothing;
    /// a user who watches a program also wants what came after the last request.
    pub fn writes_last_counts(&self) -> bool {
        let is_counted = self.heap.sites
            || self.heap.dump
            || self.heap.native.is_some()
            || self.heap.references
            || self.sampled.is_some();
        let has_collector = self.output.target.is_collector();
        is_counted && has_collector && !self.dump_on_exit && self.mode == Mode::Modern
    }

    /// True when a run with these options counts and reports the same; only its collector may be another.
    pub fn records_as(&self, other: &Options) -> bool {
        let mut other = other.clone();
        other.text.clone_from(&self.text);
        other.output = Output {
            format: other.output.format,
            ..self.output.clone()
        };
        // It may be switched at any time.
        other.heap.own_code = self.heap.own_code;
        *self == other
    }

    /// Whether the options say what the output looks like, whatever its name is: `format`, or `compat=y`.
    pub(crate) fn names_form(&self) -> bool {
        let mut words = self.text.split(',');
        words.any(|word| word.starts_with("format=") || word == "compat=y")
    }

    /// What a user should know of the output: the original's default is text, also in a file that is called `.hprof`.
    pub fn remark(&self) -> Option<String> {
        match &self.output.target {
            Target::File(name)
                if name.ends_with(".hprof")
                    && self.output.format == Format::Text
                    && !self.records_nothing
                    && !self.names_form() =>
            {
                Some(format!(
                    "{name} is written as text; format=b writes the binary form"
                ))
            }
            _ => None,
        }
    }

    /// The file name `force=n` leads to, given whether a name is taken.
    pub fn output_file(&self, pid: u32, exists: impl Fn(&str) -> bool) -> Option<String> {
        let Target::File(name) = &self.output.target else {
            return None;
        };
        if !self.output.force && exists(name) {
            return Some(unique_name(name, self.output.format, pid));
        }
        Some(name.clone())
    }
}
