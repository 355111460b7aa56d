//! Hostile bytes to send through the entrances: mutants of a small dump, of packed ones, of event
//! streams and of queries, and random damage to them; the same bytes each time.

use std::cell::RefCell;
use std::path::Path;

use testkit::dump::{IdSize, gzip_members, zip};
use testkit::graph::Graph;
use testkit::shapes::{Encoding, dump_of};

/// An input: what it is called, and its bytes.
pub type Input = (String, Vec<u8>);

/// Whether an input means anything to an entrance: each index is built anew, and a whole dump means no
/// more as a patch than its first bytes; nor does it say much as a query.
pub fn suits(entrance: &str, input: &[u8]) -> bool {
    match entrance {
        "index" => input.len() < 100,
        "query" => input.len() < 1000,
        _ => true,
    }
}

/// A file, or all files below a folder.
///
/// # Errors
/// When one cannot be read.
pub fn read(path: &Path) -> std::io::Result<Vec<Input>> {
    if !path.is_dir() {
        return Ok(vec![(path.display().to_string(), std::fs::read(path)?)]);
    }
    let mut all = Vec::new();
    for entry in std::fs::read_dir(path)? {
        all.extend(read(&entry?.path())?);
    }
    Ok(all)
}

/// Mutants of a small dump by the corpus's script where there is one, and random damage always:
/// `times` each.
///
/// # Panics
/// When a temporary file cannot be written.
pub fn made(times: usize) -> Vec<Input> {
    let edges: Vec<(usize, usize)> = (1..400)
        .flat_map(|i| [(i / 2, i), (i, i * 7 % 400)])
        .collect();
    let graph = Graph::from_edges(400, &[0, 7], &edges);
    // Short noise is what the index entrance reads as patches.
    let noise = |i: u64| damaged(&[0x5a; 41], 5, i + 1000);
    let mut all: Vec<_> = (0..times as u64).flat_map(noise).collect();
    all.extend(queries(times / 5 + 1));
    for id_size in IdSize::ALL {
        let good = dump_of(&graph, Encoding::Mixed, id_size).heap.bytes();
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), &good).expect("writing it");
        let mutants = testkit::mutants::mutants(file.path(), times as u32, 1);
        for mutant in mutants.iter().flat_map(|mutants| &mutants.all) {
            all.extend(read(&mutant.path).expect("a mutant"));
        }
        let packed = [gzip_members(&good, 1000), zip(&good, "heap.hprof")];
        let text = std::fs::read(testkit::corpus::workspace().join("demo/Leak.java"));
        let bases = packed.into_iter().chain([good]).chain(text);
        all.extend(
            bases
                .enumerate()
                .flat_map(|(i, base)| damaged(&base, times, i as u64 + 1)),
        );
    }
    for (i, profile) in profiles().into_iter().enumerate() {
        all.extend(damaged(&profile, times, i as u64 + 30));
        all.push((format!("profile {i}"), profile));
    }
    for (i, stream) in streams().into_iter().enumerate() {
        all.extend(damaged(&stream, times / 2, i as u64 + 50));
        all.push((format!("stream {i}"), stream));
    }
    all
}

/// A profile as text and as a recording.
fn profiles() -> [Vec<u8>; 2] {
    let text = "THREAD START (obj=50000001, id = 200001, name=\"main\", group=\"main\")\n\
        TRACE 300001: (thread=200001)\n\ta.B.hot(B.java:3)\n\ta.B.main(B.java:14)\nTRACE 300002:\n\ta.B.<init>(B.java:9)\n\
        MONITOR TIME BEGIN (total = 40 ms) Sat Nov 21 04:57:27 2026\n   1 100.00% 100.00%       4 300002 Ljava/lang/Object; (Java)\nMONITOR TIME END\n\
        SITES BEGIN (ordered by live bytes) Sat Nov 21 04:57:27 2026\n    1 80.00% 80.00%      800   10      1600    20 300002 byte[]\nSITES END\n\
        CPU SAMPLES BEGIN (total = 12) Sat Nov 21 04:57:27 2026\n   1 75.00% 75.00%       9 300001 a.B.hot\n   2 25.00% 100.00%       3 300002 a.B.<init>\nCPU SAMPLES END\n";
    let (profile, _) = ::profile::read(text.as_bytes()).expect("a profile");
    let recording = profile::write::write(&profile, profile::write::Form::Jfr, None);
    [text.as_bytes().to_vec(), recording]
}

