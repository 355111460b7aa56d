//! The limit of tracked objects: allocations are exact all the same, live counts are estimates, and the profile says
//! what was left out. Under generational ZGC it is there unless another one is given.

use testkit::jvm::Jdk;

use crate::common::Lab;
use crate::vm_events::record_some;

const MADE: u64 = 400_000;
const ARRAYS: u64 = 8_000;

/// Live and allocated objects of a class, and the notes.
struct Profile {
    made: [u64; 2],
    arrays: [u64; 2],
    notes: Vec<String>,
}

impl Profile {
    fn of(lab: &Lab, jdk: &Jdk, options: &str, flags: &[&str]) -> Self {
        let classes = lab.compile("Tracked.java", 8).expect("compiles");
        let ran = lab.run_in(jdk, classes.path(), Some(options), flags, &["Tracked"]);
        let what = format!("{options} {flags:?} on {}", jdk.full_version);
        assert_eq!(ran.stdout(), "102000\n", "{what}: {}", ran.stderr());
        let profile = ran.profile();
        let column = |name: &str, column: usize| {
            let rows = profile.lines().filter(|row| row.ends_with(name));
            rows.filter_map(|row| row.split_whitespace().nth(column)?.parse::<u64>().ok())
                .sum::<u64>()
        };
        let both = |name: &str| [column(name, 4), column(name, 6)];
        let notes = profile
            .lines()
            .filter_map(|line| line.strip_prefix("NOTE: "));
        let found = Self {
            made: both(" Tracked$Made"),
            arrays: both(" char[]"),
            notes: notes.map(str::to_owned).collect(),
        };
        assert_eq!(found.made[1], MADE, "{what}");
        assert!(found.arrays[1] >= ARRAYS, "{what}: {:?}", found.arrays);
        found
    }

    fn says(&self, text: &str) -> bool {
        self.notes.iter().any(|note| note.contains(text))
    }

    /// At most 2,048 objects were tracked.
    fn check_limited(&self, why: &str) {
        let Self {
            made: [live, _],
            arrays: [arrays, _],
            notes,
        } = self;
        assert!(self.says(why), "{notes:#?}");
        let replaced = "tracked objects replaced by an estimate (limit of tracked objects)";
        assert!(self.says(replaced), "{notes:#?}");
        // A hundred or more of them and a few dozen arrays stand for all that are alive.
        assert!((MADE / 16..=MADE).contains(live), "{live} {notes:#?}");
        assert!(*arrays <= 2 * ARRAYS, "{arrays} {notes:#?}");
    }
}

#[test]
fn a_limit_makes_live_counts_estimates_and_the_profile_says_so() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        let limited = "heap=sites,cutoff=0,tracked=2048";
        let flags = ["-XX:+UseSerialGC"];
        Profile::of(lab, jdk, limited, &flags).check_limited("tracked=2048 is reached");
        let free = Profile::of(lab, jdk, "heap=sites,cutoff=0", &flags);
        assert!(!free.says("limit of tracked"), "{:#?}", free.notes);
    }
}

/// ZGC with a small heap, generational from JDK 21 on.
fn zgc(jdk: &Jdk) -> Vec<&'static str> {
    let mut flags = vec!["-XX:+UseZGC", "-Xmx256m"];
    if (21..24).contains(&jdk.version) {
        flags.push("-XX:+ZGenerational");
    }
    flags
}

#[test]
fn generational_zgc_has_a_limit_unless_all_are_wanted() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 17) {
        let flags = zgc(jdk);
        let found = Profile::of(lab, jdk, "heap=sites,cutoff=0", &flags);
        let dead = "those that died since the last collection of the old generation";
        assert_eq!(found.says(dead), jdk.version >= 21, "{:#?}", found.notes);
        if jdk.version >= 21 {
            found.check_limited("so there are at most 2048 (see tracked=)");
        } else {
            assert!(!found.says("limit of tracked"), "{:#?}", found.notes);
        }
        for all in ["exact=y", "tracked=0"] {
            let options = format!("heap=sites,cutoff=0,{all}");
            let found = Profile::of(lab, jdk, &options, &flags);
            assert!(!found.says("limit of tracked"), "{:#?}", found.notes);
            if all == "exact=y" {
                assert_eq!(found.made[0], MADE / 4, "{options}");
            }
        }
    }
}

#[test]
fn a_leak_that_fills_the_heap_keeps_its_live_counts_under_generational_zgc() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("NearlyFull.java", 8) else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 21) {
        let mut flags = zgc(jdk);
        flags.push("-Xmx128m");
        let options = Some("heap=sites,cutoff=0");
        let ran = lab.run_in(jdk, classes.path(), options, &flags, &["NearlyFull"]);
        let kept: f64 = ran.stdout().trim().parse().expect("a number");
        let profile = ran.profile();
        let row = profile
            .lines()
            .find(|row| row.ends_with(" NearlyFull$Node"));
        let live = row.and_then(|row| row.split_whitespace().nth(4)?.parse::<f64>().ok());
        let live = live.unwrap_or_default();
        // Hundreds of them stand for all.
        assert!(
            (live / kept - 1.0).abs() < 0.25,
            "{live} of {kept}: {profile}"
        );
    }
}

#[test]
fn a_recording_of_events_has_a_limit_of_large_arrays_under_generational_zgc() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 21) {
        let mut flags = zgc(jdk);
        flags.push("-Xmx64m");
        // An eighth of the heap; all arrays together have 32 MB.
        let limited = record_some(lab, jdk, &flags, "256", &["Tracked"]);
        let arrays = limited.live.values().map(|(alloc, _)| alloc);
        let arrays = arrays.filter(|alloc| alloc.array.is_some() && alloc.size >= 1 << 10);
        let bytes: u64 = arrays.map(|alloc| alloc.size).sum();
        assert!(
            bytes <= 8 << 20 && limited.lost > 100,
            "{bytes} {}",
            limited.lost
        );
        let free = record_some(lab, jdk, &["-XX:+UseSerialGC"], "256", &["Tracked"]);
        assert!(free.live.len() > 4096 && free.lost == 0, "{}", free.lost);
    }
}
