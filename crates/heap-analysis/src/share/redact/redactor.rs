//! Replaces the contents of a dump, record by record.

use super::names::Names;
use super::places::{FieldPlace, Places};
use super::shapes::{ClassPass, Shape, walk_all};
use super::structure::Structure;
use super::texts::Texts;
use super::token::Tokens;
use crate::compare::identity::{matches, matches_any};
use crate::sets::similar::nearest_qualified;
use hprof::{
    BasicType, ClassDump, Edit, FileOffset, HeaderError, IdSize, Instance, MeasuredSizes, ObjectId,
    PrimitiveArray, RawRecord, Record, Rewriter, SubRecord, encode_record, encode_sub_record,
    readable_class_name,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// How content is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By zeros: nothing is left, not even which contents were equal.
    Zero,
    /// By tokens made with this key: equal contents stay equal, in all dumps with the same key.
    Tokens([u8; 32]),
}

/// What is redacted.
#[derive(Clone, Debug)]
pub struct RedactOptions {
    /// The method of replacement.
    pub method: Method,
    /// Classes (`*` stands for any characters) whose strings, arrays and chars stay readable.
    pub keep: Vec<String>,
    /// Also replace numbers in boxes and in fields of application classes.
    pub numbers: bool,
    /// Rename classes, except those that match one of these patterns.
    pub rename_except: Option<Vec<String>>,
}

/// Packages of the platform: `numbers` does not change their fields, and by default classes of these packages are not
/// renamed.
pub const PLATFORM: [&str; 14] = [
    "java.*",
    "javax.*",
    "jdk.*",
    "sun.*",
    "com.sun.*",
    "kotlin.*",
    "kotlinx.*",
    "scala.*",
    "android.*",
    "androidx.*",
    "dalvik.*",
    "libcore.*",
    "org.w3c.*",
    "org.xml.*",
];

/// Redacts a dump, record by record.
pub struct Redactor {
    pub(super) ids: IdSize,
    /// The ids that the dump defines; `None` when only its beginning has been read.
    pub(super) structure: Option<Structure>,
    tokens: Option<Tokens>,
    numbers: bool,
    /// Fields of instances that are replaced.
    hidden: Places,
    /// Class names by class.
    classes: FxHashMap<u64, String>,
    pub(super) keep: Vec<String>,
    /// Strings and arrays that stay readable.
    kept: FxHashSet<u64>,
    /// Ids of texts that are names.
    names: FxHashSet<u64>,
    frames: FxHashSet<u64>,
    dumps: u32,
    /// New names.
    renamed: Option<Names>,
}

fn platform(name: &str) -> bool {
    PLATFORM.iter().any(|p| matches(p, name)) || !name.contains('.') && name.ends_with("[]")
}

const BOXES: [&str; 13] = [
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Short",
    "java.lang.Byte",
    "java.lang.Float",
    "java.lang.Double",
    "java.math.BigInteger",
    "java.math.BigDecimal",
    "java.util.UUID",
    "java.util.Date",
    "java.util.concurrent.atomic.AtomicInteger",
    "java.util.concurrent.atomic.AtomicLong",
    "java.time.Instant",
];

impl Redactor {
    /// Reads the structure of a complete dump.
    pub fn new(data: &[u8], options: &RedactOptions) -> Result<Redactor, HeaderError> {
        Redactor::read(data, options, true)
    }

    /// The same for a dump of which only the names and classes have been read. The rest must be undamaged, because its
    /// references are copied without a check.
    pub fn of_head(head: &[u8], options: &RedactOptions) -> Result<Redactor, HeaderError> {
        Redactor::read(head, options, false)
    }

    fn read(data: &[u8], options: &RedactOptions, is_whole: bool) -> Result<Redactor, HeaderError> {
        let (mut texts, ids) = Texts::read(data)?;
        let mut pass = ClassPass::default();
        walk_all(data, &mut pass)?;
        let mut names = pass.names;
        names.extend(texts.loaded.iter().map(|l| l.1));
        names.extend(texts.frames.iter().flat_map(|f| f.1));
        let marks = texts.by_id.iter();
        let marks = marks.filter(|(_, text)| **text == hprof::CONSERVATIVE_LOCALS.as_bytes());
        names.extend(marks.map(|(id, _)| id));
        names.retain(|id| !texts.repeated.contains(id));
        let mut shapes = pass.shapes;
        let mut classes = FxHashMap::default();
        for (class, name) in &texts.loaded {
            let name = readable_class_name(&texts.text(*name));
            shapes.entry(*class).or_default().name.clone_from(&name);
            classes.insert(*class, name);
        }
        let structure = is_whole.then(|| {
            let ids_of_texts = texts.by_id.keys().copied().collect();
            Structure::new(data, ids, &shapes, ids_of_texts)
        });
        let mut redactor = Redactor {
            ids,
            structure: structure.transpose()?,
            frames: std::mem::take(&mut texts.frame_ids),
            dumps: texts.dumps,
            tokens: match options.method {
                Method::Zero => None,
                Method::Tokens(key) => Some(Tokens::new(key)),
            },
            numbers: options.numbers,
            hidden: Places::default(),
            classes,
            keep: options.keep.clone(),
            kept: FxHashSet::default(),
            names,
            renamed: None,
        };
        redactor.hidden = Places::new(&shapes, ids, |shape| redactor.secrets_of(shape, &texts));
        if !options.keep.is_empty() {
            redactor.kept = redactor.kept_of(data, &shapes)?;
        }
        if let Some(except) = &options.rename_except {
            redactor.renamed = Some(Names::plan(&texts, &shapes, except));
        }
        Ok(redactor)
    }

