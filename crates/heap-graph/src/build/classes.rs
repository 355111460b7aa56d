//! The class table: hierarchy, field layout, names and sizes, from CLASS_DUMPs and tallies.

use super::field_layout::FieldLayout;
use super::id_table::IdTable;
use super::objects::{ClassTally, Tallies};
use super::platform::{self, Fields};
use super::symbols::Symbols;
use crate::layout::{GapVotes, SizeRules, up};
use crate::{ClassIdx, ClassInfo, FieldInfo, LayoutModel, RefStrength, StaticInfo, Strength};
use hprof::{
    BasicType, Bytes, ClassDump, DamageKind, Diagnostic, Diagnostics, HeapTag, IdSize, Instance,
    ObjectId, SubRecord, Value, read_sub_record,
};
use rustc_hash::FxHashMap;

/// What later passes need of classes.
#[derive(Debug)]
pub(crate) struct ClassTable {
    pub(crate) classes: Vec<ClassInfo>,
    pub(crate) by_id: IdTable,
    /// The array class of each primitive type.
    pub(crate) primitive: [u32; 12],
    /// `java.lang.Class`.
    pub(crate) class_class: u32,
    /// Per class: offsets of the references in an instance's field bytes, without the referents that are ignored.
    pub(crate) references: Vec<Box<[u32]>>,
    /// Per class: field bytes that each of its instances has at least; 0 if no record describes the class.
    pub(crate) least_bytes: Vec<u32>,
    /// Per class: shallow size of its class object.
    pub(crate) class_object_size: Vec<u64>,
    /// Size of each `jdk.internal.vm.StackChunk`, by id: the only instances that differ in size.
    pub(crate) stack_chunks: FxHashMap<u64, u64>,
    /// The share of sampled distances between objects that agree with the sizes, and their number.
    pub(crate) confidence: (f64, u64),
}

/// Names of the classes whose `referent` is weak in some way.
pub(crate) fn reference_kind(name: &str) -> Option<RefStrength> {
    match name {
        "java.lang.ref.SoftReference" => Some(RefStrength::Soft),
        "java.lang.ref.WeakReference" => Some(RefStrength::Weak),
        "java.lang.ref.PhantomReference" | "sun.misc.Cleaner" => Some(RefStrength::Phantom),
        "java.lang.ref.FinalReference"
        | "java.lang.ref.Finalizer"
        | "java.lang.ref.FinalizerReference" => Some(RefStrength::Final),
        _ => None,
    }
}

impl ClassTable {
    pub(crate) fn build(
        data: &[u8],
        ids: IdSize,
        symbols: &Symbols<'_>,
        tallies: &Tallies,
        rules: &SizeRules,
        strength: Strength,
        diagnostics: &mut Diagnostics,
    ) -> ClassTable {
        let mut table = ClassTable::declare(symbols, tallies);
        table.read_dumps(data, ids, symbols, tallies, diagnostics);
        table.cut_cycles(tallies, diagnostics);
        table.find_primitives(symbols);
        table.find_class_class();
        let votes = table.votes(tallies);
        table.sizes(rules, &votes);
        let least = |class: &ClassInfo| if class.dumped { class.field_bytes } else { 0 };
        table.least_bytes = table.classes.iter().map(least).collect();
        table.undumped_sizes(rules, tallies);
        table.reference_offsets(tallies, ids, strength);
        table.totals(rules, tallies);
        table.stack_chunk_sizes(data, ids, rules, tallies);
        table
    }

    /// One entry for each class id that has a record or that objects refer to, by id.
    fn declare(symbols: &Symbols<'_>, tallies: &Tallies) -> ClassTable {
        let mut all: Vec<(u64, bool)> = tallies.class_dumps.iter().map(|c| (c.0, true)).collect();
        all.extend(tallies.classes.iter().map(|c| (c.id, false)));
        all.sort_unstable_by_key(|c| (c.0, !c.1));
        all.dedup_by_key(|c| c.0);
        let mut by_id = IdTable::new();
        let classes = all
            .iter()
            .enumerate()
            .map(|(i, (id, dumped))| {
                by_id.insert(*id, i as u32);
                let (name, serial) = symbols.class_name(*id);
                ClassInfo {
                    dumped: *dumped,
                    serial,
                    ..blank(ObjectId(*id), name)
                }
            })
            .collect();
        ClassTable {
            classes,
            by_id,
            primitive: [u32::MAX; 12],
            class_class: u32::MAX,
            references: Vec::new(),
            least_bytes: Vec::new(),
            class_object_size: Vec::new(),
            stack_chunks: FxHashMap::default(),
            confidence: (1.0, 0),
        }
    }

