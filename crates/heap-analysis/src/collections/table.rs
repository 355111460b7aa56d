//! Which classes are collections: the built-in table (`collections.toml`) and the user's own.

use crate::objects::fields::MAX_DEPTH;
use crate::sets::object_set::Place;
use heap_graph::{ClassIdx, Heap, Options, inherited};
use hprof::BasicType;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use thiserror::Error;

const TEXT: &str = include_str!("collections.toml");

static BUILT_IN: LazyLock<CollectionTable> = LazyLock::new(CollectionTable::built_in);

/// Why a table could not be used.
#[derive(Debug, Error)]
pub enum TableError {
    /// It is not TOML, or has unknown or missing keys.
    #[error("{}", crate::toml_error::one_line(.0))]
    Syntax(#[from] toml::de::Error),
    /// An entry contradicts itself.
    #[error("collection {class}: {fault}")]
    Entry {
        /// Its class.
        class: String,
        /// What is wrong.
        fault: &'static str,
    },
}

/// The kind of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectionKind {
    /// Elements by position.
    List,
    /// Elements without duplicates.
    Set,
    /// Keys and values.
    Map,
    /// Elements that are added and removed at the ends.
    Queue,
    /// Any other kind.
    Other,
}

/// An entry of the table; `collections.toml` explains its keys. `a|b` stands for the first of the two fields that the
/// class has.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionSpec {
    /// The class; one `*` stands for any characters.
    pub class: String,
    /// The kind of collection.
    pub kind: CollectionKind,
    /// The source of the number of elements.
    #[serde(default)]
    pub size: String,
    /// Objects whose `value` is added to the size.
    pub cells: Option<String>,
    /// The backing array.
    pub array: Option<String>,
    /// Array elements per element.
    #[serde(default = "one")]
    pub slots: u32,
    /// How full the array may be.
    #[serde(default = "full")]
    pub load: f64,
    /// The length is a power of two.
    #[serde(default)]
    pub pow2: bool,
    /// Elements of the array are chains.
    #[serde(default)]
    pub chained: bool,
    /// The wrapped collection.
    pub inner: Option<String>,
}

fn one() -> u32 {
    1
}

fn full() -> f64 {
    1.0
}

/// Entries of maps with weak keys.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeakEntrySpec {
    /// The class of the entry, a `java.lang.ref.Reference` whose referent is the key.
    pub class: String,
    /// The field with the value.
    pub value: String,
}

/// Classes that show the elements of another collection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapperSpec {
    /// The class.
    pub class: String,
    /// The field with the collection.
    pub inner: String,
    /// The kind of collection, if it differs from that of the wrapped one.
    pub kind: Option<CollectionKind>,
}

/// The whole table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionTable {
    /// Collections.
    #[serde(default, rename = "collection")]
    pub collections: Vec<CollectionSpec>,
    /// Weak entries.
    #[serde(default, rename = "weak_entry")]
    pub weak_entries: Vec<WeakEntrySpec>,
    /// Views of collections.
    #[serde(default, rename = "wrapper")]
    pub wrappers: Vec<WrapperSpec>,
    /// The user's file that it was extended by.
    #[serde(skip)]
    file: Option<PathBuf>,
    /// The first entry of each class that is named without `*`, and the entries with `*`.
    #[serde(skip)]
    named: FxHashMap<String, usize>,
    #[serde(skip)]
    patterns: Vec<usize>,
}

impl CollectionTable {
    /// The built-in table. A test reads its text.
    fn built_in() -> CollectionTable {
        CollectionTable::parse(TEXT).unwrap_or_else(|e| panic!("collections.toml: {e}"))
    }

    /// Reads a table.
    pub fn parse(text: &str) -> Result<CollectionTable, TableError> {
        let table: CollectionTable = toml::from_str(text)?;
        for spec in &table.collections {
            let fault = match (&spec.inner, spec.size.is_empty()) {
                (None, true) => "needs `size` or `inner`",
                (Some(_), false) => "has both `size` and `inner`",
                _ if spec.size.contains('#') && spec.array.is_none() => {
                    "counts an `array` it lacks"
                }
                _ if !(spec.load > 0.0 && spec.load <= 1.0) => {
                    "`load` is not above 0 and at most 1"
                }
                _ if spec.slots == 0 => "`slots` is 0",
                _ => continue,
            };
            return Err(TableError::Entry {
                class: spec.class.clone(),
                fault,
            });
        }
        Ok(table.sorted())
    }

