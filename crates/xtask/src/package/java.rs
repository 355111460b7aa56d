//! A Maven artifact with the agents of both architectures, for builds that start JVMs with
//! `-agentpath`: they unpack it and name the library of their machine.

use super::files::{File, agents, get};
use super::wheel::zip;
use super::{Arch, HOME, Release, SUMMARY};

/// The group of the artifact.
pub const GROUP: &str = "io.github.tenure-profiler";

/// The artifact.
pub const ARTIFACT: &str = "tenure-agent";

/// The jar.
///
/// # Errors
/// A library that is missing.
pub fn jar(release: &Release, installed: &[(Arch, Vec<File>)]) -> Result<Vec<u8>, String> {
    let manifest = format!(
        "Manifest-Version: 1.0\r\nAutomatic-Module-Name: tenure.agent\r\n\
         Implementation-Title: {ARTIFACT}\r\nImplementation-Version: {}\r\n\r\n",
        release.version
    );
    let mut files = vec![File::plain("META-INF/MANIFEST.MF", manifest)];
    for (i, (arch, installed)) in installed.iter().enumerate() {
        for (name, library) in agents(installed)? {
            let path = format!("linux-{}/{name}", arch.name);
            files.push(File::plain(path, library.content.clone()));
        }
        let licences = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY"];
        for name in licences.into_iter().filter(|_| i == 0) {
            let content = &get(installed, &format!("share/doc/tenure/{name}"))?.content;
            files.push(File::plain(format!("META-INF/{name}"), content.clone()));
        }
    }
    zip(&files, release.time)
}

/// The description that repositories want beside the jar.
pub fn pom(release: &Release) -> String {
    let version = &release.version;
    let licence = |name: &str, address: &str| {
        format!(
            "    <license>\n      <name>{name}</name>\n      <url>{address}</url>\n    </license>\n"
        )
    };
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 http://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{GROUP}</groupId>
  <artifactId>{ARTIFACT}</artifactId>
  <version>{version}</version>
  <packaging>jar</packaging>
  <name>Tenure agent</name>
  <description>{SUMMARY}: the agent libraries for Linux</description>
  <url>{HOME}</url>
  <licenses>
{}{}  </licenses>
  <developers>
    <developer>
      <name>Tenure</name>
      <url>{HOME}</url>
    </developer>
  </developers>
  <scm>
    <url>{HOME}</url>
    <connection>scm:git:{HOME}.git</connection>
  </scm>
</project>
"#,
        licence("MIT", "https://opensource.org/license/mit"),
        licence("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0"),
    )
}
