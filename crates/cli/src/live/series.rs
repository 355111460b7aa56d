//! A profile as a series of files: the agent opens a connection for each (`loop=`), and this process converts the data
//! to the form of the name's extension.

use crate::exit::Usage;
use crate::output::{SHOWN_NOTES, note};
use agent_core::WallTime;
use agent_core::control::StreamMeter;
use agent_core::options::{Keep, Patterns, keep};
use agent_core::series::{Part, Series};
use anyhow::{Context, Result, bail};
use profile::write::main_metric;
use report::profile::{Form, render};
use rustix::net::sockopt::socket_peercred;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Flags of a recording in a series of files.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LoopArgs {
    /// Write one file per TIME (30, 90s, 5m, 1h); in its name, %t is the time (UTC) at its beginning and %p the process
    /// id
    #[arg(long = "loop", value_name = "TIME", requires = "output", value_parser = duration)]
    every: Option<Duration>,
    /// With --loop: number or total size (500m) of the files to keep; the oldest are removed
    #[arg(long, value_name = "N|SIZE", requires = "every", default_value = "24", value_parser = kept)]
    keep: Keep,
}

fn kept(text: &str) -> Result<Keep, String> {
    keep(text).map_err(|fault| fault.to_string())
}

/// Seconds, or a number with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        _ => (text, 1),
    };
    let seconds = digits.parse::<u64>().ok();
    let seconds = seconds.and_then(|number| number.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (1..=86_400).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a time up to a day such as 30, 90s, 5m or 1h".to_owned())
}

/// The form that a profile is converted to; `None` for `.hprof`, `.txt` and a file without an extension, which are
/// written as the agent writes them.
///
/// # Errors
/// The extension is not known.
pub(crate) fn form_of(output: &Path) -> Result<Option<Form>> {
    let own = |ending: &OsStr| [OsStr::new("txt"), OsStr::new("hprof")].contains(&ending);
    if output.extension().is_none_or(own) {
        return Ok(None);
    }
    let form = Form::of_file_name(&output.to_string_lossy());
    form.map(Some).ok_or_else(|| unknown(output))
}

fn unknown(output: &Path) -> anyhow::Error {
    let text = format!(
        "{}: the ending is none of .jfr .pb.gz .collapsed .html .json .hprof .txt",
        output.display()
    );
    Usage(text).into()
}

/// A profile of the agent in another form.
pub(crate) fn converted(profile: &[u8], form: Form, path: &Path) -> Result<Vec<u8>> {
    let (profile, _) = profile::read(profile).context("what the agent sent")?;
    note_once(profile.agent_notes.iter().take(SHOWN_NOTES));
    if main_metric(&profile).is_none() {
        note("the profile has no counts: the output is empty");
    }
    let plain = form.plain();
    if let Some(text) = plain.and_then(|form| form.left_out(&profile, None)) {
        // The same holds for each file of a series.
        static NOTED: Once = Once::new();
        NOTED.call_once(|| note(&text));
    }
    if let Some(text) = plain.and_then(|form| form.left_out_events(&profile, None)) {
        note(&text);
    }
    let title = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(render(&profile, form, None, &title))
}

/// Prints notes of the agent, which explain missing numbers; of those that differ only in numbers, the first one: each
/// file of a series has them.
fn note_once<'t>(notes: impl Iterator<Item = &'t String>) {
    static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    for text in notes {
        if noted.insert(text.replace(|c: char| c.is_ascii_digit(), "")) {
            note(&format!("note of the agent: {text}"));
        }
    }
}

/// The destination of the files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    series: Series,
    form: Option<Form>,
    every: Duration,
}

impl LoopArgs {
    /// The requested files.
    ///
    /// # Errors
    /// If the extension of the name is not that of a form.
    pub(crate) fn files(&self, output: Option<&Path>) -> Result<Option<Files>> {
        let (Some(every), Some(output)) = (self.every, output) else {
            return Ok(None);
        };
        let name = output.to_str().context("the output is not UTF-8")?;
        let form = form_of(output)?;
        if output.extension().is_none() {
            return Err(unknown(output));
        }
        let pid = std::process::id().to_string();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let patterns = Patterns {
            pid: &pid,
            time: &now(),
            host: host.trim(),
        };
        let series = Series::new(name, self.keep, &patterns, |name| std::env::var(name).ok());
        Ok(Some(Files {
            series,
            form,
            every,
        }))
    }
}

