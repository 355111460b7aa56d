//! Leak suspects, explained in simple sentences.

use super::Say;
use super::threads::variable_spans;
use crate::doc::{Cell, Doc, Span, Table, number, object_spans, words};
use crate::escape::shell;
use crate::units::plural;
use heap_analysis::android::destroyed::Destroyed;
use heap_analysis::leaks::{
    AccumulationPoint, Finalizable, FinalizableClass, Leaks, MAX_LEVELS, OUTERMOST_FRAMES,
    PiledClass, Scattered, Suspect, SuspectKind,
};
use heap_analysis::objects::allocation::AllocatedBy;
use heap_analysis::paths::chain::Step;
use heap_analysis::tables::thread_locals::ThreadLocal;
use heap_graph::Strength;

/// The longest path that is shown completely.
const MAX_STEPS: usize = 24;

/// The most classes of objects that are named in a sentence about their `finalize` method.
const NAMED_CLASSES: usize = 3;

impl Say for Leaks {
    const NAME: &'static str = "leaks";

    fn doc(&self) -> Doc {
        suspects_doc(self)
    }

    fn sheet(&self) -> Doc {
        Doc::new()
            .table(suspects_table(&self.suspects))
            .append(self.doc())
    }
}

/// All suspects by number; for classes the object is empty, and so are unknown values.
fn suspects_table(suspects: &[Suspect]) -> Table {
    let mut table = Table::new([
        number("suspect"),
        words("kind"),
        words("class"),
        words("object"),
        words("value"),
        number("objects"),
        number("retained"),
        number("share"),
        words("accumulates in"),
        words("class of that"),
        words("held by"),
        words("thread"),
    ]);
    for (n, suspect) in suspects.iter().enumerate() {
        let point = suspect.accumulation_point.as_ref();
        let text = |text: Option<String>| Cell::new([Span::Text(text.unwrap_or_default())]);
        let is_object = suspect.kind == SuspectKind::Object;
        let of_thread = suspect.thread_local_of.as_ref().map(|local| &local.thread);
        let thread = of_thread.or(suspect.local_of.as_ref().map(|local| &local.thread));
        table.row([
            Cell::count(n as u64 + 1),
            Cell::new([Span::from(if is_object { "object" } else { "class" })]),
            Cell::new([Span::Class(suspect.class.clone())]),
            text(is_object.then(|| suspect.object.to_string())),
            text(suspect.value.clone()),
            Cell::count(suspect.instances),
            Cell::bytes(suspect.retained),
            Cell::share(suspect.share),
            text(point.map(|point| point.object.to_string())),
            text(point.map(|point| point.class.clone())),
            text(suspect.holder.clone()),
            text(thread.cloned()),
        ]);
    }
    table
}

/// Why there are no suspects: nothing was found, or the dump does not allow it.
pub(crate) fn no_suspects(leaks: &Leaks) -> String {
    if leaks.no_roots {
        return "Unknown: the dump has no GC roots, so it does not say what keeps objects alive. \
                All its objects are counted; write the dump again for leak suspects."
            .to_owned();
    }
    let class = if leaks.scattered.is_empty() {
        "no class"
    } else {
        "no other class"
    };
    format!(
        "No suspects: no object, and {class} of objects, keeps more than {} % of the heap alive.",
        leaks.threshold
    )
}

/// All suspects, each with its own heading, followed by further remarks.
pub fn suspects_doc(leaks: &Leaks) -> Doc {
    let mut doc = destroyed_doc(&leaks.destroyed);
    for values in &leaks.scattered {
        doc = doc.text(scattered_sentence(values, leaks.deep));
    }
    if leaks.suspects.is_empty() {
        doc = doc.text([Span::Text(no_suspects(leaks))]);
    }
    for (n, suspect) in leaks.suspects.iter().enumerate() {
        doc = doc.append(suspect_doc(n + 1, suspect, leaks));
    }
    doc
}

