//! The classes of a VM, from the VM's own lists.

use crate::damage::Damage;
use crate::fault::Fault;
use crate::fields::{self, Field, Fields};
use crate::memory::Address;
use crate::symbols::Symbols;
use crate::vm::Vm;
use hprof::BasicType;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most class loaders of a VM.
const MOST_LOADERS: usize = 1 << 22;
/// The most classes of a VM.
const MOST_CLASSES: usize = 1 << 23;
/// The longest chain of superclasses that is read.
const DEEPEST: usize = 1 << 10;
/// The most fields per object.
const MOST_FIELDS: usize = 1 << 17;

/// The layout of objects of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All of them have this size in bytes.
    Instance(u64),
    /// Class objects. Each has its own size, because it contains the static fields.
    Mirror(u64),
    /// Stack chunks of virtual threads, after the fields, which have this size.
    StackChunk(u64),
    /// Arrays of references, whose elements begin after this many bytes.
    References(u64),
    /// Arrays of a primitive type, likewise.
    Primitives(u64, BasicType),
}

/// A field of an object with its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: u32,
    pub(crate) kind: BasicType,
}

/// A class.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) klass: Address,
    /// The class object, which is the id of the class; 0 if there is none (yet).
    pub(crate) mirror: Address,
    /// The symbol of its name.
    pub(crate) name: Address,
    pub(crate) shape: Shape,
    /// The `Klass` of the superclass, 0 for none.
    superclass: Address,
    /// For arrays of references, the `Klass` of the elements of the innermost dimension.
    bottom: Address,
    pub(crate) loader: Address,
    /// Its own fields.
    pub(crate) fields: Vec<Field>,
    /// The fields of its objects in the order of a dump: its own, then those of the superclass.
    pub(crate) slots: Vec<Slot>,
    /// Bytes of these fields in a dump.
    pub(crate) slots_size: u32,
    /// Whether it is completely loaded; other classes are not in a dump.
    pub(crate) is_loaded: bool,
}

impl Class {
    /// Whether it is in a dump: a class without a class object has no id.
    pub(crate) fn is_in_dump(&self) -> bool {
        self.is_loaded && self.mirror != 0
    }
}

/// All classes.
pub(crate) struct Classes {
    pub(crate) all: Vec<Class>,
    by_klass: FxHashMap<Address, u32>,
    mirrors: FxHashSet<Address>,
    /// Offsets of the VM's own fields in class objects.
    pub(crate) injected: Option<Injected>,
    /// Offset of the size of a stack chunk.
    pub(crate) chunk_size: Option<u32>,
    /// Offset of the position in a stack chunk from which on its words are in use.
    pub(crate) chunk_pointer: Option<u32>,
}

/// Offsets of the VM's own fields in class objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Injected {
    pub(crate) domain: Option<u32>,
    pub(crate) init_lock: Option<u32>,
    pub(crate) signers: Option<u32>,
}

impl Classes {
    /// Reads all classes.
    pub(crate) fn read(
        vm: &Vm<'_>,
        symbols: &mut Symbols,
        damage: &mut Damage,
    ) -> Result<Classes, Fault> {
        let mut classes = Classes {
            all: Vec::new(),
            by_klass: FxHashMap::default(),
            mirrors: FxHashSet::default(),
            injected: None,
            chunk_size: None,
            chunk_pointer: None,
        };
        for klass in list(vm, damage)? {
            match classes.class(vm, symbols, klass) {
                Some(mut class) => {
                    classes.by_klass.insert(klass, classes.all.len() as u32);
                    if class.is_in_dump() && !classes.mirrors.insert(class.mirror) {
                        damage.count("two classes have one class object", class.mirror);
                        class.mirror = 0;
                    }
                    classes.all.push(class);
                }
                None => damage.count("a class could not be read", klass),
            }
        }
        if classes.all.is_empty() {
            let what = "the list of classes";
            return Err(Fault::Senseless { what });
        }
        for i in 0..classes.all.len() {
            let slots = classes.slots(i);
            let class = &mut classes.all[i];
            match slots {
                Some(slots) => {
                    class.slots_size = slots.iter().map(|s| s.kind.size(8) as u32).sum();
                    class.slots = slots;
                }
                None => damage.count("the superclasses of a class could not be read", class.klass),
            }
        }
        Ok(classes)
    }

