//! What the flags mean: options for the graph, a look for the output, and the way to both.

use crate::args::{ColorChoice, Global};
use crate::exit::{Exit, Usage};
use crate::free_memory;
use crate::output::{self, Copied, Stdout};
use crate::progress::Meter;
use anyhow::Context;
use heap_analysis::collections::table::CollectionTable;
use heap_graph::{Control, Heap, HeapError, Mapping, Options, Phases, QuickHistogram, Summary};
use report::escape::shell;
use report::{Doc, Look, Provenance, Say, Span, json, say, sheet, terminal};
use serde::Serialize;
use server::explorer::Renaming;
use server::kept::{Kept, KeptAnswers};
use std::cell::{RefCell, RefMut};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;

/// Longer answers are not kept beside the index.
const MOST_KEPT: usize = 32 << 20;

/// One run of the program.
pub struct Session {
    /// The flags.
    pub global: Global,
    /// How answers look on standard output.
    pub look: Look,
    /// What each phase costs, when requested.
    phases: Phases,
    /// The table of `--collections`.
    collections: Option<CollectionTable>,
    out: RefCell<Stdout>,
}

impl Session {
    /// Decides colour and width from the flags, the environment and the terminal, and reads the table of collections.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn new(global: Global) -> anyhow::Result<Session> {
        let on_terminal = io::stdout().is_terminal();
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty() && v != "0");
        let color = match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                !set("NO_COLOR")
                    && (set("CLICOLOR_FORCE")
                        || on_terminal && std::env::var_os("TERM").is_none_or(|t| t != "dumb"))
            }
        };
        let width = if on_terminal {
            terminal_size::terminal_size().map(|(w, _)| usize::from(w.0).max(40))
        } else {
            None
        };
        Ok(Session {
            look: Look {
                width,
                color,
                raw_bytes: global.bytes,
            },
            phases: if global.profile_phases {
                Phases::recording()
            } else {
                Phases::default()
            },
            collections: global.collections.as_deref().map(collections).transpose()?,
            out: RefCell::new(output::stdout()),
            global,
        })
    }

    /// The options of the graph.
    pub fn options(&self) -> Options {
        let usual = free_memory::usual_limit();
        let mut options = Options {
            layout: self.global.layout.into(),
            strength: self.global.strength.into(),
            cache_dir: self.global.cache_dir.clone(),
            no_index: self.global.no_index,
            max_memory: usual,
            total_memory: self.global.max_memory,
            analysis_memory: usual.filter(|_| self.global.max_memory.is_none()),
            threads: self.global.threads,
            phases: self.phases.clone(),
            ..Options::default()
        };
        if let Some(table) = &self.collections {
            table.clone().attach(&mut options);
        }
        options
    }

    /// Opens a heap, with progress on a terminal.
    pub fn open(&self, file: &Path) -> Result<Heap, HeapError> {
        let mapping = self.mapping()?;
        let heap = self.with_control(|control| Heap::open(file, &self.options(), control))?;
        Ok(self.opened(heap, mapping.as_ref()))
    }

    fn opened(&self, mut heap: Heap, mapping: Option<&Mapping>) -> Heap {
        self.phases.begin("answer");
        if let Some(mapping) = mapping {
            heap.rename(mapping);
        }
        heap
    }

    /// The same; on a terminal, a large dump that is read for the first time is counted beside that, and what `look`
    /// makes of the counts is shown at once.
    pub(crate) fn open_with_first_look(
        &self,
        file: &Path,
        look: impl FnOnce(&QuickHistogram) -> Doc,
    ) -> Result<Heap, HeapError> {
        if !self.shows_first_look(file) {
            return self.open(file);
        }
        let (options, mapping) = (self.options(), self.mapping()?);
        let meter = self.meter();
        let cancel = AtomicBool::new(false);
        let (working, works) = mpsc::channel();
        let heap = thread::scope(|scope| {
            let open = || {
                let progress = |progress| {
                    // The opening thread waits for the first report: an index gives none.
                    let _ = working.send(());
                    meter.show(progress);
                };
                let control = Control {
                    progress: &progress,
                    cancel: &cancel,
                };
                let heap = Heap::open(file, &options, &control);
                drop(working);
                heap
            };
            let opening = thread::Builder::new().spawn_scoped(scope, open).ok()?;
            // A fault is one of the opening, too, and is reported there.
            if works.recv().is_ok()
                && let Ok(quick) = self.count(file, mapping.as_ref(), &Control::default())
            {
                let doc = look(&quick);
                // Nothing is lost if it cannot be shown: the answer is to come.
                meter.beside(|| self.say_doc(&doc).is_ok() && self.flush().is_ok());
            }
            Some(opening.join().unwrap_or(Err(HeapError::Cancelled)))
        });
        meter.clear();
        let Some(heap) = heap else {
            // The system starts no further thread.
            return self.open(file);
        };
        Ok(self.opened(heap?, mapping.as_ref()))
    }

    /// Whether the output is a terminal, and a file that needs no unpacking so large that its analysis takes a while.
    fn shows_first_look(&self, file: &Path) -> bool {
        const LARGE: u64 = 64 << 20;
        const MAGIC: &[u8; 13] = b"JAVA PROFILE ";
        let is_large = || fs::metadata(file).is_ok_and(|it| it.is_file() && it.len() >= LARGE);
        let is_plain = || {
            let mut head = [0; MAGIC.len()];
            let read = File::open(file).and_then(|mut file| file.read_exact(&mut head));
            read.is_ok() && head == *MAGIC
        };
        let global = &self.global;
        // A second pass beside the analysis would be in the table of its costs.
        let is_plain_answer = !(self.is_data() || global.quiet || global.profile_phases);
        self.look.width.is_some() && is_plain_answer && is_large() && is_plain()
    }

    /// The file of `--mapping`.
    pub fn mapping(&self) -> Result<Option<Mapping>, HeapError> {
        let Some(path) = &self.global.mapping else {
            return Ok(None);
        };
        let text = fs::read_to_string(path).map_err(|error| HeapError::Io {
            what: path.display().to_string(),
            error,
        })?;
        Ok(Some(Mapping::parse(&text)))
    }

    /// The mapping with its file, for the explorer.
    pub(crate) fn renaming(&self) -> Result<Option<Renaming>, HeapError> {
        let file = self.global.mapping.clone();
        let pair = self.mapping()?.zip(file);
        Ok(pair.map(|(mapping, file)| Renaming { file, mapping }))
    }

    /// Counts classes in one pass, with progress on a terminal.
    pub fn quick_histogram(&self, file: &Path) -> Result<QuickHistogram, HeapError> {
        let mapping = self.mapping()?;
        self.with_control(|control| self.count(file, mapping.as_ref(), control))
    }

    fn count(
        &self,
        file: &Path,
        mapping: Option<&Mapping>,
        control: &Control<'_>,
    ) -> Result<QuickHistogram, HeapError> {
        let mut found = heap_graph::quick_histogram(file, &self.options(), control)?;
        if let Some(mapping) = mapping {
            for row in &mut found.rows {
                row.name = mapping
                    .class(&row.name)
                    .unwrap_or(std::mem::take(&mut row.name));
            }
        }
        Ok(found)
    }

    /// A progress line, if there is a terminal for it.
    pub(crate) fn meter(&self) -> Meter {
        Meter::new(!self.global.quiet && io::stderr().is_terminal())
    }

    /// Runs long work with progress on a terminal.
    pub fn with_control<T>(&self, work: impl FnOnce(&Control<'_>) -> T) -> T {
        let meter = self.meter();
        let cancel = AtomicBool::new(false);
        let result = work(&Control {
            progress: &|progress| meter.show(progress),
            cancel: &cancel,
        });
        meter.clear();
        result
    }

    /// Says an answer about a heap in the asked form, and ends the run.
    pub fn answer<T: Say>(&self, answer: &T, summary: &Summary) -> anyhow::Result<Exit> {
        let provenance = Provenance::of(summary);
        self.say(answer, &provenance)?;
        Ok(self.finish(&provenance))
    }

    /// The files that a command reads, which it never overwrites: its own, the mapping of names and the table of
    /// collections.
    pub(crate) fn inputs<'a>(&'a self, own: impl IntoIterator<Item = &'a Path>) -> Vec<&'a Path> {
        let global = [&self.global.mapping, &self.global.collections];
        let global = global.into_iter().filter_map(Option::as_deref);
        own.into_iter().chain(global).collect()
    }

    /// As [`answer`](Self::answer), and keeps the text beside the index: the same question gives it at once the next time.
    /// `question` is what the answer depends on besides the dump, the global options and the terminal; with a mapping of names, or a table of
    /// collections, nothing is kept.
    pub(crate) fn answer_once<T: Say>(
        &self,
        heap: &Heap,
        question: &str,
        find: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<Exit> {
        let provenance = Provenance::of(heap.summary());
        let kept = match &self.global.mapping {
            Some(_) => None,
            None => KeptAnswers::of(heap, "commands"),
        };
        let Some(kept) = kept else {
            return self.answer(&find()?, heap.summary());
        };
        // Options may come from the environment, so the command line does not say all.
        let question = format!("{question} {:?} {:?}", self.global, self.look);
        if let Some(text) = kept.find(&question) {
            self.write(text.as_bytes())?;
            return Ok(self.finish(&provenance));
        }
        let answer = find()?;
        let mut out = self.out.borrow_mut();
        let mut copied = Copied::new(&mut *out, MOST_KEPT);
        self.say_to(&mut copied, &answer, &provenance)?;
        if let Some(answer) = copied.text() {
            // Without it the answer is computed again.
            let _ = kept.add(Kept { question, answer });
        }
        drop(out);
        Ok(self.finish(&provenance))
    }

    /// Fails if unreachable objects are requested of a command that counts reachable ones only.
    pub(crate) fn refuse_unreachable(&self, command: &str) -> Result<(), Usage> {
        match self.global.unreachable {
            false => Ok(()),
            true => Err(Usage(format!(
                "{command} counts reachable objects only: use it without --unreachable (tenure unreachable FILE lists the \
                 unreachable ones)"
            ))),
        }
    }

    /// Whether the output is JSON or CSV: all rows, and nothing beside the answer.
    pub fn is_data(&self) -> bool {
        self.global.json || self.global.csv
    }

    /// Says an answer in the asked form.
    pub fn say<T: Say>(&self, answer: &T, provenance: &Provenance) -> io::Result<()> {
        self.say_to(&mut *self.out.borrow_mut(), answer, provenance)
    }

    fn say_to<T: Say>(
        &self,
        out: &mut dyn Write,
        answer: &T,
        provenance: &Provenance,
    ) -> io::Result<()> {
        if self.global.json {
            return json::write(out, answer, provenance);
        }
        let doc = match self.global.csv {
            true => answer.sheet(),
            false => say::whole(answer, provenance),
        };
        out.write_all(self.render(&doc).as_bytes())
    }

    /// Says in the asked form what is not about a heap: a value that is the JSON form, and its document.
    pub fn say_value<T: Serialize>(&self, value: &T, doc: impl FnOnce() -> Doc) -> io::Result<()> {
        if self.global.json {
            return json::write_value(&mut *self.out.borrow_mut(), value);
        }
        self.say_doc(&doc())
    }

    /// Says a document on standard output, or its tables only.
    pub fn say_doc(&self, doc: &Doc) -> io::Result<()> {
        self.write(self.render(doc).as_bytes())
    }

    fn render(&self, doc: &Doc) -> String {
        match self.global.csv {
            true => sheet::render(doc),
            false => terminal::render(doc, &self.look),
        }
    }

    /// Names the commands that lead on from an answer about this file; nothing for standard input, which
    /// cannot be read again, and nothing with `--json` or `--csv`.
    pub(crate) fn say_next(&self, file: &Path, commands: &[String]) -> io::Result<()> {
        if self.is_data() || file == Path::new("-") || commands.is_empty() {
            return Ok(());
        }
        let file = shell(&file.display().to_string());
        let lines = commands.iter().map(|command| {
            let text = format!("tenure {command}").replace("FILE", &file);
            ("next", vec![Span::Value(text)])
        });
        self.say_doc(&Doc::new().facts(lines.collect()))
    }

    /// Standard output, for data that is written in pieces.
    pub(crate) fn writer(&self) -> RefMut<'_, Stdout> {
        self.out.borrow_mut()
    }

    /// Writes data to standard output.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.out.borrow_mut().write_all(bytes)
    }

    /// Names the dump of an archive that the answer is about and lists the damage, on standard error, and gives the exit
    /// code.
    pub fn finish(&self, provenance: &Provenance) -> Exit {
        let archive = provenance.diagnostics.iter();
        for finding in archive.filter(|finding| finding.is_about_archive()) {
            if !(self.global.json || self.global.quiet) {
                output::note(&finding.message);
            }
        }
        if !provenance.damaged {
            return Exit::Ok;
        }
        if !self.global.json {
            output::warn_of_damage(provenance);
        }
        Exit::Damaged
    }

    /// Drops what was not handed over to standard output yet.
    pub(crate) fn discard(&self) {
        let _ = self.out.replace(output::stdout()).into_parts();
    }

    /// Prints what the phases cost on standard error, when requested.
    pub(crate) fn say_phases(&self) {
        let profile = self.phases.finish();
        if self.global.profile_phases {
            let text = terminal::render(&report::phases::table(&profile), &self.look);
            // A courtesy, as progress is: the answer has been said.
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }

    /// Hands everything over to standard output.
    pub fn flush(&self) -> anyhow::Result<()> {
        Ok(self.out.borrow_mut().flush()?)
    }
}

/// The table of `--collections`.
fn collections(file: &Path) -> anyhow::Result<CollectionTable> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let table = CollectionTable::extended(file, &text);
    Ok(table.map_err(|error| Usage(format!("{}: {error}", file.display())))?)
}
