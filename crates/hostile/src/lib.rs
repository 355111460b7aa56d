//! The entrances of hostile bytes as functions: each eats any bytes and must come back, without a
//! panic, in time linear in them, and with memory in proportion to them.
//!
//! | entrance | bytes are |
//! |---|---|
//! | [`records`] | a dump: top-level records, then every segment |
//! | [`segment`] | one byte for the id width, then heap sub-records |
//! | [`source`] | a file as it lies on disk: plain, gzip, zip |
//! | [`text`] | a text profile of the JDK agent |
//! | [`profile`] | a profile of any form, through each form that is written |
//! | [`dump`] | a dump, through graph, dominators, the contents of every object and its referrers |
//! | [`commands`] | a dump, through every command that reads one: all analyses, queries, `redact`, `extract`, `convert` and `export` |
//! | [`events`] | an event stream: frames, batches, dumps, its replay, and the way back |
//! | [`index`] | patches to the index file of a good dump |
//! | [`query`] | one byte for the language, then the text of a query over a small heap |
//!
//! `fuzz/` makes a libFuzzer target of each; the tests of this crate replay [`inputs`] through them
//! on a stable toolchain, and the example `replay` does so with any files or with many more.
//!
//! [`mutate`] knows what a dump is and damages its fields; [`trial`] sends one mutant through all of
//! [`analyses`], and the example `mutants` does so with a million (`./x mutants`).

pub mod analyses;
pub mod inputs;
pub mod mutate;
pub mod trial;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use heap_graph::{Control, Heap, Options};
use heap_query::{Lang, Limits, Session};
use hprof::{
    FileOffset, HeapVisitor, IdSize, Instance, ObjectArray, PrimitiveArray, Stretch, map_file,
    walk_stretch,
};
use testkit::graph::Graph;
use testkit::shapes::{Encoding, dump_of};

/// Eats any bytes and comes back.
pub type Entrance = fn(&[u8]);

/// Every entrance by name.
pub const ENTRANCES: &[(&str, Entrance)] = &[
    ("records", records),
    ("segment", segment),
    ("source", source),
    ("text", text),
    ("profile", profile),
    ("dump", dump),
    ("commands", commands),
    ("events", events),
    ("index", index),
    ("query", query),
];

/// Adds up what it is shown, so that every borrowed byte is really touched.
#[derive(Default)]
struct Touch {
    objects: u64,
    bytes: u64,
}

impl Touch {
    fn touch(&mut self, bytes: &[u8]) {
        self.objects += 1;
        self.bytes += bytes.iter().map(|b| u64::from(*b)).sum::<u64>();
    }
}

impl HeapVisitor for Touch {
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        self.touch(i.fields);
    }

    fn object_array(&mut self, _: FileOffset, a: ObjectArray<'_>) {
        self.touch(a.elements);
    }

    fn primitive_array(&mut self, _: FileOffset, a: PrimitiveArray<'_>) {
        self.touch(a.data);
    }
}

/// Reads every top-level record and every segment of a dump.
pub fn records(data: &[u8]) {
    let mut raw = Vec::new();
    let Ok(map) = map_file(data, |record| raw.push(*record)) else {
        return;
    };
    for record in &raw {
        let _ = record.decode(map.header.id_size);
    }
    for s in &map.segments {
        let all = Stretch {
            from: s.body,
            until: s.end,
            end: s.end,
        };
        walk_all(data, map.header.id_size, all);
    }
}

/// Reads bytes as the body of a segment; the first byte chooses the id width.
pub fn segment(data: &[u8]) {
    let Some((first, body)) = data.split_first() else {
        return;
    };
    let ids = if first % 2 == 0 {
        IdSize::Four
    } else {
        IdSize::Eight
    };
    let end = body.len() as u64;
    walk_all(
        body,
        ids,
        Stretch {
            from: 0,
            until: end,
            end,
        },
    );
}

fn walk_all(data: &[u8], ids: IdSize, stretch: Stretch) {
    let mut touch = Touch::default();
    let walked = walk_stretch(data, ids, stretch, &|_| true, &mut touch);
    assert!(
        walked.next >= stretch.until.min(data.len() as u64),
        "the walk stopped early"
    );
    assert!(
        touch.objects <= data.len() as u64,
        "more objects than bytes"
    );
}

/// Opens bytes as a file of any packing.
pub fn source(data: &[u8]) {
    if let Ok(source) = hprof::source::Source::from_bytes(data.to_vec()) {
        assert!(
            source.bytes().len() <= 2000 * (data.len() + 1),
            "a bomb was unpacked"
        );
    }
}

/// Reads a text profile.
pub fn text(data: &[u8]) {
    let mut reader = hprof_text::TextReader::new(data);
    let records = reader.by_ref().count();
    assert!(records <= data.len() + 1, "more records than bytes");
    let _ = reader.into_diagnostics();
}