    /// The new names, when classes were renamed.
    pub fn names(&self) -> Option<&Names> {
        self.renamed.as_ref()
    }

    /// The first class to keep that the dump does not have, and a class with a similar name.
    pub fn unknown_class(&self) -> Option<(&str, Option<&str>)> {
        let mut known: Vec<&str> = self.classes.values().map(String::as_str).collect();
        known.sort_unstable();
        let is_known = |pattern: &&String| known.iter().any(|name| matches(pattern, name));
        let unknown = self.keep.iter().find(|pattern| !is_known(pattern))?;
        Some((unknown, nearest_qualified(unknown, &known)))
    }

    /// Number of heap dumps in the file.
    pub fn dumps(&self) -> u32 {
        self.dumps
    }

    /// Number of objects that lose all their contents because their fields do not fit their class.
    pub fn cleared_objects(&self) -> u64 {
        self.structure.as_ref().map_or(0, |s| s.cleared)
    }

    fn hides(&self, class: &str, kind: BasicType) -> bool {
        match kind {
            BasicType::Char => !matches_any(&self.keep, class),
            BasicType::Object | BasicType::Boolean => false,
            _ => {
                self.numbers
                    && !matches_any(&self.keep, class)
                    && (!platform(class) || BOXES.contains(&class))
            }
        }
    }

    /// The fields, among those that a class declares, that are replaced.
    fn secrets_of(&self, shape: &Shape, texts: &Texts<'_>) -> Vec<FieldPlace> {
        let is_string = shape.name == "java.lang.String";
        let is_hash = |name| is_string && texts.text(name) == "hash";
        shape.places(self.ids, |name, kind| {
            let hash = is_hash(name);
            (hash || self.hides(&shape.name, kind)).then_some(hash)
        })
    }

    /// Whether the elements of an array are replaced.
    pub(super) fn hides_array(&self, array: &PrimitiveArray<'_>) -> bool {
        !self.kept.contains(&array.id.0)
    }

    /// Whether a text of the file is a name that stays.
    pub(super) fn is_name(&self, id: ObjectId, text: &[u8]) -> bool {
        self.names.contains(&id.0) && is_symbol(text) || MeasuredSizes::parse(text).is_some()
    }

    /// Whether a sub-record is written: roots without an object and objects without a class are not.
    pub(super) fn writes(&self, record: &SubRecord<'_>) -> bool {
        let Some(structure) = &self.structure else {
            return true;
        };
        match record {
            SubRecord::Root(root) => structure.has(root.object),
            SubRecord::Instance(i) => structure.has_class(i.class),
            SubRecord::ObjectArray(a) => structure.has_class(a.class),
            _ => true,
        }
    }

    fn replace(&self, kind: BasicType, content: &mut [u8]) {
        match &self.tokens {
            Some(tokens) => tokens.replace(kind, content),
            None => content.fill(0),
        }
    }

    fn instance(&self, i: &Instance<'_>, out: &mut [u8]) {
        let from = out.len() - i.fields.len();
        let fields = &mut out[from..];
        if let Some(structure) = &self.structure {
            structure.clear_fields(i, fields);
        }
        let kept = self.kept.contains(&i.id.0);
        for secret in self.hidden.in_instance(i.class.0, i.fields.len()) {
            let end = secret.offset + secret.kind.size(self.ids.bytes());
            let Some(bytes) = fields.get_mut(secret.offset..end) else {
                continue;
            };
            match secret.hash {
                true if kept => {}
                // The hash of a short text reveals the text.
                true => bytes.fill(0),
                false => self.replace(secret.kind, bytes),
            }
        }
    }

    /// Static fields and constants, in place: the record keeps its length.
    fn class(&self, class: &ClassDump<'_>, record: &mut [u8]) {
        if let Some(structure) = &self.structure {
            structure.clear_class(class, record);
        }
        let none = String::new();
        let name = self.classes.get(&class.id.0).unwrap_or(&none);
        let hidden = |kind| self.hides(name, kind);
        // Tag, seven ids with a serial and a size between them, then the tables.
        let mut at = 1 + 7 * self.ids.bytes() + 8;
        at += 2;
        for (_, value) in class.constants() {
            at = self.value(record, at + 2, value.kind, hidden(value.kind));
        }
        at += 2;
        for (_, value) in class.statics() {
            at = self.value(
                record,
                at + self.ids.bytes(),
                value.kind,
                hidden(value.kind),
            );
        }
    }

    fn value(&self, out: &mut [u8], at: usize, kind: BasicType, hidden: bool) -> usize {
        let end = at + 1 + kind.size(self.ids.bytes());
        if hidden && let Some(bytes) = out.get_mut(at + 1..end) {
            self.replace(kind, bytes);
        }
        end
    }