/// Destroyed Android objects that are still held.
pub(super) fn destroyed_doc(list: &[Destroyed]) -> Doc {
    let mut doc = Doc::new();
    for (n, found) in list.iter().enumerate() {
        let mut heading = vec![Span::Text(format!("Destroyed and still held {}: ", n + 1))];
        heading.extend(object_spans(&found.object));
        let key = found.key.as_ref().map(|key| format!(" (key {key})"));
        doc = doc
            .subheading(heading)
            .text([
                Span::from("It retains "),
                Span::Bytes(found.object.retained.0),
                Span::from(format!(
                    "; {}{}. Held by ({}):",
                    found.reason,
                    key.unwrap_or_default(),
                    found.path.roots.join(", ")
                )),
            ])
            .table(path_table(&found.path.steps, 0));
    }
    doc
}

fn scattered_sentence(values: &Scattered, deep: bool) -> Vec<Span> {
    let mut spans = vec![
        Span::Count(values.objects),
        Span::from(" objects of "),
        Span::Class(values.class.clone()),
        Span::from(", which several places hold together, keep "),
        Span::Share(values.share),
        Span::from(" of the heap alive: no suspect by themselves"),
    ];
    if deep {
        spans.push(Span::from(", because no one place leads to most of them."));
    } else {
        spans.push(Span::from(
            ". To look for a place that leads to most of them: ",
        ));
        spans.push(Span::Strong("tenure leaks --deep FILE".to_owned()));
        spans.push(Span::from("."));
    }
    spans
}

fn suspect_doc(n: usize, suspect: &Suspect, leaks: &Leaks) -> Doc {
    let mut doc = Doc::new().subheading([
        Span::Text(format!("Suspect {n}: ")),
        Span::Bytes(suspect.retained.0),
        Span::from(", "),
        Span::Share(suspect.share),
        Span::from(" of the heap"),
    ]);
    doc = doc.text(match suspect.kind {
        SuspectKind::Object => object_sentence(suspect),
        SuspectKind::Class => class_sentence(suspect),
    });
    if let Some(point) = &suspect.accumulation_point {
        doc = doc.text(point_sentence(point, suspect));
    }
    if let Some(found) = &suspect.finalizable {
        doc = doc.append(finalizable_doc(found));
    }
    if let Some(class) = &suspect.chain_of {
        doc = doc.text([
            Span::Text(format!(
                "It is the head of a chain of more than {MAX_LEVELS} objects, each holding the next: "
            )),
            Span::Class(class.clone()),
            Span::from("."),
        ]);
    }
    if let Some(holder) = &suspect.holder {
        doc = doc.text([
            Span::from("The field that holds it: "),
            Span::Strong(holder.clone()),
        ]);
    }
    match suspect.kind {
        _ if !suspect.thread_locals.is_empty() => {
            doc = doc.text(variables_sentence(&suspect.thread_locals));
        }
        SuspectKind::Object => doc = doc.text(root_sentence(suspect)),
        SuspectKind::Class if suspect.path.is_empty() && !leaks.deep => {
            doc = doc.text(undominated_sentence(suspect, leaks.strength));
        }
        SuspectKind::Class if suspect.path.is_empty() => {
            doc = doc.text([Span::from(
                "Their paths to the roots have nothing in common: no single place holds them.",
            )]);
        }
        SuspectKind::Class => {}
    }
    // A path of one step is the suspect itself, which was already named.
    if suspect.path.len() > 1 {
        doc = doc.table(path_table(&suspect.path, 0));
    }
    if let Some(point) = &suspect.accumulation_point
        && !point.parts.is_empty()
    {
        doc = doc
            .text([Span::from("Its largest parts:")])
            .table(parts_table(point));
    }
    if let Some(by) = suspect
        .accumulation_point
        .as_ref()
        .and_then(|p| p.allocated_by.as_ref())
    {
        doc = doc.append(allocated_doc(by));
    }
    if !suspect.stack.is_empty() {
        let title = match suspect.is_thread {
            true => "Its stack:",
            false => "Allocated at:",
        };
        doc = doc.text([Span::from(title)]).lines(stack_lines(suspect));
    }
    doc
}

