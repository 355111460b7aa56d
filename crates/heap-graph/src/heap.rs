//! An opened heap, and all queries that the index answers.

use crate::build::classes::reference_kind;
use crate::build::roots::is_local;
use crate::idmap::{Block, Directory, IdMap, NO_NUMBER, select};
use crate::index::{Detail, Identity, IndexFile, IndexPlace, Meta, Tag, VERSION, make_requested};
use crate::packed::{Column, Packed, width_for};
use crate::sections::{self, Sections};
use crate::{
    ClassIdx, ClassInfo, Control, FrameInfo, GroupSums, HeapError, ObjIdx, ObjectKind, Options,
    RefStrength, RootInfo, Summary, ThreadInfo, inherited,
};
use hprof::source::{Changed, Source, split_number};
use hprof::{Bytes, HeapTag, IdSize, ObjectId, Serial, SubRecord, read_sub_record};
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Who dominates an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dominator {
    /// The virtual root: several roots, or a root itself.
    Root,
    /// This object.
    Object(ObjIdx),
    /// The object is not reachable.
    Unreachable,
}

/// One snapshot of a dump, opened.
pub struct Heap {
    pub(crate) index: Sections,
    meta: Meta,
    detail: OnceLock<Detail>,
    groups: OnceLock<GroupSums>,
    directory: OnceLock<Directory>,
    source: OnceLock<Source>,
    pub(crate) inbound: OnceLock<IndexFile>,
    /// Class numbers by id, for the pass that finds referrers.
    pub(crate) class_numbers: OnceLock<rustc_hash::FxHashMap<u64, ClassIdx>>,
    pub(crate) path: PathBuf,
    /// The dump that was opened, which can have lost its name to another one since; `None` for what is no regular file.
    pub(crate) identity: Option<Identity>,
    pub(crate) options: Options,
    from_index: bool,
    /// The strength of the referents of each class. Cached, because a chain of superclasses may be as long as the
    /// number of classes.
    strengths: OnceLock<Vec<Option<RefStrength>>>,
}

/// The strength of the referents of every class.
fn strengths(classes: &[ClassInfo]) -> Vec<Option<RefStrength>> {
    inherited(classes, |class| {
        reference_kind(&classes[class.0 as usize].name)
    })
}

impl std::fmt::Debug for Heap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heap")
            .field("path", &self.path)
            .field("objects", &self.meta.objects)
            .finish()
    }
}

/// `heap.hprof#2` names the second dump of a file, unless a file of that name exists.
pub(crate) fn split_snapshot(path: &Path, options: &Options) -> (PathBuf, Options) {
    let (file, number) = split_number(path);
    let mut options = options.clone();
    options.snapshot = number.unwrap_or(options.snapshot);
    (file.to_owned(), options)
}

/// The objects of every class; see [`Heap::objects_by_class`].
#[derive(Debug)]
pub struct ObjectsByClass {
    /// The index of the first object of each class, and after the last class the end.
    starts: Vec<u64>,
    objects: Vec<ObjIdx>,
}

impl ObjectsByClass {
    /// The objects of exactly this class, in their order.
    pub fn of(&self, class: ClassIdx) -> &[ObjIdx] {
        let class = class.0 as usize;
        let (Some(from), Some(to)) = (self.starts.get(class), self.starts.get(class + 1)) else {
            return &[];
        };
        self.objects
            .get(*from as usize..*to as usize)
            .unwrap_or(&[])
    }
}