/// Reads a profile, binary, text or of Flight Recorder, and writes it in each form.
pub fn profile(data: &[u8]) {
    use ::profile::write;
    use report::profile::{Form, render};
    let Ok((profile, _)) = ::profile::read(data) else {
        return;
    };
    // One event of a recording for each sample: of a count that a few bytes claim there may be millions.
    let counts = profile.metrics();
    let sum = |metric: &::profile::Metric| -> u64 {
        let values = profile.stacks(*metric).map(|stack| stack.value);
        values.fold(0, u64::saturating_add)
    };
    let is_small = counts.iter().map(sum).all(|sum| sum < 1 << 24);
    let [pprof, jfr] = [write::Form::Pprof, write::Form::Jfr].map(Form::Plain);
    for form in [Form::Html, pprof, Form::Speedscope, jfr] {
        if form != jfr || is_small {
            let _ = render(&profile, form, None, "a");
        }
    }
    for metric in counts {
        let _ = report::profile::top::top(&profile, metric, Some(20));
    }
}

/// Opens a dump without an index and requests every object.
pub fn dump(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("fuzz.hprof");
    std::fs::write(&file, data).expect("writing it");
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    ask_everything(&file, &options);
}

/// What is asked of a dump: the words of each command, `FILE` for the dump and `OUT` for a new file.
const COMMANDS: &[&str] = &[
    "overview FILE",
    "summary FILE",
    "validate FILE",
    "histogram FILE --by package --empty",
    "histogram FILE --by loader --unreachable",
    "dominators FILE",
    "leaks FILE",
    "report FILE -o OUT.html",
    "report FILE -o OUT.md",
    "top FILE",
    "object FILE @1",
    "objects FILE retained:all --by class",
    "objects FILE class:java.lang.Object --paths",
    "paths FILE --class java.lang.Object",
    "roots FILE",
    "threads FILE",
    "strings FILE --duplicates --holders",
    "strings FILE --find a.*b",
    "collections FILE",
    "waste FILE",
    "loaders FILE",
    "properties FILE",
    "unreachable FILE",
    "android FILE",
    "secrets FILE --show",
    "diff FILE FILE",
    "query FILE --lang oql --limit 20 --timeout 1s SELECT_*,_dominators(s)_FROM_INSTANCEOF_java.lang.Object_s",
    "query FILE --lang sql --limit 20 --timeout 1s select_*_from_objects_o_join_\"references\"_r_on_r.from_id=o.id",
    "query FILE --lang jhat --limit 20 --timeout 1s select_referrers(x)_from_instanceof_java.lang.Object_x",
    "redact FILE OUT.redacted",
    "redact FILE OUT.zeros --numbers --method zero",
    "extract FILE OUT.part --class java.lang.Object",
    "convert FILE --to android -o OUT.android",
    "convert FILE --to hprof -o OUT.standard",
    "export FILE -o OUT.tables --format ndjson --objects",
    "export FILE -o OUT.parquet --format parquet --objects",
];

/// Runs every command that reads a dump. Each ends with one of the documented exit codes.
pub fn commands(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("fuzz.hprof");
    std::fs::write(&file, data).expect("writing it");
    let (file, out) = (file.display().to_string(), folder.path().join("out"));
    let out = out.display().to_string();
    for command in COMMANDS {
        let words = command.split(' ').map(|word| match word {
            "FILE" => file.clone(),
            _ if word.starts_with("OUT") => word.replace("OUT", &out),
            _ => word.replace('_', " "),
        });
        let line = ["tenure".to_owned()].into_iter().chain(words);
        let line = line.chain(["--no-index", "--quiet", "--threads", "2"].map(str::to_owned));
        let code = cli::run(line.map(Into::into).collect());
        // A class that a query names may be one of those that a damaged dump has lost.
        let is_expected =
            matches!(code, 0 | 1 | 3 | 4) || code == 2 && command.starts_with("query");
        assert!(is_expected, "{command}: exit code {code}");
    }
}

fn ask_everything(file: &Path, options: &Options) {
    if let Ok(heap) = Heap::open(file, options, &Control::quiet()) {
        ask_of_all(&heap);
    }
}

/// Requests every object, its contents, its referrers and what it dominates.
fn ask_of_all(heap: &Heap) {
    let mut reachable = 0;
    for (object, _) in heap.all_ids() {
        reachable += u64::from(heap.is_reachable(object));
        let _ = (
            heap.class_of(object),
            heap.shallow(object),
            heap.retained(object),
        );
        let _ = heap.dominator(object);
        // A damaged object is an error in words, and so are the referrers of one.
        let _ = heap.object(object).map(|contents| format!("{contents:?}"));
        if let Ok(from) = heap.inbound(object) {
            assert!(
                from.len() as u64 <= heap.len(),
                "more referrers than objects"
            );
        }
    }
    assert!(reachable <= heap.len());
    for object in heap.dominated(None).take(1000) {
        let _ = heap.dominated(Some(object)).count();
        let _ = heap.roots_of(object).count();
    }
    for thread in heap.threads() {
        let _ = thread;
    }
}

