//! The metadata event: the types of values and events in the chunk.

use super::buffer::Buffer;
use std::collections::HashMap;

/// Ids of types. 20 to 49 are values, 100 and up are events, 200 and up annotations.
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
    pub(in super::super) const THREAD_GROUP: u64 = 32;
    pub(in super::super) const PACKAGE: u64 = 33;
    pub(in super::super) const MODULE: u64 = 34;
    pub(in super::super) const OLD_OBJECT: u64 = 35;
    pub(in super::super) const REFERENCE: u64 = 36;
    pub(in super::super) const EXECUTION_SAMPLE: u64 = 101;
    pub(in super::super) const ALLOCATION_SAMPLE: u64 = 102;
    pub(in super::super) const MONITOR_ENTER: u64 = 103;
    pub(in super::super) const OLD_OBJECT_SAMPLE: u64 = 104;
    pub(in super::super) const NATIVE_ALLOCATION: u64 = 105;
    pub(in super::super) const THREAD_PARK: u64 = 106;
    pub(in super::super) const THREAD_START: u64 = 107;
    pub(in super::super) const THREAD_END: u64 = 108;
    pub(in super::super) const WALL_CLOCK_SAMPLE: u64 = 109;
    pub(in super::super) const ACTIVE_SETTING: u64 = 110;
    pub(in super::super) const NOTE: u64 = 111;
    pub(in super::super) const TIMESTAMP: u64 = 200;
    pub(in super::super) const TIMESPAN: u64 = 201;
    pub(in super::super) const DATA_AMOUNT: u64 = 202;
    pub(in super::super) const LABEL: u64 = 203;
    pub(in super::super) const CONTENT_TYPE: u64 = 204;
    pub(in super::super) const CATEGORY: u64 = 205;
    pub(in super::super) const MEMORY_ADDRESS: u64 = 206;
}

use types::{
    ACTIVE_SETTING, ALLOCATION_SAMPLE, BOOLEAN, CATEGORY, CLASS, CONTENT_TYPE, DATA_AMOUNT,
    EXECUTION_SAMPLE, FRAME_TYPE, INT, LABEL, LONG, MEMORY_ADDRESS, METHOD, MODULE, MONITOR_ENTER,
    NATIVE_ALLOCATION, NOTE, OLD_OBJECT, OLD_OBJECT_SAMPLE, PACKAGE, REFERENCE, STACK_FRAME,
    STACK_TRACE, STRING, SYMBOL, THREAD, THREAD_END, THREAD_GROUP, THREAD_PARK, THREAD_START,
    THREAD_STATE, TIMESPAN, TIMESTAMP, WALL_CLOCK_SAMPLE,
};

/// The superclass of annotations.
const ANNOTATION: &str = "java.lang.annotation.Annotation";

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

/// How a field stores its value.
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

    /// Labels the last field for people.
    fn label(self, text: &str) -> Element {
        self.note(LABEL, text)
    }

    /// The thread and the stack that an event belongs to.
    fn origin(self, thread: &str) -> Element {
        self.field(thread, THREAD, Kind::Pool)
            .label("Thread")
            .field("stackTrace", STACK_TRACE, Kind::Pool)
            .label("Stack Trace")
    }
}

fn class(name: &str, id: u64, parent: Option<&str>) -> Element {
    let mut class = element("class", &[("name", name), ("id", &id.to_string())]);
    class
        .attributes
        .extend(parent.map(|parent| ("superType", parent.to_owned())));
    class
}

fn event(name: &str, id: u64, label: &str, category: &[&str]) -> Element {
    let mut class = class(name, id, Some("jdk.jfr.Event"));
    let annotation = |id: u64| element("annotation", &[("class", &id.to_string())]);
    let mut labelled = annotation(LABEL);
    labelled.attributes.push(("value", label.to_owned()));
    let mut sorted = annotation(CATEGORY);
    let places = ["value-0", "value-1"].into_iter().zip(category);
    sorted
        .attributes
        .extend(places.map(|(place, word)| (place, (*word).to_owned())));
    class.children.extend([labelled, sorted]);
    class
        .field("startTime", LONG, Kind::Plain)
        .note(TIMESTAMP, "TICKS")
        .label("Start Time")
}

