//! A dump without its contents: every array of primitives and every char gets zeros or a token;
//! classes, references, lengths and ids stay, so the same questions have the same answers.
//!
//! What is replaced: the elements of primitive arrays, char fields, the cached hash of strings, names
//! of started threads, and texts that no class, field, method or frame uses as its name (HotSpot
//! writes every symbol it has, string constants of class files among them). With `numbers` also the
//! numbers in boxes and in fields of classes outside the platform. With `names` the names of
//! application classes, their fields and methods.
//!
//! Passes: one over the records, one over the heap for the classes (one more for each `keep` level),
//! one to write, and one over both dumps to verify.

mod names;
mod places;
mod token;
mod verify;

pub use names::Names;
pub use verify::{Verified, verify};

use crate::compare::check::matches;
use hprof::{
    BasicType, ClassDump, Edit, FileOffset, HeaderError, HeapVisitor, IdSize, Instance,
    ObjectArray, ObjectId, PrimitiveArray, RawRecord, Record, Rewriter, SubRecord,
    decode_modified_utf8, encode_sub_record, map_file, readable_class_name, walk_stretch,
};
use places::{FieldPlace, Places, nearest};
use rustc_hash::{FxHashMap, FxHashSet};
use token::Tokens;

/// How content is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By zeros: nothing is left, equality neither.
    Zero,
    /// By tokens of this key: equal contents stay equal, in all dumps with the same key.
    Tokens([u8; 32]),
}

/// What is redacted.
#[derive(Clone, Debug)]
pub struct RedactOptions {
    /// How.
    pub method: Method,
    /// Classes (`*` stands for any characters) whose strings, arrays and chars stay readable.
    pub keep: Vec<String>,
    /// Numbers in boxes and in fields of application classes too.
    pub numbers: bool,
    /// Rename classes, except those that match one of these patterns.
    pub rename_except: Option<Vec<String>>,
}

/// Packages of the platform: `numbers` leaves their fields alone, and a renaming by default their
/// names.
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

/// A class as its dump has it.
#[derive(Clone, Debug, Default)]
struct Shape {
    name: String,
    super_class: u64,
    fields: Vec<(u64, BasicType)>,
}

impl Shape {
    /// Bytes of the fields that the class declares.
    fn bytes(&self, ids: IdSize) -> usize {
        let sizes = self.fields.iter().map(|(_, kind)| kind.size(ids.bytes()));
        sizes.sum()
    }

    /// The places of those fields that are picked; whether each is the hash of a string.
    fn places(
        &self,
        ids: IdSize,
        pick: impl Fn(u64, BasicType) -> Option<bool>,
    ) -> Vec<FieldPlace> {
        let (mut places, mut offset) = (Vec::new(), 0);
        for (name, kind) in &self.fields {
            places.extend(pick(*name, *kind).map(|hash| FieldPlace {
                offset,
                kind: *kind,
                hash,
            }));
            offset += kind.size(ids.bytes());
        }
        places
    }
}

/// Redacts a dump, record by record.
pub struct Redactor {
    ids: IdSize,
    tokens: Option<Tokens>,
    numbers: bool,
    /// What instances hide.
    hidden: Places,
    /// Class names by class.
    classes: FxHashMap<u64, String>,
    keep: Vec<String>,
    /// Strings and arrays that stay readable.
    kept: FxHashSet<u64>,
    /// Ids of texts that are names.
    names: FxHashSet<u64>,
    /// New names.
    renamed: Option<Names>,
}

#[derive(Default)]
struct ClassPass {
    shapes: FxHashMap<u64, Shape>,
    names: FxHashSet<u64>,
}

impl HeapVisitor for ClassPass {
    fn class(&mut self, _: FileOffset, class: &ClassDump<'_>) {
        let shape = self.shapes.entry(class.id.0).or_default();
        shape.super_class = class.super_class.0;
        shape.fields = class.fields().map(|(n, k)| (n.0, k)).collect();
        self.names.extend(class.fields().map(|f| f.0.0));
        self.names.extend(class.statics().map(|s| s.0.0));
    }
    fn heap_info(&mut self, _: FileOffset, _: u32, name: ObjectId) {
        self.names.insert(name.0);
    }
}

/// What instances of certain classes, or certain instances, refer to.
struct ReferencePass<'a> {
    ids: IdSize,
    references: &'a Places,
    wanted: &'a dyn Fn(&Instance<'_>) -> bool,
    found: FxHashSet<u64>,
}