    fn read_dumps(
        &mut self,
        data: &[u8],
        ids: IdSize,
        symbols: &Symbols<'_>,
        tallies: &Tallies,
        diagnostics: &mut Diagnostics,
    ) {
        for (id, at) in &tallies.class_dumps {
            let Ok((SubRecord::Class(dump), _)) = read_sub_record(data, ids, *at, u64::MAX) else {
                continue;
            };
            let Some(index) = self.by_id.get(*id) else {
                continue;
            };
            let super_class = self
                .by_id
                .get(dump.super_class.0)
                .filter(|_| !dump.super_class.is_null());
            if !dump.super_class.is_null() && super_class.is_none() {
                diagnostics.push(Diagnostic::new(
                    DamageKind::Missing,
                    *at,
                    "CLASS_DUMP",
                    "super class",
                    "a class of this dump",
                    dump.super_class.to_string(),
                ));
            }
            let info = &mut self.classes[index as usize];
            info.super_class = super_class.map(ClassIdx);
            fill(info, &dump, symbols);
        }
        for tally in &tallies.classes {
            let Some(index) = self.by_id.get(tally.id) else {
                continue;
            };
            let class = &self.classes[index as usize];
            if !class.dumped {
                let tag = data.get(tally.first as usize);
                let tag = tag.and_then(|tag| HeapTag::from_u8(*tag));
                diagnostics.push(Diagnostic::new(
                    DamageKind::Missing,
                    tally.first,
                    tag.map_or("object", HeapTag::name),
                    "class",
                    "a class of this dump",
                    format!("{}, which has no CLASS_DUMP", class.id),
                ));
            }
        }
    }

    /// Removes the superclass of a class that is its own ancestor, so that every later walk ends.
    fn cut_cycles(&mut self, tallies: &Tallies, diagnostics: &mut Diagnostics) {
        let mut state = vec![0u8; self.classes.len()]; // 0 new, 1 on the path, 2 done
        let mut path = Vec::new();
        for start in 0..self.classes.len() {
            let mut at = start;
            while state[at] == 0 {
                state[at] = 1;
                path.push(at);
                match self.classes[at].super_class {
                    Some(ClassIdx(next)) if state[next as usize] == 1 => {
                        self.classes[at].super_class = None;
                        let dumps = &tallies.class_dumps;
                        let id = self.classes[at].id.0;
                        let dump = dumps.binary_search_by_key(&id, |dump| dump.0);
                        diagnostics.push(Diagnostic::new(
                            DamageKind::Missing,
                            dump.map_or(0, |dump| dumps[dump].1),
                            "CLASS_DUMP",
                            "super class",
                            "a class that is no descendant of this one",
                            format!("{} is its own ancestor", self.classes[at].name),
                        ));
                    }
                    Some(ClassIdx(next)) => at = next as usize,
                    None => {}
                }
            }
            path.drain(..).for_each(|c| state[c] = 2);
        }
    }

    /// The classes in an order in which every superclass comes before its subclasses.
    fn parents_first(&self) -> Vec<usize> {
        let mut done = vec![false; self.classes.len()];
        let mut order = Vec::with_capacity(self.classes.len());
        let mut path = Vec::new();
        for start in 0..self.classes.len() {
            let mut at = Some(start);
            while let Some(c) = at.filter(|c| !done[*c]) {
                done[c] = true;
                path.push(c);
                at = self.classes[c].super_class.map(|s| s.0 as usize);
            }
            order.extend(path.drain(..).rev());
        }
        order
    }