/// What each collector of the reference VM emits for a small script.
fn streams() -> Vec<Vec<u8>> {
    let script = "class N 1 4\nrepeat 60 i\na = new N\na[0] = $l\n$l = a\nb = new int[9]\nend\n$l = null\ngc";
    let script: refheap::Script = script.parse().expect("a script");
    let stream = |gc| {
        let mut config = refheap::Config::new(gc);
        config.heap = 4 << 10;
        let hello = refheap::RefVm::hello(&config);
        let encoder = RefCell::new(vmpi::wire::Encoder::new(&hello));
        let sink = |env, item: &vmpi::wire::Item| encoder.borrow_mut().item(env, item);
        let mut vm = refheap::RefVm::new(config, vmpi::Switches::all(), Box::new(sink));
        refheap::script::run(&script, &mut vm).expect("the script runs");
        vm.request_to_sink(vmpi::mode::Request::HeapDump(vmpi::DumpLevel::References));
        drop(vm);
        encoder.into_inner().finish()
    };
    refheap::Gc::ALL.into_iter().map(stream).collect()
}

/// Queries, and damage to them, each in every language.
fn queries(times: usize) -> Vec<Input> {
    const TEXTS: &[&str] = &[
        "select class, count(*), sum(shallow) from objects where retained > 16 group by class order by 3 desc limit 5",
        "with recursive n(i) as (select 1 union all select i + 1 from n) select sum(i) from n",
        "select o.id, r.field from objects o, outbound(o.id) r left join \"references\" x on x.to_id = r.id",
        "select * from histogram_by('package', 'retained:(class:a.B and in:all)', 1), set_members('sql:(select id from objects)')",
        "SELECT DISTINCT OBJECTS dominators(s) FROM INSTANCEOF java.lang.Object s WHERE s.@usedHeapSize > 8 AND toString(s) LIKE \".*x\"",
        "SELECT AS RETAINED SET * FROM OBJECTS 0,1,0x10 UNION (SELECT x[1:-1] FROM \"java.*\" x)",
        "select map(sort(heap.objects('java.lang.Object'), 'sizeof(lhs) - sizeof(rhs)'), '{ a: sizeof(it), b: it }')",
        "select { a: x, b: referrers(x) } from instanceof java.lang.Object x where /a(b+)+c/(x.toString()) && count(reachables(x)) > 1",
        "while (true) { heap.forEachObject(function (o) { throw o; }); }",
        "function f() { return f() + [].concat(f()); } f()",
    ];
    let mut all = Vec::new();
    for lang in 0..4u8 {
        for (n, text) in TEXTS.iter().enumerate() {
            let bytes = [&[lang], text.as_bytes()].concat();
            all.extend(damaged(
                &bytes,
                times,
                u64::from(lang) * 100 + n as u64 + 5000,
            ));
            all.push((format!("query {lang}/{n}"), bytes));
        }
    }
    all
}

/// Copies with bits flipped, words overwritten, and tails cut; the same for the same seed.
fn damaged(base: &[u8], n: usize, seed: u64) -> Vec<Input> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let mut one = |i: usize| {
        let mut data = base.to_vec();
        for _ in 0..1 + random(40) {
            let at = random(data.len());
            match random(4) {
                0 => data.truncate(at.max(1)),
                1 => data[at..].iter_mut().take(4).for_each(|b| *b = 0xff),
                2 => data[at] = random(256) as u8,
                _ => data[at] ^= 1 << random(8),
            }
        }
        (format!("random {seed}/{i}"), data)
    };
    (0..n).map(&mut one).collect()
}
