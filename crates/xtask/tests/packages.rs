//! The writers of packages, by the programs that read them.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use testkit::Need;
use xtask::package::files::File;
use xtask::package::make::packages;
use xtask::package::{ARCHES, Release, elf, sbom, tar};

const TIME: u64 = 1_700_000_000;

fn release() -> Release {
    Release {
        version: "1.2.3".to_owned(),
        time: TIME,
    }
}

/// A small installation, in no order.
fn installed(word: &str) -> Vec<File> {
    vec![
        File::plain("lib/tenure/libjvmpi.so", format!("bridge {word}")),
        File::program("bin/tenure", format!("#!/bin/sh\necho tenure of {word}\n")),
        File::plain("lib/tenure/libhprof.so", format!("agent {word}")),
        File::plain("include/jvmpi.h", "header"),
        File::plain("share/man/man1/tenure.1", "manual"),
        File::plain("share/bash-completion/completions/tenure", "bash"),
        File::plain("share/zsh/site-functions/_tenure", "zsh"),
        File::plain("share/fish/vendor_completions.d/tenure.fish", "fish"),
        File::plain("share/doc/tenure/LICENSE-MIT", "MIT"),
        File::plain("share/doc/tenure/LICENSE-APACHE", "Apache"),
        File::plain("share/doc/tenure/THIRD-PARTY", "others"),
    ]
}

fn metadata() -> Json {
    let package = |name: &str, source: Option<&str>, licence: &str| {
        json!({"id": name, "name": name, "version": "0.9.1", "source": source,
            "license": licence, "repository": "https://example.org/x", "manifest_path": "/x"})
    };
    let uses = |name: &str| json!({"pkg": name, "dep_kinds": [{"kind": null}]});
    json!({
        "workspace_members": ["tenure"],
        "packages": [package("tenure", None, "MIT"), package("a", Some("r"), "MIT/Apache-2.0"),
            package("b", Some("r"), "Zlib"), package("unused", Some("r"), "MIT")],
        "resolve": {"nodes": [
            {"id": "tenure", "dependencies": ["a"], "deps": [uses("a")]},
            {"id": "a", "dependencies": ["b"], "deps": [uses("b")]},
            {"id": "b", "dependencies": [], "deps": []}]},
    })
}

const LOCKFILE: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"0.9.1\"\n\
    source = \"r\"\nchecksum = \"00ff\"\n\n[[package]]\nname = \"a\"\nversion = \"0.8.0\"\n\
    checksum = \"1111\"\n";

fn made() -> Vec<(String, Vec<u8>)> {
    let both = ARCHES.map(|arch| (arch, installed(arch.name)));
    packages(&release(), &both, &metadata(), LOCKFILE).expect("packages")
}

/// A folder with all packages in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in made() {
        std::fs::write(folder.path().join(name), content).expect("written");
    }
    folder
}