    fn text(&self, id: ObjectId, bytes: &[u8]) -> Option<Vec<u8>> {
        if let Some(new) = self.renamed.as_ref().and_then(|n| n.new_text(id)) {
            return Some(new.to_vec());
        }
        if self.is_name(id, bytes) {
            return None;
        }
        Some(match &self.tokens {
            Some(tokens) => tokens.letters(bytes),
            None => vec![b'x'; bytes.len()],
        })
    }
}

/// The longest name of a JVM.
const LONGEST_SYMBOL: usize = u16::MAX as usize;

/// Whether a text can be a name. A text that is too long contains the records after it, whose heads have control
/// characters, so it is not a name.
fn is_symbol(text: &[u8]) -> bool {
    text.len() <= LONGEST_SYMBOL && text.iter().all(|b| *b >= 0x20)
}

/// Whether a record has as many rows as it states, in a table after a head of this length.
fn has_rows(body: &[u8], head: usize, row: usize) -> bool {
    let count = body.get(head - 4..head).and_then(<[u8]>::first_chunk);
    count.is_some_and(|count| head + u32::from_be_bytes(*count) as usize * row == body.len())
}

impl Redactor {
    /// A record without references to ids that the dump does not define; `None` when nothing else is left.
    fn cleared<'a>(&self, record: Record<'a>, body: &[u8]) -> Option<Record<'a>> {
        let Some(structure) = &self.structure else {
            return Some(record);
        };
        Some(match record {
            Record::LoadClass {
                serial,
                class,
                trace,
                name,
            } => Record::LoadClass {
                serial,
                class,
                trace,
                name: structure.text(name),
            },
            Record::Frame(f) => Record::Frame(hprof::Frame {
                method: structure.text(f.method),
                signature: structure.text(f.signature),
                source: structure.text(f.source),
                ..f
            }),
            Record::StartThread {
                thread,
                object,
                trace,
                name,
                group,
                parent_group,
            } => Record::StartThread {
                thread,
                object: Some(object)
                    .filter(|o| structure.has(*o))
                    .unwrap_or(ObjectId::NULL),
                trace,
                name: structure.text(name),
                group: structure.text(group),
                parent_group: structure.text(parent_group),
            },
            Record::Trace {
                serial,
                thread,
                mut frames,
            } => {
                let all = frames.len();
                frames.retain(|frame| self.frames.contains(&frame.0));
                if frames.is_empty() && all > 0 {
                    return None;
                }
                Record::Trace {
                    serial,
                    thread,
                    frames,
                }
            }
            Record::AllocSites { .. } if !has_rows(body, 34, 25) => return None,
            Record::CpuSamples { .. } if !has_rows(body, 8, 8) => return None,
            other => other,
        })
    }
}

impl Rewriter for Redactor {
    fn record(&self, record: &RawRecord<'_>, body: &mut Vec<u8>) -> Edit {
        match record.decode(self.ids) {
            Some(Record::Utf8 { id, bytes }) => match self.text(id, bytes) {
                Some(new) => {
                    body.extend_from_slice(&record.body[..self.ids.bytes()]);
                    body.extend_from_slice(&new);
                    Edit::Replace
                }
                None => Edit::Keep,
            },
            // Encoded from its fields, because the record may be longer than they are.
            Some(decoded) => match self.cleared(decoded, record.body) {
                Some(cleared) => {
                    encode_record(&cleared, self.ids, body);
                    Edit::Replace
                }
                None => Edit::Drop,
            },
            // The layout of an unknown record is not known.
            None => Edit::Drop,
        }
    }

    fn sub_record(&self, _: FileOffset, record: &SubRecord<'_>, out: &mut Vec<u8>) -> Edit {
        if !self.writes(record) {
            return Edit::Drop;
        }
        let from = out.len();
        match record {
            SubRecord::PrimitiveArray(a) if !a.data.is_empty() && self.hides_array(a) => {
                encode_sub_record(record, self.ids, out);
                let data = out.len() - a.data.len();
                self.replace(a.element, &mut out[data..]);
            }
            SubRecord::Instance(i) => {
                encode_sub_record(record, self.ids, out);
                self.instance(i, out);
            }
            SubRecord::Class(c) => {
                encode_sub_record(record, self.ids, out);
                self.class(c, &mut out[from..]);
            }
            SubRecord::ObjectArray(a) => {
                let Some(structure) = &self.structure else {
                    return Edit::Keep;
                };
                encode_sub_record(record, self.ids, out);
                let elements = out.len() - a.elements.len();
                structure.clear_elements(&mut out[elements..]);
            }
            SubRecord::HeapInfo { heap, name } => {
                let structure = self.structure.as_ref();
                let name = structure.map_or(*name, |structure| structure.text(*name));
                let record = SubRecord::HeapInfo { heap: *heap, name };
                encode_sub_record(&record, self.ids, out);
            }
            SubRecord::PrimitiveArray(_) | SubRecord::Root(_) => return Edit::Keep,
        }
        Edit::Replace
    }
}
