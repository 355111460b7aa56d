//! `tenure convert`.

use crate::Outcome;
use crate::dump_output::{DumpOutput, finish, source_of_all};
use crate::exit::{Exit, Usage};
use crate::output::{SHOWN_NOTES, note};
use crate::output_file::{named_after, write_file};
use crate::session::Session;
use anyhow::{Context, Result};
use heap_analysis::tables::class_paths::{ClassPathOptions, class_paths};
use heap_analysis::tables::histogram::{HistogramOptions, histogram};
use hprof::Rewriter;
use hprof::android::{ToAndroid, ToStandard};
use hprof::source::{Source, Unpack};
use profile::write::{self, main_metric};
use profile::{Metric, NoProfile, Profile};
use report::Provenance;
use report::profile::heap::profile as heap_profile;
use report::profile::{Form, metric_named, render, render_difference};
use std::path::{Path, PathBuf};

/// Turn a profile or a heap dump into a flame graph, pprof and more; an Android dump into a standard one
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure convert java.hprof.txt -o flames.html\n  tenure convert java.hprof -o app.pb.gz\n  tenure convert after.txt --base before.txt -o difference.html\n  tenure convert heap.hprof -o heap.html\n  tenure convert heap.hprof -o heap.pb.gz --metric shallow_space\n  tenure convert -z android.hprof -o standard.hprof.gz      (as hprof-conv does)"
)]
pub struct Args {
    /// The profile (text or binary output of an agent), recording of JFR or heap dump
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Output file; the format follows its extension [default: FILE with the ending of the format]
    ///
    /// `.hprof` is a standard heap dump, an additional `.gz` compresses it, and `-` is standard output. Without an
    /// output and a format, the result is a flame graph page (`.html`).
    #[arg(short, long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Format; overrides the extension
    #[arg(long, value_parser = ["html", "pprof", "speedscope", "jfr", "collapsed", "hprof", "android"])]
    to: Option<String>,
    /// Only this metric, such as alloc_space, or retained_space of a dump
    ///
    /// Metrics of profiles: samples, cpu, calls, wall_running, wall_waiting, alloc_space, alloc_objects,
    /// sampled_alloc_space, sampled_alloc_objects, inuse_space, inuse_objects, delay, contentions, jni_references, parked or parks. Metrics of heap
    /// dumps: retained_space, shallow_space
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Write a flame graph page of the difference to this profile or heap dump
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    base: Option<PathBuf>,
    /// For Android: leave out the objects of the zygote and of the boot image
    #[arg(short = 'z', long)]
    app_only: bool,
}

/// Which kind of heap dump to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DumpForm {
    Standard,
    Android,
}