/// The objects that wait for their `finalize` method and those in use, each if they are at least a tenth of all.
fn finalizable_doc(found: &Finalizable) -> Doc {
    let mut doc = Doc::new();
    let in_use = |of: &FinalizableClass| of.objects - of.waiting;
    if found.waiting > 0 && found.waiting * 10 >= found.objects {
        let mut spans = vec![Span::from(
            "Only their finalize method, which has not run yet, keeps ",
        )];
        let waiting = found.classes.iter().filter(|of| of.waiting > 0);
        for (n, of) in waiting.take(NAMED_CLASSES).enumerate() {
            spans.extend([
                Span::from(if n > 0 { ", " } else { "" }),
                Span::Text(plural(of.waiting, "object", "objects")),
                Span::from(" of "),
                Span::Class(of.class.clone()),
                Span::from(" with "),
                Span::Bytes(of.waiting_retained.0),
            ]);
        }
        spans.extend([
            Span::from(". What the thread \"Finalizer\" does: "),
            Span::Strong("tenure threads FILE".to_owned()),
            Span::from("."),
        ]);
        doc = doc.text(spans);
    }
    let used = found.objects - found.waiting;
    let most = found.classes.iter().max_by_key(|of| in_use(of));
    if let Some(most) = most
        && used > 0
        && used * 10 >= found.objects
    {
        doc = doc.text([
            Span::from(
                "Each object with a finalize method has a Finalizer, also while it is in use: other references lead to ",
            ),
            Span::Count(used),
            Span::from(" of "),
            Span::Text(plural(found.objects, "such object", "such objects")),
            Span::from(", too, most of them "),
            Span::Class(most.class.clone()),
            Span::from(". What holds these: "),
            Span::Strong(paths_of_class(&most.class)),
            Span::from("."),
        ]);
    }
    doc
}

/// What is known of objects at the top of the dominator tree, and how to find what holds them. If weak, soft or final
/// references count, they are other paths to objects that one list holds.
fn undominated_sentence(suspect: &Suspect, strength: Strength) -> Vec<Span> {
    let mut spans = vec![
        Span::from(
            "No object dominates any of them: several paths lead to each, or it is a GC root. To see what holds most of them: ",
        ),
        Span::Strong(paths_of_class(&suspect.class)),
        Span::from(" (or "),
        Span::Strong("tenure leaks --deep FILE".to_owned()),
    ];
    if strength != Strength::Strong {
        spans.extend([
            Span::from("; without weak, soft and final references: "),
            Span::Strong("tenure leaks --strength strong FILE".to_owned()),
        ]);
    }
    spans.push(Span::from(")."));
    spans
}

/// The command that shows what holds the objects of a class.
fn paths_of_class(class: &str) -> String {
    format!("tenure paths --class {} FILE", shell(class))
}

/// The frames of a suspect's stack, with a line where frames were left out.
fn stack_lines(suspect: &Suspect) -> Vec<String> {
    let mut lines = suspect.stack.clone();
    if suspect.stack_omitted > 0 {
        let frames = plural(suspect.stack_omitted, "more frame", "more frames");
        let at = lines.len().saturating_sub(OUTERMOST_FRAMES);
        lines.insert(at, format!("… {frames} …"));
    }
    lines
}

/// The stacks that allocated the objects in a suspect.
fn allocated_doc(by: &AllocatedBy) -> Doc {
    let mut doc = Doc::new();
    for site in &by.sites {
        doc = doc
            .text([
                Span::from("Allocated at ("),
                Span::Count(site.objects),
                Span::from(" of "),
                Span::Count(by.objects),
                Span::from(" sampled "),
                Span::Class(by.class.clone()),
                Span::from("):"),
            ])
            .lines(site.frames.clone());
    }
    doc
}

