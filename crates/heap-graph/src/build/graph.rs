//! Phases 3 to 6 in the narrowest width that fits.

use super::cell::{Cell, Wide};
use super::conservative::{Edges, Locals};
use super::dominators::{ClassEdges, immediate_dominators};
use super::facts::ObjectFacts;
use super::job::Job;
use super::output::{self, Sizes};
use super::reached::Reached;
use super::references::{ReferencePass, Shared};
use super::tape::Tape;
use super::units::{Input, run_pass};
use super::{dfs, retained};
use crate::HeapError;
use crate::index::IndexWriter;
use crate::model::LayoutModel;
use crate::parallel;
use crate::raw::{BigVec, SharedRows, SharedSlice, trim};
use hprof::Diagnostics;
use std::sync::atomic::{AtomicBool, Ordering};

/// The references of all objects.
struct Rows<'b, C: Cell> {
    cells: BigVec<'b, C>,
    rows: BigVec<'b, u8>,
    /// Class objects that are not roots, by ordinal.
    class_objects: Vec<u64>,
    class_ordinal: Vec<u32>,
    virtual_threads: Vec<(u64, u64)>,
    dangling: u64,
    diagnostics: Diagnostics,
    facts: ObjectFacts<'b>,
}

impl Job<'_> {
    /// Builds the graph and writes its sections: with numbers of 32 bits, and again with 40 bits if these are too
    /// small.
    pub(crate) fn run(&self, index: &mut IndexWriter) -> Result<Reached, HeapError> {
        let numbers = self.objects.ids.len + 2;
        if numbers < u32::LIMIT
            && !self.options.tuning.wide
            && let Some(reached) = self.run_width::<u32>(index)?
        {
            return Ok(reached);
        }
        if numbers < Wide::LIMIT
            && let Some(reached) = self.run_width::<Wide>(index)?
        {
            return Ok(reached);
        }
        let error = "this dump has 2^39 objects or bytes of references, or more";
        Err(HeapError::io("graph")(std::io::Error::other(error)))
    }

    /// `None` if this width is too small.
    fn run_width<C: Cell>(&self, index: &mut IndexWriter) -> Result<Option<Reached>, HeapError> {
        let Some(found) = self.references::<C>()? else {
            return Ok(None);
        };
        let Rows {
            mut cells,
            rows,
            class_objects,
            class_ordinal,
            virtual_threads,
            dangling,
            diagnostics,
            facts,
        } = found;
        let phases = &self.options.phases;
        phases.begin("search");
        // One thread searches; meanwhile another one writes the sections that are complete.
        let write = || output::objects(index, self, facts);
        let (written, search) = parallel::beside(write, || {
            let edges = Edges {
                cells: &cells,
                rows: &rows,
                class_objects: &class_objects,
            };
            let locals = Locals::find(self.roots, &edges, self.budget, self.control);
            locals.and_then(|locals| {
                let roots = self.roots.order.iter().chain(&locals.roots);
                let search = dfs::search(
                    &mut cells,
                    &rows,
                    &class_objects,
                    roots.copied(),
                    &locals.of_threads,
                    self.budget,
                    self.control,
                )?;
                Ok((search, locals.objects))
            })
        });
        let (search, conservative) = search?;
        let written = written?;
        self.check()?;
        drop(rows);
        phases.random(search.edges);
        phases.begin("class edges");
        let of_class = &written.of_class;
        let edges = self.class_edges(index, &cells, of_class, &class_objects, &class_ordinal)?;
        let n = search.len;
        let numbers = Tape::of(&cells, self.budget).map_err(HeapError::io("search"))?;
        drop(cells);
        trim();
        phases.begin("dominators");
        phases.random(search.pairs.len);
        self.control.report("dominators", 0, n);
        let idom = immediate_dominators(search, edges, self.budget, self.control)?;
        self.check()?;
        let view = index.view().map_err(HeapError::io("index"))?;
        let sizes = Sizes::view(&view, self.map.len(), self.table);
        let mut reached = retained::write(self, index, numbers, idom, n, &sizes, written.units)?;
        self.check()?;
        reached.virtual_threads = virtual_threads;
        reached.dangling = dangling;
        reached.diagnostics = diagnostics;
        reached.conservative = conservative;
        Ok(Some(reached))
    }

    /// The edges from objects to their classes; `of_class` counts the objects of each class. The index is mapped only
    /// meanwhile, because its pages count as memory of this process until they are on the disk.
    fn class_edges<C: Cell>(
        &self,
        index: &mut IndexWriter,
        cells: &[C],
        of_class: &[u64],
        class_objects: &[u64],
        class_ordinal: &[u32],
    ) -> Result<ClassEdges<'_, C>, HeapError> {
        self.control.report("class edges", 0, 0);
        let view = index.view().map_err(HeapError::io("index"))?;
        let sizes = Sizes::view(&view, self.map.len(), self.table);
        // Whether the model has this class edge: class objects have none to java.lang.Class in the plain model, and
        // primitive arrays have one only in MAT's.
        let plain = self.options.layout == LayoutModel::Plain;
        let mat = self.options.layout == LayoutModel::Mat;
        let all = self.table.classes.iter().zip(class_ordinal);
        let ordinals = all.map(|(class, ordinal)| match mat || class.element.is_none() {
            true => *ordinal,
            false => u32::MAX,
        });
        let ordinals: Vec<u32> = ordinals.collect();
        let ordinal_of = |object: u64| match plain && self.class_objects.contains(object) {
            true => u32::MAX,
            false => ordinals[sizes.class(object) as usize],
        };
        // Ordinals are given in the order of classes.
        let most = class_ordinal.iter().zip(of_class);
        let most = most.filter_map(|(ordinal, count)| (*ordinal != u32::MAX).then_some(*count));
        ClassEdges::collect(cells, class_objects, most, ordinal_of, self.budget)
    }

    /// Fails if the dump changed while it was read, or a temporary file could not be written: the results so far are
    /// then not valid input for the next phase.
    fn check(&self) -> Result<(), HeapError> {
        self.mapped.check(self.path)?;
        self.budget
            .check()
            .map_err(HeapError::io("arrays of the graph"))
    }

    /// Runs the second pass and writes its sections.
    fn references<C: Cell>(&self) -> Result<Option<Rows<'_, C>>, HeapError> {
        let io = || HeapError::io("references");
        let phases = &self.options.phases;
        phases.begin("references");
        let n = self.map.len() as usize;
        let mut cells = BigVec::<C>::zeroed(n, self.budget).map_err(io())?;
        let classes = self.table.classes.len();
        let traces = self.objects.tallies.one_trace.is_none();
        let mut facts = ObjectFacts::new(n, classes, traces, self.budget).map_err(io())?;
        // This only reserves address space: rows take at most a third of the dump, but the blocks of each worker and
        // the longest arrays must fit, too.
        let most = self.mapped.data.len() * 3 + (1 << 24);
        let mut rows = self.reserve_rows(most, n * 8).map_err(io())?;
        let room = rows.len();
        let (class_objects, class_ordinal) = self.class_nodes();
        let shared = Shared {
            ids: self.mapped.map.header.id_size,
            map: self.map,
            classes: self.table,
            rules: &self.objects.rules,
            roots: &self.roots.set,
            class_ordinal: &class_ordinal,
            thread_locals: &self.roots.thread_locals,
            cells: SharedSlice::new(&mut cells),
            rows: SharedRows::new(&mut rows),
            facts: facts.share(),
            too_long: AtomicBool::new(false),
            virtual_thread: self.class_named("java.lang.VirtualThread"),
            repetitions: &self.objects.tallies.repetitions,
            tuning: &self.options.tuning,
        };
        let known_class = |id: u64| self.mapped.symbols.knows_class(id);
        let units = &self.objects.pass.units;
        let threads = self.options.thread_count().min(units.len()).max(1);
        let input = Input {
            data: self.mapped.data,
            ids: self.mapped.map.header.id_size,
            known_class: &known_class,
            control: *self.control,
            read: &|at, out| self.mapped.source.read_at(at, out),
            release: None,
            tuning: &self.options.tuning,
        };
        let visitors = (0..threads)
            .map(|_| ReferencePass::<C>::new(&shared))
            .collect();
        let (mut passes, pass) = run_pass(&input, "references", units, visitors)?;
        phases.walked(pass.bytes);
        self.check()?;
        if shared.too_long.load(Ordering::Relaxed) {
            if room < most && room as u64 <= C::LIMIT {
                return Err(io()(std::io::ErrorKind::OutOfMemory.into()));
            }
            return Ok(None);
        }
        let (mut virtual_threads, mut dangling) = (Vec::new(), 0);
        let (mut anchors, mut large) = (Vec::new(), Vec::new());
        let mut diagnostics = Diagnostics::default();
        for pass in &mut passes {
            std::mem::replace(&mut pass.failed, Ok(())).map_err(io())?;
            phases.random(pass.ranked);
            dangling += pass.dangling;
            diagnostics.extend(std::mem::take(&mut pass.diagnostics));
            virtual_threads.append(&mut pass.virtual_threads);
            anchors.append(&mut pass.anchors);
            large.append(&mut pass.large);
        }
        drop(passes);
        trim();
        anchors.sort_unstable();
        large.sort_unstable();
        virtual_threads.sort_unstable();
        // In a dump whose ids are in no order, each object has an anchor.
        let beside = size_of_val(&*anchors) + size_of_val(&*large);
        self.budget.charge(beside as u64);
        (facts.large, facts.anchors) = (large, anchors);
        Ok(Some(Rows {
            cells,
            rows,
            class_objects,
            class_ordinal,
            virtual_threads,
            dangling,
            diagnostics,
            facts,
        }))
    }

    /// Reserves `most` bytes of address space for rows, of which `expect` will be touched, or less if the system does not
    /// give that much (`ulimit -v`).
    fn reserve_rows(&self, most: usize, expect: usize) -> std::io::Result<BigVec<'_, u8>> {
        let mut room = most;
        loop {
            match BigVec::reserve(room, expect, self.budget) {
                Err(error) if error.kind() == std::io::ErrorKind::OutOfMemory && room > expect => {
                    room = (room / 2).max(expect);
                }
                reserved => return reserved,
            }
        }
    }

    fn class_named(&self, name: &str) -> u32 {
        self.table
            .classes
            .iter()
            .position(|c| c.name == name)
            .map_or(u32::MAX, |i| i as u32)
    }

    /// The class objects that are in the dump and not roots, and the ordinal of each class among them.
    fn class_nodes(&self) -> (Vec<u64>, Vec<u32>) {
        let mut objects = Vec::new();
        let ordinal = self.table.classes.iter().map(|class| {
            match self
                .map
                .find(class.id)
                .filter(|o| class.dumped && !self.roots.set.contains(o.0))
            {
                Some(object) => {
                    objects.push(object.0);
                    objects.len() as u32 - 1
                }
                None => u32::MAX,
            }
        });
        let ordinal = ordinal.collect();
        (objects, ordinal)
    }
}