    fn sorted(mut self) -> CollectionTable {
        (self.named, self.patterns) = Default::default();
        for (at, spec) in self.collections.iter().enumerate() {
            match spec.class.contains('*') {
                true => self.patterns.push(at),
                false => _ = self.named.entry(spec.class.clone()).or_insert(at),
            }
        }
        self
    }

    /// The built-in table extended by that of a user's file, whose entries take precedence.
    ///
    /// # Errors
    /// When the text is not a table.
    pub fn extended(file: &Path, text: &str) -> Result<CollectionTable, TableError> {
        let (mut all, mut built_in) = (CollectionTable::parse(text)?, CollectionTable::built_in());
        all.collections.append(&mut built_in.collections);
        all.weak_entries.append(&mut built_in.weak_entries);
        all.wrappers.append(&mut built_in.wrappers);
        all.file = Some(file.to_owned());
        Ok(all.sorted())
    }

    /// From now on the table of heaps that are opened with these options.
    pub fn attach(self, options: &mut Options) {
        options.attached = Some(Arc::new(self));
    }

    /// The table that was attached to options.
    pub fn attached(options: &Options) -> Option<&CollectionTable> {
        options.attached.as_deref()?.downcast_ref()
    }

    /// The table of a heap: the one that was attached to its options, or the built-in one.
    pub fn of(heap: &Heap) -> &CollectionTable {
        heap.attached().unwrap_or(&BUILT_IN)
    }

    /// The user's file in it.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The entry of a class.
    pub(crate) fn spec_of(&self, name: &str) -> Option<&CollectionSpec> {
        let patterns = self.patterns.iter().copied();
        let pattern = |at: &usize| fits(&self.collections[*at].class, name);
        let all = self.named.get(name).copied().into_iter();
        let first = all.chain(patterns.filter(pattern)).min()?;
        self.collections.get(first)
    }

    /// The field with the collection that a class shows or wraps, and the kind that the class has, if it differs.
    pub(crate) fn wrapped_by(&self, name: &str) -> Option<(&str, Option<CollectionKind>)> {
        let view = self.wrappers.iter().find(|w| w.class == name);
        let view = view.map(|w| (w.inner.as_str(), w.kind));
        view.or_else(|| {
            let spec = self.spec_of(name)?;
            Some((spec.inner.as_deref()?, Some(spec.kind)))
        })
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern.split_once('*').is_some_and(|(head, tail)| {
        name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
    })
}

/// The source of a collection's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Field(Place),
    /// The `value` of an object, such as an AtomicInteger.
    Counter(Place),
    Elements,
    Length,
}

/// An entry of the table, resolved for a class of the heap.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: CollectionKind,
    pub(crate) size: Option<Size>,
    pub(crate) cells: Option<Place>,
    pub(crate) array: Option<Place>,
    pub(crate) inner: Option<Place>,
    pub(crate) slots: u32,
    pub(crate) load: f64,
    pub(crate) pow2: bool,
    pub(crate) chained: bool,
}

impl Shape {
    /// Array elements that `size` elements need.
    pub(crate) fn needed(&self, size: u64) -> u64 {
        if size == 0 {
            return 0;
        }
        let mut slots = (size as f64 / self.load).ceil() as u64;
        if self.pow2 {
            slots = slots.checked_next_power_of_two().unwrap_or(slots);
        }
        slots.saturating_mul(u64::from(self.slots))
    }
}

