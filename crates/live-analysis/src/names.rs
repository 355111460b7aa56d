//! Names of classes, frames and threads of a recording as text.

use profile::{FrameId, Line, NameId, Profile, TraceId};

/// `class.method(File.java:7)`.
pub fn frame_text(profile: &Profile, frame: FrameId) -> String {
    let frame = profile.stacks.frame(frame);
    let source = profile
        .names
        .get(profile.stacks.method(frame.method).source);
    let source = if source.is_empty() {
        "Unknown Source"
    } else {
        source
    };
    let name = profile.frame_name(frame);
    match frame.line {
        Line::Number(line) => format!("{name}({source}:{line})"),
        Line::Native => format!("{name}(Native method)"),
        Line::Compiled | Line::Unknown => format!("{name}({source})"),
    }
}

/// The frames of a trace as text, innermost first.
pub fn stack_text(profile: &Profile, trace: TraceId) -> Vec<String> {
    let frames = profile.stacks.frames(trace).iter();
    frames.map(|frame| frame_text(profile, *frame)).collect()
}

/// The package of a class: the name before the last dot; for arrays, that of their elements.
pub fn package(class: &str) -> &str {
    class
        .rsplit_once('.')
        .map_or("(no package)", |(package, _)| package)
}

/// The named module of a class; empty for none, `None` if unknown.
pub fn module(profile: &Profile, class: NameId) -> Option<&str> {
    let place = profile.places.get(class)?;
    Some(profile.names.get(place.module))
}

/// Loader and module of a class, as text.
pub fn place(profile: &Profile, class: NameId) -> (String, String) {
    let Some(place) = profile.places.get(class) else {
        return ("(not known)".to_owned(), "(not known)".to_owned());
    };
    let text = |id: NameId, none: &str| match profile.names.get(id) {
        "" => none.to_owned(),
        name => name.to_owned(),
    };
    let loader = text(place.loader, "(boot loader)");
    (loader, text(place.module, "(no named module)"))
}

/// Shown instead of a thread that is not recorded.
pub const NO_CONTEXT: &str = "(not recorded)";

/// The thread that allocated at a trace, with its group, where that is recorded.
pub fn context(profile: &Profile, trace: TraceId) -> Option<String> {
    let serial = profile.stacks.key(trace).thread?;
    Some(thread_text(profile, serial.0))
}

/// A thread with its group.
pub fn thread_text(profile: &Profile, serial: u32) -> String {
    let Some(thread) = profile.thread(serial) else {
        return format!("thread {serial}");
    };
    let (name, group) = (
        profile.names.get(thread.name),
        profile.names.get(thread.group),
    );
    match (name, group) {
        // There can be any number of virtual threads, so those with the same name are merged.
        ("", "VirtualThreads") => "virtual threads without a name".to_owned(),
        (name, "VirtualThreads") => format!("{name} (virtual threads)"),
        (name, "") => name.to_owned(),
        (name, group) => format!("{name} ({group})"),
    }
}
