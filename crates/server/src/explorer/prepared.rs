//! The first answers of the explorer, saved beside the index for the next time that the dump is opened.

use super::asking;
use super::state::Explorer;
use crate::kept::{Kept, KeptAnswers};
use crate::reply::{Form, Written};
use heap_graph::Heap;
use requests::Fault;

/// The extension of the file.
const KIND: &str = "answers";

/// Adds the saved answers to the cached ones. False when there are none.
pub(super) fn recall(explorer: &Explorer, heap: &Heap) -> bool {
    let Some(answers) = KeptAnswers::of(heap, KIND) else {
        return false;
    };
    let all = answers.read();
    let any = !all.is_empty();
    for one in all {
        let (form, bytes) = (Form::Json, one.answer.into_bytes());
        let size = bytes.len();
        let kept = || Ok::<_, Fault>((Written { form, bytes }, size));
        // A cached answer for the same question is identical.
        let _ = explorer.answers.get(one.question, kept);
    }
    any
}

/// Saves the first answers, if the heap has an index on disk.
pub(super) fn keep(explorer: &Explorer, heap: &Heap) {
    let Some(answers) = KeptAnswers::of(heap, KIND) else {
        return;
    };
    let all = asking::prepared_questions(explorer).filter_map(|question| {
        let answer = explorer.answers.find(&question)?;
        let answer = String::from_utf8(answer.bytes.clone()).ok()?;
        Some(Kept { question, answer })
    });
    // If this fails, the answers are computed again next time.
    let _ = answers.replace(all);
}
