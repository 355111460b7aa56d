//! The current recording, and the commands of a program that attaches: change it, end it, write it now, report what it
//! records, or copy the process for a heap dump.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use agent_core::options::{ENVIRONMENT, Options, Parsed, Target, default_name, parse};
use agent_core::{Recorder, WallTime};
use jvmti::JavaVm;
use locks::{Mutex, MutexGuard, Rank};
use vm_hotspot::HotSpot;

use crate::exhausted::Wanted;
use crate::snapshot::Reader;
use crate::{conversion, entry, huge_pages, listener, output, process, snapshot};

/// A recording in progress.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) recorder: Arc<Mutex<Recorder>>,
    options: String,
    place: String,
    /// The settings of a snapshot of an exhausted heap.
    pub(crate) snapshot: Arc<Wanted>,
    /// Frames have line numbers.
    pub(crate) line_numbers: bool,
    begun: WallTime,
    /// It writes nothing when it ends.
    is_silent: bool,
    /// It records only a stream of VM events.
    has_no_profile: bool,
}

impl Recording {
    /// Returns an error if the output has failed.
    fn check(&self, state: &str) -> Result<(), String> {
        match self.recorder.lock().failure() {
            Some(failure) => Err(format!("{state}, but its output is lost: {failure}")),
            None => Ok(()),
        }
    }
}

static NOW: Mutex<Option<Recording>> = Mutex::new(Rank::Recording, None);

/// Locked while a recording begins or ends: a recording that ends by itself must not release what another one, which an
/// attach begins at the same time, uses already.
static CHANGE: Mutex<()> = Mutex::new(Rank::RecordingChange, ());

fn lock() -> MutexGuard<'static, Option<Recording>> {
    NOW.lock()
}

/// The recording of the process.
pub(crate) fn now() -> Option<Recording> {
    lock().clone()
}

/// A recording begins.
pub(crate) fn begin(
    recorder: &Arc<Mutex<Recorder>>,
    options: &Options,
    place: &str,
    folder: PathBuf,
) {
    let snapshot = Wanted {
        folder,
        limit: options.heap.copy_limit,
    };
    *lock() = Some(Recording {
        recorder: Arc::clone(recorder),
        options: options.text.clone(),
        place: place.to_owned(),
        snapshot: Arc::new(snapshot),
        line_numbers: options.traces.line_numbers,
        begun: process::wall_time(),
        is_silent: !options.dump_on_exit
            && !options.writes_last_counts()
            && options.events.is_none(),
        has_no_profile: options.records_nothing && options.events.is_some(),
    });
}

/// The recording continues with the output of these options, which record the same.
pub(crate) fn continues_with(options: &Options, place: &str) {
    if let Some(now) = lock().as_mut() {
        now.options.clone_from(&options.text);
    }
    moved(place);
}

/// The recording continues with another file.
pub(crate) fn moved(place: &str) {
    if let Some(now) = lock().as_mut() {
        now.place = place.to_owned();
    }
}

/// The recording has failed to start.
pub(crate) fn forget() {
    *lock() = None;
}

/// Carries out the command `text` of a program that attaches. The answer is written to standard error of the program;
/// if `reply=SOCKET` comes first, it is sent to that socket, where the sender waits for it. Returns false if the
/// command is refused.
pub(crate) fn order(java: JavaVm, text: &str) -> bool {
    let (reply, text) = match text.strip_prefix("reply=") {
        Some(rest) => {
            let (path, text) = rest.split_once(',').unwrap_or((rest, ""));
            (Some(path), text)
        }
        None => (None, text),
    };
    let answer = match text {
        "status" => Ok(status()),
        "stop" => stop(),
        "dump" => dump(),
        "huge-pages" => huge_pages::collect().map(|bytes| bytes.to_string()),
        order => match order.strip_prefix("snapshot=") {
            Some(socket) => snapshot(java, socket),
            None => match order.strip_prefix(UNLESS_RECORDED) {
                Some(options) => change(java, options, false),
                None => change(java, order, true),
            },
        },
    };
    let reported = reply.and_then(|path| UnixStream::connect(path).ok());
    match (reported, &answer) {
        (Some(mut stream), Ok(printed)) => {
            drop(stream.write_all(format!("0 {printed}").as_bytes()))
        }
        (Some(mut stream), Err(fault)) => drop(stream.write_all(format!("1 {fault}").as_bytes())),
        (None, Err(fault)) => process::note(fault),
        (None, Ok(_)) => {}
    }
    answer.is_ok()
}

const NOTHING: &str = "nothing is recorded";
/// What precedes options that must not end another recording.
const UNLESS_RECORDED: &str = "unless-recorded,";

fn status() -> String {
    match now() {
        Some(now) => {
            let has_left = match listener::is_alone() {
                true => ", which has disconnected,",
                false => "",
            };
            let (options, place, begun) = (now.options, now.place, now.begun.ctime());
            format!("records {options} to {place}{has_left} since {begun}")
        }
        None => NOTHING.to_owned(),
    }
}

