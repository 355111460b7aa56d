//! Writes profiles in the formats of other tools that need nothing but the profile: collapsed stacks, pprof and JFR.
//!
//! ```
//! use profile::Metric;
//! use profile::write::{Form, write};
//!
//! let text = b"TRACE 300001:\n\tCpu.hot(Cpu.java:3)\n\tCpu.main(Cpu.java:14)\n\
//! CPU SAMPLES BEGIN (total = 7) Sat Nov 21 04:57:27 2026\n   \
//! 1 100.00% 100.00%       7 300001 Cpu.hot\nCPU SAMPLES END\n";
//! let (profile, _) = profile::read(text).unwrap();
//! let bytes = write(&profile, Form::Collapsed, Some(Metric::Samples));
//! assert_eq!(bytes, b"Cpu.main;Cpu.hot 7\n");
//! ```

pub mod collapsed;
pub mod jfr;
mod left_out;
pub mod pprof;
pub mod protobuf;

use crate::{Metric, Profile, TraceId};
use std::collections::HashMap;
use std::io;

/// A format that holds stacks and their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `a;b;c 7`, one stack a line.
    Collapsed,
    /// Gzipped protobuf of `pprof`.
    Pprof,
    /// A JFR recording of one chunk.
    Jfr,
}

impl Form {
    /// The format for the extension of a file name.
    pub fn of_file_name(name: &str) -> Option<Form> {
        let lower = name.to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
        if ends(&[".pprof", ".pb.gz", ".pb", ".prof"]) {
            Some(Form::Pprof)
        } else if ends(&[".jfr"]) {
            Some(Form::Jfr)
        } else if ends(&[".collapsed", ".folded"]) {
            Some(Form::Collapsed)
        } else {
            None
        }
    }
}

/// The bytes of a profile in a format. Collapsed stacks have one metric; the other formats have all, or only the one
/// requested. A profile without any metric gives an empty document of the format.
pub fn write(profile: &Profile, form: Form, metric: Option<Metric>) -> Vec<u8> {
    let metrics = || metric.map_or_else(|| profile.metrics(), |one| vec![one]);
    match form {
        Form::Collapsed => {
            let one = metric.or_else(|| main_metric(profile));
            one.map(|one| collapsed::write(profile, one))
                .unwrap_or_default()
                .into_bytes()
        }
        Form::Pprof => pprof::write(profile, &metrics()),
        Form::Jfr => jfr::write(profile, &metrics()),
    }
}

/// Writes a profile, which may be one of a series, in a format to an empty output. The metric of collapsed stacks is the
/// first one that was measured, also where it is zero, so that all files of a series have the same. Of a recording, the
/// events are not in memory together.
///
/// # Errors
/// Those of the output.
pub fn write_to(profile: &Profile, form: Form, out: &mut dyn jfr::Output) -> io::Result<()> {
    match form {
        Form::Jfr => jfr::write_to(profile, &profile.metrics(), out),
        Form::Pprof => out.write_all(&pprof::write(profile, &profile.metrics())),
        Form::Collapsed => match profile.metrics().first() {
            Some(metric) => out.write_all(collapsed::write(profile, *metric).as_bytes()),
            None => Ok(()),
        },
    }
}

/// The metric that is shown when none is requested: the first one that the profile has.
pub fn main_metric(profile: &Profile) -> Option<Metric> {
    let metrics = profile.metrics();
    let any = |metric: &Metric| profile.stacks(*metric).next().is_some();
    metrics
        .iter()
        .copied()
        .find(any)
        .or(metrics.first().copied())
}

/// The names of threads by their serials.
#[derive(Clone, Debug)]
pub struct ThreadNames(HashMap<u32, String>);

impl ThreadNames {
    /// The names of a profile.
    pub fn of(profile: &Profile) -> ThreadNames {
        let threads = profile.threads.iter();
        let names = threads.map(|one| (one.serial, profile.names.get(one.name).to_owned()));
        ThreadNames(names.filter(|(_, name)| !name.is_empty()).collect())
    }

    /// The name of the thread of a trace, or its number; `None` if traces are not separated by thread.
    pub fn get(&self, profile: &Profile, trace: TraceId) -> Option<String> {
        let serial = profile.stacks.key(trace).thread?.0;
        let name = self.0.get(&serial).cloned();
        Some(name.unwrap_or_else(|| format!("thread {serial}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn profile() -> Profile {
        crate::read(testkit::profiles::EVERY_TABLE.as_bytes())
            .expect("a profile")
            .0
    }

    #[test]
    fn the_ending_of_a_name_asks_for_a_form() {
        for (name, form) in [
            ("x.pb.gz", Some(Form::Pprof)),
            ("a/B.JFR", Some(Form::Jfr)),
            ("x.collapsed", Some(Form::Collapsed)),
            ("x.txt", None),
            ("x", None),
        ] {
            assert_eq!(Form::of_file_name(name), form, "{name}");
        }
    }

    /// A profile as the agent writes it when samples were dropped.
    pub(super) fn remarked() -> Profile {
        let text = format!("{}NOTE: 3 lost: samples\n", testkit::profiles::EVERY_TABLE);
        let (mut profile, _) = crate::read(text.as_bytes()).expect("a profile");
        profile.samples.as_mut().expect("samples").interval_ns = 2_500_000;
        profile
    }

    #[test]
    fn the_interval_and_the_notes_come_back_from_a_recording() {
        let profile = remarked();
        assert_eq!(profile.agent_notes, ["3 lost: samples"]);
        let recording = write(&profile, Form::Jfr, None);
        let (again, _) = crate::read(&recording).expect("a recording");
        assert_eq!(again.agent_notes, profile.agent_notes);
        assert_eq!(again.samples.expect("samples").interval_ns, 2_500_000);
    }

    /// The pieces of a recording that is written to a file are those that are in memory otherwise.
    #[test]
    fn a_file_is_written_in_pieces() {
        let text = testkit::profiles::EVERY_TABLE.replace("       9 300001", "   90000 300001");
        let (profile, _) = crate::read(text.as_bytes()).expect("a profile");
        for form in [Form::Collapsed, Form::Pprof, Form::Jfr] {
            let mut out = std::io::Cursor::new(Vec::new());
            write_to(&profile, form, &mut out).expect("written");
            let whole = write(&profile, form, None);
            assert!(out.into_inner() == whole, "{form:?}");
        }
        let (again, _) = crate::read(&write(&profile, Form::Jfr, None)).expect("a recording");
        assert_eq!(again.samples.expect("samples").total(), 90_003);
    }

    #[test]
    fn a_full_disk_ends_a_recording() {
        let (profile, mut space) = (remarked(), [0; 100]);
        let mut out = std::io::Cursor::new(&mut space[..]);
        assert!(write_to(&profile, Form::Jfr, &mut out).is_err());
    }

    #[test]
    fn a_profile_without_numbers_still_gives_a_document() {
        let empty = Profile::default();
        for form in [Form::Pprof, Form::Jfr] {
            assert!(!write(&empty, form, None).is_empty(), "{form:?}");
        }
        assert!(write(&empty, Form::Collapsed, None).is_empty());
    }
}
