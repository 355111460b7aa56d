//! `tenure profile`.

use super::convert::read_profile;
use super::target::limit;
use crate::Outcome;
use crate::exit::{Exit, NotFound, Usage};
use crate::output::note;
use crate::session::Session;
use report::profile::{difference, shown_metric, top};
use std::path::PathBuf;

/// Where time or memory goes: a profile of Tenure's or the JDK's agent, or a recording of JFR
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tenure profile java.hprof.txt\n  tenure profile java.hprof.txt --metric alloc_space -n 40\n  tenure profile run1.txt run2.txt       both runs added\n  tenure profile recording.jfr --metric alloc_space\n  tenure profile after.txt --base before.txt"
)]
pub struct Args {
    /// Profiles; several are added up
    #[arg(required = true, value_name = "PROFILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// samples, cpu, calls, wall_running, wall_waiting, alloc_space, alloc_objects, sampled_alloc_space,
    /// sampled_alloc_objects, inuse_space, inuse_objects, native_alloc_space, native_alloc_blocks, native_inuse_space, native_inuse_blocks, delay,
    /// contentions, jni_references, parked or parks [default: the first the profile has]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Show the difference to this profile
    #[arg(long, value_name = "PROFILE", value_hint = clap::ValueHint::FilePath)]
    base: Option<PathBuf>,
    /// Number of rows, 0 for all [default: 20, all with --json and --csv]
    #[arg(short = 'n', long, alias = "top", value_name = "N")]
    limit: Option<usize>,
}

impl Args {
    /// Prints the profile.
    pub(crate) fn run(&self, session: &Session) -> Outcome {
        let mut whole = profile::Profile::default();
        let mut exit = Exit::Ok;
        for file in &self.files {
            let (one, end) = read_profile(file)?;
            whole.merge(&one);
            if end != Exit::Ok {
                exit = end;
            }
        }
        let metric = shown_metric(&whole, self.metric.as_deref()).map_err(Usage)?;
        let Some(metric) = metric else {
            if exit == Exit::Damaged {
                note("what can be read of the profile has no counts");
                return Ok(exit);
            }
            return Err(NotFound("the profile has no counts".to_owned()).into());
        };
        let rows = limit(self.limit, session.is_data(), 20);
        let Some(base) = &self.base else {
            let answer = top::top(&whole, metric, rows);
            session.say_value(&answer, || top::doc(&answer, metric, rows))?;
            return Ok(exit);
        };
        let (base, end) = read_profile(base)?;
        let answer = difference::difference(&whole, &base, metric, rows);
        session.say_value(&answer, || difference::doc(&answer, metric))?;
        Ok(if end == Exit::Ok { exit } else { end })
    }
}
