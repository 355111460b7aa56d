//! The metadata event: what types of values and events the chunk holds.

use super::buffer::Buffer;
use std::collections::HashMap;

/// Ids of types. 20 to 39 are values, 100 and up are events.
pub(super) mod types {
    pub(in super::super) const BOOLEAN: u64 = 4;
    pub(in super::super) const INT: u64 = 10;
    pub(in super::super) const LONG: u64 = 11;
    pub(in super::super) const STRING: u64 = 20;
    pub(in super::super) const CLASS: u64 = 21;
    pub(in super::super) const THREAD: u64 = 22;
    pub(in super::super) const STACK_TRACE: u64 = 26;
    pub(in super::super) const STACK_FRAME: u64 = 27;
    pub(in super::super) const METHOD: u64 = 28;
    pub(in super::super) const SYMBOL: u64 = 31;
    pub(in super::super) const FRAME_TYPE: u64 = 24;
    pub(in super::super) const THREAD_STATE: u64 = 25;
    pub(in super::super) const EXECUTION_SAMPLE: u64 = 101;
    pub(in super::super) const ALLOCATION_SAMPLE: u64 = 102;
    pub(in super::super) const MONITOR_ENTER: u64 = 103;
    pub(in super::super) const TIMESTAMP: u64 = 200;
    pub(in super::super) const TIMESPAN: u64 = 201;
    pub(in super::super) const DATA_AMOUNT: u64 = 202;
    pub(in super::super) const LABEL: u64 = 203;
    pub(in super::super) const CONTENT_TYPE: u64 = 204;
}

use types::{
    ALLOCATION_SAMPLE, BOOLEAN, CLASS, CONTENT_TYPE, DATA_AMOUNT, EXECUTION_SAMPLE, FRAME_TYPE,
    INT, LABEL, LONG, METHOD, MONITOR_ENTER, STACK_FRAME, STACK_TRACE, STRING, SYMBOL, THREAD,
    THREAD_STATE, TIMESPAN, TIMESTAMP,
};

/// An element of the tree: a name, attributes and children.
struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Element>,
}

fn element(name: &'static str, attributes: &[(&'static str, &str)]) -> Element {
    let attributes = attributes
        .iter()
        .map(|(key, value)| (*key, (*value).to_owned()));
    Element {
        name,
        attributes: attributes.collect(),
        children: Vec::new(),
    }
}

/// How a field holds its value.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    /// An index into the constant pool of its type.
    Pool,
    Array,
}

impl Element {
    fn field(mut self, name: &str, kind: u64, how: Kind) -> Element {
        let mut field = element("field", &[("name", name), ("class", &kind.to_string())]);
        match how {
            Kind::Plain => {}
            Kind::Pool => field.attributes.push(("constantPool", "true".into())),
            Kind::Array => field.attributes.push(("dimension", "1".into())),
        }
        self.children.push(field);
        self
    }

    /// Annotates the last field.
    fn note(mut self, annotation: u64, value: &str) -> Element {
        let class = annotation.to_string();
        let note = element("annotation", &[("class", &class), ("value", value)]);
        if let Some(field) = self.children.last_mut() {
            field.children.push(note);
        }
        self
    }
}

fn class(name: &str, id: u64, parent: Option<&str>) -> Element {
    let mut class = element("class", &[("name", name), ("id", &id.to_string())]);
    class
        .attributes
        .extend(parent.map(|parent| ("superType", parent.to_owned())));
    class
}

fn event(name: &str, id: u64, label: &str) -> Element {
    let mut class = class(name, id, Some("jdk.jfr.Event"));
    let label_class = LABEL.to_string();
    class.children.push(element(
        "annotation",
        &[("class", &label_class), ("value", label)],
    ));
    class
        .field("startTime", LONG, Kind::Plain)
        .note(TIMESTAMP, "TICKS")
}

fn simple(name: &str, id: u64, field: &str) -> Element {
    let mut class = class(name, id, None);
    class.attributes.push(("simpleType", "true".into()));
    class.field(field, STRING, Kind::Plain)
}

fn annotation(name: &str, id: u64) -> Element {
    class(name, id, Some("java.lang.annotation.Annotation")).field("value", STRING, Kind::Plain)
}

