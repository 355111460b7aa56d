//! The files of a release: archives, packages, their checksums.
//!
//! Every writer is a function from the files of an installation to bytes. The same files, version and
//! time give the same bytes; `./x package --check-reproducible` builds twice and compares.
//!
//! Reading order: [`compile`] (programs and libraries of both architectures), [`elf`] (an agent that
//! every C library loads), [`files`] (what `./x install` puts into a folder), [`tar`]; then one module
//! for each kind of package.

pub mod compile;
pub mod deb;
pub mod elf;
pub mod files;
pub mod java;
pub mod make;
pub mod oci;
pub mod recipes;
pub mod sbom;
pub mod sums;
pub mod tar;
pub mod time;
pub mod version;
pub mod wheel;

/// An architecture that is released, in the words of each system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arch {
    /// Of Rust, of Linux and in the names of archives.
    pub name: &'static str,
    /// Of Debian, Go and container images.
    pub debian: &'static str,
}

/// The architectures that are released.
pub const ARCHES: [Arch; 2] = [
    Arch {
        name: "x86_64",
        debian: "amd64",
    },
    Arch {
        name: "aarch64",
        debian: "arm64",
    },
];

/// What all packages of a release have in common.
#[derive(Clone, Debug)]
pub struct Release {
    /// Such as `0.1.0`.
    pub version: String,
    /// Seconds since 1970: the time of the commit, which every file in every package has.
    pub time: u64,
}

impl Release {
    /// Name of the archive of an architecture, without its extension; also of the folder in it.
    pub fn archive(&self, arch: Arch) -> String {
        format!("tenure-{}-{}-linux", self.version, arch.name)
    }
}

/// One line about the product, as packages have it.
pub const SUMMARY: &str = "HPROF profiler and heap analyzer for the JVM and Android";

/// The repository.
pub const HOME: &str = "https://github.com/tenure-profiler/tenure";

/// The licence of everything here.
pub const LICENCE: &str = "MIT OR Apache-2.0";
