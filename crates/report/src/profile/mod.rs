//! A profile in formats that other tools read: one HTML page with flame graphs, speedscope, and those of
//! [`::profile::write`]; and its first screen ([`top`]).
//!
//! ```
//! use ::profile::Metric;
//! use report::profile::{Form, render};
//!
//! let text = b"TRACE 300001:\n\tCpu.hot(Cpu.java:3)\n\tCpu.main(Cpu.java:14)\n\
//! CPU SAMPLES BEGIN (total = 7) Sat Nov 21 04:57:27 2026\n   \
//! 1 100.00% 100.00%       7 300001 Cpu.hot\nCPU SAMPLES END\n";
//! let (profile, _) = ::profile::read(text).unwrap();
//! let bytes = render(&profile, Form::of_file_name("a.collapsed").unwrap(), Some(Metric::Samples), "demo");
//! assert_eq!(bytes, b"Cpu.main;Cpu.hot 7\n");
//! ```

pub mod difference;
pub mod flamegraph;
pub mod heap;
pub mod monitors;
pub mod native;
pub mod otlp;
pub mod references;
pub mod speedscope;
pub mod top;

use ::profile::write::{self, main_metric};
use ::profile::{Metric, Profile};

/// An output format of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One HTML page without any links.
    Html,
    /// JSON of speedscope.
    Speedscope,
    /// A format that [`::profile::write`] writes.
    Plain(write::Form),
}

impl Form {
    /// The format for the extension of a file name.
    pub fn of_file_name(name: &str) -> Option<Form> {
        let lower = name.to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
        if ends(&[".html", ".htm"]) {
            Some(Form::Html)
        } else if ends(&[".json"]) {
            Some(Form::Speedscope)
        } else if ends(&[".txt"]) {
            Some(Form::Plain(write::Form::Collapsed))
        } else {
            write::Form::of_file_name(name).map(Form::Plain)
        }
    }

    /// The format, if [`::profile::write`] writes it.
    pub fn plain(self) -> Option<write::Form> {
        match self {
            Form::Plain(form) => Some(form),
            Form::Html | Form::Speedscope => None,
        }
    }
}

/// The metric with a name.
///
/// # Errors
/// A sentence with the metrics of the profile, if none of them has this name.
pub fn metric_named(profile: &Profile, name: &str) -> Result<Metric, String> {
    let has = profile.metrics();
    if let Some(metric) = has.iter().find(|metric| metric.name() == name) {
        return Ok(*metric);
    }
    let names: Vec<_> = has.iter().map(|metric| metric.name()).collect();
    Err(format!(
        "no metric {name}; the profile has: {}",
        names.join(", ")
    ))
}

/// The metric of the first screen: the one with the name, or the main one. Waits and monitor dumps are shown with any
/// metric, also without a contention.
///
/// # Errors
/// A sentence, if the profile has no metric of the name.
pub fn shown_metric(profile: &Profile, name: Option<&str>) -> Result<Option<Metric>, String> {
    if let Some(name) = name {
        return metric_named(profile, name).map(Some);
    }
    let has_monitors = !profile.waits.is_empty() || !profile.monitor_dumps.is_empty();
    Ok(main_metric(profile).or(has_monitors.then_some(Metric::Blocked)))
}

/// The bytes of a profile in a format. Collapsed stacks have one metric; the other formats have all, or only the one
/// requested. A profile without any metric gives an empty document of the format.
pub fn render(profile: &Profile, form: Form, metric: Option<Metric>, title: &str) -> Vec<u8> {
    let metrics = || metric.map_or_else(|| profile.metrics(), |one| vec![one]);
    match form {
        Form::Html => flamegraph::write(profile, None, &metrics(), title).into_bytes(),
        Form::Speedscope => speedscope::write(profile, &metrics(), title).into_bytes(),
        Form::Plain(form) => write::write(profile, form, metric),
    }
}

