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

use profile::write::Form;
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
    /// `verbose`: print to standard error that a dump is being written.
    pub verbose: bool,
    /// `primfields`, `primarrays`.
    pub primitives: Primitives,
    /// `exact=y`: every object is tracked, so that live counts are exact.
    pub exact: bool,
    /// `alloc`, `live`.
    pub sampled: Option<SampledAlloc>,
    /// `memory`: the most bytes of all tables; in the program's heap, the agent uses at most a quarter of that.
    pub memory: u64,
    /// `tracked`: how many objects may be tracked, 0 for as many as `memory` allows.
    pub tracked: Option<usize>,
    /// `compat` or `modern`.
    pub mode: Mode,
    /// `events`, `events-file`, `events-net`: the stream of VM events.
    pub events: Option<Events>,
    /// Only a snapshot of an exhausted heap or the stream of VM events is requested: there is no other output.
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
    /// The most frames of a stack; if nothing else is recorded, the value of `depth`.
    pub depth: u32,
    /// The output of the stream; if nothing else is recorded, the value of `file` or `net`.
    pub target: Target,
}

/// When a recording starts its next file, and which files it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The time that each file covers.
    pub every: Duration,
    /// The files that are kept.
    pub keep: Keep,
}

/// How many files of a recording are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// This number of files.
    Files(u64),
    /// This number of bytes, and always the newest file.
    Bytes(u64),
}

impl Keep {
    /// The default.
    pub const USUAL: Keep = Keep::Files(24);
}

/// What `heap=` requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapMode {
    /// A heap dump.
    pub dump: bool,
    /// Allocation sites.
    pub sites: bool,
    /// `stacks=sampled`: an allocation site is an instruction, and the stacks of sites are sampled.
    pub stacks_sampled: bool,
    /// `native`: blocks of native code are recorded, on average one per this many bytes; 0 and 1 for every block.
    pub native: Option<u64>,
    /// `jni=y`: global references of native code.
    pub references: bool,
    /// `oom`: what happens when the Java heap is exhausted for the first time. `None` means the default of the mode
    /// ([`Options::dumps_when_exhausted`]).
    pub when_exhausted: Option<WhenExhausted>,
    /// `cow-limit`: the most bytes of memory that a snapshot may use.
    pub copy_limit: Option<u64>,
    /// `own=y`: the agent may run the program's code for requests about its objects.
    pub own_code: bool,
}

/// What happens when the Java heap is exhausted for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenExhausted {
    /// `oom=n`.
    Nothing,
    /// `oom=y`: the agent writes what it also writes for a dump at the end.
    Dump,
    /// `oom=snapshot`: a copy of the process is read, and its heap is written to a separate file.
    Snapshot,
}

/// What `cpu=` requests. `samples` and `times` may be on together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuMode {
    /// Periodic stack samples.
    pub samples: bool,
    /// Every call counted and timed.
    pub times: bool,
    /// Timed calls are printed as pairs of caller and callee (`cpu=old`).
    pub old: bool,
    /// `wall`: the time between two wall-clock samples of a thread, whether it runs or not.
    pub wall: Option<Duration>,
    /// `safepoint=y`: take stacks at safepoints, as the original did.
    pub safepoint: bool,
    /// `frames`: the kinds of frames in samples.
    pub frames: Frames,
}

/// The kinds of frames in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// Java frames.
    #[default]
    Java,
    /// Java frames and native frames.
    Native,
    /// Java frames, native frames and, in CPU samples, kernel frames.
    Kernel,
}

/// The destination and the form of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Text or binary.
    pub format: Format,
    /// The form that a file with an end has by its ending. It is written in the binary form and then converted.
    pub converted: Option<Form>,
    /// File or socket.
    pub target: Target,
    /// `force=y`: replace an existing file.
    pub force: bool,
    /// `secret-file`: the file with the secret that a collector on another machine must know.
    pub secret_file: Option<String>,
    /// `insecure=y`: the recording may be sent to another machine without protection.
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
    /// A collector that listens at a port.
    Net {
        /// Name or address.
        host: String,
        /// Port as C's `strtol` reads it: 0 if the text is not a number.
        port: i64,
    },
    /// A collector on this machine that listens at a socket in the file system.
    Unix(String),
}

impl Target {
    /// Whether a collector receives the output.
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
    /// Equal traces of different threads count as different traces.
    pub per_thread: bool,
}

/// The primitive values in a binary heap dump.
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
    /// Sampled objects are tracked until they are freed.
    pub live: bool,
}

/// How closely the output follows the original's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The original's format.
    Compat,
    /// Version 1.0.2 with 8-byte ids, true thread stacks, wide totals, file patterns.
    Modern,
}

impl Options {
    /// The settings of an empty option string, before the rule that no selection means `heap=all`.
    pub(crate) fn blank(text: String) -> Options {
        Options {
            text,
            heap: HeapMode::default(),
            cpu: CpuMode::default(),
            monitor: false,
            output: Output {
                format: Format::Text,
                converted: None,
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

    /// Whether the heap is dumped at the first `OutOfMemoryError`. The original did not, so its mode does so only if
    /// the option is given.
    pub fn dumps_when_exhausted(&self) -> bool {
        let by_mode = match self.mode {
            Mode::Modern => WhenExhausted::Dump,
            Mode::Compat => WhenExhausted::Nothing,
        };
        let wanted = self.heap.when_exhausted.unwrap_or(by_mode);
        self.heap.dump && wanted == WhenExhausted::Dump
    }

    /// Whether a snapshot of the heap is taken at the first `OutOfMemoryError`, whatever else is recorded.
    pub fn snapshots_when_exhausted(&self) -> bool {
        self.heap.when_exhausted == Some(WhenExhausted::Snapshot)
    }

    /// Whether a collector receives the last counts when the VM ends without a dump. The original sent nothing; a user
    /// who watches a program also wants the counts since the last request.
    pub fn writes_last_counts(&self) -> bool {
        let is_counted = self.heap.sites
            || self.heap.dump
            || self.heap.native.is_some()
            || self.heap.references
            || self.sampled.is_some();
        let has_collector = self.output.target.is_collector();
        is_counted && has_collector && !self.dump_on_exit && self.mode == Mode::Modern
    }

    /// Whether a recording with these options counts and reports the same; only the collector may differ.
    pub fn records_as(&self, other: &Options) -> bool {
        let mut other = other.clone();
        other.text.clone_from(&self.text);
        other.output = Output {
            format: other.output.format,
            ..self.output.clone()
        };
        // This setting can be changed at any time.
        other.heap.own_code = self.heap.own_code;
        *self == other
    }

    /// Whether the options determine the form of the output independently of the file name: `format`, or `compat=y`.
    pub(crate) fn names_form(&self) -> bool {
        let mut words = self.text.split(',');
        words.any(|word| word.starts_with("format=") || word == "compat=y")
    }

    /// A remark for the user about the form of the output: the original's default is text, even in a file called
    /// `.hprof`.
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

    /// The name of the output file with `force=n`; `exists` returns whether a name is in use.
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