/// The output of a shell command; `None` if one of its programs is missing, which is reported.
fn shell(test: &str, folder: &Path, programs: &[&str], script: &str) -> Option<String> {
    for program in programs {
        let found = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if found.is_err() {
            testkit::skip(test, Need::Program, &format!("no {program}"));
            return None;
        }
    }
    let ran = Command::new("sh")
        .args(["-e", "-c", script])
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .current_dir(folder)
        .output()
        .expect("a shell");
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{script}: {error}");
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[test]
fn the_same_files_give_the_same_bytes_in_any_order() {
    let forth = made();
    let both = ARCHES.map(|arch| {
        let mut files = installed(arch.name);
        files.reverse();
        (arch, files)
    });
    let back = packages(&release(), &both, &metadata(), LOCKFILE).expect("packages");
    for ((name, one), (_, other)) in forth.iter().zip(&back) {
        let is_archive = name.ends_with(".tar.gz") || name.ends_with(".deb");
        assert!(!is_archive || one == other, "{name}");
    }
    assert_eq!(forth, made());
}

#[test]
fn checksums_are_those_that_sha256sum_finds() {
    let folder = folder();
    let test = "checksums of a release";
    let Some(printed) = shell(
        test,
        folder.path(),
        &["sha256sum"],
        "sha256sum -c SHA256SUMS",
    ) else {
        return;
    };
    assert_eq!(printed.matches(": OK").count(), made().len() - 1);
}

#[test]
fn an_archive_has_one_folder_with_sorted_names_and_one_time() {
    let folder = folder();
    let script = "tar tvzf tenure-1.2.3-x86_64-linux.tar.gz --numeric-owner --full-time";
    let Some(printed) = shell("an archive", folder.path(), &["tar"], script) else {
        return;
    };
    let names: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .collect();
    assert!(names.is_sorted(), "{printed}");
    assert_eq!(names[0], "tenure-1.2.3-x86_64-linux/");
    assert!(
        printed
            .lines()
            .all(|line| line.contains(" 0/0 ") && line.contains("2023-11-14 22:13:20"))
    );
    let program = printed
        .lines()
        .find(|line| line.ends_with("bin/tenure"))
        .expect("a program");
    assert!(program.starts_with("-rwxr-xr-x"), "{program}");
    let script = "tar xzf tenure-1.2.3-aarch64-linux.tar.gz; tenure-1.2.3-aarch64-linux/bin/tenure";
    let printed = shell("an archive", folder.path(), &["tar"], script);
    assert_eq!(printed.as_deref(), Some("tenure of aarch64\n"));
}

#[test]
fn long_names_are_split_as_tar_wants_it_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = format!("{}/{}", "a".repeat(90), "b".repeat(90));
    let tree = tar::tree("", &[File::plain(long.as_str(), "x")], TIME).expect("an archive");
    std::fs::write(folder.path().join("long.tar"), tree).expect("written");
    if let Some(printed) = shell("a long name", folder.path(), &["tar"], "tar tf long.tar") {
        assert!(printed.lines().any(|line| line == long), "{printed}");
    }
    let too_long = File::plain("c".repeat(101), "x");
    assert!(tar::tree("", &[too_long], TIME).is_err());
}

