//! How a question becomes an answer: on a thread of its own, once for all who wait for it, and with early answers for those
//! who want to see something soon.

use super::early::FIRST;
use super::later::{ABANDONED, Job, Wants};
use super::state::Explorer;
use super::views::{Asked, VIEWS};
use crate::reply::{Form, Written};
use requests::{Fault, Params};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is answered beforehand, as the pages request it.
pub(super) const PREPARED: &[(&str, &str)] = &[
    ("overview", ""),
    ("treemap", ""),
    ("leaks", ""),
    ("histogram", "limit=100"),
    ("dominators", "limit=100"),
    ("threads", ""),
    ("loaders", ""),
    ("histogram", "by=package&limit=100"),
    ("histogram", "by=loader&limit=100"),
    ("histogram", "by=superclass&limit=100"),
    ("duplicate_strings", "limit=100"),
    ("roots", ""),
    ("unreachable", ""),
    ("properties", ""),
    ("collections", ""),
    ("waste", ""),
];

/// The questions of [`PREPARED`], as answers are found by.
pub(super) fn prepared_questions(explorer: &Explorer) -> impl Iterator<Item = String> + '_ {
    let ask =
        |(view, query): &(&str, &str)| question(explorer, view, &Params::parse(query), Form::Json);
    PREPARED.iter().map(ask)
}

/// One text per answer. One that was made before the referrers were known must not stay.
fn question(explorer: &Explorer, view: &str, params: &Params, form: Form) -> String {
    let known = explorer.referrers_known();
    format!("{form:?} {known} {}", params.key(view))
}

/// Answers a question, or gives the answer that was just given to it. Ends when `given_up` becomes true.
pub(super) fn answer(
    explorer: &Arc<Explorer>,
    view: &str,
    params: &Params,
    form: Form,
    given_up: &AtomicBool,
) -> Result<Arc<Written>, Fault> {
    let question = question(explorer, view, params, form);
    if let Some(answer) = explorer.answers.find(&question) {
        return Ok(answer);
    }
    let (job, new) = explorer.later.join(&question, Wants::Now);
    if new {
        let (view, params) = (view.to_owned(), params.clone());
        begin(explorer, question, &job, move |asked, question| {
            whole(asked, question, &view, &params, form)
        });
    }
    explorer.later.wait(&job, given_up)
}

/// As [`answer`], as JSON, for someone who wants to see something soon: what is only part of the
/// answer has `"complete": false`, and a repeated request returns the full one later.
pub(super) fn soon(
    explorer: &Arc<Explorer>,
    view: &str,
    params: &Params,
) -> Result<Arc<Written>, Fault> {
    let question = question(explorer, view, params, Form::Json);
    if let Some(answer) = explorer.answers.find(&question) {
        return Ok(answer);
    }
    let (job, new) = explorer.later.join(&question, Wants::Soon);
    if new {
        let (view, params) = (view.to_owned(), params.clone());
        begin(explorer, question.clone(), &job, move |asked, question| {
            for (_, first) in FIRST.iter().filter(|(name, _)| *name == view) {
                if let Some(first) = first(asked, &params)? {
                    asked.job.show(first.partial());
                }
            }
            whole(asked, question, &view, &params, Form::Json)
        });
    }
    let answer = job.soon();
    if new && !job.has_ended() {
        let own = Arc::clone(explorer);
        let thread = std::thread::Builder::new().name("tenure-abandon".to_owned());
        // Without it, the work continues to its end.
        let _ = thread.spawn(move || own.later.watch(&job, ABANDONED));
    }
    if answer.is_err() {
        explorer.later.finish(&question);
    }
    answer
}

/// Does the work for a question on a thread of its own.
fn begin(
    explorer: &Arc<Explorer>,
    question: String,
    job: &Arc<Job>,
    work: impl FnOnce(&Asked<'_>, &str) -> Result<Arc<Written>, Fault> + Send + 'static,
) {
    let thread = std::thread::Builder::new().name("tenure-answer".to_owned());
    let (own, own_job, asked) = (Arc::clone(explorer), Arc::clone(job), question.clone());
    let spawned = thread.spawn(move || {
        own.later.run(&asked, &own_job, || {
            let explorer = &own;
            let job = &own_job;
            work(&Asked { explorer, job }, &asked)
        });
    });
    if let Err(error) = spawned {
        let fault = Fault::failed(error.to_string());
        explorer.later.run(&question, job, || Err(fault));
    }
}

fn whole(
    asked: &Asked<'_>,
    question: &str,
    view: &str,
    params: &Params,
    form: Form,
) -> Result<Arc<Written>, Fault> {
    let Some((_, function)) = VIEWS.iter().find(|(name, _)| *name == view) else {
        return Err(Fault::not_found(format!("no view is called {view}")));
    };
    asked.answers.get(question.to_owned(), || {
        let written = function(asked, params, form)?;
        let size = written.bytes.len();
        Ok((written, size))
    })
}