    /// The class of this `Klass`.
    pub(crate) fn get(&self, klass: Address) -> Option<u32> {
        self.by_klass.get(&klass).copied()
    }

    /// Whether an object is the class object of one of these classes.
    pub(crate) fn is_mirror(&self, object: Address) -> bool {
        self.mirrors.contains(&object)
    }

    /// `java.lang.Object`, the first of the boot loader's classes without a superclass. The VM keeps earlier versions
    /// of a class that an agent has changed; they are in no dump.
    pub(crate) fn object(&self) -> Option<&Class> {
        let is_root =
            |class: &&Class| class.superclass == 0 && class.loader == 0 && class.is_in_dump();
        let mut roots = self.all.iter().filter(is_root);
        roots.find(|class| matches!(class.shape, Shape::Instance(_)))
    }

    /// The superclass of a class.
    pub(crate) fn superclass(&self, class: &Class) -> Option<&Class> {
        Some(&self.all[self.get(class.superclass)? as usize])
    }

    /// The class of the elements of an array of references, of the innermost dimension.
    pub(crate) fn bottom(&self, class: &Class) -> Option<&Class> {
        Some(&self.all[self.get(class.bottom)? as usize])
    }

    fn class(&mut self, vm: &Vm<'_>, symbols: &mut Symbols, klass: Address) -> Option<Class> {
        let shape = shape(vm, klass)?;
        let at = |field: &str| Some(klass.wrapping_add(vm.tables.find(field)?));
        let name = vm.memory.pointer_unaligned(at("Klass._name")?)?;
        let text = symbols.text(vm, name)?.to_vec();
        let mirror = vm.reference_of(klass, "Klass._java_mirror")?;
        let data = [
            "Klass._class_loader_data",
            "InstanceKlass._class_loader_data",
        ];
        let data = data.iter().find_map(|field| at(field));
        let data = data.and_then(|at| vm.memory.pointer(at));
        let loader = data.and_then(|data| vm.reference_of(data, "ClassLoaderData._class_loader"));
        let mut class = Class {
            klass,
            mirror,
            name,
            shape,
            superclass: vm.memory.u64(at("Klass._super")?)?,
            bottom: 0,
            loader: loader.unwrap_or(0),
            fields: Vec::new(),
            slots: Vec::new(),
            slots_size: 0,
            is_loaded: true,
        };
        match shape {
            Shape::References(_) => {
                class.bottom = vm.memory.u64(at("ObjArrayKlass._bottom_klass")?)?;
            }
            Shape::Primitives(..) => {}
            Shape::Instance(size) | Shape::Mirror(size) | Shape::StackChunk(size) => {
                let state = vm.memory.u8(at("InstanceKlass._init_state")?)?;
                let loaded = vm.tables.constant("InstanceKlass::loaded").unwrap_or(1);
                class.is_loaded = i64::from(state) >= loaded;
                if !class.is_loaded {
                    return Some(class);
                }
                let found = fields::read(vm, symbols, klass)?;
                if class.loader == 0 && text == b"java/lang/Class" {
                    class.shape = Shape::Mirror(size);
                    self.injected = injected(vm, symbols, &found);
                }
                if class.loader == 0 && text == b"jdk/internal/vm/StackChunk" {
                    class.shape = Shape::StackChunk(size);
                    self.chunk_size = offset_of(vm, symbols, &found.declared, b"size");
                    self.chunk_pointer = offset_of(vm, symbols, &found.declared, b"sp");
                }
                class.fields = found.declared;
            }
        }
        Some(class)
    }

