//! What the leaks of a fresh dump claim about threads.

use heap_analysis::leaks::{LeakOptions, SuspectKind, find};
use heap_analysis::tables;
use heap_graph::{Control, Heap, Options};

const PROGRAM: &str = r#"
import java.util.concurrent.*;
public class Keeping {
    static final ThreadLocal<byte[][]> KEPT = new ThreadLocal<>();
    static final ThreadLocal<byte[]> EACH = new ThreadLocal<>();
    static byte[] both;
    static final CountDownLatch ready = new CountDownLatch(23);
    static void start(String name, Runnable body) { Thread thread = new Thread(body, name); thread.setDaemon(true); thread.start(); }
    static int waits(byte[] local) {
        ready.countDown();
        try { new CountDownLatch(1).await(); } catch (InterruptedException e) { }
        return local.length;
    }
    static void fill() {
        byte[][] all = new byte[300][];
        for (int i = 0; i < all.length; i++) all[i] = new byte[10_000];
        KEPT.set(all);
    }
    static void each() {
        EACH.set(new byte[50_000]);
        new ThreadLocal<byte[]>().set(new byte[20_000]);
    }
    public static void main(String[] args) throws Exception {
        start("variable", () -> { fill(); waits(new byte[1]); });
        start("frame", () -> waits(new byte[3_000_000]));
        start("static field", () -> waits(both = new byte[3_000_000]));
        for (int i = 0; i < 20; i++) start("many", () -> { each(); waits(new byte[100_000]); });
        ready.await();
    }
}
"#;

#[test]
fn a_thread_keeps_by_a_local_or_a_thread_local_variable_and_its_stack_allocated_nothing() {
    if testkit::jvm::newest_compiler().is_none() {
        let (what, why) = ("what threads keep", "there is no JDK");
        return testkit::skip(what, testkit::Need::Jdk, why);
    }
    for jdk in testkit::jvm::tested() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = folder.path().join("Keeping.java");
        std::fs::write(&source, PROGRAM).expect("written");
        let dump = jdk.dump(&source, &["-Xint"], &[]).expect("a dump");
        let options = Options {
            no_index: true,
            ..Options::default()
        };
        let heap = Heap::open(&dump.path, &options, &Control::quiet()).expect("a heap");
        let found = find(&heap, &LeakOptions::default(), &Control::quiet()).expect("suspects");
        let what = format!("{:#?} on {}", found.suspects, jdk.full_version);
        let of = |name: &str| {
            let mut all = found.suspects.iter();
            all.find(|suspect| suspect.value.as_deref() == Some(name))
                .expect(&what)
        };
        let (variable, frame) = (of("variable"), of("frame"));
        let local = variable.thread_local_of.as_ref().expect(&what);
        assert_eq!(local.thread, "variable", "{what}");
        assert_eq!(local.variable.as_deref(), Some("Keeping.KEPT"), "{what}");
        assert_eq!(variable.local_of, None, "{what}");
        assert_eq!(frame.thread_local_of, None, "{what}");
        let local = frame.local_of.as_ref().expect(&what);
        assert_eq!(local.thread, "frame", "{what}");
        assert!(local.frame.starts_with("Keeping.waits("), "{what}");
        assert_eq!(frame.static_field, None, "{what}");
        let mut all = found.suspects.iter();
        let both = all.find(|suspect| suspect.static_field.is_some());
        let both = both.expect(&what);
        assert_eq!(both.static_field.as_deref(), Some("Keeping.both"), "{what}");
        let local = both.local_of.as_ref().expect(&what);
        assert_eq!(local.thread, "static field", "{what}");
        // The dumps of a JVM do not have the stacks of allocations.
        let mut classes = found.suspects.iter();
        let threads = classes
            .find(|one| one.kind == SuspectKind::Class && one.class == "java.lang.Thread")
            .expect(&what);
        assert!(threads.stack.is_empty(), "{what}");
        // Of each of these threads: a variable, and a value whose variable is garbage.
        let each: Vec<_> = threads
            .thread_locals
            .iter()
            .map(|v| (v.variable.as_deref(), v.threads, v.retained.0 / 10_000))
            .collect();
        assert_eq!(
            each,
            [(Some("Keeping.EACH"), 20, 100), (None, 20, 40)],
            "{what}"
        );
        let all = tables::threads::threads(&heap, &Default::default()).thread_locals;
        let kept = all
            .iter()
            .find(|v| v.variable.as_deref() == Some("Keeping.KEPT"));
        let kept = kept.expect(&what);
        assert_eq!((kept.threads, &*kept.thread), (1, "variable"), "{what}");
        assert!(all.iter().any(|v| v.class.is_empty()), "{what}");
    }
}