#[test]
fn dpkg_reads_the_package_and_finds_the_files_where_debian_has_them() {
    let folder = folder();
    let script = "dpkg-deb --info tenure_1.2.3_arm64.deb; dpkg-deb --contents tenure_1.2.3_arm64.deb; \
        dpkg-deb --extract tenure_1.2.3_arm64.deb root; root/usr/bin/tenure; \
        gzip -dc root/usr/share/man/man1/tenure.1.gz";
    let Some(printed) = shell("a Debian package", folder.path(), &["dpkg-deb"], script) else {
        return;
    };
    for expected in [
        "Package: tenure\n",
        "Version: 1.2.3\n",
        "Architecture: arm64\n",
        "Installed-Size: 1\n",
        "./usr/lib/tenure/libhprof.so\n",
        "./usr/share/zsh/vendor-completions/_tenure\n",
        "./usr/share/doc/tenure/copyright\n",
        "tenure of aarch64\nmanual",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

#[test]
fn a_wheel_has_a_true_record_of_its_files() {
    let folder = folder();
    let script = r#"python3 - tenure-1.2.3-py3-none-*x86_64.whl <<'END'
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
assert wheel.testzip() is None
rows = list(csv.reader(io.StringIO(wheel.read("tenure-1.2.3.dist-info/RECORD").decode())))
assert sorted(row[0] for row in rows) == sorted(wheel.namelist())
for name, digest, size in rows[:-1]:
    content = wheel.read(name)
    own = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    assert digest == "sha256=" + own and int(size) == len(content), name
program = wheel.getinfo("tenure-1.2.3.data/scripts/tenure")
assert program.external_attr >> 16 & 0o777 == 0o755
assert program.date_time == (2023, 11, 14, 22, 13, 20)
print(wheel.read("tenure-1.2.3.dist-info/WHEEL").decode())
END"#;
    let Some(printed) = shell("a wheel", folder.path(), &["python3"], script) else {
        return;
    };
    assert!(
        printed
            .contains("Tag: py3-none-manylinux_2_17_x86_64\nTag: py3-none-musllinux_1_1_x86_64\n")
    );
}

#[test]
fn an_image_names_its_layers_by_their_sums() {
    let folder = folder();
    let script = r#"mkdir image; tar xf tenure-1.2.3-oci.tar -C image; cd image
for blob in blobs/sha256/*; do echo "${blob##*/}  $blob" | sha256sum -c --quiet; done
python3 - <<'END'
import gzip, hashlib, json
def blob(about):
    content = open("blobs/" + about["digest"].replace(":", "/"), "rb").read()
    assert len(content) == about["size"]
    return content
assert json.load(open("oci-layout"))["imageLayoutVersion"] == "1.0.0"
index = json.loads(blob(json.load(open("index.json"))["manifests"][0]))
for about in index["manifests"]:
    manifest = json.loads(blob(about))
    config = json.loads(blob(manifest["config"]))
    layers = [gzip.decompress(blob(layer)) for layer in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(l).hexdigest() for l in layers]
    open("layer-" + about["platform"]["architecture"], "wb").write(layers[0])
    print(about["platform"]["architecture"], config["config"]["Entrypoint"])
END
tar tvf layer-arm64"#;
    let Some(printed) = shell(
        "an image",
        folder.path(),
        &["tar", "python3", "sha256sum"],
        script,
    ) else {
        return;
    };
    assert!(
        printed.starts_with("amd64 ['/usr/bin/tenure']\narm64 "),
        "{printed}"
    );
    assert!(
        printed.contains("drwxrwxrwt") && printed.contains("usr/lib/tenure/libhprof.so"),
        "{printed}"
    );
}

#[test]
fn the_list_of_parts_has_what_is_linked_with_licences_and_checksums() {
    let list = sbom::document(&release(), &metadata(), LOCKFILE);
    assert_eq!(list["specVersion"], "1.5");
    assert_eq!(list["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
    let parts = list["components"].as_array().expect("parts");
    let names: Vec<&Json> = parts.iter().map(|part| &part["purl"]).collect();
    assert_eq!(names, ["pkg:cargo/a@0.9.1", "pkg:cargo/b@0.9.1"]);
    assert_eq!(parts[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    assert_eq!(
        parts[0]["hashes"],
        json!([{"alg": "SHA-256", "content": "00ff"}])
    );
    assert_eq!(parts[1]["hashes"], json!(null));
    let uses = list["dependencies"].as_array().expect("uses");
    assert_eq!(
        uses[1],
        json!({"ref": "pkg:cargo/a@0.9.1", "dependsOn": ["pkg:cargo/b@0.9.1"]})
    );
}

#[test]
fn the_formula_has_the_sums_of_the_archives() {
    let files = made();
    let file = |name: &str| {
        let found = files.iter().find(|(file, _)| file == name);
        String::from_utf8_lossy(&found.expect(name).1).into_owned()
    };
    let (formula, sums) = (file("tenure.rb"), file("SHA256SUMS"));
    for arch in ARCHES {
        let name = format!("tenure-1.2.3-{}-linux.tar.gz", arch.name);
        let line = sums
            .lines()
            .find(|line| line.ends_with(&name))
            .expect("a sum");
        let sum = line.split(' ').next().expect("a sum");
        assert!(formula.contains(&format!("sha256 \"{sum}\"")), "{formula}");
        assert!(formula.contains(&format!("/releases/download/v1.2.3/{name}\"")));
    }
    assert!(formula.contains("#{bin}/tenure --version"));
}

#[test]
fn what_one_of_the_c_libraries_lacks_is_a_problem() {
    let symbol = |name: &str, version: &str, weak| elf::Symbol {
        name: name.to_owned(),
        version: (!version.is_empty()).then(|| version.to_owned()),
        weak,
    };
    let mut needs = elf::Needs {
        libraries: vec!["libc.so.6".to_owned()],
        symbols: vec![
            symbol("malloc", "GLIBC_2.2.5", false),
            symbol("open64", "GLIBC_2.17", false),
            symbol("gnu_get_libc_version", "GLIBC_2.2.5", true),
            symbol("statx", "", true),
        ],
    };
    let musl = ["malloc", "open"].map(str::to_owned).into_iter().collect();
    assert_eq!(elf::problems(&needs, &musl), Vec::<String>::new());
    needs.libraries.push("libgcc_s.so.1".to_owned());
    needs.symbols.push(symbol("malloc", "GLIBC_2.34", false));
    needs
        .symbols
        .push(symbol("__register_atfork", "GLIBC_2.3.2", false));
    assert_eq!(
        elf::problems(&needs, &musl),
        [
            "needs the library libgcc_s.so.1, which not every system has",
            "needs malloc of GLIBC_2.34, which is newer than 2.17",
            "needs __register_atfork, which musl does not have",
        ]
    );
}

#[test]
fn what_a_library_needs_is_what_readelf_lists() {
    let agent = std::fs::read(testkit::built::agent()).expect("the agent");
    let needs = elf::needs(&agent).expect("a library");
    let folder = tempfile::tempdir().expect("a folder");
    let mut changed = agent;
    let loader = elf::loader(&changed).expect("a known machine");
    let (without, name) = (needs.libraries.len() - 1, needs.libraries[0].clone());
    assert!(elf::remove_library(&mut changed, &name).expect("a library"));
    assert!(!elf::remove_library(&mut changed, "libnone.so").expect("a library"));
    assert!(loader.starts_with("ld-linux"));
    assert_eq!(
        elf::needs(&changed).expect("a library").libraries.len(),
        without
    );
    std::fs::write(folder.path().join("changed.so"), changed).expect("written");
    let script = format!(
        "readelf -dW {0}; echo CHANGED; readelf -dW changed.so; echo SYMBOLS; \
         readelf -W --dyn-syms {0}",
        testkit::built::agent().display()
    );
    let Some(printed) = shell("readelf", folder.path(), &["readelf"], &script) else {
        return;
    };
    let (original, rest) = printed.split_once("CHANGED").expect("both");
    let (changed, symbols) = rest.split_once("SYMBOLS").expect("symbols");
    assert_eq!(original.matches("(NEEDED)").count(), needs.libraries.len());
    assert_eq!(changed.matches("(NEEDED)").count(), without);
    assert!(
        needs
            .libraries
            .iter()
            .all(|name| original.contains(&format!("[{name}]")))
    );
    assert!(!changed.contains(&format!("[{name}]")));
    let undefined = symbols
        .lines()
        .filter(|line| line.contains(" UND ") && line.contains('@'));
    let mut listed: Vec<String> = undefined
        .filter_map(|line| Some(line.split_whitespace().nth(7)?.to_owned()))
        .collect();
    let versioned = needs
        .symbols
        .iter()
        .filter_map(|symbol| Some(format!("{}@{}", symbol.name, symbol.version.as_ref()?)));
    let mut own: Vec<String> = versioned.collect();
    listed.sort();
    own.sort();
    assert_eq!(own, listed);
}

#[test]
fn the_agents_take_nothing_from_glibc_that_musl_lacks() {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8_lossy(&sysroot.expect("rustc").stdout)
        .trim()
        .to_owned();
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let libc = format!("{sysroot}/lib/rustlib/{target}/lib/self-contained/libc.a");
    let Ok(libc) = std::fs::read(&libc) else {
        return testkit::skip(
            "symbols of musl",
            Need::Program,
            "no target for musl (./x setup cross)",
        );
    };
    let musl = elf::archive_symbols(&libc).expect("an archive");
    assert!(musl.len() > 1000 && musl.contains("pthread_create"));
    for library in [testkit::built::agent(), testkit::built::bridge()] {
        let bytes = std::fs::read(&library).expect("an agent");
        let mut needs = elf::needs(&bytes).expect("a library");
        // Only the packages link the unwinder statically.
        needs
            .symbols
            .retain(|symbol| !symbol.name.starts_with("_Unwind_"));
        let mut problems = elf::problems(&needs, &musl);
        problems.retain(|problem| problem.contains("musl"));
        assert_eq!(problems, Vec::<String>::new(), "{}", library.display());
    }
}