impl Heap {
    /// Opens a dump: from its index if there is a valid one, otherwise by reading the dump. `FILE#2` selects a
    /// snapshot, `-` is standard input.
    pub fn open(path: &Path, options: &Options, control: &Control<'_>) -> Result<Heap, HeapError> {
        let (path, options) = split_snapshot(path, options);
        let place = IndexPlace::of(&path, &options);
        let identity = sections::identity(&path, &options);
        if let Some(identity) = identity
            && let Some(file) = place.find(identity)
            && let Some(meta) = file.verified(Tag::Meta).and_then(decode::<Meta>)
        {
            let index = Sections::new(file, Some(identity), &path, &options);
            let mut heap = Heap::from_parts(index, meta, path, Some(identity), options);
            heap.from_index = true;
            return Ok(heap);
        }
        make_requested(&options)?;
        let (file, source) = sections::build(&path, identity, &options, control)?;
        let meta = decode::<Meta>(file.bytes(Tag::Meta)).ok_or_else(|| HeapError::Io {
            what: "index".to_owned(),
            error: std::io::Error::other("what was just written cannot be read back"),
        })?;
        let index = Sections::new(file, identity, &path, &options);
        let heap = Heap::from_parts(index, meta, path, identity, options);
        // A new cell is empty, so this cannot fail.
        let _ = heap.source.set(source);
        Ok(heap)
    }

    fn from_parts(
        index: Sections,
        meta: Meta,
        path: PathBuf,
        identity: Option<Identity>,
        options: Options,
    ) -> Heap {
        Heap {
            index,
            meta,
            detail: OnceLock::new(),
            groups: OnceLock::new(),
            directory: OnceLock::new(),
            source: OnceLock::new(),
            inbound: OnceLock::new(),
            class_numbers: OnceLock::new(),
            path,
            identity,
            options,
            from_index: false,
            strengths: OnceLock::new(),
        }
    }

    /// True when a valid index was found and nothing had to be read.
    pub fn was_indexed(&self) -> bool {
        self.from_index
    }

    /// What [`Options::attached`] has, if it is of this type.
    pub fn attached<T: Any>(&self) -> Option<&T> {
        self.options.attached.as_deref()?.downcast_ref()
    }

    /// The path of a file beside the index for results computed from it, and a text that identifies the dump, the
    /// options and the format of the index. `None` if the index is not on disk, if another dump has the name by now, or
    /// if results also depend on what is attached.
    pub fn beside_index(&self, what: &str) -> Option<(PathBuf, String)> {
        let is_alone = self.options.attached.is_none() && self.is_in_place();
        let Identity(parts) = self.identity.filter(|_| is_alone)?;
        let index = IndexPlace::of(&self.path, &self.options).first()?;
        let parts = parts.map(|part| format!("{part:x}")).join(" ");
        Some((index.with_extension(what), format!("{VERSION} {parts}")))
    }

    /// Whether the file of this name is still the dump that was opened. If not, the folder of the index is that of
    /// another dump.
    pub(crate) fn is_in_place(&self) -> bool {
        sections::identity(&self.path, &self.options) == self.identity
    }

    /// How many threads may work on this heap at the same time.
    pub fn thread_count(&self) -> usize {
        self.options.thread_count()
    }

    /// The dump. One with an index is opened, and if it is packed unpacked, when it is first read.
    pub(crate) fn source(&self) -> Result<&Source, HeapError> {
        self.source_under(&Control::quiet())
    }

    /// As [`source`](Self::source), for work that can be cancelled.
    pub(crate) fn source_under(&self, control: &Control<'_>) -> Result<&Source, HeapError> {
        if let Some(source) = self.source.get() {
            return Ok(source);
        }
        let source = sections::open(&self.path, self.identity, &self.options, control)?;
        Ok(self.source.get_or_init(|| source))
    }

    /// Checks that the results so far are valid; call it before a result is returned.
    ///
    /// # Errors
    /// If the dump or its index was shortened or changed after it was opened.
    pub fn check(&self) -> Result<(), HeapError> {
        let inbound = self.inbound.get().map(|file| file.health().check());
        let source = self.source.get().map(Source::check);
        let all = [Some(self.index.check()), inbound, source];
        let why = all.into_iter().flatten().find_map(Result::err);
        why.map_or(Ok(()), |why| Err(self.changed(why)))
    }

    pub(crate) fn changed(&self, why: Changed) -> HeapError {
        HeapError::Changed {
            path: self.path.display().to_string(),
            why,
        }
    }

    pub(crate) fn detail(&self) -> &Detail {
        self.detail
            .get_or_init(|| decode(self.index.bytes(Tag::Detail)).unwrap_or_default())
    }

