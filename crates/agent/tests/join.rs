//! The two worlds joined: a heap dump of the agent, opened by the analyzer, still knows which
//! stack allocated what fills the heap.

use heap_analysis::tables::group::{GroupBy, GroupKey};
use heap_analysis::tables::histogram::{HistogramOptions, histogram};
use heap_analysis::{leaks, objects::object};
use heap_graph::{Control, Heap, Options};

#[test]
fn a_dump_of_the_agent_names_the_stack_that_allocated_the_leak() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in [lab.jdks.first(), lab.jdks.last()].into_iter().flatten() {
        let Some(classes) = lab.compile("Leak.java", 8) else {
            continue;
        };
        let options = "heap=dump,format=b,file=leak.hprof,depth=6";
        let ran = lab.run_in(jdk, classes.path(), Some(options), &[], &["Leak"]);
        assert_eq!(ran.stdout(), "sessions 3000\n", "{}", ran.stderr());
        let heap = Heap::open(
            &ran.folder.path().join("leak.hprof"),
            &Options::default(),
            &Control::quiet(),
        )
        .expect("the dump opens");

        let by_site = HistogramOptions {
            by: GroupBy::Site,
            ..Default::default()
        };
        let login = |frames: &[String]| {
            frames.len() > 2
                && frames[0].starts_with("Leak$Session.<init>(Leak.java:")
                && frames[1].starts_with("Leak$Registry.login(Leak.java:")
                && frames[2].starts_with("Leak.main(Leak.java:")
        };
        let rows = histogram(&heap, &by_site).expect("a histogram").rows;
        let sites: Vec<_> = rows
            .iter()
            .filter(|r| matches!(&r.key, GroupKey::Site { frames, .. } if login(frames)))
            .collect();
        // The session, and the array that its constructor makes.
        let objects: u64 = sites.iter().map(|r| r.objects).sum();
        assert_eq!(objects, 6000, "JDK {}", jdk.version);
        let retained: u64 = sites.iter().filter_map(|r| r.retained).map(|r| r.0).sum();
        assert!(retained > 3000 * 916, "{retained}");

        let found = leaks::find(&heap, &Default::default(), &heap_graph::Control::quiet())
            .expect("suspects");
        let suspect = &found.suspects[0];
        assert_eq!(suspect.holder.as_deref(), Some("Leak$Registry.sessions"));
        let point = suspect.accumulation_point.as_ref().expect("a point");
        let by = point.allocated_by.as_ref().expect("stacks");
        assert_eq!(
            (by.class.as_str(), by.with_stack),
            ("Leak$Session", by.objects)
        );
        assert!(login(&by.sites[0].frames), "{:?}", by.sites);

        let session = heap
            .classes()
            .iter()
            .position(|c| c.name == "Leak$Session")
            .expect("the class");
        let first = heap
            .objects_of(heap_graph::ClassIdx(session as u32))
            .next()
            .expect("a session");
        let shown = object::details(&heap, first, &Default::default()).expect("the object");
        assert!(login(&shown.allocated_at), "{:?}", shown.allocated_at);
    }
}
