//! A Python wheel that puts the program beside `pip`: `pip install`, `uvx`. The program contains the
//! agents, so it is the only file of it. (Python's binary distribution format, PEP 427.)

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::files::{File, get};
use super::sums::base64;
use super::{Arch, HOME, LICENCE, Release, SUMMARY, time};

/// What the platform must offer: a static program runs with every C library.
fn platforms(arch: Arch) -> [String; 2] {
    let name = arch.name;
    [
        format!("manylinux_2_17_{name}"),
        format!("musllinux_1_1_{name}"),
    ]
}

/// The file name of the wheel.
pub fn name(release: &Release, arch: Arch) -> String {
    let platforms = platforms(arch).join(".");
    format!("tenure-{}-py3-none-{platforms}.whl", release.version)
}

/// The wheel of an installation.
///
/// # Errors
/// A file that is missing.
pub fn package(release: &Release, arch: Arch, installed: &[File]) -> Result<Vec<u8>, String> {
    let version = &release.version;
    let info = format!("tenure-{version}.dist-info");
    let program = &get(installed, "bin/tenure")?.content;
    let scripts = format!("tenure-{version}.data/scripts/tenure");
    let mut files = vec![File::program(scripts, program.clone())];
    let licences = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY"];
    let mut metadata = format!(
        "Metadata-Version: 2.4\nName: tenure\nVersion: {version}\nSummary: {SUMMARY}\n\
         License-Expression: {LICENCE}\nProject-URL: Repository, {HOME}\nRequires-Python: >=3.7\n"
    );
    for name in licences {
        let content = &get(installed, &format!("share/doc/tenure/{name}"))?.content;
        files.push(File::plain(
            format!("{info}/licenses/{name}"),
            content.clone(),
        ));
        let _ = writeln!(metadata, "License-File: {name}");
    }
    let mut wheel = String::from("Wheel-Version: 1.0\nGenerator: tenure\nRoot-Is-Purelib: false\n");
    for platform in platforms(arch) {
        let _ = writeln!(wheel, "Tag: py3-none-{platform}");
    }
    files.push(File::plain(format!("{info}/METADATA"), metadata));
    files.push(File::plain(format!("{info}/WHEEL"), wheel));
    let mut record = String::new();
    for file in &files {
        let (path, sum) = (&file.path, base64(&file.content));
        let _ = writeln!(record, "{path},sha256={sum},{}", file.content.len());
    }
    let _ = writeln!(record, "{info}/RECORD,,");
    files.push(File::plain(format!("{info}/RECORD"), record));
    zip(&files, release.time)
}

/// A zip archive of these files in this order.
///
/// # Errors
/// A time before 1980.
pub(super) fn zip(files: &[File], seconds: u64) -> Result<Vec<u8>, String> {
    let (year, month, day) = time::date(seconds);
    let small = |number: u64| u8::try_from(number).unwrap_or(0);
    let at = DateTime::from_date_and_time(
        u16::try_from(year).unwrap_or(0),
        small(month),
        small(day),
        small(seconds % 86_400 / 3600),
        small(seconds % 3600 / 60),
        small(seconds % 60),
    );
    let at = at.map_err(|error| error.to_string())?;
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(at)
            .unix_permissions(file.mode);
        let started = writer.start_file(file.path.as_str(), options);
        started.map_err(|error| error.to_string())?;
        writer
            .write_all(&file.content)
            .map_err(|error| error.to_string())?;
    }
    let done = writer.finish().map_err(|error| error.to_string())?;
    Ok(done.into_inner())
}