    fn find_primitives(&mut self, symbols: &Symbols<'_>) {
        for kind in BasicType::ALL.iter().filter(|k| **k != BasicType::Object) {
            let name = format!("{}[]", kind.name());
            let dumped = self
                .classes
                .iter()
                .position(|c| c.name == name && c.loader.is_null());
            let index = dumped.unwrap_or_else(|| {
                // The agent writes no class record for int[]; a LOAD_CLASS may still have its name.
                let id = symbols
                    .loaded
                    .iter()
                    .find(|c| symbols.class_name(c.0).0 == name)
                    .map_or(0, |c| c.0);
                self.classes.push(ClassInfo {
                    dumped: false,
                    ..blank(ObjectId(id), name)
                });
                self.classes.len() - 1
            });
            self.classes[index].element = Some(*kind);
            self.primitive[*kind as usize] = index as u32;
        }
    }

    fn find_class_class(&mut self) {
        let name = "java.lang.Class";
        let found = self
            .classes
            .iter()
            .position(|c| c.name == name && c.loader.is_null());
        let index = found.unwrap_or_else(|| {
            self.classes.push(ClassInfo {
                dumped: false,
                ..blank(ObjectId(0), name.to_owned())
            });
            self.classes.len() - 1
        });
        self.class_class = index as u32;
    }

    fn votes(&self, tallies: &Tallies) -> Vec<GapVotes> {
        let mut votes = vec![GapVotes::default(); self.classes.len()];
        for tally in &tallies.classes {
            if let Some(index) = self.by_id.get(tally.id) {
                votes[index as usize] = tally.gaps.votes();
            }
        }
        votes
    }

    fn sizes(&mut self, rules: &SizeRules, votes: &[GapVotes]) {
        let stated_sizes = self.classes.iter().any(|c| {
            c.name == "java.lang.Object" && c.dumped && c.stated_size > 0 && c.fields.is_empty()
        });
        // A class that the VM always loads since JDK 16.
        let packs = rules.model == LayoutModel::Measured
            && self
                .classes
                .iter()
                .any(|c| c.name == "jdk.internal.vm.vector.VectorSupport");
        let header = FieldLayout::full(rules.header);
        let mut layouts = vec![header.clone(); if packs { self.classes.len() } else { 0 }];
        let mut before_rounding = vec![0u64; self.classes.len()];
        let mut least_size = vec![0u64; self.classes.len()];
        let (mut agreeing, mut samples) = (rules.agreeing, rules.samples);
        for index in self.parents_first() {
            let info = &self.classes[index];
            let above = info.super_class.map(|s| s.0 as usize);
            let inherited = above.map_or(0, |s| u64::from(self.classes[s].field_bytes));
            let own: u64 = info.fields.iter().map(|f| f.kind.size(8) as u64).sum();
            // In the file, references among field bytes have the width of ids.
            let own_file = own - self.narrow_ids(index, rules);
            let fields = match rules.model {
                LayoutModel::Measured => Fields::of(info, packs, rules.id_bytes),
                _ => Fields::listed(info),
            };
            let raw = if packs {
                let mut layout = above.map_or(&header, |s| &layouts[s]).clone();
                layout.add(&fields, rules);
                layouts[index] = layout;
                layouts[index].end()
            } else {
                instance_bytes(&fields, above.map(|s| before_rounding[s]), rules)
            };
            before_rounding[index] = raw;
            let own_heap: u64 = info.fields.iter().map(|f| rules.field(f.kind)).sum();
            least_size[index] = above.map_or(rules.header, |s| least_size[s]) + own_heap;
            let formula = up(raw, rules.alignment);
            let field_bytes = inherited + own_file;
            let mut size = formula;
            if rules.model == LayoutModel::Plain {
                size = field_bytes;
            } else if rules.model == LayoutModel::Measured {
                if let Some(sizes) = &rules.stated {
                    size = sizes.get(&info.id.0).copied().unwrap_or(formula);
                } else if stated_sizes && u64::from(info.stated_size) > 0 {
                    size = up(u64::from(info.stated_size), rules.alignment);
                } else if rules.addresses {
                    let vote = &votes[index];
                    let injected = platform::most_injected(&info.name).max(rules.alignment);
                    let contended = platform::may_be_contended(&info.name);
                    let least = least_size[index];
                    let has_holes = rules.has_holes();
                    let found = vote.size(least, formula, injected, contended, has_holes);
                    let too_small = found > formula && found == rules.least_gap;
                    size = if found.is_multiple_of(rules.alignment) && !too_small {
                        found
                    } else {
                        formula
                    };
                    if size > formula {
                        // Subclasses also have the padding of contended fields.
                        before_rounding[index] = size;
                        if packs {
                            layouts[index] = if GapVotes::CONTENDED.contains(&(size - formula)) {
                                FieldLayout::padded(size)
                            } else {
                                FieldLayout::full(size)
                            };
                        }
                    }
                    samples += vote.samples();
                    agreeing += vote.votes_for(size);
                }
            }
            let info = &mut self.classes[index];
            info.field_bytes = u32::try_from(field_bytes).unwrap_or(u32::MAX);
            info.instance_size = Bytes(size);
        }
        self.confidence = match (rules.model, samples) {
            (LayoutModel::Measured, 0) => (0.0, 0),
            (LayoutModel::Measured, n) => (agreeing as f64 / n as f64, n),
            _ => (1.0, 0),
        };
        self.class_object_sizes(rules);
    }