/// Damages the index file of a good dump and opens the dump with it. The bytes are patches:
/// four for the place (modulo the file's length), one to write there; at most eight.
pub fn index(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("good.hprof");
    let graph = Graph::from_edges(
        9,
        &[0],
        &[(0, 1), (1, 2), (2, 3), (3, 0), (0, 5), (5, 6), (1, 6)],
    );
    let made = dump_of(&graph, Encoding::Mixed, testkit::dump::IdSize::Eight);
    std::fs::write(&file, made.heap.bytes()).expect("writing it");
    let cache = folder.path().join("cache");
    let options = Options {
        cache_dir: Some(cache.clone()),
        ..Options::default()
    };
    ask_everything(&file, &options);
    for path in files(&cache) {
        let mut bytes = std::fs::read(&path).expect("the index");
        for patch in data.chunks_exact(5).take(8) {
            let place = u32::from_be_bytes([patch[0], patch[1], patch[2], patch[3]]) as usize;
            let length = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(place % length) {
                *byte = patch[4];
            }
        }
        // One patch left over cuts the file.
        if data.len() % 5 == 1 {
            bytes.truncate(bytes.len() * usize::from(data[data.len() - 1]) / 256);
        }
        std::fs::write(&path, bytes).expect("writing it");
    }
    ask_everything(&file, &options);
}

/// Asks a query of a small heap: in SQL, in either OQL, or as it is recognised; completes it, too.
/// The first byte chooses the language.
pub fn query(data: &[u8]) {
    let Some((first, text)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let lang = match first % 4 {
        0 => Some(Lang::Sql),
        1 => Some(Lang::Oql),
        2 => Some(Lang::Jhat),
        _ => None,
    };
    let limits = Limits {
        rows: Some(100),
        time: Some(Duration::from_millis(200)),
        ..Limits::default()
    };
    let session = small_session();
    if let Ok(table) = session.run(&text, lang, &limits) {
        assert!(table.rows.len() <= 100, "more rows than requested");
    }
    let _ = session.explain(&text, lang, &limits);
    let _ = session.complete(&text, text.len() / 2, 20);
}

fn small_session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("small.hprof");
        let edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 5), (5, 6), (1, 6)];
        let graph = Graph::from_edges(9, &[0], &edges);
        let made = dump_of(&graph, Encoding::Mixed, testkit::dump::IdSize::Eight);
        std::fs::write(&file, made.heap.bytes()).expect("writing it");
        let options = Options {
            no_index: true,
            ..Options::default()
        };
        let heap = Heap::open(&file, &options, &Control::quiet()).expect("a readable dump");
        Session::open(heap.into())
    })
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut todo = vec![folder.to_path_buf()];
    let mut found = Vec::new();
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found
}

/// Reads an event stream with every row and dump in it, replays it into a live heap that is queried
/// for everything, and reads the same bytes as a way back. Frame
/// checksums would stop a fuzzer at the door, so bytes without the stream's magic are one batch.
pub fn events(data: &[u8]) {
    use vmpi::wire::{CommandReader, Decoder, Frame, Item, MAGIC, frame_of_batch, read_all};
    let touch = |bytes: &[u8]| {
        let mut dumps = Vec::new();
        let mut layout = vmpi::dump::IdLayout::NATIVE;
        let _ = read_all(bytes, |frame| {
            match frame {
                Frame::Hello(hello) => layout = vmpi::dump::IdLayout::of(&hello),
                Frame::Batch(batch) => {
                    for item in batch {
                        if let Item::Event { body, .. } = item? {
                            dumps.push(body);
                        }
                    }
                }
                Frame::Answer(_) | Frame::End => {}
            }
            Ok(())
        });
        for body in dumps {
            match body {
                vmpi::Body::HeapDump(dump) => {
                    let _ = vmpi::dump::heap::decode_ids(&dump.data, layout);
                    let _ = vmpi::dump::heap::decode(&dump.data, dump.level, layout, &());
                }
                vmpi::Body::MonitorDump(dump) => {
                    let _ = vmpi::dump::monitor::decode(&dump.data, layout);
                }
                _ => {}
            }
        }
        let mut replay = live_heap::Replay::new();
        replay.push(bytes);
        if let Ok((heap, _)) = replay.finish() {
            let answer = heap.answer(usize::MAX);
            assert_eq!(answer.totals.live_objects, heap.population().count() as u64);
        }
    };
    touch(data);
    if !Decoder::recognises(data) {
        touch(&frame_of_batch(data));
    }
    let mut back = CommandReader::new();
    back.push(&MAGIC);
    back.push(data);
    while let Ok(Some(_)) = back.next_command() {}
}
