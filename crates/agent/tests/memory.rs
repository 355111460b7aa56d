//! The budget of the agent's memory: a program that would fill it continues, and the profile reports what was
//! dropped; counts are exact all the same.

use testkit::jvm::Jdk;

use crate::common::{Lab, Ran};
use crate::vm_events::Recording;

/// Stacks, and objects at each.
const BITS: u32 = 16;
const OBJECTS: u64 = 16;
const MADE: u64 = OBJECTS << BITS;
/// The smallest budget, and the quarter of it that is in the program's heap.
const LIMITS: [u64; 2] = [16 << 20, 4 << 20];

fn run(lab: &Lab, jdk: &Jdk, options: Option<&str>) -> Ran {
    let classes = lab.compile("ManyPaths.java", 8).expect("compiles");
    let flags = [
        "-Xms256m",
        "-Xmx256m",
        "-XX:+AlwaysPreTouch",
        "-XX:+UseSerialGC",
    ];
    let program = ["ManyPaths", &BITS.to_string(), &OBJECTS.to_string()];
    let ran = lab.run_in(jdk, classes.path(), options, &flags, &program);
    let (out, what) = (ran.stdout(), format!("{options:?} on {}", jdk.full_version));
    assert!(ran.output.status.success(), "{what}: {out}{}", ran.stderr());
    assert!(out.starts_with(&format!("made {MADE}\n")), "{what}: {out}");
    ran
}

/// What the process had at most, in KiB.
fn resident(ran: &Ran) -> i64 {
    let out = ran.stdout();
    let mut lines = out
        .lines()
        .filter_map(|line| line.strip_prefix("resident "));
    lines.next().expect("printed").parse().expect("a number")
}

/// The notes of a profile.
fn notes(profile: &str) -> Vec<&str> {
    profile
        .lines()
        .filter_map(|line| line.strip_prefix("NOTE: "))
        .collect()
}

/// How many were lost of something.
fn lost(notes: &[&str], what: &str) -> u64 {
    let of_it = notes.iter().filter_map(|note| note.split_once(" lost: "));
    let mut of_it = of_it.filter(|(_, lost)| lost.starts_with(what));
    of_it
        .next()
        .map_or(0, |(count, _)| count.parse().expect("a number"))
}

/// What the agent's own counters say: never beyond the limits.
fn check_counters(notes: &[&str], what: &str) {
    let mut printed = 0;
    for note in notes {
        let Some((_, numbers)) = note.split_once(": at most ") else {
            continue;
        };
        let words: Vec<&str> = numbers.split(' ').collect();
        let [most, limit] = [words[0], words[2]].map(|word| word.parse::<u64>().expect("a number"));
        assert!(most <= limit && LIMITS.contains(&limit), "{what}: {note}");
        // A table that wants to be twice as large may be refused early.
        assert!(most > limit / 8, "{what}: {note}");
        printed += 1;
    }
    assert!(printed > 0, "{what}: {notes:?}");
}

/// The sum of a column over the rows of a table that end with a name.
fn sum(profile: &str, name: &str, column: usize) -> u64 {
    let rows = profile.lines().filter(|row| row.ends_with(name));
    rows.filter_map(|row| row.split_whitespace().nth(column)?.parse::<u64>().ok())
        .sum()
}

#[test]
fn sites_and_objects_beyond_the_budget_are_counted_and_the_profile_says_so() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        let plain = resident(&run(lab, jdk, None));
        let [small, large] = ["memory=16m", "memory=1g"].map(|memory| {
            let options = format!("heap=sites,depth=24,cutoff=0,{memory}");
            let ran = run(lab, jdk, Some(&options));
            let (profile, what) = (ran.profile(), format!("{options} on {}", jdk.full_version));
            assert_eq!(sum(&profile, " ManyPaths$Made", 6), MADE, "{what}");
            (ran, profile, what)
        });
        let (ran, profile, what) = &small;
        let notes_of_small = notes(profile);
        check_counters(&notes_of_small, what);
        assert!(
            lost(&notes_of_small, "stacks (memory limit)") > 0,
            "{what}: {notes_of_small:?}"
        );
        let dropped = lost(&notes_of_small, "tracked objects replaced by an estimate");
        assert!(dropped > 0, "{what}: {notes_of_small:?}");
        // All of them live. A site cannot show more live objects than it has made, so that sites of few objects
        // come out low; so do those that were refused while the others were made fewer.
        let refused = lost(&notes_of_small, "objects not tracked");
        let live = sum(profile, " ManyPaths$Made", 4);
        assert!(live <= MADE, "{what}: {live}");
        assert!(live + 64 * refused >= MADE / 2, "{what}: {live} {refused}");
        // With a large budget nothing is dropped.
        let (large_ran, profile, what) = &large;
        let of_memory = |note: &&&str| note.contains("memory");
        let notes_of_large = notes(profile);
        assert_eq!(notes_of_large.iter().find(of_memory), None, "{what}");
        assert_eq!(sum(profile, " ManyPaths$Made", 4), MADE, "{what}");
        let [small, large] = [ran, large_ran].map(|ran| (resident(ran) - plain) >> 10);
        assert!(
            small < large,
            "{what}: {small} and {large} MiB more than without the agent"
        );
        // The budget of native memory, a quarter of that in the heap, and the agent itself: its code, its threads'
        // stacks, what the VM keeps of changed classes. Measured on JDK 17: 27 MiB of the 16 MiB limit, 122 of 128.
        assert!(
            small <= 16 + 4 + 32,
            "{what}: {small} MiB more than without the agent"
        );
    }
}

#[test]
fn calling_contexts_beyond_the_budget_are_counted_and_the_profile_says_so() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        let options = "cpu=times,depth=24,cutoff=0,memory=16m";
        let profile = run(lab, jdk, Some(options)).profile();
        let what = format!("{options} on {}", jdk.full_version);
        let notes = notes(&profile);
        check_counters(&notes, &what);
        assert!(
            lost(&notes, "calling contexts (memory limit)") > 0,
            "{what}: {notes:?}"
        );
        // Each path ends once; its call is one of the method, or of none that is known.
        let known = sum(&profile, " ManyPaths.end", 3);
        let all = known + sum(&profile, ".<unknown method>", 3);
        assert!(
            known <= 1 << BITS && all >= 1 << BITS,
            "{what}: {known} of {all}"
        );
    }
}

/// Bytes that one tracked object is charged with at least.
const TRACKED: usize = 150;

#[test]
fn a_recording_of_events_keeps_to_the_budget_and_says_so() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let without = resident(&run(lab, jdk, None));
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("events");
        let options = format!("events=0,depth=20,memory=16m,file={}", path.display());
        let ran = run(lab, jdk, Some(&options));
        let what = format!("{}: {}", jdk.full_version, ran.stderr());
        assert_eq!(
            ran.stderr().matches("memory= is reached").count(),
            1,
            "{what}"
        );
        let recording = Recording::read(&path);
        let (tracked, lost) = (recording.live.len(), recording.lost);
        assert!(recording.ended, "{what}");
        assert!(
            (10_000..LIMITS[0] as usize / TRACKED).contains(&tracked),
            "{tracked} {what}"
        );
        let reported = recording.allocations;
        assert!(
            lost + reported >= MADE && lost > MADE / 2,
            "{lost} lost, {reported} reported of {MADE}; {what}"
        );
        let more = resident(&ran) - without;
        assert!(more < 64 << 10, "{more} KiB more; {what}");
    }
}