    /// The fields of a class's objects.
    fn slots(&self, class: usize) -> Option<Vec<Slot>> {
        let mut slots = Vec::new();
        let mut class = &self.all[class];
        let size = match class.shape {
            Shape::Instance(size) | Shape::StackChunk(size) | Shape::Mirror(size) => size,
            _ => return Some(slots),
        };
        for _ in 0..DEEPEST {
            for field in class.fields.iter().filter(|field| !field.is_static) {
                // A field that is outside of the object is invalid.
                let end = u64::from(field.offset) + size_in_memory(field.kind);
                (end <= size && slots.len() < MOST_FIELDS).then_some(())?;
                slots.push(Slot {
                    offset: field.offset,
                    kind: field.kind,
                });
            }
            if class.superclass == 0 {
                return Some(slots);
            }
            class = self.superclass(class)?;
        }
        None
    }
}

/// The offset of the field with this name.
fn offset_of(vm: &Vm<'_>, symbols: &mut Symbols, fields: &[Field], name: &[u8]) -> Option<u32> {
    let mut named = fields
        .iter()
        .filter(|field| symbols.text(vm, field.name) == Some(name));
    named.next().map(|field| field.offset)
}

/// The smallest size of a value in an object.
fn size_in_memory(kind: BasicType) -> u64 {
    kind.size(4) as u64
}

/// The layout of a class's objects, from the number that the VM itself uses for it.
pub(crate) fn shape(vm: &Vm<'_>, klass: Address) -> Option<Shape> {
    let helper = vm.tables.find("Klass._layout_helper")?;
    let helper = vm.memory.i32(klass.wrapping_add(helper))?;
    let constant = |name: &str| vm.tables.constant(&format!("Klass::_lh_{name}"));
    if helper > 0 {
        // A size in words of eight bytes, so that the lower bits can contain flags.
        let size = u64::from(helper as u32) & !7;
        return (size >= 8).then_some(Shape::Instance(size));
    }
    let field = |name: &str| {
        let shift = constant(&format!("{name}_shift")).filter(|shift| (0..32).contains(shift))?;
        Some(i64::from(helper) >> shift & constant(&format!("{name}_mask"))?)
    };
    let tag = i64::from(helper >> (constant("array_tag_shift")? & 31));
    let header = u64::try_from(field("header_size")?).ok()?;
    if Some(tag) == constant("array_tag_obj_value") {
        return Some(Shape::References(header));
    }
    if Some(tag) != constant("array_tag_type_value") {
        return None;
    }
    // The numbers of HotSpot's types are those of HPROF.
    let kind = BasicType::from_u8(u8::try_from(field("element_type")?).ok()?)?;
    let size = 1 << (field("log2_element_size")? & 7);
    (kind != BasicType::Object && kind.size(8) == size).then_some(Shape::Primitives(header, kind))
}

/// Offsets of the VM's own fields in class objects. The fields that the VM adds to `java.lang.Class` are in the order
/// of `CLASS_INJECTED_FIELDS` in `javaClasses.hpp`: four with exported offsets, which are used to check the order, then
/// the protection domain, the signers and the name of the source file. Fields that a version declares in Java are not
/// among them: the signers from JDK 24 on, the domain from 25 on. The lock for initialization is the last one from the
/// updates of JDK 21 on; before, it was in `componentType`, which only arrays need. JDK 8 has it between the domain and
/// the signers, and has no source file.
fn injected(vm: &Vm<'_>, symbols: &mut Symbols, fields: &Fields) -> Option<Injected> {
    let (known, rest) = fields.injected.split_at_checked(4)?;
    let names = ["klass", "array_klass", "oop_size", "static_oop_field_count"];
    let is_there = |(name, offset): (&str, &u32)| {
        let at = vm
            .tables
            .find_static(&format!("java_lang_Class._{name}_offset"));
        at.and_then(|at| vm.memory.u32(at)) == Some(*offset)
    };
    names.into_iter().zip(known).all(is_there).then_some(())?;
    let mut declared = |name: &[u8]| offset_of(vm, symbols, &fields.declared, name);
    let (domain, signers) = (declared(b"protectionDomain"), declared(b"signers"));
    let component = declared(b"componentType");
    let without_lock = [domain.is_none(), signers.is_none(), component.is_some()];
    let without_lock = without_lock
        .into_iter()
        .filter(|is_injected| *is_injected)
        .count();
    let mut places = rest.iter().copied();
    let domain = domain.or_else(|| places.next());
    let init_lock = match (rest.len().checked_sub(without_lock)?, component) {
        (0, _) => component,
        (1, None) => places.next(),
        (1, Some(_)) => places.next_back(),
        _ => return None,
    };
    Some(Injected {
        domain,
        init_lock,
        signers: signers.or_else(|| places.next()),
    })
}