/// The flame graph page of the difference to a base.
pub fn render_difference(
    profile: &Profile,
    base: &Profile,
    metric: Option<Metric>,
    title: &str,
) -> Vec<u8> {
    let metrics = metric.map_or_else(|| profile.metrics(), |one| vec![one]);
    flamegraph::write(profile, Some(base), &metrics, title).into_bytes()
}

/// Whether calls were timed, so that the metric [`Metric::CpuTime`] is their time and not that of samples.
fn has_timed_calls(profile: &Profile) -> bool {
    profile.stacks(Metric::Calls).next().is_some()
}

/// The name of a metric of a profile in a document.
pub(crate) fn label(profile: &Profile, metric: Metric) -> &'static str {
    match metric {
        // Elapsed time, or CPU time with `msa=y`: the file does not have which of them.
        Metric::CpuTime if has_timed_calls(profile) => "Time of calls",
        Metric::Samples => "CPU samples",
        Metric::CpuTime => "CPU time",
        Metric::Calls => "Calls",
        Metric::WallRunning => "Wall-clock time, running",
        Metric::WallWaiting => "Wall-clock time, waiting",
        Metric::AllocatedBytes => "Allocated bytes",
        Metric::AllocatedObjects => "Allocated objects",
        Metric::SampledAllocatedBytes => "Allocated bytes by sampled stack",
        Metric::SampledAllocatedObjects => "Allocated objects by sampled stack",
        Metric::LiveBytes => "Live bytes",
        Metric::LiveObjects => "Live objects",
        Metric::NativeAllocatedBytes => "Native bytes allocated",
        Metric::NativeAllocations => "Native blocks allocated",
        Metric::NativeLiveBytes => "Native bytes not freed",
        Metric::NativeLiveBlocks => "Native blocks not freed",
        Metric::Blocked => "Blocked at monitors",
        Metric::Contentions => "Contentions",
        Metric::References => "JNI references",
        Metric::Parked => "Parked threads",
        Metric::Parks => "Parks",
        Metric::RetainedBytes => "Retained bytes by dominator path",
        Metric::ShallowBytes => "Shallow bytes by class",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn profile() -> Profile {
        let (profile, diagnostics) =
            ::profile::read(testkit::profiles::EVERY_TABLE.as_bytes()).expect("a profile");
        assert!(diagnostics.is_empty(), "{:?}", diagnostics.iter().next());
        profile
    }

    #[test]
    fn the_ending_of_a_name_asks_for_a_form() {
        for (name, form) in [
            ("x.html", Some(Form::Html)),
            ("a/B.HTML", Some(Form::Html)),
            ("x.pb.gz", Some(Form::Plain(write::Form::Pprof))),
            ("x.speedscope.json", Some(Form::Speedscope)),
            ("x.txt", Some(Form::Plain(write::Form::Collapsed))),
            ("x", None),
        ] {
            assert_eq!(Form::of_file_name(name), form, "{name}");
        }
    }

    #[test]
    fn elapsed_time_of_calls_is_not_called_cpu_time() {
        let mut profile = profile();
        assert_eq!(label(&profile, Metric::CpuTime), "Time of calls");
        let page = String::from_utf8(render(&profile, Form::Html, None, "demo")).expect("text");
        assert!(page.contains("Time of calls") && !page.contains("CPU time"));
        // CPU time of samples, as a live page has it: nothing is known of calls.
        let trace = profile
            .stacks(Metric::Samples)
            .next()
            .expect("a stack")
            .trace;
        let mut costs = ::profile::CostTable::default();
        let self_ns = 10_000_000;
        costs.add(
            trace,
            ::profile::Cost {
                self_ns,
                ..Default::default()
            },
        );
        profile.costs = Some(costs);
        assert_eq!(label(&profile, Metric::CpuTime), "CPU time");
    }

    #[test]
    fn a_profile_without_numbers_still_gives_a_document() {
        let empty = Profile::default();
        for form in [Form::Html, Form::Speedscope] {
            assert!(!render(&empty, form, None, "empty").is_empty(), "{form:?}");
        }
    }
}
