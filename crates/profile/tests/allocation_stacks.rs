//! Tables of sampled allocation stacks (`heap=sites,stacks=sampled`), in both forms.

use profile::{Metric, Profile};

/// The beginning of a profile in the text form, up to the first table.
const BEGIN: &str = "JAVA PROFILE 1.0.1, created Fri Nov 27 06:00:00 2026\n\n\
    --------\n\nTHREAD START (obj=50000001, id = 200001, name=\"main\", group=\"main\")\n\
    TRACE 300009:\n\ta.B.make(B.java:1)\n";

fn read(data: &[u8]) -> Profile {
    let (profile, diagnostics) = profile::read(data).expect("a profile");
    assert!(!diagnostics.any_damage(), "{diagnostics:?}");
    profile
}

fn sums(profile: &Profile) -> [u64; 2] {
    [
        Metric::SampledAllocatedBytes,
        Metric::SampledAllocatedObjects,
    ]
    .map(|metric| profile.stacks(metric).map(|stack| stack.value).sum())
}

#[test]
fn a_later_table_of_the_text_form_takes_the_place_of_an_earlier_one() {
    let table = |objects: u64| {
        format!(
            "ALLOCATION STACKS BEGIN (samples = 90) now\n\
             rank  share of the site (95 % interval) samples   objects     bytes   site  trace class\n   \
             1  75.00% (66.25%..82.25%)      67 {objects} {} 300004 300009 a.B$C\n\
             ALLOCATION STACKS END\n",
            objects * 24
        )
    };
    let profile = read(format!("{BEGIN}{}{}", table(10), table(30)).as_bytes());
    assert_eq!(sums(&profile), [720, 30]);
}

#[test]
fn a_later_record_of_the_binary_form_takes_the_place_of_an_earlier_one() {
    let mut data = b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\0".to_vec();
    for objects in [10u64, 30] {
        let mut body = 90u64.to_be_bytes().to_vec();
        for word in [1u32, 100_001, 300_004, 300_009] {
            body.extend(word.to_be_bytes());
        }
        for word in [67, objects, objects * 24] {
            body.extend(word.to_be_bytes());
        }
        for part in [0.75f64, 0.6625, 0.8225] {
            body.extend(part.to_be_bytes());
        }
        data.extend([0x6f, 0, 0, 0, 0]);
        data.extend((body.len() as u32).to_be_bytes());
        data.extend(body);
    }
    assert_eq!(sums(&read(&data)), [720, 30]);
}