    /// A class without a record: its instances show how many field bytes they have.
    fn undumped_sizes(&mut self, rules: &SizeRules, tallies: &Tallies) {
        for tally in tallies.classes.iter().filter(|t| t.instances > 0) {
            let Some(index) = self.by_id.get(tally.id) else {
                continue;
            };
            let info = &mut self.classes[index as usize];
            if !info.dumped {
                let bytes = tally.total_field_bytes / tally.instances;
                info.field_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                info.instance_size = Bytes(up(rules.header + bytes, rules.alignment));
            }
        }
    }

    /// A StackChunk has, after its fields, a stack of `size` words and a bit for each possible reference in it.
    fn stack_chunk_sizes(
        &mut self,
        data: &[u8],
        ids: IdSize,
        rules: &SizeRules,
        tallies: &Tallies,
    ) {
        if rules.model != LayoutModel::Measured {
            return;
        }
        for (id, at) in &tallies.stack_chunks {
            let Ok((SubRecord::Instance(instance), _)) = read_sub_record(data, ids, *at, u64::MAX)
            else {
                continue;
            };
            let Some(class) = self.by_id.get(instance.class.0) else {
                continue;
            };
            let Some(words) = self.int_field(&instance, "size", ids.bytes()) else {
                continue;
            };
            let words = u64::try_from(words).unwrap_or(0);
            let bits = words * if rules.reference == 4 { 2 } else { 1 };
            let info = &self.classes[class as usize];
            let fields: u64 = info.fields.iter().map(|f| rules.field(f.kind)).sum();
            // HotSpot adds four fields: cont (a reference), pc, maxThawingSize and flags.
            let fixed = up(rules.header + fields + rules.reference + 8 + 4 + 1, 8);
            let size = up(fixed + words * 8 + bits.div_ceil(64) * 8, rules.alignment);
            let info = &mut self.classes[class as usize];
            // The totals have counted it with the size of its class in the file.
            info.shallow.0 = (info.shallow.0 + size).saturating_sub(info.instance_size.0);
            self.stack_chunks.insert(*id, size);
        }
    }

