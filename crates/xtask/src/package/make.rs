//! `./x package`: all files of a release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

use super::compile::{Workshop, output, run};
use super::files::{self, File};
use super::tar::{gzip, tree};
use super::{ARCHES, Arch, Release, deb, java, oci, recipes, sbom, sums, wheel};

/// What is to be made.
#[derive(Clone, Debug)]
pub struct Order {
    /// The sources.
    pub root: PathBuf,
    /// Where everything is built, and below it `dist`, the result.
    pub target: PathBuf,
    /// For these.
    pub arches: Vec<Arch>,
}

impl Order {
    /// The folder with the files of the release.
    pub fn dist(&self) -> PathBuf {
        self.target.join("dist")
    }

    /// Builds and writes all files.
    ///
    /// # Errors
    /// A build that fails, or a file that cannot be written.
    pub fn make(&self) -> Result<(), String> {
        let metadata = self.metadata()?;
        let release = Release {
            version: version(&metadata)?,
            time: self.time()?,
        };
        let host = std::env::consts::ARCH;
        let own = self.arches.iter().position(|arch| arch.name == host);
        let own = own.ok_or_else(|| {
            format!("the manual pages are printed by the program: build for {host}, too")
        })?;
        let built = self.programs()?;
        let own = built[own].1.join("tenure");
        let mut installed = Vec::new();
        for (arch, folder) in &built {
            installed.push((*arch, self.install(*arch, folder, &own)?));
        }
        let lockfile = fs::read_to_string(self.root.join("Cargo.lock"));
        let lockfile = lockfile.map_err(|error| error.to_string())?;
        let all = packages(&release, &installed, &metadata, &lockfile)?;
        write(&self.dist(), all)
    }

    /// Builds the program and the agents of each architecture; the folders that they are in.
    ///
    /// # Errors
    /// A build that fails, or an agent that some C library does not load.
    pub fn programs(&self) -> Result<Vec<(Arch, PathBuf)>, String> {
        let workshop = Workshop {
            root: self.root.clone(),
            target: self.target.clone(),
            time: self.time()?,
        };
        let build = |arch: &Arch| Ok((*arch, workshop.build(*arch)?));
        self.arches.iter().map(build).collect()
    }

    /// Runs `./x install` with the programs of a folder; the files that it installed.
    fn install(&self, arch: Arch, built: &Path, runs: &Path) -> Result<Vec<File>, String> {
        let stage = self.target.join("stage").join(arch.name);
        // Nothing of an earlier version is left in it.
        let _ = fs::remove_dir_all(&stage);
        let mut install = Command::new(self.root.join("x"));
        install.arg("install").arg(&stage);
        install.env("TENURE_BUILT", built).env("TENURE_RUNS", runs);
        run(&mut install)?;
        files::below(&stage)
    }

    /// What cargo knows of the packages for Linux.
    fn metadata(&self) -> Result<Json, String> {
        let mut cargo = Command::new("cargo");
        cargo.args(["metadata", "--format-version", "1", "--locked"]);
        cargo.args(["--filter-platform", "x86_64-unknown-linux-musl"]);
        let text = output(cargo.current_dir(&self.root))?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// The time of the commit, or what SOURCE_DATE_EPOCH says.
    fn time(&self) -> Result<u64, String> {
        let given = std::env::var("SOURCE_DATE_EPOCH").ok();
        let text = match given {
            Some(text) => text,
            None => output(
                Command::new("git")
                    .args(["log", "-1", "--format=%ct"])
                    .current_dir(&self.root),
            )?,
        };
        text.parse().map_err(|_| format!("{text} is no time"))
    }
}

/// The version of the workspace, which is that of the program.
fn version(metadata: &Json) -> Result<String, String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut own = packages.filter(|package| package["source"].is_null());
    let version = own.find_map(|package| package["version"].as_str());
    version
        .map(str::to_owned)
        .ok_or_else(|| "no package has a version".to_owned())
}

/// The names and contents of all files of a release.
///
/// # Errors
/// A file that is missing in an installation.
pub fn packages(
    release: &Release,
    installed: &[(Arch, Vec<File>)],
    metadata: &Json,
    lockfile: &str,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut all = Vec::new();
    for (arch, files) in installed {
        let name = release.archive(*arch);
        let archive = gzip(&tree(&format!("{name}/"), files, release.time)?)?;
        all.push((name + ".tar.gz", archive));
        all.push((
            deb::name(release, *arch),
            deb::package(release, *arch, files)?,
        ));
        all.push((
            wheel::name(release, *arch),
            wheel::package(release, *arch, files)?,
        ));
    }
    let formula = recipes::formula(release, &all);
    all.push(("tenure.rb".to_owned(), formula.into_bytes()));
    all.push((oci::name(release), oci::archive(release, installed)?));
    let jar = format!("{}-{}", java::ARTIFACT, release.version);
    all.push((format!("{jar}.jar"), java::jar(release, installed)?));
    all.push((format!("{jar}.pom"), java::pom(release).into_bytes()));
    let parts = sbom::document(release, metadata, lockfile);
    let parts = serde_json::to_string_pretty(&parts).map_err(|error| error.to_string())?;
    all.push((sbom::name(release), (parts + "\n").into_bytes()));
    let list = sums::list(&all);
    all.push(("SHA256SUMS".to_owned(), list.into_bytes()));
    Ok(all)
}

/// Writes the files into an empty folder.
fn write(folder: &Path, files: Vec<(String, Vec<u8>)>) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(fault)?;
    }
    fs::create_dir_all(folder).map_err(fault)?;
    for (name, content) in files {
        fs::write(folder.join(name), content).map_err(fault)?;
    }
    Ok(())
}

/// Builds once more from a fresh copy of the commit in another folder; the files that differ.
///
/// # Errors
/// The files are not those of a commit, or the second build fails.
pub fn differences(first: &Order) -> Result<Vec<String>, String> {
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(&first.root);
        git
    };
    if !output(git().args(["status", "--porcelain"]))?.is_empty() {
        return Err("the second build is that of the commit: commit the changes first".to_owned());
    }
    let root = first.target.join("elsewhere");
    let _ = fs::remove_dir_all(&root);
    run(git().args(["clone", "-q", "--shared", "."]).arg(&root))?;
    let second = Order {
        target: root.join("target/package"),
        arches: first.arches.clone(),
        root,
    };
    second.make()?;
    let mut names = Vec::new();
    let fault = |error: std::io::Error| error.to_string();
    for entry in fs::read_dir(first.dist()).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let one = fs::read(entry.path()).map_err(fault)?;
        if fs::read(second.dist().join(entry.file_name())).ok() != Some(one) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The architectures of these names; all if there are none.
///
/// # Errors
/// A name that is not known.
pub fn arches(names: &[String]) -> Result<Vec<Arch>, String> {
    let known = |name: &String| {
        let found = ARCHES.into_iter().find(|arch| arch.name == name);
        found.ok_or_else(|| format!("no architecture {name}; there are x86_64 and aarch64"))
    };
    match names {
        [] => Ok(ARCHES.to_vec()),
        names => names.iter().map(known).collect(),
    }
}