impl HeapVisitor for ReferencePass<'_> {
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        if !(self.wanted)(&i) {
            return;
        }
        for place in self.references.in_instance(i.class.0, i.fields.len()) {
            let end = place.offset + self.ids.bytes();
            if let Some(bytes) = i.fields.get(place.offset..end) {
                self.found.insert(hprof::read_id(bytes, self.ids).0);
            }
        }
    }
}

/// Walks all segments, and finds the same way over damage as [`hprof::rewrite`].
fn walk_all(data: &[u8], visitor: &mut impl HeapVisitor) -> Result<(), HeaderError> {
    let ids = hprof::Header::parse(data)?.id_size;
    let mut classes = FxHashSet::default();
    let map = map_file(data, |record| {
        if let Some(Record::LoadClass { class, .. }) = record.decode(ids) {
            classes.insert(class.0);
        }
    })?;
    let known = |id: u64| classes.is_empty() || classes.contains(&id);
    for s in &map.segments {
        walk_stretch(data, ids, s.into(), &known, visitor);
    }
    Ok(())
}

/// The texts of a dump and who uses them.
struct Texts<'a> {
    by_id: FxHashMap<u64, &'a [u8]>,
    /// Class and its name.
    loaded: Vec<(u64, u64)>,
    /// Class serial and class.
    serials: FxHashMap<u32, u64>,
    /// Class serial, method, signature, source.
    frames: Vec<(u32, [u64; 3])>,
}

impl<'a> Texts<'a> {
    fn read(data: &'a [u8]) -> Result<(Texts<'a>, IdSize), HeaderError> {
        let ids = hprof::Header::parse(data)?.id_size;
        let mut texts = Texts {
            by_id: FxHashMap::default(),
            loaded: Vec::new(),
            serials: FxHashMap::default(),
            frames: Vec::new(),
        };
        map_file(data, |record| match record.decode(ids) {
            Some(Record::Utf8 { id, bytes }) => {
                texts.by_id.insert(id.0, bytes);
            }
            Some(Record::LoadClass {
                serial,
                class,
                name,
                ..
            }) => {
                texts.loaded.push((class.0, name.0));
                texts.serials.insert(serial.0, class.0);
            }
            Some(Record::Frame(f)) => {
                let names = [f.method.0, f.signature.0, f.source.0];
                texts.frames.push((f.class.0, names));
            }
            _ => {}
        })?;
        Ok((texts, ids))
    }

    fn text(&self, id: u64) -> String {
        let bytes = self.by_id.get(&id).copied().unwrap_or_default();
        decode_modified_utf8(bytes).into_owned()
    }
}

