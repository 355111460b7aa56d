//! What the original did not see being made: copies, reflection, inner arrays, objects of the VM
//! and of native code. All of it is counted, once.

use std::collections::HashMap;

/// Allocated objects by class, and by class and one frame of the stack.
struct Made {
    rows: Vec<(String, u64, Vec<String>)>,
}

impl Made {
    fn read(profile: &str) -> Made {
        let mut traces: HashMap<&str, Vec<String>> = HashMap::new();
        let mut last = None;
        for line in profile.lines() {
            if let Some(serial) = line
                .strip_prefix("TRACE ")
                .and_then(|line| line.strip_suffix(':'))
            {
                last = Some(serial);
                traces.insert(serial, Vec::new());
            } else if let (Some(serial), Some(frame)) = (last, line.strip_prefix('\t')) {
                let name = frame.split('(').next().unwrap_or_default().to_owned();
                traces.entry(serial).or_default().push(name);
            }
        }
        let table = profile.split("SITES BEGIN").nth(1).unwrap_or_default();
        let rows = table.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, _, _, _, _, objects, trace, class] = fields[..] else {
                return None;
            };
            let frames = traces.get(trace).cloned().unwrap_or_default();
            Some((class.to_owned(), objects.parse().ok()?, frames))
        });
        Made {
            rows: rows.collect(),
        }
    }

    /// Objects of a class that were made below a method, or anywhere if there is none.
    fn count(&self, class: &str, method: &str) -> u64 {
        let rows = self.rows.iter().filter(|row| row.0 == class);
        let rows = rows.filter(|row| method.is_empty() || row.2.iter().any(|f| f == method));
        rows.map(|row| row.1).sum()
    }
}

#[test]
fn what_the_original_missed_is_counted_once() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(library) = lab.library("unseen.c", folder.path()) else {
        return;
    };
    let library = library.to_string_lossy();
    let Some(classes) = lab.compile("Unseen.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for options in ["heap=sites", "heap=sites,exact=y,cpu=times", "heap=all"] {
            let options = format!("{options},cutoff=0,depth=8");
            let program = ["Unseen", &*library];
            let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &program);
            let what = format!("{options} on {}\n{}", jdk.full_version, ran.stderr());
            assert_eq!(ran.stdout(), "thrown 15 refused true\n", "{what}");
            let made = Made::read(&ran.profile());
            let mut wrong = Vec::new();
            let mut check = |class: &str, method: &str, expected: u64| {
                let found = made.count(class, method);
                if found != expected {
                    wrong.push(format!("{class} in {method}: {found}, not {expected}"));
                }
            };
            check("Unseen$Cloned", "", 31);
            check("long[]", "Unseen.clones", 32);
            check("java.lang.String[][]", "Unseen.clones", 32);
            check("java.lang.String[]", "Unseen.clones", 2);
            check("short[][][]", "Unseen.nested", 12);
            check("short[][]", "Unseen.nested", 12 * 2);
            check("short[]", "Unseen.nested", 12 * 2 * 3);
            check("float[][]", "Unseen.nested", 12);
            check("float[]", "Unseen.nested", 12 * 2);
            check("Unseen$Raw[]", "Unseen.nested", 12);
            check("Unseen$Reflected", "", 50);
            check("Unseen$Handled", "", 40);
            check("Unseen$Unborn", "", 25);
            check("Unseen$Sent", "", 21);
            check("java.lang.ArithmeticException", "Unseen.thrown", 15);
            check("Unseen$Raw", "Unseen.allocate", 100);
            check("Unseen$Built", "Unseen.construct", 90);
            let kinds = ["boolean", "byte", "char", "short", "int", "long", "float"];
            for kind in kinds.iter().chain(&["double", "Unseen"]) {
                check(&format!("{kind}[]"), "Unseen.arrays", 80);
            }
            check("java.lang.String", "Unseen.strings", 70);
            let text = if jdk.version == 8 { "char[]" } else { "byte[]" };
            check(text, "Unseen.strings", 70);
            assert!(wrong.is_empty(), "{what}{}", wrong.join("\n"));
        }
    }
}