    /// The value of an int field of an instance.
    pub(crate) fn int_field(
        &self,
        instance: &Instance<'_>,
        name: &str,
        id_bytes: usize,
    ) -> Option<i32> {
        let bytes = self.field_bytes(instance, name, BasicType::Int, id_bytes)?;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// The bytes of a field of an instance.
    pub(crate) fn field_bytes<'i>(
        &self,
        instance: &Instance<'i>,
        name: &str,
        kind: BasicType,
        id_bytes: usize,
    ) -> Option<&'i [u8]> {
        let mut at = 0;
        let mut class = self.by_id.get(instance.class.0);
        while let Some(info) = class.and_then(|c| self.classes.get(c as usize)) {
            for field in &info.fields {
                if field.name == name && field.kind == kind {
                    return instance.fields.get(at..at + kind.size(id_bytes));
                }
                at += field.kind.size(id_bytes);
            }
            class = info.super_class.map(|s| s.0);
        }
        None
    }

    /// Bytes by which references are narrower in the file than eight.
    fn narrow_ids(&self, index: usize, rules: &SizeRules) -> u64 {
        let references = self.classes[index]
            .fields
            .iter()
            .filter(|f| f.kind == BasicType::Object);
        references.count() as u64 * (8 - rules.id_bytes)
    }

    fn class_object_sizes(&mut self, rules: &SizeRules) {
        let base = self.classes[self.class_class as usize].instance_size.0;
        self.class_object_size = self
            .classes
            .iter()
            .map(|c| {
                let wide = |k: BasicType| match rules.model {
                    LayoutModel::Plain => k.size(rules.id_bytes as usize) as u64,
                    _ => rules.field(k),
                };
                // HotSpot lists the constant pool's resolved references, and in JDK 8 the lock of a class that is not
                // initialized, as statics. They are not stored in the class object, but MAT counts them.
                let measured = rules.model == LayoutModel::Measured;
                let of_vm = |(n, s): (usize, &StaticInfo)| {
                    s.name.starts_with('<') || s.name == "init_lock" && n + 1 == c.statics.len()
                };
                let own = c.statics.iter().enumerate();
                let own = own.filter(|s| !(measured && of_vm(*s))).map(|(_, s)| s);
                let statics: u64 = own.map(|s| wide(s.kind)).sum();
                match rules.model {
                    LayoutModel::Plain => statics,
                    LayoutModel::Mat => up(statics, rules.alignment),
                    LayoutModel::Measured => up(base + statics, rules.alignment),
                }
            })
            .collect();
    }

    fn reference_offsets(&mut self, tallies: &Tallies, ids: IdSize, strength: Strength) {
        // For each class, the nearest one among it and its superclasses that has fields of its own.
        let mut with_fields: Vec<Option<u32>> = vec![None; self.classes.len()];
        let mut kind: Vec<Option<RefStrength>> = vec![None; self.classes.len()];
        for index in self.parents_first() {
            let above = self.classes[index].super_class.map(|s| s.0 as usize);
            let own = !self.classes[index].fields.is_empty();
            with_fields[index] = if own {
                Some(index as u32)
            } else {
                above.and_then(|s| with_fields[s])
            };
            kind[index] = reference_kind(&self.classes[index].name).or(above.and_then(|s| kind[s]));
        }
        self.references = vec![Box::default(); self.classes.len()];
        for tally in tallies.classes.iter().filter(|t| t.instances > 0) {
            let Some(index) = self.by_id.get(tally.id) else {
                continue;
            };
            // No instance is longer than all of its class together: references beyond that are never read. In a hostile
            // dump a class can have more fields than its instances have bytes.
            let longest = tally.total_field_bytes;
            let skips = kind[index as usize].is_some_and(|kind| !strength.counts(kind));
            let mut offsets = Vec::new();
            let mut offset = 0u64;
            let mut at = with_fields[index as usize];
            while let Some(class) = at.filter(|_| offset < longest) {
                let info = &self.classes[class as usize];
                for field in &info.fields {
                    let referent = skips && info.is_referent(&field.name);
                    if field.kind == BasicType::Object && !referent {
                        offsets.push(offset as u32);
                    }
                    offset += field.kind.size(ids.bytes()) as u64;
                }
                at = info.super_class.and_then(|s| with_fields[s.0 as usize]);
            }
            self.references[index as usize] = offsets.into();
        }
    }

    /// Objects and shallow sizes of all classes, class objects left out.
    fn totals(&mut self, rules: &SizeRules, tallies: &Tallies) {
        for tally in &tallies.classes {
            if let Some(index) = self.by_id.get(tally.id) {
                self.add_tally(index as usize, tally, rules.model);
            }
        }
        for (kind, tally) in tallies.primitives.iter().enumerate() {
            if let Some(info) = self.classes.get_mut(self.primitive[kind] as usize) {
                info.objects += tally.arrays;
                info.shallow.0 += tally.bytes;
            }
        }
    }

    fn add_tally(&mut self, index: usize, tally: &ClassTally, model: LayoutModel) {
        let info = &mut self.classes[index];
        info.objects += tally.instances + tally.arrays;
        info.instance_bytes.0 += tally.total_field_bytes;
        // The plain model counts the field bytes that the file has.
        let instances = match model {
            LayoutModel::Plain => tally.total_field_bytes,
            _ => tally.instances * info.instance_size.0,
        };
        info.shallow.0 += tally.array_bytes + instances;
    }
}

