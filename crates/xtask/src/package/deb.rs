//! A Debian package: an `ar` archive of the format's number, what dpkg should know, and the files
//! (deb(5)). There is nothing to configure, so it has no scripts.

use super::files::File;
use super::tar::{gzip, tree};
use super::{Arch, HOME, Release, SUMMARY};

/// The file name of the package.
pub fn name(release: &Release, arch: Arch) -> String {
    format!("tenure_{}_{}.deb", release.version, arch.debian)
}

/// The package of an installation.
///
/// # Errors
/// A file name that is too long.
pub fn package(release: &Release, arch: Arch, installed: &[File]) -> Result<Vec<u8>, String> {
    let files = debian_places(installed)?;
    let control = [File::plain("control", control(release, arch, &files))];
    let time = release.time;
    Ok(ar(
        time,
        &[
            ("debian-binary", b"2.0\n".to_vec()),
            ("control.tar.gz", gzip(&tree("./", &control, time)?)?),
            ("data.tar.gz", gzip(&tree("./", &files, time)?)?),
        ],
    ))
}

/// The files where Debian looks for them.
fn debian_places(installed: &[File]) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for file in installed {
        let mut file = File {
            path: format!("usr/{}", file.path),
            ..file.clone()
        };
        if file.path.starts_with("usr/share/man/") {
            file.path += ".gz";
            file.content = gzip(&file.content)?;
        }
        file.path = file.path.replace(
            "usr/share/zsh/site-functions/",
            "usr/share/zsh/vendor-completions/",
        );
        files.push(file);
    }
    files.push(File::plain("usr/share/doc/tenure/copyright", COPYRIGHT));
    Ok(files)
}

const COPYRIGHT: &str = "\
Tenure is licensed under either of the Apache License, Version 2.0 (LICENSE-APACHE) or the MIT
license (LICENSE-MIT), at your option. THIRD-PARTY has the licences of the packages that it contains.
";

fn control(release: &Release, arch: Arch, files: &[File]) -> String {
    let bytes: usize = files.iter().map(|file| file.content.len()).sum();
    format!(
        "\
Package: tenure
Version: {}
Architecture: {}
Maintainer: Tenure <{HOME}/issues>
Installed-Size: {}
Section: java
Priority: optional
Homepage: {HOME}
Description: {SUMMARY}
 Tenure shows what is in a Java heap, which code allocated it, what keeps it
 alive, and where the time goes. It reads heap dumps and profiles running JVMs
 (JDK 8 to 25) with an agent that replaces the one of -agentlib:hprof.
",
        release.version,
        arch.debian,
        bytes.div_ceil(1024),
    )
}

/// An archive of `ar`, whose members begin at even offsets.
fn ar(time: u64, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let size = content.len();
        let head = format!(
            "{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
            0, 0, "100644"
        );
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(content);
        if size % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}
