//! `tenure convert`.

use crate::Outcome;
use crate::exit::{Exit, Usage};
use crate::output::{note, write_file};
use crate::session::Session;
use anyhow::{Context, Result};
use profile::{Metric, Profile};
use report::profile::{Form, main_metric, render};
use std::path::{Path, PathBuf};

/// Turn a profile into a flame graph page, pprof, speedscope, JFR or collapsed stacks
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure convert java.hprof.txt -o flames.html\n  tenure convert java.hprof -o app.pb.gz\n  tenure convert java.hprof.txt -o - --to collapsed --metric alloc_space"
)]
pub struct Args {
    /// The profile: text or binary output of the agent, old or new
    #[arg(value_name = "PROFILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Where to; the extension picks the form, `-` is standard output
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,
    /// The form, whatever the extension
    #[arg(long, value_parser = ["html", "pprof", "speedscope", "jfr", "collapsed"])]
    to: Option<String>,
    /// Only this metric: samples, cpu, calls, alloc_space, alloc_objects, inuse_space,
    /// inuse_objects, delay or contentions
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
}

impl Args {
    /// Converts.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let form = self.form()?;
        let (profile, exit) = read_profile(&self.file)?;
        let metric = metric_of(&profile, self.metric.as_deref())?;
        if main_metric(&profile).is_none() {
            note("the profile has no counts: the output is empty");
        }
        let title = self.file.file_name().unwrap_or_default().to_string_lossy();
        let bytes = render(&profile, form, metric, &title);
        if self.output.as_os_str() == "-" {
            session.write(&bytes)?;
        } else {
            write_file(&self.output, session.global.force, &bytes)?;
        }
        Ok(exit)
    }

    fn form(&self) -> Result<Form> {
        if let Some(name) = &self.to {
            return Ok(match name.as_str() {
                "html" => Form::Html,
                "pprof" => Form::Pprof,
                "speedscope" => Form::Speedscope,
                "jfr" => Form::Jfr,
                _ => Form::Collapsed,
            });
        }
        let name = self.output.to_string_lossy();
        let fault = || {
            Usage(format!(
                "{name}: which form? (.html .pb.gz .json .jfr .collapsed, or --to)"
            ))
        };
        Form::of_file_name(&name).ok_or_else(|| fault().into())
    }
}

/// The metric of a name, if the profile has it.
pub(super) fn metric_of(profile: &Profile, name: Option<&str>) -> Result<Option<Metric>> {
    let Some(name) = name else { return Ok(None) };
    let has = profile.metrics();
    if let Some(metric) = has.iter().find(|metric| metric.name() == name) {
        return Ok(Some(*metric));
    }
    let names: Vec<_> = has.iter().map(|metric| metric.name()).collect();
    Err(Usage(format!(
        "no metric {name}; the profile has: {}",
        names.join(", ")
    ))
    .into())
}

/// Reads a profile file, unpacked if need be, and says what was wrong with it.
pub(super) fn read_profile(path: &Path) -> Result<(Profile, Exit)> {
    let source =
        hprof::source::Source::open(path, None).with_context(|| path.display().to_string())?;
    let (profile, diagnostics) =
        profile::read(source.bytes()).with_context(|| path.display().to_string())?;
    for finding in diagnostics.iter().take(5) {
        note(&finding.to_string());
    }
    let damaged = diagnostics.any_damage();
    Ok((profile, if damaged { Exit::Damaged } else { Exit::Ok }))
}