pub(super) fn blank(id: ObjectId, name: String) -> ClassInfo {
    ClassInfo {
        id,
        name,
        super_class: None,
        loader: ObjectId::NULL,
        signers: ObjectId::NULL,
        domain: ObjectId::NULL,
        fields: Vec::new(),
        statics: Vec::new(),
        constants: Vec::new(),
        stated_size: 0,
        instance_size: Bytes(0),
        field_bytes: 0,
        instance_bytes: Bytes(0),
        trace: hprof::Serial(0),
        serial: hprof::Serial(0),
        dumped: false,
        element: None,
        objects: 0,
        shallow: Bytes(0),
        reachable_objects: 0,
        reachable_shallow: Bytes(0),
        retained: Bytes(0),
    }
}

fn fill(info: &mut ClassInfo, dump: &ClassDump<'_>, symbols: &Symbols<'_>) {
    info.loader = dump.loader;
    info.signers = dump.signers;
    info.domain = dump.domain;
    info.stated_size = dump.instance_size;
    info.trace = dump.trace;
    info.fields = dump
        .fields()
        .map(|(name, kind)| FieldInfo {
            name: symbols.text_or_id(name),
            kind,
        })
        .collect();
    info.statics = dump
        .statics()
        .map(|(name, value)| StaticInfo {
            name: symbols.text_or_id(name),
            kind: value.kind,
            bits: value_bits(&value),
        })
        .collect();
    info.constants = dump
        .constants()
        .filter_map(|(_, value)| value.as_id())
        .filter(|id| !id.is_null())
        .collect();
}

/// The references in the record of a class that count in a layout model. That to `java.lang.Class` is not in the record.
pub(crate) fn class_references<'d>(
    dump: &'d ClassDump<'_>,
    model: LayoutModel,
) -> impl Iterator<Item = ObjectId> + 'd {
    let is_mat = model == LayoutModel::Mat;
    let beside = [dump.signers, dump.domain].into_iter();
    let constants = dump.constants().filter_map(|(_, value)| value.as_id());
    let found = [dump.super_class, dump.loader].into_iter();
    let found = found.chain(beside.filter(move |_| !is_mat));
    let found = found.chain(dump.statics().filter_map(|(_, value)| value.as_id()));
    let found = found.chain(constants.filter(move |_| !is_mat));
    found.filter(|id| !id.is_null())
}

/// A value widened to 64 bits: integers sign-extended, floats as raw bits.
pub(crate) fn value_bits(value: &Value<'_>) -> u64 {
    let unsigned = value.bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    match value.kind {
        BasicType::Byte => unsigned as u8 as i8 as i64 as u64,
        BasicType::Short => unsigned as u16 as i16 as i64 as u64,
        BasicType::Int => unsigned as u32 as i32 as i64 as u64,
        _ => unsigned,
    }
}

/// Size of an instance before the final rounding: MAT's formula, or the layout of HotSpot until JDK 14 (eight-byte
/// fields are aligned, and smaller ones fill the gap before them).
fn instance_bytes(fields: &Fields, above: Option<u64>, rules: &SizeRules) -> u64 {
    let sizes = || fields.ordinary.iter().map(|kind| rules.field(*kind));
    let own: u64 = sizes().sum();
    match (rules.model, above) {
        (LayoutModel::Mat, None) => return rules.header,
        (LayoutModel::Mat, Some(above)) => return up(own + above, rules.reference),
        _ => {}
    }
    // The fields of a class begin after its superclass, at the next offset aligned for a reference.
    let start = match rules.model {
        LayoutModel::Measured => above.map_or(rules.header, |a| up(a, rules.reference)),
        _ => above.unwrap_or(rules.header),
    };
    let wide = sizes().any(|size| size == 8);
    let end = if !wide || start.is_multiple_of(8) {
        start + own
    } else if fields.references_first {
        let is_reference = |kind: &&_| **kind == BasicType::Object;
        let references = fields.ordinary.iter().filter(is_reference).count() as u64;
        let references = references * rules.reference;
        up(start + references, 8) + own - references
    } else {
        let hole = 8 - start % 8;
        let small: u64 = sizes().filter(|n| *n < 8).sum();
        start + own + hole - small.min(hole)
    };
    fields.contended_end(end, rules)
}
