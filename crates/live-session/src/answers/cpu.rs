//! CPU time of threads, by range of time.

use super::tables::{pattern, range};
use crate::recording::program::SAMPLES_NS;
use crate::recording::state::Live;
use live_analysis::history::Delta;
use live_analysis::{allocations, samples};
use profile::{Metric, Profile};
use report::profile::Form;
use report::profile::difference::{ProfileDifference, difference};
use report::profile::top::{TopProfile, top};
use requests::Fault;
use requests::Params;
use serde::Serialize;

/// The default number of methods and stacks in an answer.
const ROWS: usize = 100;

/// Where the CPU time of a range went, or what differs from another range.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// `tenure.profile/1`.
    Top(Box<TopProfile>),
    /// `tenure.profile_difference/1`.
    Difference(ProfileDifference),
}

/// The CPU time of a range by method and by stack; with `base_from` and `base_to` the difference to that range.
///
/// # Errors
/// CPU time was never sampled, or a parameter is wrong.
pub fn answer(live: &Live, params: &Params) -> Result<Answer, Fault> {
    let limit = Some(params.limit(ROWS)?);
    let base = base(live, params)?;
    let profile = of_range(live, params)?;
    Ok(match base {
        None => Answer::Top(Box::new(top(&profile, Metric::CpuTime, limit))),
        Some(base) => Answer::Difference(difference(&profile, &base, Metric::CpuTime, limit)),
    })
}

/// As [`answer`], as tables of a page without JavaScript.
pub fn plain(live: &Live, params: &Params) -> Result<String, Fault> {
    let doc = match answer(live, params)? {
        Answer::Top(answer) => report::profile::top::doc(&answer, Metric::CpuTime, Some(ROWS)),
        Answer::Difference(answer) => report::profile::difference::doc(&answer, Metric::CpuTime),
    };
    Ok(report::html::render(&doc, 2))
}

/// As [`answer`], in a form that other tools read; the flame graph shows the difference to `base_from` and `base_to`.
///
/// # Errors
/// Those of [`answer`].
pub fn rendered(live: &Live, params: &Params, form: Form) -> Result<Vec<u8>, Fault> {
    let base = base(live, params)?.filter(|_| form == Form::Html);
    let profile = of_range(live, params)?;
    let (metric, title) = (Some(Metric::CpuTime), "CPU time");
    Ok(match base {
        Some(base) => report::profile::render_difference(&profile, &base, metric, title),
        None => report::profile::render(&profile, form, metric, title),
    })
}

fn base(live: &Live, params: &Params) -> Result<Option<Profile>, Fault> {
    let (from, to) = match (params.get("base_from"), params.get("base_to")) {
        (Some(from), Some(to)) => (from, to),
        (None, None) => return Ok(None),
        _ => return Err(Fault::bad("base_from and base_to: give both or none")),
    };
    let params = params.clone().with("from", from).with("to", to);
    of_range(live, &params).map(Some)
}

/// The samples of a range as a separate profile.
fn of_range(live: &Live, params: &Params) -> Result<Profile, Fault> {
    let (range, pattern) = (range(params)?, pattern(params)?);
    live.recorded(|recorded| {
        let none = || Fault::not_found("the CPU has not been sampled; start that first");
        let source = recorded
            .profile()
            .filter(|_| !recorded.cpu.times().is_empty());
        let source = source.ok_or_else(none)?;
        let mut deltas = recorded.cpu.range(range.from, range.to);
        deltas.retain(Delta::is_something);
        allocations::filter(source, &mut deltas, pattern.as_ref());
        Ok(samples::as_profile(source, &deltas, SAMPLES_NS))
    })
}