/// Addresses of all classes.
fn list(vm: &Vm<'_>, damage: &mut Damage) -> Result<Vec<Address>, Fault> {
    let Some(first) = vm.tables.find("ClassLoaderData._klasses") else {
        return tree(vm, damage);
    };
    let link = vm.tables.offset(&["Klass._next_link"])?;
    let mut seen = FxHashSet::default();
    let mut all = Vec::new();
    for loader in loaders(vm, damage)? {
        let mut klass = vm.memory.u64(loader.wrapping_add(first)).unwrap_or(0);
        while klass != 0 && all.len() < MOST_CLASSES {
            if !klass.is_multiple_of(8) || !seen.insert(klass) {
                damage.count("the list of a loader's classes is broken", klass);
                break;
            }
            all.push(klass);
            klass = vm.memory.u64(klass.wrapping_add(link)).unwrap_or(0);
        }
    }
    Ok(all)
}

/// Addresses of all class loaders' data.
fn loaders(vm: &Vm<'_>, damage: &mut Damage) -> Result<Vec<Address>, Fault> {
    let what = "the list of class loaders";
    let head = vm.tables.address(&["ClassLoaderDataGraph._head"])?;
    let next = vm.tables.offset(&["ClassLoaderData._next"])?;
    let mut loader = vm.memory.pointer(head).ok_or(Fault::Senseless { what })?;
    let mut seen = FxHashSet::default();
    let mut all = Vec::new();
    while loader != 0 && all.len() < MOST_LOADERS {
        if !loader.is_multiple_of(8) || !seen.insert(loader) {
            damage.count("the list of class loaders is broken", loader);
            break;
        }
        all.push(loader);
        loader = vm.memory.u64(loader.wrapping_add(next)).unwrap_or(0);
    }
    Ok(all)
}

/// Addresses of all classes of JDK 8, which does not export where a loader has its list. They are the tree of
/// subclasses of `java.lang.Object`, which also contains interfaces, the arrays of each, and the arrays of primitive
/// types.
fn tree(vm: &Vm<'_>, damage: &mut Damage) -> Result<Vec<Address>, Fault> {
    let object = "SystemDictionary._well_known_klasses[SystemDictionary::Object_klass_knum]";
    let root = vm.tables.address(&[object])?;
    let (child, sibling) = (
        vm.tables.offset(&["Klass._subklass"])?,
        vm.tables.offset(&["Klass._next_sibling"])?,
    );
    let arrays = vm.tables.offset(&["InstanceKlass._array_klasses"])?;
    let higher = vm.tables.offset(&["ArrayKlass._higher_dimension"])?;
    let mut open: Vec<Address> = vm.memory.pointer(root).into_iter().collect();
    for name in [
        "bool", "byte", "char", "int", "short", "long", "single", "double",
    ] {
        let at = vm
            .tables
            .address(&[&format!("Universe._{name}ArrayKlassObj")])?;
        open.extend(vm.memory.pointer(at));
    }
    let mut seen = FxHashSet::default();
    let mut all = Vec::new();
    while let Some(klass) = open.pop() {
        if klass == 0 || all.len() >= MOST_CLASSES {
            continue;
        }
        if !klass.is_multiple_of(8) {
            damage.count("the tree of classes is broken", klass);
            continue;
        }
        // Arrays are reached through their elements and through the subclasses.
        if !seen.insert(klass) {
            continue;
        }
        all.push(klass);
        let follow: &[u64] = match shape(vm, klass) {
            Some(Shape::References(_) | Shape::Primitives(..)) => &[child, sibling, higher],
            Some(_) => &[child, sibling, arrays],
            None => &[],
        };
        let links = follow
            .iter()
            .map(|link| vm.memory.u64(klass.wrapping_add(*link)));
        open.extend(links.flatten());
    }
    Ok(all)
}