fn simple(name: &str, id: u64, field: &str) -> Element {
    let mut class = class(name, id, None);
    class.attributes.push(("simpleType", "true".into()));
    class.field(field, STRING, Kind::Plain)
}

fn annotation(name: &str, id: u64) -> Element {
    class(name, id, Some(ANNOTATION)).field("value", STRING, Kind::Plain)
}

/// The types of values.
fn values() -> Vec<Element> {
    vec![
        class("boolean", BOOLEAN, None),
        class("int", INT, None),
        class("long", LONG, None),
        class("java.lang.String", STRING, None),
        class("java.lang.Class", CLASS, None)
            .field("name", SYMBOL, Kind::Pool)
            .field("package", PACKAGE, Kind::Pool),
        class("java.lang.Thread", THREAD, None)
            .field("osName", STRING, Kind::Plain)
            .field("osThreadId", LONG, Kind::Plain)
            .field("javaName", STRING, Kind::Plain)
            .field("javaThreadId", LONG, Kind::Plain)
            .field("group", THREAD_GROUP, Kind::Pool),
        class("jdk.types.ThreadGroup", THREAD_GROUP, None)
            .field("parent", THREAD_GROUP, Kind::Pool)
            .field("name", STRING, Kind::Plain),
        simple("jdk.types.FrameType", FRAME_TYPE, "description"),
        simple("jdk.types.ThreadState", THREAD_STATE, "name"),
        simple("jdk.types.Symbol", SYMBOL, "string"),
        class("jdk.types.Package", PACKAGE, None)
            .field("name", SYMBOL, Kind::Pool)
            .field("module", MODULE, Kind::Pool)
            .field("exported", BOOLEAN, Kind::Plain),
        class("jdk.types.Module", MODULE, None).field("name", SYMBOL, Kind::Pool),
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
        class("jdk.types.OldObject", OLD_OBJECT, None)
            .field("address", LONG, Kind::Plain)
            .note(MEMORY_ADDRESS, "")
            .field("type", CLASS, Kind::Pool)
            .field("description", STRING, Kind::Plain)
            .field("referrer", REFERENCE, Kind::Pool),
        class("jdk.types.Reference", REFERENCE, None)
            .field("object", OLD_OBJECT, Kind::Pool)
            .field("skip", INT, Kind::Plain),
    ]
}

const APPLICATION: &[&str] = &["Java Application"];
const PROFILING: &[&str] = &["Java Virtual Machine", "Profiling"];

