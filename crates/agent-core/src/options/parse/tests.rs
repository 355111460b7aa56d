use super::*;
use crate::options::{OPTIONS, Origin};

fn run(text: &str) -> Options {
    match parse(text, None) {
        Ok(Parsed::Run(options)) => *options,
        other => panic!("{text}: {other:?}"),
    }
}

fn refused(text: &str) -> String {
    match parse(text, None) {
        Err(error) => error.fault.to_string(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn nothing_asked_means_heap_all() {
    for text in ["", "depth=3", "format=b", "verbose=n,"] {
        let options = run(text);
        assert!(options.heap.dump && options.heap.sites, "{text}");
    }
    assert!(!run("cpu=samples").heap.dump);
    assert!(!run("monitor=y").heap.sites);
    assert!(!run("alloc=512k").heap.sites);
}

#[test]
fn what_only_modifies_others_is_refused_alone() {
    for (text, needs) in [
        ("frames=native", "cpu=samples or wall=TIME"),
        ("safepoint=y,depth=9", "cpu=samples or wall=TIME"),
        ("stacks=sampled", "heap=sites or heap=all"),
        ("exact=y", "heap=sites or heap=all"),
        ("tracked=9", "heap=sites or alloc=SIZE"),
        ("live=n", "alloc=SIZE"),
        ("events-file=x", "events=SIZE"),
        ("events-net=unix:/x", "events=SIZE"),
        ("events-depth=3", "events=SIZE"),
        ("keep=3,format=b", "loop=TIME"),
        ("cow-limit=10m", "oom=snapshot"),
        (
            "memory=64m",
            "an option that selects what is recorded, such as cpu=samples",
        ),
    ] {
        let (option, _) = text.split_once('=').expect("an option");
        let sentence = format!("{option}= selects nothing to record: it needs {needs}");
        assert_eq!(refused(text), sentence);
    }
    // With an option that selects a recording, and with the original's own options, the default does not change.
    assert!(!run("memory=64m,cpu=samples,frames=native").heap.dump);
    assert!(run("memory=64m,oom=snapshot,cow-limit=10m").records_nothing);
    assert!(run("memory=64m,events=64k,events-file=x").records_nothing);
    assert!(run("keep=3,loop=1m").heap.dump && run("depth=9,cutoff=0").heap.dump);
}

#[test]
fn defaults_are_the_originals() {
    let options = run("");
    assert_eq!(options.output.target, Target::File("java.hprof.txt".into()));
    assert_eq!(options.traces.depth, 4);
    assert_eq!(options.interval, Duration::from_millis(10));
    assert_eq!(options.cutoff, 0.0001);
    assert!(options.dump_on_exit && options.verbose && options.traces.line_numbers);
    assert!(!options.traces.per_thread && !options.thread_cpu_clock);
    assert_eq!(
        run("format=b").output.target,
        Target::File("java.hprof".into())
    );
    assert_eq!(
        run("format=b,file=x").output.target,
        Target::File("x".into())
    );
}

#[test]
fn old_format_forces_two_frames_of_cost() {
    let options = run("cpu=old,depth=9");
    assert_eq!((options.traces.depth, options.traces.cost_depth), (9, 2));
    assert_eq!(run("cpu=times,depth=9").traces.cost_depth, 9);
    assert!(!run("cpu=old,cpu=times").cpu.old);
}

#[test]
fn faults_have_the_originals_texts() {
    for (text, fault) in [
        ("foo=bar", "Unknown option: foo"),
        ("foo", "Unknown option: foo"),
        ("heap=sites,,depth=3", "Unknown option: ,depth"),
        ("=x", "general syntax error parsing options"),
        ("abcdefghijklmnop=1", "general syntax error parsing options"),
        ("abcdefghijklmno=1", "Unknown option: abcdefghijklmno"),
        ("depth=", "syntax error parsing depth=DECIMAL"),
        ("interval=", "syntax error parsing interval=DECIMAL"),
        ("cutoff=", "syntax error parsing cutoff=DOUBLE"),
        ("cpu=", "syntax error parsing cpu=y|samples|times|old"),
        ("heap=", "syntax error parsing heap=dump|sites|all"),
        ("file=,x", "syntax error parsing file=filename"),
        ("depth=4x", "depth option value must be decimal and >= 0"),
        (
            "interval=0",
            "interval option value must be decimal and > 0",
        ),
        ("monitor=", "monitor option value must be y|n"),
        ("gc_okay=1", "gc_okay option value must be y|n"),
        ("net=:80", "net option missing ':'"),
        ("net=", "net option missing ':'"),
        ("net=localhost,heap=sites", "net option missing port"),
        (
            "alloc=0",
            "alloc option value must be a size such as 512k, up to 2047m",
        ),
        (
            "alloc=2g",
            "alloc option value must be a size such as 512k, up to 2047m",
        ),
        ("alloc=", "syntax error parsing alloc=SIZE"),
        (
            "heap=sites,tracked=many",
            "tracked option value must be a number of objects",
        ),
        (
            "heap=sites,exact=y,tracked=9",
            "tracked option value must be without exact=y and heap=dump|all",
        ),
        (
            "heap=sites,stacks=some",
            "stacks option value must be exact|sampled",
        ),
        (
            "heap=dump,stacks=sampled",
            "stacks option value must be exact without heap=sites|all, or with alloc=",
        ),
        (
            "heap=sites,alloc=512k,stacks=sampled",
            "stacks option value must be exact without heap=sites|all, or with alloc=",
        ),
        (
            "memory=1m",
            "memory option value must be a size from 16m on, such as 256m",
        ),
    ] {
        assert_eq!(refused(text), fault, "{text}");
    }
}

#[test]
fn the_message_shows_the_whole_string_with_the_environment() {
    let error = parse("heap=sites", Some("foo=1")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "hprof option error: Unknown option: foo (heap=sites,foo=1)"
    );
    let error = parse("", Some("foo=1")).unwrap_err();
    assert_eq!(error.options, "foo=1");
    assert_eq!(parse("help", Some("foo=1")), Ok(Parsed::Help));
}

#[test]
fn numbers_are_read_as_c_reads_them() {
    assert_eq!(
        run("net=h:80x").output.target,
        Target::Net {
            host: "h".into(),
            port: 80
        }
    );
    assert_eq!(
        run("net=h:abc").output.target,
        Target::Net {
            host: "h".into(),
            port: 0
        }
    );
    assert_eq!(run("depth= 7").traces.depth, 7);
    assert_eq!(run("depth=+7").traces.depth, 7);
    assert_eq!(run("depth=99999999999999999999").traces.depth, u32::MAX);
    assert_eq!(run("cutoff=1e-2").cutoff, 0.01);
    assert_eq!(run("cutoff=0").cutoff, 0.0);
}

#[test]
fn our_own_options_extend_the_grammar() {
    assert_eq!(
        run("alloc=512k").sampled,
        Some(SampledAlloc {
            interval: 512 << 10,
            live: true
        })
    );
    assert_eq!(
        run("live=n,alloc=1m").sampled,
        Some(SampledAlloc {
            interval: 1 << 20,
            live: false
        })
    );
    assert_eq!(run("cpu=samples,live=n").sampled, None);
    assert_eq!(run("cpu=samples,memory=1g").memory, 1 << 30);
    assert_eq!(run("heap=sites,tracked=5000").tracked, Some(5000));
    assert_eq!(run("alloc=512k,tracked=0").tracked, Some(0));
    assert_eq!(run("").tracked, None);
    assert_eq!(run("").memory, 256 << 20);
    assert_eq!(run("interval=500us").interval, Duration::from_micros(500));
    let wall = |text: &str| run(text).cpu.wall.map(|every| every.as_micros());
    assert_eq!(wall("cpu=samples"), None);
    assert_eq!(wall("wall=20ms,interval=5"), Some(20_000));
    assert_eq!(wall("wall=y,interval=5"), Some(5_000), "the other interval");
    assert_eq!(wall("wall=500us,wall=n"), None);
    assert!(!run("wall=20ms").heap.dump, "something is requested");
    assert_eq!(
        refused("wall=often"),
        "wall option value must be y|n or a time such as 10ms"
    );
    assert_eq!(run("compat=n").mode, Mode::Modern);
    let modern = run("modern=y,format=b,cpu=times,monitor=y");
    assert!(modern.cpu.times && modern.monitor);
    assert_eq!(
        refused("format=b,cpu=times"),
        "cpu=times|old is not supported with format=b"
    );
}

#[test]
fn frames_of_samples_are_those_of_java_unless_others_are_requested() {
    let frames = |text: &str| run(text).cpu.frames;
    assert_eq!(frames("cpu=samples"), Frames::Java);
    assert_eq!(frames("cpu=samples,frames=native"), Frames::Native);
    assert_eq!(frames("frames=kernel,cpu=samples"), Frames::Kernel);
    assert_eq!(
        frames("cpu=samples,frames=kernel,frames=java"),
        Frames::Java
    );
    assert_eq!(
        refused("frames=all"),
        "frames option value must be java|native|kernel"
    );
    assert_eq!(
        refused("cpu=samples,frames=native,safepoint=y"),
        "frames option value must be java with safepoint=y"
    );
}

#[test]
fn a_series_of_files_has_the_form_of_its_ending() {
    let options = run("cpu=samples,loop=90s,file=a-%t.hprof,keep=500m,duration=2h");
    let every = Duration::from_secs(90);
    let keep = Keep::Bytes(500 << 20);
    assert_eq!(options.series, Some(Rotation { every, keep }));
    assert_eq!(options.duration, Some(Duration::from_secs(7200)));
    assert_eq!(
        (options.output.format, options.mode, options.verbose),
        (Format::Binary, Mode::Modern, false)
    );
    let text = run("keep=3,loop=1m,file=a.txt");
    assert_eq!(text.series.map(|series| series.keep), Some(Keep::Files(3)));
    assert_eq!(
        (text.output.format, text.mode),
        (Format::Text, Mode::Compat)
    );
    let printed = run("loop=1s,file=a.hprof,format=a");
    assert_eq!(printed.output.format, Format::Text);
    assert_eq!(run("keep=3,cpu=samples").series, None);
    for wrong in [
        "loop=0",
        "loop=1d",
        "keep=0",
        "keep=many",
        "duration=",
        "loop=1s,net=localhost:1",
        "loop=1s,file=a.html",
        "loop=1s,file=a.jfr,frames=native",
    ] {
        assert!(parse(wrong, None).is_err(), "{wrong}");
    }
}

#[test]
fn a_file_is_never_text_under_the_name_of_another_form_without_a_word() {
    let timed = run("cpu=samples,duration=2s,file=a.hprof");
    assert_eq!(
        (timed.output.format, timed.mode, timed.verbose),
        (Format::Binary, Mode::Modern, true)
    );
    // Without options of Tenure, the original's default applies.
    let text = run("cpu=samples,file=a.hprof");
    assert_eq!(
        (text.output.format, text.mode),
        (Format::Text, Mode::Compat)
    );
    assert_eq!(
        text.remark().as_deref(),
        Some("a.hprof is written as text; format=b writes the binary form")
    );
    for silent in [
        "cpu=samples,file=a.hprof,format=a",
        "cpu=samples,file=a.hprof,format=b",
        "cpu=samples,file=a.hprof,compat=y",
        "cpu=samples,file=a.txt",
        "events=64k,file=a.hprof",
        "cpu=samples",
    ] {
        assert_eq!(run(silent).remark(), None, "{silent}");
    }
    for ending in ["jfr", "pb.gz", "html", "json", "collapsed"] {
        assert_eq!(
            refused(&format!("cpu=samples,modern=y,file=a.{ending}")),
            "file option value must be .hprof or .txt, or with loop= or duration= also .jfr, .pb.gz or .collapsed \
             (tenure run -o and tenure attach -o write these and .html and .json)"
        );
        for original in ["format=a", "compat=y"] {
            let options = run(&format!("cpu=samples,file=a.{ending},{original}"));
            assert_eq!(options.output.format, Format::Text);
        }
        assert!(run(&format!("events=64k,file=a.{ending}")).records_nothing);
    }
}

#[test]
fn a_file_with_an_end_has_the_form_of_its_ending() {
    for (ending, form) in [
        ("jfr", Form::Jfr),
        ("pb.gz", Form::Pprof),
        ("pprof", Form::Pprof),
        ("collapsed", Form::Collapsed),
        ("folded", Form::Collapsed),
    ] {
        for end in ["loop=60s", "duration=9m", "loop=60s,duration=9m,modern=y"] {
            let options = run(&format!("heap=sites,depth=9,{end},file=a-%t.{ending}"));
            let output = &options.output;
            assert_eq!(
                (output.converted, output.format, options.mode),
                (Some(form), Format::Binary, Mode::Modern)
            );
            assert_eq!((options.traces.depth, options.cpu.samples), (9, false));
        }
        assert_eq!(
            refused(&format!("heap=all,loop=60s,file=a.{ending}")),
            "heap option value must be sites with this file=: heap dumps need .hprof or .txt"
        );
    }
    let usual = run("loop=60s,file=a-%t.jfr");
    assert_eq!(
        (usual.cpu.samples, usual.heap.sites, usual.heap.dump),
        (true, false, false)
    );
    assert_eq!((usual.traces.depth, usual.traces.cost_depth), (64, 64));
    // A name of the original is not that of another form.
    let original = run("cpu=old,duration=9m,file=java.prof");
    assert_eq!(
        (original.output.converted, original.output.format),
        (None, Format::Text)
    );
    for words in ["format=a", "format=b", "compat=y"] {
        refused(&format!("cpu=samples,loop=60s,file=a.jfr,{words}"));
    }
    for words in ["events=64k,duration=9m", "cpu=samples,duration=9m,format=a"] {
        assert_eq!(run(&format!("{words},file=a.jfr")).output.converted, None);
    }
}

#[test]
fn events_go_where_a_profile_would_or_beside_one() {
    let events = |text: &str| {
        let options = run(text);
        let events = options.events.clone().expect("events");
        let Target::File(name) = events.target else {
            panic!("{text}")
        };
        let alone = options.records_nothing;
        (events.interval, events.depth, name, alone)
    };
    let file = |name: &str| name.to_owned();
    assert_eq!(events("events=64k,file=a"), (64 << 10, 4, file("a"), true));
    let deep = events("file=a,events=0,depth=20");
    assert_eq!(deep, (0, 20, file("a"), true));
    let usual = || file("java.events");
    assert_eq!(events("events=1m"), (1 << 20, 4, usual(), true));
    let beside = events("heap=sites,depth=20,file=x,events=64k,events-file=a");
    assert_eq!(beside, (64 << 10, 4, file("a"), false));
    let deeper = events("cpu=samples,events=1k,events-depth=9");
    assert_eq!(deeper, (1 << 10, 9, usual(), false));
    let beside = run("cpu=samples,file=x,events=1k,events-net=unix:/a/b");
    assert_eq!(beside.output.target, Target::File(file("x")));
    let target = beside.events.map(|events| events.target);
    assert_eq!(target, Some(Target::Unix(file("/a/b"))));
    for wrong in [
        "events=",
        "events=-1",
        "events=2g",
        "events=1,depth=65",
        "events=1,events-depth=x",
        "events=1,net=7",
        "events=1,events-file=a,events-net=h:1",
        "events=1,loop=1s",
        "heap=sites,file=a,events=1,events-file=a",
    ] {
        assert!(parse(wrong, None).is_err(), "{wrong}");
    }
}

#[test]
fn every_row_of_the_table_is_understood() {
    for row in OPTIONS {
        let value = match row.value {
            Value::Switch => "y",
            Value::Words => row.form.split('|').next().unwrap_or(""),
            Value::Text => "a:1",
            Value::Size => "16m",
            _ => "1",
        };
        let text = format!("cpu=samples,{}={value}", row.name);
        let known = parse(&text, None).is_ok();
        assert_eq!(known, row.origin != Origin::Removed, "{text}");
    }
}

#[test]
fn force_n_avoids_an_existing_file() {
    let options = run("force=n,file=out.txt");
    assert_eq!(
        options.output_file(9, |_| false).as_deref(),
        Some("out.txt")
    );
    assert_eq!(
        options.output_file(9, |_| true).as_deref(),
        Some("out.9.txt")
    );
    assert_eq!(
        run("file=out.txt").output_file(9, |_| true).as_deref(),
        Some("out.txt")
    );
    assert_eq!(run("net=h:1").output_file(9, |_| true), None);
}
