//! The destination of the output: a file, or a collector.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_core::options::{
    Format, Keep, Mode, Options, Patterns, StartError, Target, WhenExhausted, expand,
    temporary_name,
};
use agent_core::series::Series;
use vm_hotspot::host::HostSetup;
use vmpi::Memory;

use crate::conversion::Receiver;
use crate::file::{self, Named};
use crate::process::wall_time;
use crate::sender::{Patience, Sender};
use crate::stream::Stream;
use crate::{collector, events, process};

/// An opened output.
pub(crate) struct Output {
    /// Receives the bytes.
    pub(crate) writer: Box<dyn Write + Send>,
    /// How long the agent waits for the reader of a socket or pipe; of a socket, also the source of commands.
    pub(crate) collector: Option<(Option<TcpStream>, Patience)>,
    /// The destination, as messages show it.
    pub(crate) place: String,
    /// The folder for a snapshot of an exhausted heap: that of the output file, otherwise the working folder.
    pub(crate) folder: PathBuf,
    /// The path for a dump that the VM writes, beside the output or in the folder for temporary files.
    pub(crate) scratch: PathBuf,
    /// Counts the memory of all tables and queues of the recording.
    pub(crate) memory: Arc<Memory>,
    /// The output of the stream of VM events, if it is requested.
    pub(crate) events: Option<HostSetup>,
}

/// The path of the VM's own dump, with the ending that the VM requires.
fn scratch(name: &str) -> PathBuf {
    let pid = std::process::id();
    PathBuf::from(format!("{}.{pid}.hprof", temporary_name(name)))
}

/// The memory limit for all tables and queues of a recording.
fn memory(options: &Options) -> Arc<Memory> {
    Arc::new(Memory::new(options.memory))
}

/// Opens the output that the options name.
pub(crate) fn open(options: &Options) -> Result<Output, StartError> {
    let (mut output, events) = if opens_events_first(options) {
        let events = events::open(options)?;
        (open_profile(options)?, events)
    } else {
        let output = open_profile(options)?;
        (output, events::open(options)?)
    };
    if let Some((events, place)) = events {
        output.events = Some(events);
        if options.records_nothing {
            output.place = place;
        }
    }
    Ok(output)
}

/// What replaces no file is opened first: if that fails, the file of the other output is still there.
fn opens_events_first(options: &Options) -> bool {
    let target = options.events.as_ref().map(|events| &events.target);
    let replaces =
        |target: &Target| matches!(target, Target::File(name) if Path::new(name).is_file());
    matches!(options.output.target, Target::File(_)) && !target.is_some_and(replaces)
}

fn open_profile(options: &Options) -> Result<Output, StartError> {
    match &options.output.target {
        Target::Net { host, port } => connect(options, host, *port),
        Target::Unix(path) => {
            let place = format!("a collector at {path}");
            let refused = |error: io::Error| StartError::Stranger(place.clone(), error.to_string());
            let stream = collector::connect(Path::new(path)).map_err(refused)?;
            send_to(options, stream, place.clone()).map_err(refused)
        }
        Target::File(name) if options.records_nothing => nowhere(options, name),
        Target::File(name) => create(options, name),
    }
}

fn create(options: &Options, name: &str) -> Result<Output, StartError> {
    if let Some(series) = &options.series {
        return begin_file(options, series_of(name, series.keep))
            .map_err(|error| StartError::ProfileFile(name.to_owned(), Some(error.to_string())));
    }
    let mut name = whole_name(options, name);
    if options.output.converted.is_some() {
        return begin_single(options, Path::new(&named(&name)))
            .map_err(|error| StartError::ProfileFile(name, Some(error.to_string())));
    }
    if !options.output.force {
        name = file::free_name(&name, options.output.format);
    }
    let created = file::create(&name, options.output.format);
    let (file, name) = created.map_err(|error| {
        let (name, reason) = (name.clone(), Some(error.to_string()));
        match options.heap.dump {
            // Scripts compare the messages of the original.
            true => StartError::TempHeapFile(name, reason),
            false => StartError::ProfileFile(name, reason),
        }
    })?;
    let place = named(&name);
    if file
        .metadata()
        .is_ok_and(|about| about.file_type().is_fifo())
    {
        let refused = |error: io::Error| StartError::ProfileFile(name, Some(error.to_string()));
        return send_to_pipe(options, file, place).map_err(refused);
    }
    let file = Named::new(file, place.clone(), true);
    // Text is small and read while the program runs; a dump is large.
    let buffer = if options.output.format == Format::Binary {
        1 << 20
    } else {
        64 << 10
    };
    Ok(Output {
        writer: Box::new(BufWriter::with_capacity(buffer, file)),
        collector: None,
        place,
        folder: folder(Path::new(&name)),
        scratch: scratch(&name),
        memory: memory(options),
        events: None,
    })
}

/// The name of a file, with what its patterns stand for.
fn whole_name(options: &Options, name: &str) -> String {
    match options.mode {
        Mode::Modern => with_patterns(|patterns| expand(name, patterns, variable)),
        _ => name.to_owned(),
    }
}

/// The absolute name of a file, which stays valid when the program changes its working folder.
pub(crate) fn named(name: &str) -> String {
    std::path::absolute(name).map_or_else(|_| name.to_owned(), |path| path.display().to_string())
}

/// The absolute folder of a file, which stays valid when the program changes its working folder.
fn folder(name: &Path) -> PathBuf {
    let whole = std::path::absolute(name).unwrap_or_else(|_| name.to_owned());
    whole.parent().unwrap_or(&whole).to_owned()
}

