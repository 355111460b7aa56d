//! `tenure dump`.

use super::redact::How;
use crate::Outcome;
use crate::args::parse_size;
use crate::dump_output::is_packed;
use crate::exit::{Exit, Usage};
use crate::live::snapshot::Snapshot;
use crate::output::{note, stdout};
use crate::output_file::{OutputFile, named_after};
use crate::session::Session;
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use heap_analysis::share::redact::{RedactOptions, Redactor};
use hprof::{HeaderError, Rewriter};
use jvm_observe::attach;
use jvm_observe::jvm::{self, Jvm};
use report::units::human_bytes;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use vm_image::{Changed, Copied, Core, Fault, Frozen, Memory, Place, Process, Summary};

/// Take a heap dump of a running JVM, of one that hangs, or of a core file
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The JVM stops while it writes the dump itself. With --snapshot it stops only while Tenure's agent copies\nthe process (fork); the copy shares all memory that the program does not change meanwhile. The agent is\nloaded for that and stays, without a recording. --frozen and --core need nothing of the JVM.\n\n--snapshot, --frozen and --core read memory (HotSpot 8 to 25 with the Serial, Parallel, G1 or\nShenandoah collector). Such dumps include unreachable objects, and whatever on a thread's stack looks like a\nreference counts as a local variable.\n\nA JVM that runs with Tenure's agent also writes its profile on SIGQUIT (kill -QUIT PID).\n\nExamples:\n  tenure dump 4711                            (writes heap-4711.hprof)\n  tenure dump demo.Main -o all.hprof --all\n  tenure dump 4711 --snapshot -o now.hprof\n  tenure dump 4711 --snapshot --redact -o shared.hprof\n  tenure dump 4711 --frozen -o hung.hprof\n  tenure dump --core core.4711 -o crashed.hprof"
)]
pub struct Args {
    /// Process id, or a part of the main class's name
    #[arg(value_name = "PID|MAIN", required_unless_present = "core")]
    target: Option<String>,
    /// Output file; the extension `.gz` compresses it; with --snapshot, --frozen and --core `-` is standard output [default: heap-PID.hprof, or the
    /// core's name with .hprof]
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Include unreachable objects (no GC first)
    #[arg(long)]
    all: bool,
    /// Copy the process and read the copy while the program continues
    #[arg(long, conflicts_with_all = ["all", "core", "frozen"])]
    snapshot: bool,
    /// With --snapshot: abandon the dump when the program has changed more memory than this, such as 2G
    /// [default: a quarter of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "snapshot")]
    cow_limit: Option<u64>,
    /// With --snapshot: first move the program's memory to huge pages while it runs, so that it stops for a fraction of
    /// the time; it needs no more memory, and keeps the huge pages that it does not change while the dump is written
    /// (Linux 6.1 or later)
    #[arg(long, requires = "snapshot")]
    huge_pages: bool,
    /// With --snapshot: the agent library [default: beside this program]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath, requires = "snapshot")]
    agent: Option<PathBuf>,
    /// Stop the process and read its memory: also for a JVM that hangs
    #[arg(long, conflicts_with_all = ["all", "core"])]
    frozen: bool,
    /// Read an ELF core file, as the kernel and gcore write them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "all"], value_hint = clap::ValueHint::FilePath)]
    core: Option<PathBuf>,
    /// The libjvm.so of the core, if it is not at its original path
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    libjvm: Option<PathBuf>,
    /// With --snapshot, --frozen or --core: write no contents, as `tenure redact` does; they never reach the disk.
    /// METHOD is tokens (the default: equal contents get equal tokens) or zero
    #[arg(long, value_name = "METHOD", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "tokens")]
    redact: Option<How>,
    /// With --redact: key of the tokens, 32 bytes, so that several dumps get the same tokens [default: random]
    #[arg(long, value_name = "PATH", requires = "redact", value_hint = clap::ValueHint::FilePath)]
    key_file: Option<PathBuf>,
    /// With --redact: also numbers in boxes and in fields of application classes
    #[arg(long, requires = "redact")]
    numbers: bool,
}

/// A fork that takes longer copies the page table of many small pages; with huge pages, 8 GiB take less time.
const LONG_FORK: Duration = Duration::from_millis(20);