/// The time in the form of file names.
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = WallTime {
        unix_ms: now.unwrap_or_default().as_millis() as u64,
        offset_seconds: 0,
    };
    format!("{}Z", time.stamp())
}

impl Files {
    /// What the agent gets to know.
    pub(crate) fn option(&self) -> String {
        format!("loop={}s", self.every.as_secs())
    }

    /// Stores the received data until the agent closes the connection. Returns the file; none if nothing was received.
    pub(crate) fn store(&self, mut stream: TcpStream) -> Result<Option<PathBuf>> {
        let pid = socket_peercred(&stream).map(|other| other.pid.as_raw_nonzero().get());
        let part = self.series.begin(&now(), pid.unwrap_or(0).unsigned_abs());
        let mut part = part.context("there is no next file")?;
        let path = part.path().to_owned();
        let stored = self.write(&mut stream, &mut part);
        if stored.is_err() {
            part.abandon();
        }
        let any = stored.with_context(|| format!("{} is not written", path.display()))?;
        match any {
            true => named(part),
            false => Ok(None),
        }
    }

    fn write(&self, stream: &mut TcpStream, part: &mut Part) -> Result<bool> {
        let mut meter = StreamMeter::default();
        let mut profile = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = match stream.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // The program was killed.
                Err(_) => 0,
            };
            if count == 0 {
                break;
            }
            meter.push(&buffer[..count]);
            match self.form {
                Some(_) => profile.extend_from_slice(&buffer[..count]),
                None => part.write_all(&buffer[..count])?,
            }
        }
        let progress = meter.progress();
        if progress.bytes > 0 && !progress.at_boundary {
            bail!("the program has ended inside a record");
        }
        if let Some(form) = self.form.filter(|_| progress.bytes > 0) {
            part.write_all(&converted(&profile, form, part.path())?)?;
        }
        Ok(progress.bytes > 0)
    }
}

/// Gives a whole file its name, and returns it.
fn named(part: Part) -> Result<Option<PathBuf>> {
    let path = part.path().to_owned();
    part.finish().with_context(|| {
        format!(
            "{} is not written: the file cannot be renamed (was its folder moved?)",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::write;

    #[test]
    fn a_file_whose_folder_was_moved_is_not_reported_as_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (place, moved) = (folder.path().join("a"), folder.path().join("b"));
        let patterns = Patterns {
            pid: "1",
            time: "20260131-235959",
            host: "box",
        };
        let name = place.join("x.txt");
        let name = name.to_str().expect("text");
        let series = Series::new(name, Keep::Files(9), &patterns, |_| None);
        std::fs::create_dir(&place).expect("made");
        let begin = || {
            let mut part = series.begin(patterns.time, 1).expect("begun");
            part.write_all(b"a profile").expect("written");
            part
        };
        let path = named(begin()).expect("named").expect("a file");
        assert!(path.is_file());
        let part = begin();
        std::fs::rename(&place, &moved).expect("moved");
        let fault = named(part).expect_err("no such folder").to_string();
        assert!(fault.contains("-2.txt is not written"), "{fault}");
    }

    #[test]
    fn times_have_units() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(
                duration(text).ok(),
                seconds.map(Duration::from_secs),
                "{text}"
            );
        };
        check("30", Some(30));
        check("90s", Some(90));
        check("5m", Some(300));
        check("1h", Some(3600));
        for wrong in ["", "0", "s", "-1", "2d", "25h", "1.5"] {
            check(wrong, None);
        }
    }

    #[test]
    fn the_ending_of_the_file_chooses_the_form() {
        let check = |name: &str, form| {
            let found = form_of(Path::new(name)).expect("a known ending");
            assert_eq!(found, form, "{name}");
        };
        check("flames.html", Some(Form::Html));
        check("app.pb.gz", Some(Form::Plain(write::Form::Pprof)));
        check("run.hprof", None);
        check("run.hprof.txt", None);
        check(
            "stacks.collapsed",
            Some(Form::Plain(write::Form::Collapsed)),
        );
        check("run", None);
        check("/dev/stdout", None);
        let fault = form_of(Path::new("run.unknown")).expect_err("an unknown ending");
        assert!(fault.is::<Usage>() && fault.to_string().contains(".pb.gz"));
    }
}
