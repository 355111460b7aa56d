//! Answers that are being computed. A second request for the same answer waits for the first instead of
//! making a second one; a page gets what is known so far, and repeats the request. When no one waits for an answer any more,
//! the work for it stops; for a page, some time after its last request.

use crate::reply::Written;
use heap_graph::HeapError;
use requests::Fault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a page waits for the whole answer when there is something to show already.
const SOON: Duration = Duration::from_millis(100);

/// How long it waits for anything at all.
const PATIENCE: Duration = Duration::from_millis(220);

/// How often a waiting caller checks whether it is cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// The work for a page that has not repeated its request for this time stops. Browsers let pages in the background send one a
/// minute.
pub(super) const ABANDONED: Duration = Duration::from_secs(100);

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
    /// Stops the work.
    cancel: AtomicBool,
}

impl Job {
    /// Becomes true when the work is to stop.
    pub(super) fn cancel(&self) -> &AtomicBool {
        &self.cancel
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a part of the answer to those who do not want to wait.
    pub(super) fn show(&self, so_far: Written) {
        self.lock().so_far = Some(Arc::new(so_far));
        self.changed.notify_all();
    }

    /// Waits for the answer until `given_up` becomes true.
    fn wait(&self, given_up: &AtomicBool) -> Answer {
        let mut progress = self.lock();
        loop {
            if let Some(answer) = &progress.whole {
                return answer.clone();
            }
            if given_up.load(Ordering::Relaxed) {
                return Err(Fault::from(HeapError::Cancelled));
            }
            let woken = self.changed.wait_timeout(progress, LOOK);
            progress = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether the answer is known.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().whole.is_some()
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

/// Who wants an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// A caller that waits for the answer: it calls [`Later::wait`] next.
    Now,
    /// A page, which repeats its request.
    Soon,
}

/// The work for a question.
struct Pending {
    question: String,
    job: Arc<Job>,
    /// Number of callers that wait.
    waiting: usize,
    /// When a page has last requested it.
    soon: Option<Instant>,
}

/// The answers that are being computed.
#[derive(Default)]
pub(super) struct Later(Mutex<Vec<Pending>>);

impl Later {
    fn lock(&self) -> MutexGuard<'_, Vec<Pending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work for a question; true when it is new, so that the caller has to see to it.
    pub(super) fn join(&self, question: &str, wants: Wants) -> (Arc<Job>, bool) {
        let mut all = self.lock();
        let known = all.iter().position(|pending| pending.question == question);
        let at = known.unwrap_or(all.len());
        if known.is_none() {
            all.push(Pending {
                question: question.to_owned(),
                job: Arc::default(),
                waiting: 0,
                soon: None,
            });
        }
        let pending = &mut all[at];
        match wants {
            Wants::Now => pending.waiting += 1,
            Wants::Soon => pending.soon = Some(Instant::now()),
        }
        (Arc::clone(&pending.job), known.is_none())
    }

    /// Waits for an answer until `given_up` becomes true. The work for it stops if no one else wants it.
    pub(super) fn wait(&self, job: &Arc<Job>, given_up: &AtomicBool) -> Answer {
        let answer = job.wait(given_up);
        let mut all = self.lock();
        let found = all
            .iter()
            .position(|pending| Arc::ptr_eq(&pending.job, job));
        if let Some(at) = found {
            let pending = &mut all[at];
            pending.waiting -= 1;
            let has_ended = job.lock().whole.is_some();
            let is_wanted = pending.waiting > 0 || pending.soon.is_some();
            if !has_ended && !is_wanted {
                job.cancel.store(true, Ordering::Relaxed);
            }
            if has_ended || !is_wanted {
                all.remove(at);
            }
        }
        answer
    }

    /// Waits for the end of the work that a page has requested, and stops it if the page does not repeat its request within
    /// `patience` and no one else waits.
    pub(super) fn watch(&self, job: &Arc<Job>, patience: Duration) {
        let mut left = patience;
        loop {
            let is_open = |progress: &mut Progress| progress.whole.is_none();
            let waited = job.changed.wait_timeout_while(job.lock(), left, is_open);
            let (progress, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            drop(progress);
            if !timeout.timed_out() {
                return;
            }
            let mut all = self.lock();
            let is_same = |pending: &Pending| Arc::ptr_eq(&pending.job, job);
            let Some(at) = all.iter().position(is_same) else {
                return;
            };
            let since = all[at].soon.map_or(patience, |asked| asked.elapsed());
            left = patience.saturating_sub(since);
            if left.is_zero() {
                all[at].soon = None;
                if all[at].waiting == 0 {
                    job.cancel.store(true, Ordering::Relaxed);
                    all.remove(at);
                }
                // If callers still wait, the last of them to give up cancels the work in `wait`.
                return;
            }
        }
    }

    /// Stops all work.
    pub(super) fn close(&self) {
        for pending in &*self.lock() {
            pending.job.cancel.store(true, Ordering::Relaxed);
        }
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
        self.lock()
            .retain(|pending| pending.question != question || !ended(&pending.job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Form;
    use std::sync::mpsc::channel;

    static NEVER: AtomicBool = AtomicBool::new(false);

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
        let (job, new) = later.join("q", Wants::Now);
        assert!(new);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                job.show(written("half"));
                later.run("q", &job, move || {
                    wait.recv().expect("a word");
                    Ok(Arc::new(written("whole")))
                });
            });
            let (same, new) = later.join("q", Wants::Now);
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
            assert_eq!(text(later.wait(&same, &NEVER)), "whole");
            assert_eq!(text(same.soon()), "whole");
        });
        assert!(
            later.join("q", Wants::Soon).1,
            "it is done, and would be new"
        );
    }

    #[test]
    fn work_stops_when_the_page_that_wanted_it_no_longer_asks() {
        let later = Later::default();
        let is_stopped = |job: &Job| job.cancel().load(Ordering::Relaxed);
        let (job, _) = later.join("q", Wants::Soon);
        later.watch(&job, Duration::ZERO);
        assert!(is_stopped(&job));
        let (job, new) = later.join("q", Wants::Soon);
        assert!(new && !is_stopped(&job));
        // Someone waits: the work stops when they are gone.
        later.join("q", Wants::Now);
        later.watch(&job, Duration::ZERO);
        assert!(!is_stopped(&job));
        assert!(later.wait(&job, &AtomicBool::new(true)).is_err());
        assert!(is_stopped(&job));
        // An answer ends the watch.
        let (job, _) = later.join("q", Wants::Soon);
        std::thread::scope(|scope| {
            scope.spawn(|| later.watch(&job, Duration::from_secs(3600)));
            later.run("q", &job, || Ok(Arc::new(written("whole"))));
        });
        assert!(!is_stopped(&job));
        assert_eq!(text(job.soon()), "whole");
    }

    #[test]
    fn a_fault_reaches_whoever_asks_next() {
        let later = Later::default();
        let (job, _) = later.join("q", Wants::Soon);
        later.run("q", &job, || Err(Fault::failed("no")));
        let (again, new) = later.join("q", Wants::Soon);
        assert!(!new);
        assert_eq!(again.soon().map(|_| ()), Err(Fault::failed("no")));
        later.finish("q");
        let (job, new) = later.join("q", Wants::Now);
        assert!(new);
        later.finish("q");
        assert!(!later.join("q", Wants::Now).1, "it is not answered yet");
        later.run("q", &job, || panic!("of a test"));
        assert!(later.wait(&job, &NEVER).is_err());
    }

    #[test]
    fn work_stops_when_the_last_one_who_waits_gives_up_and_no_page_wants_it() {
        let later = Later::default();
        let gone = AtomicBool::new(true);
        let is_stopped = |job: &Job| job.cancel().load(Ordering::Relaxed);
        let (job, _) = later.join("q", Wants::Now);
        later.join("q", Wants::Now);
        assert!(later.wait(&job, &gone).is_err());
        assert!(!is_stopped(&job), "another one waits");
        assert!(later.wait(&job, &gone).is_err());
        assert!(is_stopped(&job));
        let (job, new) = later.join("q", Wants::Now);
        assert!(new && !is_stopped(&job), "a new request starts new work");
        later.join("q", Wants::Soon);
        assert!(later.wait(&job, &gone).is_err());
        assert!(!is_stopped(&job), "a page will come back");
        later.close();
        assert!(is_stopped(&job));
    }
}