impl Args {
    /// Dumps.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let force = session.global.force;
        if let Some(core) = &self.core {
            return self.of_core(core, force);
        }
        if self.libjvm.is_some() {
            return Err(Usage("--libjvm is of use with --core only".to_owned()).into());
        }
        let target = self.target.as_deref().unwrap_or_default();
        if self.frozen {
            return self.of_frozen(target, force);
        }
        if self.snapshot {
            return self.of_snapshot(target, force);
        }
        if self.redact.is_some() {
            let why = "the JVM writes this dump itself, with all contents; --redact needs --snapshot, --frozen or --core (or redact the dump: tenure redact IN OUT)";
            return Err(Usage(why.to_owned()).into());
        }
        if self.output.as_deref() == Some(Path::new("-")) {
            let why = "the JVM writes this dump itself, to a file; only --snapshot, --frozen and --core can write to standard output";
            return Err(Usage(why.to_owned()).into());
        }
        let (jvm, name) = self.find(target)?;
        let path = std::path::absolute(&name).with_context(|| name.display().to_string())?;
        let is_packed = is_packed(&path)?;
        let mut file = OutputFile::create_with_part(&path, force, &[])?;
        if self.output.is_none() {
            file = file.or_numbered();
        }
        let part = file.part()?;
        // The JVM takes only a name that is free.
        fs::remove_file(part).with_context(|| path.display().to_string())?;
        attach::dump(&jvm, part, !self.all)?;
        if is_packed {
            file = match packed(&file, force) {
                Ok(packed) => packed,
                Err(error) => {
                    file.keep();
                    return Err(error);
                }
            };
        }
        let path = file.finish_named()?;
        let metadata = fs::metadata(&path).with_context(|| path.display().to_string())?;
        let name = name.with_file_name(path.file_name().unwrap_or_default());
        let name = name.display();
        let bytes = human_bytes(metadata.len());
        note(&format!(
            "wrote {name} ({bytes}); next: tenure leaks {name}"
        ));
        Ok(Exit::Ok)
    }

    /// The JVM, and where its dump goes.
    fn find(&self, target: &str) -> Result<(Jvm, PathBuf)> {
        let jvm = jvm::find(target)?;
        let usual = || PathBuf::from(format!("heap-{}.hprof", jvm.pid));
        let name = self.output.clone().unwrap_or_else(usual);
        Ok((jvm, name))
    }

    /// The output of a dump that this process writes. A name that the user has not chosen gets a number if another dump
    /// has taken it by the end.
    fn create(&self, path: &Path, force: bool) -> Result<Output> {
        if path.as_os_str() == "-" {
            return Ok(Output::Stdout(stdout()));
        }
        let is_packed = is_packed(path)?;
        let inputs = [&self.core, &self.libjvm, &self.key_file];
        let inputs: Vec<&Path> = inputs.into_iter().flatten().map(|p| &**p).collect();
        let mut file = OutputFile::create(path, force, &inputs)?;
        if self.output.is_none() {
            file = file.or_numbered();
        }
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok(match is_packed {
            true => Output::Packed(Box::new(GzEncoder::new(file, Compression::fast()))),
            false => Output::File(file),
        })
    }

    /// How contents are replaced, if requested.
    fn redaction(&self) -> Result<Option<RedactOptions>> {
        let Some(how) = self.redact else {
            return Ok(None);
        };
        Ok(Some(RedactOptions {
            method: how.method(self.key_file.as_deref())?,
            keep: Vec::new(),
            numbers: self.numbers,
            rename_except: None,
        }))
    }

    fn of_snapshot(&self, target: &str, force: bool) -> Outcome {
        let redaction = self.redaction()?;
        let (jvm, name) = self.find(target)?;
        let mut output = self.create(&name, force)?;
        let limit = self.cow_limit;
        let limit = limit.unwrap_or_else(|| Copied::usual_limit(jvm.pid));
        let copied = || {
            let copy = Snapshot::of(&jvm, self.agent.as_deref(), self.huge_pages).with_context(|| {
                format!(
                    "there is no snapshot of process {} (without --snapshot the JVM writes its dump itself and stops meanwhile)",
                    jvm.pid
                )
            })?;
            match &copy.moved {
                Some(Ok(bytes)) => note(&format!(
                    "{} of process {} were moved to huge pages before",
                    human_bytes(*bytes),
                    jvm.pid
                )),
                Some(Err(error)) => note(&format!("nothing was moved to huge pages: {error:#}")),
                None => {}
            }
            let (stopped, fork) = (millis(copy.stopped), millis(copy.fork));
            note(&format!(
                "process {} was stopped for {stopped} ms at most ({fork} ms to copy it) and runs on",
                jvm.pid
            ));
            if copy.fork > LONG_FORK && !self.huge_pages {
                note(
                    "most of that is the page table of memory on small pages; --huge-pages makes it shorter",
                );
            }
            Ok(copy.copied.read(limit, |memory, place| {
                read(memory, place, redaction.as_ref(), &mut output)
            }))
        };
        let (summary, Changed(changed)) = match outside_of_collections(jvm.pid, copied)? {
            Err(Fault::Changed { changed, limit }) => bail!(
                "the program has changed {} of its memory since it was copied, more than --cow-limit ({}) allows, so \
                 the dump was abandoned; the program was not disturbed",
                human_bytes(changed),
                human_bytes(limit)
            ),
            read => read?,
        };
        let name = output.finish()?;
        note(&format!(
            "the copy took {} of memory, which the program has changed meanwhile",
            human_bytes(changed)
        ));
        Ok(report(&name, &summary, redaction.is_some()))
    }

    fn of_frozen(&self, target: &str, force: bool) -> Outcome {
        let redaction = self.redaction()?;
        let (jvm, name) = self.find(target)?;
        let mut output = self.create(&name, force)?;
        let (summary, stopped) = read_frozen(jvm.pid, redaction.as_ref(), &mut output)?;
        let name = output.finish()?;
        note(&format!(
            "process {} was stopped for {:.2} s",
            jvm.pid,
            stopped.as_secs_f64()
        ));
        Ok(report(&name, &summary, redaction.is_some()))
    }

    fn of_core(&self, path: &Path, force: bool) -> Outcome {
        let redaction = self.redaction()?;
        let name = self.output.clone();
        let name = name.unwrap_or_else(|| named_after(path, ".hprof"));
        let mut output = self.create(&name, force)?;
        let core = Core::open(path, self.libjvm.as_deref())?;
        let place = Place {
            libjvm: core.libjvm(),
            registers: core.registers().to_vec(),
            ..Place::default()
        };
        let summary = read(&core, &place, redaction.as_ref(), &mut output);
        for text in core.notes() {
            note(&text);
        }
        let summary = summary.with_context(|| path.display().to_string())?;
        let name = output.finish()?;
        Ok(report(&name, &summary, redaction.is_some()))
    }
}