/// For each class of the heap, its shape if it is a collection.
pub(crate) fn shapes(heap: &Heap) -> Vec<Option<Shape>> {
    let table = CollectionTable::of(heap);
    // Names are compared once per class: a chain of superclasses may be as long as there are classes.
    let nearest = inherited(heap.classes(), |class| {
        Some((class, table.spec_of(&heap.class(class).name)?))
    });
    let nearest = |class: ClassIdx| nearest[class.0 as usize];
    (0..heap.classes().len() as u32)
        .map(|class| {
            let above =
                |(class, _): &(ClassIdx, _)| heap.class(*class).super_class.and_then(nearest);
            let specs = std::iter::successors(nearest(ClassIdx(class)), above);
            shape(
                heap,
                ClassIdx(class),
                specs.take(MAX_DEPTH).map(|(_, spec)| spec),
            )
        })
        .collect()
}

/// The shape of a class by the nearest entry of its superclasses whose fields the class has: `Properties` had no `map`
/// before JDK 9 and is a `Hashtable` there.
fn shape<'a>(
    heap: &Heap,
    class: ClassIdx,
    mut specs: impl Iterator<Item = &'a CollectionSpec>,
) -> Option<Shape> {
    let mut slots = None;
    specs.find_map(|spec| {
        let slots = slots.get_or_insert_with(|| heap.slots(class));
        let place = |names: &str| {
            names
                .split('|')
                .find_map(|name| Place::of(heap, slots, name))
        };
        let inner = match &spec.inner {
            Some(name) => Some(place(name)?),
            None => None,
        };
        let size = if inner.is_some() {
            None
        } else {
            Some(spec.size.split('|').find_map(|word| match word {
                "#elements" => Some(Size::Elements),
                "#length" => Some(Size::Length),
                name => place(name).map(|place| match place.kind {
                    BasicType::Object => Size::Counter(place),
                    _ => Size::Field(place),
                }),
            })?)
        };
        let array = match &spec.array {
            Some(name) => Some(place(name)?),
            None => None,
        };
        Some(Shape {
            kind: spec.kind,
            size,
            cells: spec.cells.as_deref().and_then(place),
            array,
            inner,
            slots: spec.slots,
            load: spec.load,
            pow2: spec.pow2,
            chained: spec.chained,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_sound() {
        let table = CollectionTable::built_in();
        assert!(table.collections.len() > 40);
        assert!(table.spec_of("java.util.HashMap").is_some());
        let fast = table.spec_of("it.unimi.dsi.fastutil.ints.IntArrayList");
        assert_eq!(fast.map(|s| s.kind), Some(CollectionKind::List));
        assert!(table.spec_of("java.util.HashMap$Node").is_none());
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        for (text, fault) in [
            ("class='a'\nkind='list'", "needs `size` or `inner`"),
            ("class='a'\nkind='list'\nsize='n'\ninner='m'", "has both"),
            ("class='a'\nkind='list'\nsize='#length'", "lacks"),
            ("class='a'\nkind='list'\nsize='n'\nload=2.0", "`load`"),
            ("class='a'\nkind='list'\nsize='n'\nslots=0", "`slots`"),
            ("class='a'\nkind='shoe'\nsize='n'", "shoe"),
            ("class='a'\nkind='list'\nsize='n'\ncolour='red'", "colour"),
        ] {
            let error = CollectionTable::parse(&format!("[[collection]]\n{text}\n"))
                .expect_err(text)
                .to_string();
            assert!(error.contains(fault), "{text}: {error}");
        }
    }

    #[test]
    fn a_users_entry_comes_first() {
        let own = "[[collection]]\nclass='java.util.HashMap'\nkind='other'\nsize='size'\n\
             [[collection]]\nclass='java.util.*List'\nkind='queue'\nsize='size'\n\
             [[collection]]\nclass='java.util.LinkedList'\nkind='set'\nsize='size'\n";
        let table = CollectionTable::extended(Path::new("own.toml"), own).expect("a sound table");
        for (class, kind) in [
            ("java.util.HashMap", CollectionKind::Other),
            ("java.util.LinkedList", CollectionKind::Queue),
            ("java.util.TreeMap", CollectionKind::Map),
        ] {
            assert_eq!(table.spec_of(class).map(|s| s.kind), Some(kind), "{class}");
        }
    }
}