fn object_sentence(suspect: &Suspect) -> Vec<Span> {
    let keeps = [
        Span::from(" keeps "),
        Span::Bytes(suspect.retained.0),
        Span::from(" alive."),
    ];
    let mut spans = match &suspect.value {
        Some(name) if suspect.class == "java.lang.Class" => vec![
            Span::from("The class "),
            Span::Class(name.clone()),
            Span::from(" "),
            Span::Object(suspect.object),
            Span::from(", with its static fields,"),
        ],
        Some(name) if suspect.is_thread => vec![
            Span::from("The thread "),
            Span::Value(format!("\"{name}\" ")),
            Span::Object(suspect.object),
        ],
        value => {
            let kind = if suspect.class.ends_with("ClassLoader") {
                "The class loader "
            } else {
                "One "
            };
            let mut spans = vec![
                Span::from(kind),
                Span::Class(suspect.class.clone()),
                Span::from(" "),
                Span::Object(suspect.object),
            ];
            if let Some(value) = value {
                spans.push(Span::Value(format!(" \"{value}\"")));
            }
            spans
        }
    };
    spans.extend(keeps);
    spans
}

fn class_sentence(suspect: &Suspect) -> Vec<Span> {
    vec![
        Span::Count(suspect.instances),
        Span::from(" objects of "),
        Span::Class(suspect.class.clone()),
        Span::from(" together keep "),
        Span::Bytes(suspect.retained.0),
        Span::from(" alive, on average "),
        Span::Bytes(suspect.retained.0 / suspect.instances.max(1)),
        Span::from(" each."),
    ]
}

fn point_sentence(point: &AccumulationPoint, suspect: &Suspect) -> Vec<Span> {
    let mut spans = Vec::new();
    // If one class has half of it, the class stands for most of it.
    let most = |of: &PiledClass| of.retained.0 * 2 >= point.retained.0;
    let spread = point.of_class.as_ref().filter(|of| !most(of));
    if point.object == suspect.object && point.of_class.is_none() {
        return vec![Span::from(
            "Nothing below it is large: that is its own size.",
        )];
    }
    if point.object == suspect.object {
        spans.push(Span::from(match spread {
            None => "It holds most of that directly",
            Some(_) => "It holds that in many parts; the class with most of it",
        }));
    } else {
        spans.push(Span::from("It accumulates in "));
        match &point.value {
            Some(class) if point.class == "java.lang.Class" => {
                spans.push(Span::from("class "));
                spans.push(Span::Class(class.clone()));
            }
            _ => spans.push(Span::Class(point.class.clone())),
        }
        spans.extend([
            Span::from(" "),
            Span::Object(point.object),
            Span::from(", which retains "),
            Span::Bytes(point.retained.0),
        ]);
    }
    if let Some(of) = &point.of_class {
        let own = point.object == suspect.object;
        spans.extend([
            Span::from(match spread {
                Some(_) if !own => " in many parts; the class with most of it: ",
                _ => ": ",
            }),
            Span::Text(plural(of.objects, "object", "objects")),
            Span::from(" of "),
            Span::Class(of.class.clone()),
            Span::from(" with "),
            Span::Bytes(of.retained.0),
        ]);
        if let Some(held) = &of.holding {
            spans.extend([Span::from(", most of it in "), Span::Class(held.clone())]);
        }
    }
    spans.push(Span::from("."));
    spans
}

