//! Answers that are being computed. A second request for the same answer waits for the first instead of
//! making a second one; a page gets what is known so far, and repeats the request.

use crate::reply::Written;
use requests::Fault;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a page waits for the whole answer when there is something to show already.
const SOON: Duration = Duration::from_millis(100);

/// How long it waits for anything at all.
const PATIENCE: Duration = Duration::from_millis(220);

type Answer = Result<Arc<Written>, Fault>;

#[derive(Default)]
struct Progress {
    so_far: Option<Arc<Written>>,
    whole: Option<Answer>,
}

/// One answer.
#[derive(Default)]
pub(super) struct Job {
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl Job {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a part of the answer to those who do not want to wait.
    pub(super) fn show(&self, so_far: Written) {
        self.lock().so_far = Some(Arc::new(so_far));
        self.changed.notify_all();
    }

    /// Waits for the answer.
    pub(super) fn wait(&self) -> Answer {
        let mut progress = self.lock();
        loop {
            if let Some(answer) = &progress.whole {
                return answer.clone();
            }
            let woken = self.changed.wait(progress);
            progress = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits a moment: the answer, what is known of it, or a fault that says to repeat the request.
    pub(super) fn soon(&self) -> Answer {
        let began = Instant::now();
        let mut progress = self.lock();
        loop {
            if let Some(answer) = &progress.whole {
                return answer.clone();
            }
            let patience = match &progress.so_far {
                Some(_) => SOON,
                None => PATIENCE,
            };
            let Some(left) = patience.checked_sub(began.elapsed()) else {
                let finish = progress.so_far.clone();
                return finish.ok_or_else(Fault::later);
            };
            let woken = self.changed.wait_timeout(progress, left);
            progress = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The answers that are being computed, by question.
#[derive(Default)]
pub(super) struct Later(Mutex<Vec<(String, Arc<Job>)>>);

impl Later {
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Arc<Job>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work for a question; true when it is new, so that the caller has to see to it.
    pub(super) fn join(&self, question: &str) -> (Arc<Job>, bool) {
        let mut jobs = self.lock();
        if let Some((_, job)) = jobs.iter().find(|(q, _)| q == question) {
            return (Arc::clone(job), false);
        }
        let job = Arc::default();
        jobs.push((question.to_owned(), Arc::clone(&job)));
        (job, true)
    }

    /// Does the work for a question that is new. What panics becomes a fault, so that no one waits for
    /// ever. A fault stays until a request has returned it.
    pub(super) fn run(&self, question: &str, job: &Job, work: impl FnOnce() -> Answer) {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let answer = done
            .unwrap_or_else(|_| Err(Fault::failed("the answer could not be made; this is a bug")));
        let found = answer.is_ok();
        job.lock().whole = Some(answer);
        job.changed.notify_all();
        if found {
            self.finish(question);
        }
    }

    /// The requester knows the end of a question.
    pub(super) fn finish(&self, question: &str) {
        let ended = |job: &Job| job.lock().whole.is_some();
        self.lock().retain(|(q, job)| q != question || !ended(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Form;
    use std::sync::mpsc::channel;

    fn written(text: &str) -> Written {
        Written {
            form: Form::Json,
            bytes: text.as_bytes().to_vec(),
        }
    }

    fn text(answer: Answer) -> String {
        String::from_utf8(answer.expect("an answer").bytes.clone()).expect("text")
    }

    #[test]
    fn a_question_is_answered_once_for_all_who_ask() {
        let later = Later::default();
        let (go, wait) = channel::<()>();
        let (job, new) = later.join("q");
        assert!(new);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                job.show(written("half"));
                later.run("q", &job, move || {
                    wait.recv().expect("a word");
                    Ok(Arc::new(written("whole")))
                });
            });
            let (same, new) = later.join("q");
            assert!(!new);
            // Nothing can end before the test lets it, however slow the machine is.
            loop {
                match same.soon() {
                    Err(fault) => assert_eq!(fault, Fault::later()),
                    half => {
                        assert_eq!(text(half), "half");
                        break;
                    }
                }
            }
            go.send(()).expect("somebody listens");
            assert_eq!(text(same.wait()), "whole");
            assert_eq!(text(same.soon()), "whole");
        });
        assert!(later.join("q").1, "it is done, and would be new");
    }

    #[test]
    fn a_fault_reaches_whoever_asks_next() {
        let later = Later::default();
        let (job, _) = later.join("q");
        later.run("q", &job, || Err(Fault::failed("no")));
        let (again, new) = later.join("q");
        assert!(!new);
        assert_eq!(again.soon().map(|_| ()), Err(Fault::failed("no")));
        later.finish("q");
        let (job, new) = later.join("q");
        assert!(new);
        later.finish("q");
        assert!(!later.join("q").1, "it is not answered yet");
        later.run("q", &job, || panic!("of a test"));
        assert!(job.wait().is_err());
    }
}
