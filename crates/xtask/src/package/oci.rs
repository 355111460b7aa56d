//! A container image from scratch, as an archive in the layout of the Open Container Initiative: the
//! static program, the agents, and a temporary folder. It runs as any user.

use serde_json::{Value as Json, json};

use super::files::{File, agents, get};
use super::sums::hex;
use super::tar::{Tar, gzip};
use super::{Arch, HOME, LICENCE, Release, SUMMARY, time};

/// The file name of the archive.
pub fn name(release: &Release) -> String {
    format!("tenure-{}-oci.tar", release.version)
}

/// The archive, with an image for each architecture.
///
/// # Errors
/// A file that is missing.
pub fn archive(release: &Release, installed: &[(Arch, Vec<File>)]) -> Result<Vec<u8>, String> {
    let mut blobs = Blobs::default();
    let mut manifests = Vec::new();
    for (arch, files) in installed {
        let layer = layer(release, files)?;
        let packed = gzip(&layer)?;
        let config = blobs.add_json("config.v1", &config(release, *arch, &layer));
        let layer = blobs.add("application/vnd.oci.image.layer.v1.tar+gzip", packed);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": [layer],
            "annotations": annotations(release),
        });
        let mut manifest = blobs.add_json("manifest.v1", &manifest);
        manifest["platform"] = json!({"architecture": arch.debian, "os": "linux"});
        manifests.push(manifest);
    }
    let all = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": manifests,
        "annotations": annotations(release),
    });
    let mut all = blobs.add_json("index.v1", &all);
    all["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [all],
    });
    let mut tar = Tar::new(release.time);
    tar.folder("blobs", 0o755)?;
    tar.folder("blobs/sha256", 0o755)?;
    blobs.0.sort();
    blobs.0.dedup();
    for (sum, content) in &blobs.0 {
        tar.file(&format!("blobs/sha256/{sum}"), 0o644, content)?;
    }
    tar.file("index.json", 0o644, index.to_string().as_bytes())?;
    tar.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    Ok(tar.finish())
}

/// Contents by their sum.
#[derive(Default)]
struct Blobs(Vec<(String, Vec<u8>)>);

impl Blobs {
    /// Adds a content; what refers to it.
    fn add(&mut self, kind: &str, content: Vec<u8>) -> Json {
        let sum = hex(&content);
        let about = json!({
            "mediaType": kind,
            "digest": format!("sha256:{sum}"),
            "size": content.len(),
        });
        self.0.push((sum, content));
        about
    }

    fn add_json(&mut self, kind: &str, content: &Json) -> Json {
        let kind = format!("application/vnd.oci.image.{kind}+json");
        self.add(&kind, content.to_string().into_bytes())
    }
}

fn layer(release: &Release, files: &[File]) -> Result<Vec<u8>, String> {
    let mut tar = Tar::new(release.time);
    // The program makes temporary files, and the home folder of any user is here.
    tar.folder("tmp", 0o1777)?;
    for folder in ["usr", "usr/bin"] {
        tar.folder(folder, 0o755)?;
    }
    tar.file("usr/bin/tenure", 0o755, &get(files, "bin/tenure")?.content)?;
    for folder in ["usr/lib", "usr/lib/tenure"] {
        tar.folder(folder, 0o755)?;
    }
    for (name, library) in agents(files)? {
        tar.file(&format!("usr/lib/tenure/{name}"), 0o644, &library.content)?;
    }
    for folder in ["usr/share", "usr/share/doc", "usr/share/doc/tenure"] {
        tar.folder(folder, 0o755)?;
    }
    for file in files
        .iter()
        .filter(|file| file.path.starts_with("share/doc/"))
    {
        tar.file(&format!("usr/{}", file.path), 0o644, &file.content)?;
    }
    Ok(tar.finish())
}

fn config(release: &Release, arch: Arch, layer: &[u8]) -> Json {
    let created = time::stamp(release.time);
    json!({
        "created": created,
        "architecture": arch.debian,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/tenure"],
            "Env": ["PATH=/usr/bin", "HOME=/tmp"],
            "Labels": annotations(release),
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex(layer))]},
        "history": [{"created": created, "created_by": "./x package"}],
    })
}

fn annotations(release: &Release) -> Json {
    json!({
        "org.opencontainers.image.title": "tenure",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": LICENCE,
        "org.opencontainers.image.source": HOME,
    })
}
