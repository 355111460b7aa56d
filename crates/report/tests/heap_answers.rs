//! Answers about dumps as text.

use heap_analysis::leaks::{LeakOptions, find};
use heap_analysis::tables::threads::{ThreadOptions, threads};
use heap_graph::{Control, Heap, Options};
use report::{Look, Say, terminal};
use testkit::dump::{Elements, FrameSpec, Heap as Builder, IdSize, Root};

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

#[test]
fn the_middle_of_the_stack_of_a_suspect_is_left_out() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let main = b.class("a/Main", object, &[]);
    for (name, depth) in [("deep", 3000), ("flat", 35)] {
        let stack: Vec<_> = (1..=depth).map(|line| frame(main, line)).collect();
        let (thread, _) = b.thread(name, &stack);
        let local = b.primitive_array(Elements::Byte(vec![0; 100_000]));
        b.root(Root::JavaFrame { thread, frame: 0 }, local);
    }
    let heap = open(&b);
    let found = find(&heap, &LeakOptions::default(), &Control::quiet()).expect("suspects");
    let of = |name: &str| {
        let mut all = found.suspects.iter();
        all.find(|s| s.value.as_deref() == Some(name))
            .expect("a suspect")
    };
    let (deep, flat) = (of("deep"), of("flat"));
    assert_eq!((flat.stack.len(), flat.stack_omitted), (35, 0));
    assert_eq!((deep.stack.len(), deep.stack_omitted), (35, 2965));
    assert_eq!(deep.stack[29], "a.Main.run(Main.java:30)");
    assert_eq!(deep.stack[30], "a.Main.run(Main.java:2996)");
    let text = text(&found);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let cut = lines.iter().position(|l| l.contains("more frames"));
    let cut = cut.expect("a line");
    assert_eq!(
        &lines[cut - 1..cut + 2],
        [
            "a.Main.run(Main.java:30)",
            "… 2,965 more frames …",
            "a.Main.run(Main.java:2996)"
        ]
    );
    assert_eq!(text.matches("more frames").count(), 1, "{text}");
}

#[test]
fn objects_of_a_thread_in_no_known_frame_are_below_a_line_of_their_own() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let main = b.class("a/Main", object, &[]);
    let (with, _) = b.thread("with frames", &[frame(main, 12)]);
    let (without, _) = b.thread("without frames", &[]);
    for (thread, count) in [(with, 1), (without, 10)] {
        for _ in 0..count {
            let local = b.instance(main, &[]);
            let frame = u32::MAX;
            b.root(Root::JniLocal { thread, frame }, local);
        }
    }
    let local = b.instance(main, &[]);
    b.root(
        Root::JavaFrame {
            thread: with,
            frame: 0,
        },
        local,
    );
    let text = text(&threads(&open(&b), &ThreadOptions::default()));
    let stacks = text.split("\"with").skip(2).collect::<Vec<_>>().join("");
    let lines: Vec<&str> = stacks.lines().map(str::trim).collect();
    let kind = |line: &str| match line {
        _ if line.starts_with("at a.Main.run(Main.java:12)") => 'f',
        "in no known frame" => 'n',
        _ if line.contains("a.Main @0x") => 'o',
        _ if line.starts_with("… 2 objects more") => 'm',
        _ => ' ',
    };
    let kinds: String = lines
        .iter()
        .map(|l| kind(l))
        .filter(|k| *k != ' ')
        .collect();
    let all = ["fono", "noooooooom"];
    assert!(all.iter().all(|k| kinds.contains(k)), "{kinds}\n{text}");
}

#[test]
fn a_class_name_in_a_suggested_command_is_quoted() {
    let mut b = Builder::new(IdSize::Eight);
    let object = b.java_lang_object();
    let class = b.class("a'; id; '", object, &[]);
    for _ in 0..1000 {
        let instance = b.instance(class, &[]);
        b.root(Root::JniGlobal { reference: 1 }, instance);
    }
    let found = find(&open(&b), &LeakOptions::default(), &Control::quiet()).expect("suspects");
    let text = text(&found);
    let words: Vec<&str> = text.split_whitespace().collect();
    let command = r"tenure paths --class 'a'\''; id; '\''' FILE";
    assert!(words.join(" ").contains(command), "{text}");
}
