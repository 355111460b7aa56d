//! Threads with their stacks.

use super::Say;
use crate::doc::{Cell, Doc, Span, Table, number, object_spans, words};
use crate::units::plural;
use heap_analysis::objects::describe::ObjectRef;
use heap_analysis::tables::thread_locals::ThreadLocal;
use heap_analysis::tables::threads::{Thread, Threads};

impl Say for Threads {
    const NAME: &'static str = "threads";

    fn doc(&self) -> Doc {
        let mut table = Table::new([
            number("shallow"),
            number("retained"),
            number("by locals"),
            number("shared"),
            words("kind"),
            words("thread"),
        ]);
        for thread in &self.threads {
            table.row([
                Cell::bytes(thread.shallow),
                Cell::bytes(thread.retained),
                Cell::bytes(thread.locals_retained),
                Cell::bytes(thread.shared_retained),
                Span::from(if thread.daemon { "daemon" } else { "" }).into(),
                Cell::new([
                    Span::Value(format!("\"{}\" ", thread.name)),
                    Span::Class(thread.class.clone()),
                    Span::from(" "),
                    Span::Object(thread.object),
                ]),
            ]);
        }
        table.omitted = self.omitted;
        table.when_empty = "The dump has no thread records.";
        let mut doc = Doc::new().heading("Threads").table(table);
        if !self.threads.is_empty() {
            doc = doc.note([Span::from(
                "retained: what only this thread keeps alive; by locals: the part of it that only its local variables keep; \
                 shared: what its local variables keep together with other threads or roots, counted for each thread.",
            )]);
        }
        if !self.thread_locals.is_empty() {
            doc = doc.append(variables_doc(self));
        }
        if self.virtual_threads > 0 {
            doc = doc.append(virtual_doc(self));
        }
        if self.virtual_without_stack > 0 && self.virtual_without_stack != self.virtual_threads {
            doc = doc.text([Span::Text(format!(
                "{} in the heap without a stack in the dump.",
                plural(
                    self.virtual_without_stack,
                    "parked virtual thread is",
                    "parked virtual threads are"
                )
            ))]);
        }
        for thread in &self.threads {
            if !thread.stack.is_empty() || has_other_locals(thread) {
                doc = doc.append(stack_doc(thread));
            }
        }
        doc
    }
}

/// The thread-local variables, each with its largest value.
fn variables_doc(threads: &Threads) -> Doc {
    let mut table = Table::new([
        number("retained"),
        number("threads"),
        words("thread-local variable"),
        words("largest value"),
    ]);
    for variable in &threads.thread_locals {
        let mut largest = vec![Span::Bytes(variable.largest.retained.0), Span::from("  ")];
        largest.extend(object_spans(&variable.largest));
        table.row([
            Cell::bytes(variable.retained),
            Cell::count(variable.threads),
            Cell::new(variable_spans(variable)),
            Cell::new(largest),
        ]);
    }
    table.omitted = threads.thread_locals_omitted;
    Doc::new()
        .subheading([Span::from("Thread-local variables")])
        .table(table)
}

/// The field that holds a thread-local variable, otherwise the object.
pub(super) fn variable_spans(variable: &ThreadLocal) -> Vec<Span> {
    match &variable.variable {
        Some(name) if variable.variables > 1 => {
            let count = format!(" ({} variables of this name)", variable.variables);
            vec![Span::Strong(name.clone()), Span::Text(count)]
        }
        Some(name) => vec![Span::Strong(name.clone())],
        None if variable.class.is_empty() => {
            vec![Span::Dim("(variables that no longer exist)".to_owned())]
        }
        None => vec![
            Span::Class(variable.class.clone()),
            Span::from(" "),
            Span::Object(variable.object),
        ],
    }
}

fn virtual_doc(threads: &Threads) -> Doc {
    let mut doc = Doc::new().subheading([Span::Text(format!(
        "{} in {}",
        plural(threads.virtual_threads, "virtual thread", "virtual threads"),
        plural(
            threads.virtual_groups.len() as u64 + threads.virtual_groups_omitted,
            "group with one stack",
            "groups, each with one stack"
        )
    ))]);
    for group in &threads.virtual_groups {
        let mut spans = vec![
            Span::Count(group.threads),
            Span::from(if group.threads == 1 {
                " thread retains "
            } else {
                " threads retain "
            }),
            Span::Bytes(group.retained.0),
            Span::from(", the largest: "),
        ];
        if let Some(largest) = group.largest.first() {
            spans.extend(object_spans(largest));
        }
        doc = doc.text(spans);
        if group.stack.is_empty() {
            doc = doc.lines(vec!["(no stack in the dump)".to_owned()]);
        } else {
            doc = doc.lines(group.stack.clone());
        }
    }
    if threads.virtual_groups_omitted > 0 {
        doc = doc.text([Span::Dim(format!(
            "… {}",
            plural(threads.virtual_groups_omitted, "more group", "more groups")
        ))]);
    }
    doc
}

fn stack_doc(thread: &Thread) -> Doc {
    let mut doc = Doc::new().subheading([
        Span::Value(format!("\"{}\" ", thread.name)),
        Span::Object(thread.object),
        Span::from(" retains "),
        Span::Bytes(thread.retained.0),
    ]);
    for frame in &thread.stack {
        let line = format!("at {}", frame.frame);
        doc = locals_doc(doc, line, &frame.locals, (frame.omitted, "local", "locals"));
    }
    if has_other_locals(thread) {
        let line = "in no known frame".to_owned();
        let omitted = (thread.other_locals_omitted, "object", "objects");
        doc = locals_doc(doc, line, &thread.other_locals, omitted);
    }
    doc
}

fn has_other_locals(thread: &Thread) -> bool {
    !thread.other_locals.is_empty() || thread.other_locals_omitted > 0
}

/// A line, and below it objects of a stack and the number of those that were left out, with their name.
fn locals_doc(
    mut doc: Doc,
    line: String,
    locals: &[ObjectRef],
    (omitted, one, many): (u64, &str, &str),
) -> Doc {
    doc = doc.lines(vec![line]);
    for local in locals {
        let mut spans = vec![
            Span::from("          "),
            Span::Bytes(local.retained.0),
            Span::from("  "),
        ];
        spans.extend(object_spans(local));
        doc = doc.text(spans);
    }
    if omitted > 0 {
        doc = doc.text([Span::Dim(format!(
            "          … {} more",
            plural(omitted, one, many)
        ))]);
    }
    doc
}