/// Where a dump goes that this process writes.
enum Output {
    Stdout(crate::output::Stdout),
    File(BufWriter<OutputFile>),
    Packed(Box<GzEncoder<BufWriter<OutputFile>>>),
}

impl Output {
    /// Ends it, and returns its name.
    fn finish(self) -> Result<PathBuf> {
        match self {
            Output::Stdout(mut out) => {
                out.flush()?;
                Ok(PathBuf::from("-"))
            }
            Output::File(file) => named(file),
            Output::Packed(file) => named(file.finish()?),
        }
    }
}

/// Ends a file, and returns its name.
fn named(file: BufWriter<OutputFile>) -> Result<PathBuf> {
    let file = file.into_inner().map_err(|error| error.into_error())?;
    file.finish_named()
}

/// What the JVM has written to the part of a file, packed.
fn packed(raw: &OutputFile, force: bool) -> Result<OutputFile> {
    let path = raw.path().to_owned();
    let wrong = || path.display().to_string();
    let mut dump = fs::File::open(raw.part()?).with_context(wrong)?;
    let file = OutputFile::create(&path, force, &[])?;
    let mut packer = GzEncoder::new(BufWriter::with_capacity(1 << 20, file), Compression::fast());
    std::io::copy(&mut dump, &mut packer).with_context(wrong)?;
    let file = packer.finish().with_context(wrong)?;
    file.into_inner()
        .map_err(|error| error.into_error())
        .with_context(wrong)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Output::Stdout(out) => out.write(bytes),
            Output::File(file) => file.write(bytes),
            Output::Packed(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush(),
            Output::File(file) => file.flush(),
            Output::Packed(file) => file.flush(),
        }
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

/// Reads a heap and writes it, with other contents if they are to be replaced.
fn read(
    memory: &dyn Memory,
    place: &Place,
    redaction: Option<&RedactOptions>,
    output: &mut Output,
) -> Result<Summary, Fault> {
    let Some(options) = redaction else {
        return vm_image::dump(memory, place, output);
    };
    let plan = |head: &[u8]| -> Result<Box<dyn Rewriter>, HeaderError> {
        Ok(Box::new(Redactor::of_head(head, options)?))
    };
    vm_image::dump_rewritten(memory, place, Some(&plan), output)
}

/// How often a process is stopped again if it was found in the middle of a garbage collection.
const ATTEMPTS: u32 = 60;
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Tries until the process is not found in the middle of a collection; then nothing has been written yet.
fn outside_of_collections<T>(
    pid: u32,
    mut attempt: impl FnMut() -> Result<Result<T, Fault>>,
) -> Result<Result<T, Fault>> {
    let mut pause = Duration::from_millis(10);
    for _ in 1..ATTEMPTS {
        match attempt()? {
            Err(Fault::InCollection) => thread::sleep(pause),
            found => return Ok(found),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    let found = attempt()?;
    if matches!(found, Err(Fault::InCollection)) {
        let tried =
            format!("process {pid} was stopped {ATTEMPTS} times and collected garbage each time");
        return Err(Fault::InCollection).context(tried);
    }
    Ok(found)
}

/// Stops a process, reads its heap, and lets it continue. Also returns how long it was stopped.
fn read_frozen(
    pid: u32,
    redaction: Option<&RedactOptions>,
    output: &mut Output,
) -> Result<(Summary, Duration)> {
    let found = outside_of_collections(pid, || {
        let frozen = Frozen::new(pid)?;
        let process = Process::open(pid)?;
        let place = Place {
            libjvm: process.libjvm(),
            registers: frozen.registers(),
            ..Place::default()
        };
        let dumped = read(&process, &place, redaction, output);
        Ok(dumped.map(|summary| (summary, frozen.elapsed())))
    })?;
    Ok(found?)
}

/// Prints what was written, and what could not be read.
fn report(path: &Path, summary: &Summary, is_redacted: bool) -> Exit {
    note(&format!(
        "wrote {}: {} objects of {} classes, {} threads (HotSpot {}, {} collector)",
        path.display(),
        summary.objects(),
        summary.classes,
        summary.threads,
        summary.version,
        summary.collector,
    ));
    if summary.with_stack > 0 {
        note(&format!(
            "{} objects have the stack that allocated them, which the agent has recorded",
            summary.with_stack
        ));
    }
    if is_redacted {
        note(
            "contents are replaced as `tenure redact` does; the output was not compared with its input",
        );
    }
    if summary.traces < summary.threads {
        note(&format!(
            "the stack traces of {} threads are incomplete: their frames could not be read",
            summary.threads - summary.traces
        ));
    }
    let locals = summary.roots.get("JAVA_FRAME").unwrap_or(&0);
    note(&format!(
        "local variables are conservative: {locals} roots are what the words of stacks point to; they count where nothing else keeps an object alive"
    ));
    if summary.unloaded > 0 {
        note(&format!(
            "{} unreachable objects of classes that are not loaded are left out",
            summary.unloaded
        ));
    }
    if summary.dead_bytes > 0 {
        note(&format!(
            "{} of unreachable objects are left out, as in a dump of the VM itself: its collector has found them dead and may have unloaded their classes",
            human_bytes(summary.dead_bytes)
        ));
    }
    if summary.damage.total() == 0 {
        return Exit::Ok;
    }
    note(&format!(
        "the image is damaged; the dump has the rest of it ({} bytes of the heap could not be read):",
        summary.gap_bytes
    ));
    for sentence in summary.damage.sentences() {
        note(&format!("  {sentence}"));
    }
    Exit::Damaged
}

#[cfg(test)]
mod tests {
    use super::outside_of_collections;
    use vm_image::Fault;

    #[test]
    fn a_collection_is_awaited_and_other_faults_are_not() {
        let mut attempts = 0;
        let found = outside_of_collections(1, || {
            attempts += 1;
            Ok(match attempts {
                1 | 2 => Err(Fault::InCollection),
                _ => Ok("heap"),
            })
        });
        assert!(matches!(found, Ok(Ok("heap"))));
        assert_eq!(attempts, 3);
        let mut attempts = 0;
        let found = outside_of_collections(1, || {
            attempts += 1;
            Ok(Err::<(), _>(Fault::Ended))
        });
        assert!(matches!(found, Ok(Err(Fault::Ended))));
        assert_eq!(attempts, 1);
    }
}