    /// Retained sizes of packages, loaders, sites and classes with their subclasses.
    pub fn group_sums(&self) -> &GroupSums {
        self.groups
            .get_or_init(|| decode(self.index.bytes(Tag::Groups)).unwrap_or_default())
    }

    fn blocks(&self) -> &[Block] {
        self.index.array(Tag::IdBlocks)
    }

    pub(crate) fn ids(&self) -> IdMap<'_> {
        let numbers = self.index.array(Tag::IdNumbers);
        let directory = self.directory.get_or_init(|| Directory::new(numbers));
        IdMap::new(
            self.meta.id_shift,
            self.meta.objects,
            self.blocks(),
            numbers,
            directory,
        )
    }

    /// Facts about the dump as a whole.
    pub fn summary(&self) -> &Summary {
        &self.meta.summary
    }

    /// Width of ids in the file.
    pub fn id_size(&self) -> IdSize {
        if self.meta.summary.id_size == 4 {
            IdSize::Four
        } else {
            IdSize::Eight
        }
    }

    /// All classes, by id; classes without a class record come last: those that only objects refer to, and primitive
    /// arrays.
    pub fn classes(&self) -> &[ClassInfo] {
        &self.meta.classes
    }

    pub(crate) fn classes_mut(&mut self) -> &mut [ClassInfo] {
        // Packages are by name.
        self.group_sums();
        if let Some(groups) = self.groups.get_mut() {
            groups.packages.clear();
        }
        &mut self.meta.classes
    }

    pub(crate) fn frames_mut(&mut self) -> &mut [FrameInfo] {
        self.detail.get_mut().map_or(&mut [], |d| &mut d.frames)
    }

    /// One class.
    ///
    /// # Panics
    /// If the number is not one of this heap.
    pub fn class(&self, class: ClassIdx) -> &ClassInfo {
        &self.meta.classes[class.0 as usize]
    }

    /// The class that an object is, when it is a class object.
    pub fn class_by_object(&self, object: ObjIdx) -> Option<ClassIdx> {
        let list = &self.meta.class_objects;
        list.binary_search_by_key(&object.0, |c| c.0)
            .ok()
            .map(|i| ClassIdx(list[i].1))
    }

    /// The class object of a class, if it is in the dump.
    pub fn class_object(&self, class: ClassIdx) -> Option<ObjIdx> {
        let info = self.class(class);
        if info.dumped {
            self.find(info.id)
        } else {
            None
        }
    }

    /// `java.lang.Class`.
    pub fn class_class(&self) -> ClassIdx {
        ClassIdx(self.meta.class_class)
    }

    /// All objects of the dump, reachable or not.
    pub fn len(&self) -> u64 {
        self.meta.objects
    }

    /// True for a dump without objects.
    pub fn is_empty(&self) -> bool {
        self.meta.objects == 0
    }

    /// The object of an id.
    pub fn find(&self, id: ObjectId) -> Option<ObjIdx> {
        self.ids().find(id)
    }

    /// The objects of many ids, faster than [`find`](Self::find) for each. `out` gets one entry for each id.
    pub fn find_all(&self, ids: impl Iterator<Item = ObjectId>, out: &mut Vec<Option<ObjIdx>>) {
        const AT_ONCE: usize = 128;
        let map = self.ids();
        let mut spots = [NO_NUMBER; AT_ONCE];
        let mut ids = ids.peekable();
        while ids.peek().is_some() {
            let mut count = 0;
            for (spot, id) in spots.iter_mut().zip(ids.by_ref()) {
                *spot = match id.is_null() {
                    true => NO_NUMBER,
                    false => map.spot(id.0),
                };
                count += 1;
            }
            map.ranks(&mut spots[..count]);
            let found = spots[..count].iter();
            out.extend(found.map(|number| (*number != NO_NUMBER).then_some(ObjIdx(*number))));
        }
    }

    /// The id of an object; null if there is no such number.
    pub fn id(&self, object: ObjIdx) -> ObjectId {
        if object.0 >= self.meta.objects {
            return ObjectId::NULL;
        }
        ObjectId(select(
            self.meta.id_shift,
            self.blocks(),
            self.index.array(Tag::IdNumbers),
            object.0,
        ))
    }

    /// All objects with their ids, in the order of ids; faster than a call for each.
    pub fn all_ids(&self) -> impl Iterator<Item = (ObjIdx, ObjectId)> + '_ {
        let ids = self.ids_from(ObjIdx(0));
        (0..).map(ObjIdx).zip(ids)
    }

    /// The ids of the objects from `first` on, in the order of numbers.
    pub(crate) fn ids_from(&self, first: ObjIdx) -> impl Iterator<Item = ObjectId> + '_ {
        let (blocks, numbers) = (self.blocks(), self.index.array(Tag::IdNumbers));
        crate::idmap::iter_from(self.meta.id_shift, blocks, numbers, first.0).map(ObjectId)
    }

    fn packed(&self, tag: Tag, width: u32) -> Packed<'_> {
        Packed::new(self.index.bytes(tag), width, self.meta.objects)
    }

    /// What an object is.
    pub fn kind(&self, object: ObjIdx) -> ObjectKind {
        let class = self.class_of(object);
        if class.0 == self.meta.class_class && self.class_by_object(object).is_some() {
            return ObjectKind::Class;
        }
        let info = self.class(class);
        if info.element.is_some() {
            ObjectKind::PrimitiveArray
        } else if info.name.ends_with("[]") {
            ObjectKind::ObjectArray
        } else {
            ObjectKind::Instance
        }
    }

    /// The class of an object; `java.lang.Class` for class objects.
    pub fn class_of(&self, object: ObjIdx) -> ClassIdx {
        let width = width_for(self.meta.classes.len() as u64);
        let class = self.packed(Tag::Classes, width).get(object.0) as u32;
        ClassIdx(class.min(self.meta.classes.len().saturating_sub(1) as u32))
    }

    /// Shallow size.
    pub fn shallow(&self, object: ObjIdx) -> Bytes {
        Bytes(self.index.value(Tag::Shallow, object.0) * self.unit())
    }

    /// Retained size; 0 when unreachable.
    pub fn retained(&self, object: ObjIdx) -> Bytes {
        if !self.is_reachable(object) {
            return Bytes(0);
        }
        Bytes(self.shallow(object).0 + self.index.value(Tag::Retained, object.0) * self.unit())
    }

    pub(crate) fn unit(&self) -> u64 {
        u64::from(self.meta.summary.layout.alignment.max(1))
    }

    /// True if a root reaches the object.
    pub fn is_reachable(&self, object: ObjIdx) -> bool {
        self.dominator(object) != Dominator::Unreachable
    }

    /// The immediate dominator.
    pub fn dominator(&self, object: ObjIdx) -> Dominator {
        let count = self.meta.objects;
        let dominators = self.packed(Tag::Dominators, width_for(count + 1));
        if object.0 >= dominators.len() {
            return Dominator::Unreachable;
        }
        match dominators.get(object.0) {
            n if n < count => Dominator::Object(ObjIdx(n)),
            n if n == count => Dominator::Root,
            _ => Dominator::Unreachable,
        }
    }

    /// The objects that an object immediately dominates, by id; for `None`, the virtual root, the
    /// largest first.
    pub fn dominated(&self, parent: Option<ObjIdx>) -> impl Iterator<Item = ObjIdx> + '_ {
        let width = width_for(self.meta.objects);
        let (bytes, from, len) = match parent {
            None => {
                let section = self.index.bytes(Tag::TopLevel);
                let len = self.dominated_count(None);
                (section.get(8..).unwrap_or_default(), 0, len)
            }
            Some(parent) => {
                let len = self.dominated_count(Some(parent));
                // Most objects dominate none.
                let from = if len == 0 {
                    0
                } else {
                    self.dominated_from(parent)
                };
                (self.index.bytes(Tag::Dominated), from, len)
            }
        };
        let list = Packed::new(bytes, width, from + len);
        (from..from + len).map(move |at| ObjIdx(list.get(at)))
    }

    /// Where the list of the objects that an object dominates begins.
    fn dominated_from(&self, parent: ObjIdx) -> u64 {
        let counts = Column::new(self.index.bytes(Tag::DominatedCounts));
        let count = |at: u64| counts.map_or(0, |counts| counts.get(at));
        let block = parent.0 / 64;
        let before: u64 = (block * 64..parent.0).map(count).sum();
        let starts = self.index.array::<u64>(Tag::DominatedStarts);
        starts.get(block as usize).copied().unwrap_or(0) + before
    }

    /// The object at an index in the list of objects that the virtual root dominates, the largest first: like
    /// [`dominated(None)`](Self::dominated), without reading the list up to it.
    pub fn top_level(&self, at: u64) -> Option<ObjIdx> {
        let section = self.index.bytes(Tag::TopLevel);
        let list = Packed::new(
            section.get(8..).unwrap_or_default(),
            width_for(self.meta.objects),
            u64::MAX,
        );
        (at < self.dominated_count(None)).then(|| ObjIdx(list.get(at)))
    }

    /// How many objects an object immediately dominates.
    pub fn dominated_count(&self, parent: Option<ObjIdx>) -> u64 {
        match parent {
            None => {
                let section = self.index.bytes(Tag::TopLevel);
                section
                    .first_chunk::<8>()
                    .map_or(0, |n| u64::from_le_bytes(*n))
            }
            Some(parent) => self.index.value(Tag::DominatedCounts, parent.0),
        }
    }

    /// All root records whose object is in the dump.
    pub fn roots(&self) -> &[RootInfo] {
        &self.detail().roots
    }

    /// The root records of one object.
    pub fn roots_of(&self, object: ObjIdx) -> impl Iterator<Item = &RootInfo> {
        self.roots().iter().filter(move |r| r.object == object)
    }

    /// True for a root record that is a reference of its thread instead of a root: a local variable of a thread that is
    /// in the dump. Never in the plain model.
    pub fn is_held_by_thread(&self, root: &RootInfo) -> bool {
        let threads = self.threads();
        let at = threads.partition_point(|t| !t.unrooted && t.serial < root.thread);
        let holder = threads
            .get(at)
            .filter(|t| !t.unrooted && t.serial == root.thread);
        self.summary().layout.model != crate::LayoutModel::Plain
            && is_local(root.kind)
            && holder.is_some_and(|t| t.object.is_some_and(|o| o != root.object))
    }

    /// Threads, by serial; virtual threads without a root come last.
    pub fn threads(&self) -> &[ThreadInfo] {
        &self.detail().threads
    }

    /// The frames of a trace, innermost first; empty if the dump has no such trace.
    pub fn trace(&self, serial: Serial) -> Vec<&FrameInfo> {
        let detail = self.detail();
        let Ok(at) = detail.traces.binary_search_by_key(&serial.0, |t| t.0) else {
            return Vec::new();
        };
        detail.traces[at]
            .1
            .iter()
            .filter_map(|f| detail.frames.get(*f as usize))
            .collect()
    }

    /// What the stack of a thread holds: thread, object, kind and frame.
    pub(crate) fn locals_of(&self, thread: ObjIdx) -> &[(u64, u64, HeapTag, u32)] {
        let all = &self.detail().thread_locals;
        let from = all.partition_point(|l| l.0 < thread.0);
        let to = all.partition_point(|l| l.0 <= thread.0);
        &all[from..to]
    }

    /// Trace serial of the allocation, 0 if the dump has none.
    pub fn allocation_trace(&self, object: ObjIdx) -> Serial {
        match self.meta.one_trace {
            Some(trace) => Serial(trace),
            None => Serial(self.index.value(Tag::Traces, object.0) as u32),
        }
    }

    /// The trace serial of all objects if they have the same; the dump then has no allocation sites.
    pub fn one_trace(&self) -> Option<Serial> {
        self.meta.one_trace.map(Serial)
    }

    /// The Android heap an object is in.
    pub fn heap_name(&self, object: ObjIdx) -> Option<&str> {
        let detail = self.detail();
        if detail.heap_switches.is_empty() {
            return None;
        }
        // All objects of an anchor are in one heap.
        let at = self.anchor(object);
        let switch = detail
            .heap_switches
            .partition_point(|s| s.0 <= at)
            .checked_sub(1)?;
        let heap = detail.heap_switches[switch].1;
        detail
            .heap_names
            .iter()
            .find(|n| n.0 == heap)
            .map(|n| n.1.as_str())
    }

    /// The file offset of the anchor of an object, from which records are counted.
    fn anchor(&self, object: ObjIdx) -> u64 {
        let objects = self.index.array::<u64>(Tag::AnchorObjects);
        let offsets = self.index.array::<u64>(Tag::AnchorOffsets);
        let anchor = objects.partition_point(|o| *o <= object.0).checked_sub(1);
        anchor.and_then(|a| offsets.get(a)).copied().unwrap_or(0)
    }

    /// All objects of exactly this class.
    pub fn objects_of(&self, class: ClassIdx) -> impl Iterator<Item = ObjIdx> + '_ {
        let width = width_for(self.meta.classes.len() as u64);
        let classes = self.packed(Tag::Classes, width);
        (0..self.meta.objects)
            .filter(move |o| classes.get(*o) == u64::from(class.0))
            .map(ObjIdx)
    }

    /// The objects of every class in one walk over the objects. Takes 8 bytes of memory for each object.
    pub fn objects_by_class(&self) -> ObjectsByClass {
        let width = width_for(self.meta.classes.len() as u64);
        let classes = self.packed(Tag::Classes, width);
        let mut ends = vec![0u64; self.meta.classes.len() + 1];
        let count = self.meta.objects;
        for object in 0..count {
            if let Some(end) = ends.get_mut(classes.get(object) as usize + 1) {
                *end += 1;
            }
        }
        for class in 1..ends.len() {
            ends[class] += ends[class - 1];
        }
        let starts = ends.clone();
        let mut objects = vec![ObjIdx(0); starts.last().map_or(0, |end| *end as usize)];
        for object in 0..count {
            if let Some(next) = ends.get_mut(classes.get(object) as usize)
                && let Some(place) = objects.get_mut(*next as usize)
            {
                *place = ObjIdx(object);
                *next += 1;
            }
        }
        ObjectsByClass { starts, objects }
    }

    /// The strength of the referents of a class, if it is a `java.lang.ref.Reference`.
    pub fn reference_strength(&self, class: ClassIdx) -> Option<RefStrength> {
        let strengths = self.strengths.get_or_init(|| strengths(self.classes()));
        strengths.get(class.0 as usize).copied().flatten()
    }

    /// Offset of an object's record in the decoded dump.
    pub fn position(&self, object: ObjIdx) -> Result<u64, HeapError> {
        let data = self.source()?.bytes();
        let id = self.id(object);
        let mut at = self.anchor(object);
        // Fewer than 64 objects, and no other records, are between an anchor and the object.
        for _ in 0..64 {
            let read = read_sub_record(data, self.id_size(), at, u64::MAX);
            let Ok((record, next)) = read else {
                break;
            };
            let found = match record {
                SubRecord::Instance(i) => i.id,
                SubRecord::ObjectArray(a) => a.id,
                SubRecord::PrimitiveArray(a) => a.id,
                SubRecord::Class(c) => c.id,
                _ => ObjectId::NULL,
            };
            if found == id {
                return Ok(at);
            }
            at = next;
        }
        self.check()?;
        Err(HeapError::Object { id, offset: at })
    }

    /// The record of an object.
    pub(crate) fn record(&self, object: ObjIdx) -> Result<SubRecord<'_>, HeapError> {
        let at = self.position(object)?;
        let source = self.source()?;
        let read = read_sub_record(source.bytes(), self.id_size(), at, u64::MAX);
        if source.has_failed() {
            return Err(self.changed(Changed::Unreadable));
        }
        let lost = |s: hprof::Stop| HeapError::Object {
            id: self.id(object),
            offset: s.at,
        };
        Ok(read.map_err(lost)?.0)
    }
}

/// Decodes the postcard value of a section.
fn decode<T: serde::de::DeserializeOwned>(section: &[u8]) -> Option<T> {
    postcard::from_bytes(section).ok()
}