fn fits(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|p| matches(p, name))
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
    /// Reads the classes and names of a dump.
    pub fn new(data: &[u8], options: &RedactOptions) -> Result<Redactor, HeaderError> {
        let (texts, ids) = Texts::read(data)?;
        let mut pass = ClassPass::default();
        walk_all(data, &mut pass)?;
        let mut names = pass.names;
        names.extend(texts.loaded.iter().map(|l| l.1));
        names.extend(texts.frames.iter().flat_map(|f| f.1));
        let marks = texts.by_id.iter();
        let marks = marks.filter(|(_, text)| **text == hprof::CONSERVATIVE_LOCALS.as_bytes());
        names.extend(marks.map(|(id, _)| id));
        let mut shapes = pass.shapes;
        let mut classes = FxHashMap::default();
        for (class, name) in &texts.loaded {
            let name = readable_class_name(&texts.text(*name));
            shapes.entry(*class).or_default().name.clone_from(&name);
            classes.insert(*class, name);
        }
        let mut redactor = Redactor {
            ids,
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

    fn hides(&self, class: &str, kind: BasicType) -> bool {
        match kind {
            BasicType::Char => !fits(&self.keep, class),
            BasicType::Object | BasicType::Boolean => false,
            _ => {
                self.numbers
                    && !fits(&self.keep, class)
                    && (!platform(class) || BOXES.contains(&class))
            }
        }
    }

    /// Among the fields that a class declares.
    fn secrets_of(&self, shape: &Shape, texts: &Texts<'_>) -> Vec<FieldPlace> {
        let is_string = shape.name == "java.lang.String";
        let is_hash = |name| is_string && texts.text(name) == "hash";
        shape.places(self.ids, |name, kind| {
            let hash = is_hash(name);
            (hash || self.hides(&shape.name, kind)).then_some(hash)
        })
    }

    /// Strings and arrays that the fields of kept classes refer to, and the arrays of the strings.
    fn kept_of(
        &self,
        data: &[u8],
        shapes: &FxHashMap<u64, Shape>,
    ) -> Result<FxHashSet<u64>, HeaderError> {
        let is_kept = |_, shape: &Shape| fits(&self.keep, &shape.name);
        let of_class = nearest(shapes, self.ids, is_kept);
        let is_reference = |_, kind| (kind == BasicType::Object).then_some(false);
        let of_shape = |shape: &Shape| shape.places(self.ids, is_reference);
        let references = &Places::new(shapes, self.ids, of_shape);
        let mut first = ReferencePass {
            ids: self.ids,
            references,
            wanted: &|i| of_class.contains_key(&i.class.0),
            found: FxHashSet::default(),
        };
        walk_all(data, &mut first)?;
        let held = first.found;
        let is_string = |class: u64| {
            shapes
                .get(&class)
                .is_some_and(|s| s.name == "java.lang.String")
        };
        let mut second = ReferencePass {
            ids: self.ids,
            references,
            wanted: &|i| is_string(i.class.0) && held.contains(&i.id.0),
            found: FxHashSet::default(),
        };
        walk_all(data, &mut second)?;
        let mut kept = second.found;
        kept.extend(held);
        Ok(kept)
    }

    /// Whether the elements of an array are replaced.
    pub(super) fn hides_array(&self, array: &PrimitiveArray<'_>) -> bool {
        !self.kept.contains(&array.id.0)
    }

    /// Whether a text of the file is a name that stays.
    pub(super) fn is_name(&self, id: ObjectId) -> bool {
        self.names.contains(&id.0)
    }

    fn replace(&self, kind: BasicType, content: &mut [u8]) {
        match &self.tokens {
            Some(tokens) => tokens.replace(kind, content),
            None => content.fill(0),
        }
    }

    fn instance(&self, i: &Instance<'_>, out: &mut Vec<u8>) -> Edit {
        let mut secrets = self
            .hidden
            .in_instance(i.class.0, i.fields.len())
            .peekable();
        if secrets.peek().is_none() {
            return Edit::Keep;
        }
        let kept = self.kept.contains(&i.id.0);
        let mut fields = i.fields.to_vec();
        for secret in secrets {
            let end = secret.offset + secret.kind.size(self.ids.bytes());
            let Some(bytes) = fields.get_mut(secret.offset..end) else {
                continue;
            };
            match secret.hash {
                true if kept => {}
                // The hash of a short text says what the text is.
                true => bytes.fill(0),
                false => self.replace(secret.kind, bytes),
            }
        }
        let record = SubRecord::Instance(Instance {
            fields: &fields,
            ..*i
        });
        encode_sub_record(&record, self.ids, out);
        Edit::Replace
    }

    /// Static fields, in place: the record keeps its length.
    fn class(&self, class: &ClassDump<'_>, out: &mut Vec<u8>) -> Edit {
        let none = String::new();
        let name = self.classes.get(&class.id.0).unwrap_or(&none);
        let hidden = |kind| self.hides(name, kind);
        let in_statics = class.statics().any(|(_, v)| hidden(v.kind));
        if !in_statics && !class.constants().any(|(_, v)| hidden(v.kind)) {
            return Edit::Keep;
        }
        let from = out.len();
        encode_sub_record(&SubRecord::Class(*class), self.ids, out);
        // Tag, six ids with a serial and a size between them, then the tables.
        let mut at = from + 1 + 7 * self.ids.bytes() + 8;
        at += 2;
        for (_, value) in class.constants() {
            at = self.value(out, at + 2, value.kind, hidden(value.kind));
        }
        at += 2;
        for (_, value) in class.statics() {
            at = self.value(out, at + self.ids.bytes(), value.kind, hidden(value.kind));
        }
        Edit::Replace
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
        if self.is_name(id) {
            return None;
        }
        Some(match &self.tokens {
            Some(tokens) => tokens.letters(bytes),
            None => vec![b'x'; bytes.len()],
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
            Some(_) => Edit::Keep,
            // The contents of an unknown record are not known.
            None => Edit::Drop,
        }
    }

    fn sub_record(&self, _: FileOffset, record: &SubRecord<'_>, out: &mut Vec<u8>) -> Edit {
        match record {
            SubRecord::PrimitiveArray(a) if !a.data.is_empty() && self.hides_array(a) => {
                encode_sub_record(record, self.ids, out);
                let data = out.len() - a.data.len();
                self.replace(a.element, &mut out[data..]);
                Edit::Replace
            }
            SubRecord::Instance(i) => self.instance(i, out),
            SubRecord::Class(c) => self.class(c, out),
            SubRecord::ObjectArray(ObjectArray { .. })
            | SubRecord::PrimitiveArray(_)
            | SubRecord::Root(_)
            | SubRecord::HeapInfo { .. } => Edit::Keep,
        }
    }
}