/// Ends this recording, if it is still active.
pub(crate) fn stop_this(recorder: &Arc<Mutex<Recorder>>) {
    let is_it = |now: &Recording| Arc::ptr_eq(&now.recorder, recorder);
    if let Err(error) = end(&CHANGE.lock(), is_it) {
        process::note(&error);
    }
    conversion::run();
}

/// Ends the current recording if `is_it` returns true, which writes all its data; `None` if there is no such recording. The
/// caller then calls [`conversion::run`].
fn end(
    _change: &MutexGuard<'_, ()>,
    is_it: impl FnOnce(&Recording) -> bool,
) -> Result<Option<Recording>, String> {
    let Some(now) = lock().take_if(|now| is_it(now)) else {
        return Ok(None);
    };
    let vm = HotSpot::get().ok_or(NOTHING)?;
    let ended = conversion::later(|| vm.end());
    listener::end();
    ended.map_err(|error| error.to_string())?;
    entry::allow_another();
    Ok(Some(now))
}

fn stop() -> Result<String, String> {
    let ended = end(&CHANGE.lock(), |_| true);
    let fault = conversion::run();
    let now = ended?.ok_or(NOTHING)?;
    let is_converted = now.recorder.lock().options().output.converted.is_some();
    let fault = fault.filter(|_| is_converted);
    now.check("the recording has ended")?;
    if let Some(fault) = fault {
        return Err(format!("the recording has ended, but {fault}"));
    }
    Ok(match now.is_silent {
        true => "the recording has ended; doe=n left nothing to write".to_owned(),
        false => format!("the recording has ended and is in {}", now.place),
    })
}

/// Writes the same data as at the end, and continues.
fn dump() -> Result<String, String> {
    let now = now().ok_or(NOTHING)?;
    if now.has_no_profile {
        return Err("no profile is recorded; events are written as they happen".to_owned());
    }
    let vm = HotSpot::get().ok_or(NOTHING)?;
    vm.dump();
    now.check("the recording continues")?;
    let is_whole = now.recorder.lock().options().output.converted.is_none();
    Ok(match is_whole {
        true => format!("the data recorded so far is in {}", now.place),
        false => format!("the data recorded so far is kept for {}", now.place),
    })
}

/// Copies the process for the reader at a socket. The answer contains in microseconds how long the program was stopped
/// and how long the fork took.
fn snapshot(java: JavaVm, socket: &str) -> Result<String, String> {
    let taken = snapshot::take(java, Reader::At(socket), |_, _| ())?;
    let [stopped, fork] = [taken.stopped, taken.fork].map(|time| time.as_micros());
    Ok(format!("{stopped} {fork}"))
}

/// Begins a recording with these options. One whose collector has disconnected continues if it has the same options, and
/// ends otherwise. One that has a file or a collector ends if it `is_replaced`; otherwise its status is the error. So of
/// several that begin a recording at once without replacing another one, only one succeeds.
fn change(java: JavaVm, text: &str, is_replaced: bool) -> Result<String, String> {
    let parsed = parse(text, std::env::var(ENVIRONMENT).ok().as_deref());
    let mut options = match parsed {
        Ok(Parsed::Run(options)) => *options,
        Ok(Parsed::Help) => return Err("help is for the command line".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let usual = default_name(options.output.format);
    if matches!(&options.output.target, Target::File(name) if name == usual) {
        // A file that an earlier recording has written under this name is kept.
        options.output.force = false;
    }
    let is_refused = || !is_replaced && now().is_some() && !listener::is_alone();
    let change = CHANGE.lock();
    if let Some(now) = &now()
        && listener::come_back(now, &options)?
    {
        return Ok(status());
    }
    if is_refused() {
        return Err(status());
    }
    // The next step may wait for the reader of a pipe.
    drop(change);
    if options.heap.native.is_some()
        && let Some(why) = vm_hotspot::native_refusal()
    {
        return Err(why.to_owned());
    }
    // If this fails, the current recording continues.
    let output = output::open(&options).map_err(|error| error.with_reason())?;
    let change = CHANGE.lock();
    // The program may have begun one itself: a command of its bean does not wait for those of the attach socket.
    if is_refused() {
        return Err(status());
    }
    let before = end(&change, |_| true)?;
    let remark = options.remark().map(|remark| format!("; {remark}"));
    let begun = entry::begin(java, options, output);
    drop(change);
    conversion::run();
    begun.map_err(|error| match &before {
        Some(before) => format!("{error}; the recording to {} has ended", before.place),
        None => error.to_string(),
    })?;
    let printed = status() + &remark.unwrap_or_default();
    Ok(match before {
        Some(before) => format!(
            "{printed}, no longer {} to {}",
            before.options, before.place
        ),
        None => printed,
    })
}
