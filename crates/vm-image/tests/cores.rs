//! Core files give the answers of the process that they were made of.

use crate::common::{Heap, Program};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::jvm;
use vm_image::{Core, Fault, Place, Summary};

fn dump(core: &Path, libjvm: Option<&Path>) -> Result<(Vec<u8>, Summary), Fault> {
    let core = Core::open(core, libjvm)?;
    let place = Place {
        libjvm: core.libjvm(),
        registers: core.registers().to_vec(),
        ..Place::default()
    };
    let mut bytes = Vec::new();
    let summary = vm_image::dump(&core, &place, &mut bytes)?;
    Ok((bytes, summary))
}

/// A core of a program that continues.
fn core_of(program: &Program) -> Option<PathBuf> {
    let prefix = program.folder.path().join("core");
    let ran = Command::new("gcore")
        .arg("-o")
        .arg(&prefix)
        .arg(program.pid().to_string())
        .output();
    match ran {
        Ok(ran) => {
            let path = PathBuf::from(format!("{}.{}", prefix.display(), program.pid()));
            let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(path.is_file(), "{printed}");
            Some(path)
        }
        Err(_) => {
            let reason = "no gcore (of gdb)";
            testkit::skip("core files", testkit::Need::Program, reason);
            None
        }
    }
}

/// Flags of a VM with a small core.
const SMALL: [&str; 2] = ["-XX:+UseSerialGC", "-Xmx48m"];

#[test]
fn a_core_gives_the_same_heap_as_the_process() {
    let jdks = jvm::tested();
    if jdks.is_empty() {
        testkit::skip("core files", testkit::Need::Jdk, jvm::NO_JDK);
    }
    for jdk in jdks {
        let Some(program) = Program::start(&jdk, "Rest", &SMALL) else {
            return;
        };
        program.rests();
        let (ours, frozen) = program.dump_frozen().expect("a dump");
        let Some(path) = core_of(&program) else {
            return;
        };
        let (of_core, summary) = dump(&path, None).expect("a dump");
        let case = &jdk.full_version;
        assert_eq!(summary.damage.total(), 0, "{case}: {:?}", summary.damage);
        assert_eq!(summary.objects(), frozen.objects(), "{case}");
        let (ours, of_core) = (Heap::read(&ours), Heap::read(&of_core));
        assert_eq!(ours.loaded, of_core.loaded, "{case}");
        assert_eq!(ours.classes, of_core.classes, "{case}");
        assert!(ours.objects == of_core.objects, "{case}");
        // The compiler's threads do not rest, and words on their stacks may come and go.
        for (kind, roots) in &ours.roots {
            if *kind != hprof::HeapTag::RootJavaFrame {
                assert_eq!(*roots, of_core.roots[kind], "{case} {kind:?}");
            }
        }
        files_are_checked(&path, &program.libjvm());
        cut_cores_are_answered(&path);
    }
}

#[test]
fn a_core_that_the_kernel_writes_at_a_crash_gives_the_same_heap() {
    let jdks = jvm::tested();
    if jdks.is_empty() {
        testkit::skip("cores of the kernel", testkit::Need::Jdk, jvm::NO_JDK);
    }
    for jdk in jdks {
        let Some(mut program) = Program::start(&jdk, "Rest", &SMALL) else {
            return;
        };
        program.rests();
        let (ours, _) = program.dump_frozen().expect("a dump");
        let Some(path) = program.crash() else {
            let reason = "the kernel writes no core files into the folder of the program";
            return testkit::skip("cores of the kernel", testkit::Need::Program, reason);
        };
        same_heap(&jdk.full_version, &ours, &path, None);
    }
}

#[test]
fn a_core_that_names_no_files_is_read_with_the_library() {
    let jdks = jvm::tested();
    if jdks.is_empty() {
        testkit::skip("cores without names", testkit::Need::Jdk, jvm::NO_JDK);
    }
    for jdk in jdks {
        // Without names nothing says where the archive of classes was mapped.
        let flags = [&SMALL[..], &["-Xshare:off"]].concat();
        let Some(mut program) = Program::start(&jdk, "Rest", &flags) else {
            return;
        };
        program.rests();
        let (ours, _) = program.dump_frozen().expect("a dump");
        let Some(path) = program.crash() else {
            let reason = "the kernel writes no core files into the folder of the program";
            return testkit::skip("cores without names", testkit::Need::Program, reason);
        };
        forget_names(&path);
        let without = dump(&path, None).expect_err("no library").to_string();
        assert!(without.contains("--libjvm"), "{without}");
        let other = std::env::current_exe().expect("a program");
        let other = dump(&path, Some(&other)).expect_err("another library");
        assert!(other.to_string().contains("is not found in it"), "{other}");
        same_heap(&jdk.full_version, &ours, &path, Some(&program.libjvm()));
    }
}

/// Runtimes that another processor is emulated for; `./x matrix --arm64` names them. The emulator writes a core for the
/// emulated processor.
#[test]
fn cores_of_another_processor_give_the_same_heap() {
    if std::env::var_os("TENURE_RUNTIMES").is_none() {
        let reason = "no emulated runtime (TENURE_RUNTIMES)";
        return testkit::skip("another processor", testkit::Need::JdkPart, reason);
    }
    for jdk in jvm::tested() {
        let flags = [&SMALL[..], &["-Xshare:off"]].concat();
        let Some(mut program) = Program::start(&jdk, "Rest", &flags) else {
            return;
        };
        program.rests();
        let (ours, _) = program.dump_frozen().expect("a dump");
        let libjvm = program.libjvm();
        let path = program.crash().expect("a core of the emulator");
        same_heap(&jdk.full_version, &ours, &path, Some(&libjvm));
    }
}