fn root_sentence(suspect: &Suspect) -> Vec<Span> {
    if let Some(local) = &suspect.thread_local_of {
        let mut spans = vec![
            Span::from("A thread-local variable of the thread "),
            Span::Value(format!("\"{}\"", local.thread)),
            Span::from(" holds it"),
        ];
        if let Some(variable) = &local.variable {
            spans.push(Span::from(", "));
            spans.push(Span::Strong(variable.clone()));
        }
        spans.push(Span::from("."));
        return spans;
    }
    if let Some(local) = &suspect.local_of {
        let mut spans = Vec::new();
        if let Some(field) = &suspect.static_field {
            spans.push(Span::from("The static field "));
            spans.push(Span::Strong(field.clone()));
            spans.push(Span::from(" holds it. "));
        }
        spans.extend([
            Span::from("A local variable of the thread "),
            Span::Value(format!("\"{}\"", local.thread)),
            Span::from(match suspect.static_field {
                Some(_) => " holds it, too",
                None => " holds it",
            }),
        ]);
        if !local.frame.is_empty() {
            spans.push(Span::from(", in "));
            spans.push(Span::Strong(local.frame.clone()));
        }
        spans.push(Span::from("."));
        return spans;
    }
    if suspect.roots.is_empty() && suspect.class == "java.lang.Class" {
        return vec![
            Span::from("A class lives as long as its loader or an object of it ("),
            Span::Strong(format!("tenure paths {} FILE", suspect.object)),
            Span::from(")."),
        ];
    }
    if suspect.roots.is_empty() {
        return vec![
            Span::from(
                "It is not a GC root itself; several roots reach it, and none alone explains it (",
            ),
            Span::Strong(format!("tenure paths {} FILE", suspect.object)),
            Span::from(")."),
        ];
    }
    vec![Span::Text(format!(
        "It is a GC root ({}).",
        suspect.roots.join(", ")
    ))]
}

/// The thread-local variables that hold a suspect.
fn variables_sentence(variables: &[ThreadLocal]) -> Vec<Span> {
    let mut spans = vec![Span::from("Thread-local variables hold it: ")];
    for (n, variable) in variables.iter().enumerate() {
        if n > 0 {
            spans.push(Span::from(", "));
        }
        spans.extend(variable_spans(variable));
        spans.extend([
            Span::from(" with "),
            Span::Bytes(variable.retained.0),
            Span::Text(format!(
                " in {}",
                plural(variable.threads, "thread", "threads")
            )),
        ]);
    }
    spans.push(Span::from(". To see all: "));
    spans.push(Span::Strong("tenure threads FILE".to_owned()));
    spans.push(Span::from("."));
    spans
}

fn parts_table(point: &AccumulationPoint) -> Table {
    let mut table = Table::new([number("retained"), words("part")]);
    for part in &point.parts {
        let mut spans = match &part.field {
            Some(field) => vec![Span::Strong(field.clone()), Span::from(" → ")],
            None => vec![Span::Dim("(through several objects) → ".to_owned())],
        };
        spans.extend(crate::doc::object_spans(&part.object));
        table.row([Cell::bytes(part.object.retained), Cell::new(spans)]);
    }
    table
}

/// A path, one step per row, indented; `omitted` steps in its middle are not in the list.
pub(super) fn path_table(path: &[Step], omitted: u64) -> Table {
    let mut table = Table::new([number("retained"), words("path")]);
    let hidden = path.len().saturating_sub(MAX_STEPS);
    let mut field: Option<Vec<Span>> = None;
    for (n, step) in path.iter().enumerate() {
        let hide_from = MAX_STEPS / 2;
        let hide = hidden > 0 && n >= hide_from && n < hide_from + hidden + 1;
        if hide {
            if n == hide_from {
                let all = hidden as u64 + 1 + omitted;
                let text = format!("… {} …", plural(all, "more step", "more steps"));
                table.row([Cell::empty(), Cell::from(Span::Dim(text)).at_depth(n)]);
            }
        } else {
            let mut spans = field.take().unwrap_or_default();
            spans.extend(crate::doc::object_spans(&step.object));
            let shown = if n > hide_from && hidden > 0 {
                n - hidden
            } else {
                n
            };
            table.row([
                Cell::bytes(step.object.retained),
                Cell::new(spans).at_depth(shown.min(MAX_STEPS)),
            ]);
        }
        field = Some(match (&step.field, step.direct) {
            (Some(name), _) => vec![Span::Strong(name.clone()), Span::from(" → ")],
            (None, false) => vec![Span::Dim("(through several objects) → ".to_owned())],
            (None, true) => Vec::new(),
        });
    }
    table
}
