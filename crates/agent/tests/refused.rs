//! What cannot be instrumented is named in the profile, and costs only itself.

use std::fmt::Write;
use std::path::Path;

/// A class with so many strings that its constant pool is all but full.
fn full(strings: usize) -> String {
    const EACH: usize = 5000;
    let mut text =
        String::from("public class Full {\nstatic Object[] made() { return new Object[7]; }\n");
    for (part, first) in (0..strings).step_by(EACH).enumerate() {
        let names = (first..strings.min(first + EACH)).map(|n| format!("\"{n:x}\""));
        let names = names.collect::<Vec<_>>().join(",");
        writeln!(
            text,
            "static String[] s{part}() {{ return new String[] {{{names}}}; }}"
        )
        .expect("text");
    }
    text + "}\n"
}

/// A class with a method that is as long as one may be that is ever compiled, and a longer
/// initializer.
fn large() -> String {
    let mut text = String::from(
        "public class Large {\nstatic Large[][] all;\nstatic { int i = 0; all = new Large[700][];\n",
    );
    for _ in 0..700 {
        text += "all[i++] = new Large[1];\n";
    }
    text += "}\nstatic int work(int n) {\n";
    // Six bytes each with the call.
    for _ in 0..1300 {
        text += "n = one(n);\n";
    }
    text + "return n; }\nstatic int one(int n) { return n + new int[1].length; }\n}\n"
}

const MAIN: &str = "public class Refused { static class Made {} public static void main(String[] a) {\n\
    int n = 0; for (int i = 0; i < 50; i++) { new Made(); n += Full.made().length; }\n\
    System.out.println(Large.work(n) + \" \" + Large.all.length); } }\n";

fn write(folder: &Path, strings: usize) -> Vec<std::path::PathBuf> {
    let sources = [
        ("Full", full(strings)),
        ("Large", large()),
        ("Refused", MAIN.to_owned()),
    ];
    let write = |(name, text): (&str, String)| {
        let file = folder.join(format!("{name}.java"));
        std::fs::write(&file, text).expect("written");
        file
    };
    sources.into_iter().map(write).collect()
}

#[test]
fn what_cannot_be_instrumented_is_named_in_the_profile() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(compiler) = testkit::jvm::newest_compiler() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let compile = |strings| {
        let sources = write(folder.path(), strings);
        compiler
            .compile_all(&sources, 8, folder.path())
            .expect("compiles");
        let bytes = std::fs::read(folder.path().join("Full.class")).expect("a class");
        usize::from(u16::from_be_bytes([bytes[8], bytes[9]]))
    };
    // A string is two constants; a few are left.
    let few = compile(1000);
    let left = (65_515 - few) / 2;
    assert!(compile(1000 + left) > 65_500);
    for jdk in &lab.jdks {
        let plain = lab.run_in(jdk, folder.path(), None, &[], &["Refused"]);
        assert_eq!(plain.stdout(), "1650 700\n", "{}", plain.stderr());
        for options in [
            "heap=sites,cutoff=0",
            "cpu=old",
            "cpu=times,cutoff=0,format=b,modern=y",
        ] {
            let options = format!("{options},file=out");
            let ran = lab.run_in(
                jdk,
                folder.path(),
                Some(&options),
                &["-Xverify:all"],
                &["Refused"],
            );
            let what = format!("{options} on {}: {}", jdk.full_version, ran.stderr());
            assert_eq!(ran.stdout(), plain.stdout(), "{what}");
            assert_eq!(ran.output.status.code(), Some(0), "{what}");
            let bytes = std::fs::read(ran.folder.path().join("out")).expect("a profile");
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let named = |name: &str| text.contains(&format!("NOTE: not counted: {name}: "));
            assert!(named("Full"), "{what}\n{text}");
            assert!(
                text.contains("lost: counts of classes or methods that cannot be"),
                "{what}"
            );
            assert!(!named("Large.<clinit>()V") && !named("Refused"), "{what}");
            if options.starts_with("heap") {
                assert!(named("Large.work(I)I"), "{what}\n{text}");
                let row = |class: &str| {
                    let rows = text.lines().filter(|row| row.ends_with(class));
                    let objects =
                        rows.filter_map(|row| row.split_whitespace().nth(6)?.parse::<u64>().ok());
                    objects.sum::<u64>()
                };
                assert_eq!(row(" Refused$Made"), 50, "{what}");
                assert_eq!(row(" Large[]"), 700, "{what}");
            }
            if options == "cpu=old,file=out" {
                // Its own calls are counted: there is room for that.
                assert!(
                    text.contains("1300 Large.one(I)I Large.work(I)I "),
                    "{what}"
                );
            }
        }
    }
}