fn classes() -> Vec<Element> {
    vec![
        class("boolean", BOOLEAN, None),
        class("int", INT, None),
        class("long", LONG, None),
        class("java.lang.String", STRING, None),
        class("java.lang.Class", CLASS, None).field("name", SYMBOL, Kind::Pool),
        class("java.lang.Thread", THREAD, None)
            .field("osName", STRING, Kind::Plain)
            .field("osThreadId", LONG, Kind::Plain)
            .field("javaName", STRING, Kind::Plain)
            .field("javaThreadId", LONG, Kind::Plain),
        simple("jdk.types.FrameType", FRAME_TYPE, "description"),
        simple("jdk.types.ThreadState", THREAD_STATE, "name"),
        simple("jdk.types.Symbol", SYMBOL, "string"),
        class("jdk.types.StackTrace", STACK_TRACE, None)
            .field("truncated", BOOLEAN, Kind::Plain)
            .field("frames", STACK_FRAME, Kind::Array),
        class("jdk.types.StackFrame", STACK_FRAME, None)
            .field("method", METHOD, Kind::Pool)
            .field("lineNumber", INT, Kind::Plain)
            .field("bytecodeIndex", INT, Kind::Plain)
            .field("type", FRAME_TYPE, Kind::Pool),
        class("jdk.types.Method", METHOD, None)
            .field("type", CLASS, Kind::Pool)
            .field("name", SYMBOL, Kind::Pool)
            .field("descriptor", SYMBOL, Kind::Pool)
            .field("modifiers", INT, Kind::Plain)
            .field("hidden", BOOLEAN, Kind::Plain),
        event(
            "jdk.ExecutionSample",
            EXECUTION_SAMPLE,
            "Method Profiling Sample",
        )
        .field("sampledThread", THREAD, Kind::Pool)
        .field("stackTrace", STACK_TRACE, Kind::Pool)
        .field("state", THREAD_STATE, Kind::Pool),
        event(
            "jdk.ObjectAllocationSample",
            ALLOCATION_SAMPLE,
            "Object Allocation Sample",
        )
        .field("eventThread", THREAD, Kind::Pool)
        .field("stackTrace", STACK_TRACE, Kind::Pool)
        .field("objectClass", CLASS, Kind::Pool)
        .field("weight", LONG, Kind::Plain)
        .note(DATA_AMOUNT, "BYTES"),
        event(
            "jdk.JavaMonitorEnter",
            MONITOR_ENTER,
            "Java Monitor Blocked",
        )
        .field("duration", LONG, Kind::Plain)
        .note(TIMESPAN, "TICKS")
        .field("eventThread", THREAD, Kind::Pool)
        .field("stackTrace", STACK_TRACE, Kind::Pool)
        .field("monitorClass", CLASS, Kind::Pool),
        content_type("jdk.jfr.Timestamp", TIMESTAMP),
        content_type("jdk.jfr.Timespan", TIMESPAN),
        content_type("jdk.jfr.DataAmount", DATA_AMOUNT),
        annotation("jdk.jfr.Label", LABEL),
        class(
            "jdk.jfr.ContentType",
            CONTENT_TYPE,
            Some("java.lang.annotation.Annotation"),
        ),
    ]
}

/// An annotation that says what sort of quantity a field is.
fn content_type(name: &str, id: u64) -> Element {
    let mut class = annotation(name, id);
    class.children.push(element(
        "annotation",
        &[("class", &CONTENT_TYPE.to_string())],
    ));
    class
}

/// The body of the metadata event, without its size.
pub(super) fn body() -> Buffer {
    let mut metadata = element("metadata", &[]);
    metadata.children = classes();
    let region = element("region", &[("locale", "en_US"), ("gmtOffset", "0")]);
    let mut root = element("root", &[]);
    root.children = vec![metadata, region];

    let mut strings = Strings::default();
    let mut tree = Buffer::default();
    write(&root, &mut strings, &mut tree);
    let mut body = Buffer::default();
    // Type 0, start, duration, id of this metadata.
    for value in [0, 0, 0, 1] {
        body.varint(value);
    }
    body.varint(strings.list.len() as u64);
    strings.list.iter().for_each(|text| body.string(text));
    body.0.extend(tree.0);
    body
}

#[derive(Default)]
struct Strings {
    list: Vec<String>,
    ids: HashMap<String, u64>,
}

impl Strings {
    fn id(&mut self, text: &str) -> u64 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }
}

fn write(element: &Element, strings: &mut Strings, out: &mut Buffer) {
    out.varint(strings.id(element.name));
    out.varint(element.attributes.len() as u64);
    for (key, value) in &element.attributes {
        out.varint(strings.id(key));
        out.varint(strings.id(value));
    }
    out.varint(element.children.len() as u64);
    element
        .children
        .iter()
        .for_each(|child| write(child, strings, out));
}