impl Args {
    /// Converts.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let output = self.output();
        let form = self.dump_form(&output);
        if self.app_only && form != Some(DumpForm::Standard) {
            let why = "-z goes with a standard heap dump (-o FILE.hprof, or --to hprof)";
            return Err(Usage(why.to_owned()).into());
        }
        if let Some(target) = form {
            if self.base.is_some() {
                return Err(Usage("a difference can only be written as .html".to_owned()).into());
            }
            return self.run_dump(session, target, &output);
        }
        let form = self.form(&output)?;
        if self.base.is_some() && form != Form::Html {
            return Err(Usage("a difference can only be written as .html".to_owned()).into());
        }
        let (profile, mut exit) = self.profile(session, &self.file, form)?;
        let metric = metric_of(&profile, self.metric.as_deref())?;
        if main_metric(&profile).is_none() {
            note("the profile has no counts: the output is empty");
        }
        let plain = form.plain();
        let left_out = plain.and_then(|form| form.left_out(&profile, metric));
        match (left_out, metric) {
            (Some(_), Some(metric)) => {
                let text = format!(
                    "a recording of JFR cannot hold {} alone: html, pprof, speedscope or collapsed",
                    metric.name()
                );
                return Err(Usage(text).into());
            }
            (Some(text), None) if !session.global.quiet => note(&text),
            _ => {}
        }
        match plain.and_then(|form| form.left_out_events(&profile, metric)) {
            Some(text) if !session.global.quiet => note(&text),
            _ => {}
        }
        let title = self.file.file_name().unwrap_or_default().to_string_lossy();
        let bytes = match &self.base {
            None => render(&profile, form, metric, &title),
            Some(base) => {
                let (base, end) = self.profile(session, base, form)?;
                exit = if end == Exit::Ok { exit } else { end };
                let has = base.metrics();
                if !profile.metrics().iter().any(|one| has.contains(one)) {
                    return Err(Usage("the base has no metric of the file".to_owned()).into());
                }
                render_difference(&profile, &base, metric, &title)
            }
        };
        let inputs = std::iter::once(&self.file).chain(&self.base);
        let inputs = session.inputs(inputs.map(PathBuf::as_path));
        if output.as_os_str() == "-" {
            session.write(&bytes)?;
        } else {
            write_file(&output, session.global.force, &inputs, &bytes)?;
            if self.output.is_none() {
                note(&format!("wrote {}", output.display()));
            }
        }
        Ok(exit)
    }

    /// The profile of the file; of a heap dump, its objects as one.
    fn profile(&self, session: &Session, file: &Path, form: Form) -> Result<(Profile, Exit)> {
        let of_dump = [Metric::RetainedBytes, Metric::ShallowBytes].map(Metric::name);
        if !self
            .metric
            .as_deref()
            .is_some_and(|name| of_dump.contains(&name))
        {
            match read_profile(file) {
                Err(error) if is_dump_alone(&error) => {}
                read => return read,
            }
        }
        if form == Form::Plain(write::Form::Jfr) {
            return Err(Usage(
                "a recording cannot hold a heap dump: html, pprof, speedscope or collapsed"
                    .to_owned(),
            )
            .into());
        }
        let heap = session.open(file)?;
        let paths =
            session.with_control(|c| class_paths(&heap, &ClassPathOptions::default(), c))?;
        let classes = histogram(
            &heap,
            &HistogramOptions {
                all: session.global.unreachable,
                ..HistogramOptions::default()
            },
        )?;
        let summary = heap.summary();
        let provenance = Provenance::of(summary);
        let profile = heap_profile(&paths, &classes, &provenance, summary.timestamp_ms);
        for text in &profile.notes {
            if !session.global.quiet {
                note(text);
            }
        }
        Ok((profile, session.finish(&provenance)))
    }

    /// The output file, given or default.
    fn output(&self) -> PathBuf {
        let ending = match self.to.as_deref() {
            Some("pprof") => ".pb.gz",
            Some("speedscope") => ".speedscope.json",
            Some("jfr") => ".jfr",
            Some("collapsed") => ".collapsed",
            Some("hprof") => ".standard.hprof",
            Some("android") => ".android.hprof",
            _ => ".html",
        };
        let output = self.output.clone();
        output.unwrap_or_else(|| named_after(&self.file, ending))
    }

    /// The form, when it is one of heap dumps.
    fn dump_form(&self, output: &Path) -> Option<DumpForm> {
        let name = output.to_string_lossy().to_lowercase();
        match self.to.as_deref() {
            Some("hprof") => Some(DumpForm::Standard),
            Some("android") => Some(DumpForm::Android),
            Some(_) => None,
            None => name
                .trim_end_matches(".gz")
                .ends_with(".hprof")
                .then_some(DumpForm::Standard),
        }
    }

    fn run_dump(&self, session: &Session, target: DumpForm, output: &Path) -> Outcome {
        let mut out = DumpOutput::create(output, session.global.force, &[&self.file])?;
        let source = source_of_all(session, &self.file)?;
        let data = source.bytes();
        let rewriter: Box<dyn Rewriter> = match target {
            DumpForm::Standard => Box::new(ToStandard::new(data, self.app_only)?),
            DumpForm::Android => Box::new(ToAndroid::new(data)?),
        };
        let done = out.write(data, &*rewriter)?;
        out.file.finish()?;
        if self.output.is_none() {
            note(&format!("wrote {}", output.display()));
        }
        finish(session, &source, done)
    }

    fn form(&self, output: &Path) -> Result<Form> {
        if let Some(name) = &self.to {
            return Ok(match name.as_str() {
                "html" => Form::Html,
                "pprof" => Form::Plain(write::Form::Pprof),
                "speedscope" => Form::Speedscope,
                "jfr" => Form::Plain(write::Form::Jfr),
                _ => Form::Plain(write::Form::Collapsed),
            });
        }
        let name = output.to_string_lossy();
        let fault = || {
            Usage(format!(
                "{name}: which form? (.html .pb.gz .json .jfr .collapsed .hprof, or --to)"
            ))
        };
        Form::of_file_name(&name).ok_or_else(|| fault().into())
    }
}

/// The metric of a name, if the profile has it.
pub(super) fn metric_of(profile: &Profile, name: Option<&str>) -> Result<Option<Metric>> {
    let metric = name.map(|name| metric_named(profile, name).map_err(Usage));
    Ok(metric.transpose()?)
}

/// Whether a file is a heap dump in which there is no profile.
fn is_dump_alone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(NoProfile::OnlyHeap))
}

/// Reads a profile file, unpacked if necessary, and reports its damage.
pub(super) fn read_profile(path: &Path) -> Result<(Profile, Exit)> {
    let source = Source::open(path, &Unpack::default());
    let source = source.with_context(|| path.display().to_string())?;
    let (profile, diagnostics) =
        profile::read(source.bytes()).with_context(|| path.display().to_string())?;
    for finding in diagnostics.iter().take(5) {
        note(&finding.to_string());
    }
    for text in profile.agent_notes.iter().take(SHOWN_NOTES) {
        note(&format!("{}: note of the agent: {text}", path.display()));
    }
    let damaged = diagnostics.any_damage();
    Ok((profile, if damaged { Exit::Damaged } else { Exit::Ok }))
}