/// A core has the objects and classes of the process it was made of.
fn same_heap(case: &str, ours: &[u8], core: &Path, libjvm: Option<&Path>) {
    let (of_core, summary) = dump(core, libjvm).expect("a dump");
    assert_eq!(summary.damage.total(), 0, "{case}: {:?}", summary.damage);
    let (ours, of_core) = (Heap::read(ours), Heap::read(&of_core));
    assert_eq!(ours.loaded, of_core.loaded, "{case}");
    assert_eq!(ours.classes, of_core.classes, "{case}");
    assert!(ours.objects == of_core.objects, "{case}");
}

/// Makes the note of mapped files (`NT_FILE`) one of an unknown kind.
fn forget_names(core: &Path) {
    let file = File::options().read(true).write(true).open(core);
    let file = file.expect("a core");
    let mut head = vec![0; 1 << 20];
    file.read_exact_at(&mut head, 0).expect("its notes");
    let note = b"\x45\x4c\x49\x46CORE\0";
    let at = head.windows(note.len()).position(|bytes| bytes == note);
    let at = at.expect("a note of mapped files");
    file.write_all_at(&[0; 4], at as u64).expect("written");
}

/// Another library is not taken for that of the core; a copy of the right one is.
fn files_are_checked(core: &Path, library: &Path) {
    let copy = core.with_file_name("libjvm.so");
    fs::copy(library, &copy).expect("a copy");
    if let Some(archive) = library.parent().map(|folder| folder.join("classes.jsa"))
        && archive.is_file()
    {
        fs::copy(archive, core.with_file_name("classes.jsa")).expect("a copy");
    }
    let (_, summary) = dump(core, Some(&copy)).expect("a dump");
    assert_eq!(summary.damage.total(), 0, "{:?}", summary.damage);
    let missing = Core::open(core, Some(Path::new("no/libjvm.so"))).expect("a core");
    let notes = missing.notes().join("\n");
    assert!(notes.contains("no/libjvm.so is not there"), "{notes}");
    fs::copy(std::env::current_exe().expect("a program"), &copy).expect("a copy");
    let other = Core::open(core, Some(&copy)).expect("a core");
    let notes = other.notes().join("\n");
    // A file without a build id is not that of a library with one.
    let of_core = notes.contains("its build id is another one");
    assert!(of_core || !has_build_id(library), "{notes}");
}

fn has_build_id(library: &Path) -> bool {
    let bytes = fs::read(library).expect("a library");
    bytes[..4096.min(bytes.len())]
        .windows(4)
        .any(|name| name == b"GNU\0")
}

/// A core without memory whose note names these files, one page each.
fn core_of_files(names: &[String]) -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut body: Vec<u8> = words(&[names.len() as u64, 4096]);
    for i in 1..=names.len() as u64 {
        body.extend::<Vec<u8>>(words(&[i << 12, (i + 1) << 12, 0]));
    }
    for name in names {
        body.extend(name.bytes().chain([0]));
    }
    let mut note = [5, body.len() as u32, 0x4649_4c45]
        .map(u32::to_le_bytes)
        .concat();
    note.extend(b"CORE\0\0\0\0");
    note.extend(body);
    let mut core = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0\x01\0\0\0".to_vec();
    core.extend::<Vec<u8>>(words(&[0, 64, 0]));
    core.extend([0u32, 56 << 16 | 64, 1, 0].map(u32::to_le_bytes).concat());
    core.extend([4u32, 0].map(u32::to_le_bytes).concat());
    core.extend::<Vec<u8>>(words(&[120, 0, 0, note.len() as u64, 0, 4]));
    core.extend(note);
    core
}

#[test]
fn a_core_that_names_a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let names = ["/x/libjvm.so".to_owned(), pipe.display().to_string()];
    let path = folder.path().join("core");
    fs::write(&path, core_of_files(&names)).expect("written");
    let core = Core::open(&path, None).expect("a core");
    assert_eq!(core.libjvm(), 0x1000);
}

#[test]
fn a_core_that_names_many_files_is_read_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = (0..400_000).map(|i| format!("/x/{i}"));
    let names: Vec<String> = names.chain(["/x/libjvm.so".to_owned()]).collect();
    let path = folder.path().join("core");
    fs::write(&path, core_of_files(&names)).expect("written");
    let core = Core::open(&path, None).expect("a core");
    assert_eq!(core.libjvm(), 400_001 << 12);
}

/// However short a core is, there is an answer or a sentence.
fn cut_cores_are_answered(path: &Path) {
    let len = fs::metadata(path).expect("a core").len();
    let mut answered = 0;
    for tenth in (0..10).rev() {
        let cut = len / 10 * tenth + tenth * 13;
        let file = File::options().write(true).open(path).expect("a core");
        file.set_len(cut).expect("cut");
        match dump(path, None) {
            Ok((_, summary)) => {
                answered += 1;
                assert!(
                    summary.damage.total() > 0 || tenth == 9,
                    "{tenth}: {summary:?}"
                );
            }
            Err(fault) => assert!(!fault.to_string().is_empty()),
        }
    }
    assert!(answered < 10);
}
