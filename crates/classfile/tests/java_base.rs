//! Patches every class of java.base and lets the JVM's verifier judge.
//!
//! Needs a JDK (`JAVA_HOME`, or `java` on the path); reports this and passes without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use classfile::instruction::{ANEWARRAY, MULTIANEWARRAY, NEWARRAY};
use classfile::{Class, Instrument, LocalType, MethodEdit, Place, patch};

/// Everything the patcher can do, in every method: three locals of three types,
/// code at entry, before calls and returns, after array creation, at handlers, and some that is
/// never reached.
struct Everything;

impl Instrument for Everything {
    fn method(&mut self, _class: &Class<'_>, edit: &mut MethodEdit<'_>) {
        if edit.method.name == b"finalize" && edit.code.bytes.len() == 1 {
            // HotSpot takes a class whose finalizer is more than one `return` for
            // one that needs finalization; with Object.finalize that is every class.
            return;
        }
        let object = edit.pool.class("java/lang/Object");
        let reference = edit.add_local(LocalType::Object(object));
        let int = edit.add_local(LocalType::Int);
        let long = edit.add_local(LocalType::Long);
        edit.need_stack(4);
        let wide = |opcode: u8, slot: u16| {
            let [high, low] = slot.to_be_bytes();
            [0xc4, opcode, high, low]
        };
        let entry = [
            &[0x01][..],
            &wide(0x3a, reference), // aconst_null, astore
            &[0x03],
            &wide(0x36, int), // iconst_0, istore
            &[0x09],
            &wide(0x37, long), // lconst_0, lstore
        ]
        .concat();
        edit.insert(0, Place::Entry, &entry);
        // lload, bipush 16, lshl, lstore; iload, pop; aload, pop
        let step = [
            &wide(0x16, long)[..],
            &[0x10, 16, 0x79],
            &wide(0x37, long),
            &wide(0x15, int),
            &[0x57],
            &wide(0x19, reference),
            &[0x57],
        ]
        .concat();
        let mut new_array = false;
        for instruction in edit.instructions().to_vec() {
            if new_array {
                edit.insert(instruction.pc, Place::AfterPrevious, &[0x59, 0x57]); // dup, pop
            }
            new_array = matches!(instruction.opcode, NEWARRAY | ANEWARRAY | MULTIANEWARRAY);
            if instruction.is_invoke() || instruction.is_return() {
                edit.insert(instruction.pc, Place::Before, &step);
            }
        }
        let mut handlers: Vec<u16> = edit.code.handlers.iter().map(|row| row[2]).collect();
        handlers.sort_unstable();
        handlers.dedup();
        for handler in handlers {
            edit.insert(usize::from(handler), Place::Before, &[0x59, 0x57]);
        }
        edit.lengthen(edit.code.bytes.len() + edit.growth() + 40);
    }
}

fn java_home() -> Option<PathBuf> {
    let homes = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    homes
        .or_else(|| {
            Some(
                fs::canonicalize(which("java")?)
                    .ok()?
                    .parent()?
                    .parent()?
                    .to_path_buf(),
            )
        })
        .filter(|home| home.join("bin/javac").exists())
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.exists())
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the JDK's programs start");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}\n{errors}");
    text
}

fn class_files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            class_files(&path, into);
        } else if path.extension().is_some_and(|ext| ext == "class") {
            into.push(path);
        }
    }
}

#[test]
fn every_class_of_java_base_survives_every_patch() {
    let Some(home) = java_home() else {
        return testkit::skip(
            "java.base",
            testkit::Need::Jdk,
            "no JDK found (JAVA_HOME or java on the path)",
        );
    };
    let work = tempfile::tempdir().expect("temporary folder");
    let (plain, patched) = (work.path().join("plain"), work.path().join("patched"));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    run(Command::new(home.join("bin/javac"))
        .arg("-d")
        .arg(work.path())
        .args([sources.join("Extract.java"), sources.join("LoadAll.java")]));
    let java = || {
        let mut java = Command::new(home.join("bin/java"));
        java.args(["-XX:TieredStopAtLevel=1", "-cp"])
            .arg(work.path());
        java
    };
    run(java().args(["Extract", "java.base"]).arg(&plain));

    let mut files = Vec::new();
    class_files(&plain, &mut files);
    assert!(files.len() > 5000, "only {} classes found", files.len());
    let mut changed = 0;
    for file in &files {
        let bytes = fs::read(file).expect("class file");
        let result = patch(&bytes, &mut Everything).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        let Some(result) = result else { continue };
        for (_, error) in &result.skipped {
            assert_eq!(*error, classfile::Error::TooLarge, "{file:?}");
        }
        assert!(
            Class::parse(&result.bytes).is_ok(),
            "{file:?} does not parse any more"
        );
        changed += result.changed;
        let to = patched.join(file.strip_prefix(&plain).expect("inside"));
        fs::create_dir_all(to.parent().expect("folder")).expect("create");
        fs::write(to, result.bytes).expect("write");
    }
    assert!(changed > 40_000, "only {changed} methods changed");

    let text = run(java()
        .arg("-Xverify:all")
        .arg(format!("--patch-module=java.base={}", patched.display()))
        .arg("LoadAll")
        .arg(&patched));
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.ends_with("failed 0") && last.starts_with("verified "),
        "{text}"
    );
}
