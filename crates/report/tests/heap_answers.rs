//! Answers about dumps as text.

use heap_analysis::tables::threads::{ThreadOptions, threads};
use heap_graph::{Control, Heap, Options};
use report::{Look, Say, terminal};
use testkit::dump::{FrameSpec, Heap as Builder, IdSize, Root};

fn open(dump: &Builder) -> Heap {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), dump.bytes()).expect("writing the dump");
    let options = Options {
        no_index: true,
        ..Options::default()
    };
    Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump")
}

fn text(answer: &impl Say) -> String {
    terminal::render(&answer.doc(), &Look::default())
}

/// A frame of `a.Main`.
fn frame(class: u64, line: i32) -> FrameSpec<'static> {
    FrameSpec {
        class,
        method: "run",
        source: "Main.java",
        line,
    }
}

#[test]
fn groups_of_virtual_threads_beyond_the_limit_are_counted() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let main = b.class("a/Main", object, &[]);
    let class = b.class("java.lang.VirtualThread", object, &[]);
    for line in 1..=9 {
        let (trace, _) = b.thread("carrier", &[frame(main, line)]);
        let thread = b.instance(class, &[]);
        let serial = trace + 100;
        b.root(
            Root::ThreadObject {
                thread: serial,
                trace,
            },
            thread,
        );
    }
    let options = ThreadOptions {
        top: Some(2),
        ..ThreadOptions::default()
    };
    let text = text(&threads(&open(&b), &options));
    assert!(text.contains("9 virtual threads in 9 groups"), "{text}");
    assert!(text.contains("… 7 more groups"), "{text}");
}