/// No output: only a snapshot of an exhausted heap, in the folder of the file of this name, or events are requested.
fn nowhere(options: &Options, name: &str) -> Result<Output, StartError> {
    let name = whole_name(options, name);
    let folder = folder(Path::new(&name));
    if options.heap.when_exhausted == Some(WhenExhausted::Snapshot) && !folder.is_dir() {
        let reason = format!("there is no folder {}", folder.display());
        return Err(StartError::ProfileFile(name, Some(reason)));
    }
    Ok(Output {
        writer: Box::new(io::sink()),
        collector: None,
        place: format!("{} when the heap is full", folder.display()),
        scratch: scratch(&folder.join("hprof").to_string_lossy()),
        memory: memory(options),
        folder,
        events: None,
    })
}

fn connect(options: &Options, host: &str, port: i64) -> Result<Output, StartError> {
    if port == 0 {
        return Err(StartError::ProfileFile("(null)".to_owned(), None));
    }
    let output = &options.output;
    // The original used the low 16 bits, and printed the port as it was given.
    let stream = dial(
        (host, port as u16),
        output.secret_file.as_deref(),
        output.insecure,
    );
    let refused = |host: String| StartError::Connect { host, port };
    let stream = stream.map_err(|error| match error {
        StartError::Connect { host, .. } => refused(host),
        error => error,
    })?;
    let place = format!("a collector at {host}:{port}");
    send_to(options, stream, place).map_err(|_| refused(host.to_owned()))
}

/// Connects to a collector that listens at a port. One on another machine must know the secret of a file, unless that
/// is waived.
pub(crate) fn dial(
    (host, port): (&str, u16),
    secret_file: Option<&str>,
    insecure: bool,
) -> Result<TcpStream, StartError> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let refused = || StartError::Connect {
        host: host.to_owned(),
        port: i64::from(port),
    };
    let addresses = (host, port).to_socket_addrs().map_err(|_| refused())?;
    let addresses: Vec<_> = addresses.collect();
    let stranger = |what: String| StartError::Stranger(format!("{host}:{port}"), what);
    let secret = secret_file.map(collector::secret).transpose();
    let secret = secret.map_err(stranger)?;
    let is_elsewhere = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    if secret.is_none() && !insecure && addresses.iter().any(is_elsewhere) {
        return Err(StartError::Unprotected(format!("{host}:{port}")));
    }
    let stream = addresses
        .iter()
        .filter_map(|address| TcpStream::connect_timeout(address, PATIENCE).ok())
        .next()
        .ok_or_else(refused)?;
    let _ = stream.set_nodelay(true);
    if let Some(secret) = secret {
        collector::meet(&stream, &secret, PATIENCE).map_err(|error| stranger(error.to_string()))?;
    }
    Ok(stream)
}

/// Writes to the collector by a separate thread; the agent's buffer is emptied at each flush.
fn send_to(options: &Options, stream: TcpStream, place: String) -> io::Result<Output> {
    let commands = stream.try_clone()?;
    send(options, Stream::Socket(stream), Some(commands), place)
}

/// The same to the reader of a pipe, which may stop reading like a collector.
fn send_to_pipe(options: &Options, pipe: File, place: String) -> io::Result<Output> {
    send(options, Stream::of_pipe(pipe)?, None, place)
}

fn send(
    options: &Options,
    stream: Stream,
    commands: Option<TcpStream>,
    place: String,
) -> io::Result<Output> {
    let memory = memory(options);
    let sender = Sender::new(stream, &memory)?;
    let patience = sender.patience();
    Ok(Output {
        writer: Box::new(BufWriter::with_capacity(64 << 10, sender)),
        collector: Some((commands, patience)),
        place,
        folder: folder(Path::new("snapshot")),
        scratch: scratch(&std::env::temp_dir().join("hprof").to_string_lossy()),
        memory,
        events: None,
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn with_patterns<T>(body: impl FnOnce(&Patterns<'_>) -> T) -> T {
    let (pid, host) = (std::process::id().to_string(), hostname());
    body(&Patterns {
        pid: &pid,
        time: &wall_time().stamp(),
        host: &host,
    })
}

/// The files of a recording with `loop=`. Their folder is absolute, so the program may change its working folder.
fn series_of(name: &str, keep: Keep) -> Series {
    with_patterns(|patterns| Series::new(&named(name), keep, patterns, variable))
}

/// The file of a recording with `duration=` that is converted.
fn begin_single(options: &Options, name: &Path) -> io::Result<Output> {
    if fs::metadata(name).is_ok_and(|about| !about.is_file()) {
        let fault = "only a file can have this form";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
    }
    // The link stays, and the file that it leads to is replaced.
    let target = file::target_of_own_link(name).filter(|_| options.output.force);
    let name = target.as_deref().unwrap_or(name);
    let output = begin_file(options, Series::single(name, options.output.force))?;
    if output.place != name.display().to_string() && options.output.force {
        process::note(&format!(
            "another recording is writing {}; this one is written to {}",
            name.display(),
            output.place
        ));
    }
    Ok(output)
}

/// The next file of a series.
fn begin_file(options: &Options, series: Series) -> io::Result<Output> {
    let series = match options.output.converted {
        Some(_) => series.of_data(),
        None => series,
    };
    let part = series.begin(&wall_time().stamp(), std::process::id())?;
    let path = part.path().to_owned();
    let place = path.display().to_string();
    let part: Box<dyn Write + Send> = match options.output.converted {
        Some(form) => Box::new(Receiver::new(part, form)),
        None => Box::new(part),
    };
    let part = Named::new(part, place.clone(), false);
    Ok(Output {
        writer: Box::new(BufWriter::with_capacity(64 << 10, part)),
        collector: None,
        place,
        folder: folder(&path),
        scratch: scratch(&path.to_string_lossy()),
        memory: memory(options),
        events: None,
    })
}

fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}