/// The types of events. Events of the JDK have the JDK's names, labels and units, and those of its fields whose values
/// are known.
fn events() -> Vec<Element> {
    vec![
        event(
            "jdk.ExecutionSample",
            EXECUTION_SAMPLE,
            "Method Profiling Sample",
            PROFILING,
        )
        .origin("sampledThread")
        .field("state", THREAD_STATE, Kind::Pool)
        .label("Thread State"),
        event(
            "profiler.WallClockSample",
            WALL_CLOCK_SAMPLE,
            "Wall Clock Sample",
            PROFILING,
        )
        .origin("sampledThread")
        .field("state", THREAD_STATE, Kind::Pool)
        .label("Thread State")
        .field("samples", INT, Kind::Plain)
        .label("Samples")
        .field("weight", LONG, Kind::Plain)
        .note(TIMESPAN, "NANOSECONDS")
        .label("Elapsed Time"),
        event(
            "jdk.ObjectAllocationSample",
            ALLOCATION_SAMPLE,
            "Object Allocation Sample",
            APPLICATION,
        )
        .origin("eventThread")
        .field("objectClass", CLASS, Kind::Pool)
        .label("Object Class")
        .field("weight", LONG, Kind::Plain)
        .note(DATA_AMOUNT, "BYTES")
        .label("Sample Weight"),
        event(
            "jdk.JavaMonitorEnter",
            MONITOR_ENTER,
            "Java Monitor Blocked",
            APPLICATION,
        )
        .field("duration", LONG, Kind::Plain)
        .note(TIMESPAN, "TICKS")
        .label("Duration")
        .origin("eventThread")
        .field("monitorClass", CLASS, Kind::Pool)
        .label("Monitor Class"),
        event(
            "jdk.ThreadPark",
            THREAD_PARK,
            "Java Thread Park",
            APPLICATION,
        )
        .field("duration", LONG, Kind::Plain)
        .note(TIMESPAN, "TICKS")
        .label("Duration")
        .origin("eventThread")
        .field("parkedClass", CLASS, Kind::Pool)
        .label("Class Parked On"),
        event(
            "jdk.ThreadStart",
            THREAD_START,
            "Java Thread Start",
            APPLICATION,
        )
        .origin("eventThread")
        .field("thread", THREAD, Kind::Pool)
        .label("New Java Thread"),
        event("jdk.ThreadEnd", THREAD_END, "Java Thread End", APPLICATION)
            .field("eventThread", THREAD, Kind::Pool)
            .label("Event Thread")
            .field("thread", THREAD, Kind::Pool)
            .label("Java Thread"),
        event(
            "jdk.OldObjectSample",
            OLD_OBJECT_SAMPLE,
            "Old Object Sample",
            PROFILING,
        )
        .origin("eventThread")
        .field("allocationTime", LONG, Kind::Plain)
        .note(TIMESTAMP, "TICKS")
        .label("Allocation Time")
        .field("objectAge", LONG, Kind::Plain)
        .note(TIMESPAN, "TICKS")
        .label("Object Age")
        .field("lastKnownHeapUsage", LONG, Kind::Plain)
        .note(DATA_AMOUNT, "BYTES")
        .label("Last Known Heap Usage")
        .field("objectSize", LONG, Kind::Plain)
        .note(DATA_AMOUNT, "BYTES")
        .label("Object Size")
        .field("objects", LONG, Kind::Plain)
        .label("Objects")
        .field("object", OLD_OBJECT, Kind::Pool)
        .label("Object")
        .field("arrayElements", INT, Kind::Plain)
        .label("Array Elements"),
    ]
}

/// Settings and notes of the recording, and events that the JDK does not have.
fn further_events() -> Vec<Element> {
    vec![
        event(
            "tenure.NativeAllocation",
            NATIVE_ALLOCATION,
            "Native Allocation",
            &["Native Memory"],
        )
        .origin("eventThread")
        .field("library", STRING, Kind::Plain)
        .label("Library")
        .field("allocated", LONG, Kind::Plain)
        .note(DATA_AMOUNT, "BYTES")
        .label("Allocated")
        .field("remaining", LONG, Kind::Plain)
        .note(DATA_AMOUNT, "BYTES")
        .label("Not Freed"),
        event(
            "jdk.ActiveSetting",
            ACTIVE_SETTING,
            "Recording Setting",
            &["Flight Recorder"],
        )
        .field("id", LONG, Kind::Plain)
        .label("Event Id")
        .field("name", STRING, Kind::Plain)
        .label("Setting Name")
        .field("value", STRING, Kind::Plain)
        .label("Setting Value"),
        event("tenure.Note", NOTE, "Note", PROFILING)
            .field("text", STRING, Kind::Plain)
            .label("Text"),
    ]
}

fn annotations() -> Vec<Element> {
    vec![
        content_type("jdk.jfr.Timestamp", TIMESTAMP),
        content_type("jdk.jfr.Timespan", TIMESPAN),
        content_type("jdk.jfr.DataAmount", DATA_AMOUNT),
        content_type("jdk.jfr.MemoryAddress", MEMORY_ADDRESS),
        annotation("jdk.jfr.Label", LABEL),
        class("jdk.jfr.Category", CATEGORY, Some(ANNOTATION)).field("value", STRING, Kind::Array),
        class("jdk.jfr.ContentType", CONTENT_TYPE, Some(ANNOTATION)),
    ]
}

/// An annotation for the kind of quantity in a field.
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
    metadata.children = [values(), events(), further_events(), annotations()]
        .into_iter()
        .flatten()
        .collect();
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
