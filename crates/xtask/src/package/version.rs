//! The text changes of a release: the version in manifests, a section of the changelog, the notes.

/// A manifest with another version of the workspace and of the dependencies inside it.
///
/// # Errors
/// The version is no version, or lower than the present one.
pub fn set(manifest: &str, version: &str) -> Result<String, String> {
    let old = current(manifest)?;
    let (from, to) = (numbers(&old), numbers(version));
    let (Some(from), Some(to)) = (from, to) else {
        return Err(format!("{version} is no version such as 1.2.3"));
    };
    if to < from {
        return Err(format!("{version} is lower than the present version {old}"));
    }
    let old = format!("version = \"{old}\"");
    let changed = |line: &str| {
        let is_own = line.starts_with("version = ") || line.contains("path = \"crates/");
        match is_own {
            true => line.replace(&old, &format!("version = \"{version}\"")) + "\n",
            false => format!("{line}\n"),
        }
    };
    Ok(manifest.lines().map(changed).collect())
}

/// The version that a workspace has.
///
/// # Errors
/// It has none.
pub fn current(manifest: &str) -> Result<String, String> {
    let package = manifest
        .split("[workspace.package]")
        .nth(1)
        .unwrap_or_default();
    let line = package
        .lines()
        .find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|line| line.strip_suffix('"'));
    version
        .map(str::to_owned)
        .ok_or_else(|| "the workspace has no version".to_owned())
}

fn numbers(version: &str) -> Option<Vec<u32>> {
    let numbers: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() == 3)
}

const UNRELEASED: &str = "## Unreleased\n";

/// The changelog with what was not released as the section of a version, and an empty one above it. A
/// section of the version that has no date yet gets the date, and what was not released at its end.
///
/// # Errors
/// Nothing was changed, or the version is released already.
pub fn cut(changelog: &str, version: &str, day: &str) -> Result<String, String> {
    let body = section(changelog, "Unreleased").ok_or("the changelog has no section Unreleased")?;
    let heads = format!("{UNRELEASED}\n## {version} - {day}\n");
    let Some(prepared) = section(changelog, version) else {
        if body.is_empty() {
            return Err("the changelog has nothing new".to_owned());
        }
        return Ok(changelog.replacen(UNRELEASED, &heads, 1));
    };
    let undated = format!("\n## {version}\n");
    let Some((before, rest)) = changelog.split_once(&undated) else {
        return Err(format!("{version} is released already"));
    };
    let (top, _) = before.split_once(UNRELEASED).unwrap_or((before, ""));
    let after = rest.find("\n## ").map_or("", |at| &rest[at..]);
    let whole = format!("{top}{heads}\n{prepared}\n\n{body}");
    Ok(format!("{}\n{after}", whole.trim_end()))
}

/// The text below the heading of a version.
fn section<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    let head = format!("\n## {version}");
    let starts = changelog
        .match_indices(&head)
        .map(|(at, _)| &changelog[at + head.len()..]);
    let rest = starts
        .into_iter()
        .find(|rest| rest.starts_with([' ', '\n']))?;
    let (_, body) = rest.split_once('\n')?;
    let end = body.find("\n## ").map_or(body.len(), |at| at + 1);
    Some(body[..end].trim())
}

/// The notes of a release: its section of the changelog, and the checksums of its files.
///
/// # Errors
/// The changelog does not have the version.
pub fn notes(changelog: &str, version: &str, sums: &str) -> Result<String, String> {
    let body = section(changelog, version);
    let body = body.ok_or_else(|| format!("the changelog has no section {version}"))?;
    Ok(format!(
        "{body}\n\n### Files\n\nThe checksums (`sha256sum --check SHA256SUMS`):\n\n```text\n{}\n```\n",
        sums.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::{cut, notes, set};

    const MANIFEST: &str = "[workspace.package]\nversion = \"0.1.0\"\n\n[workspace.dependencies]\n\
        hprof = { path = \"crates/hprof\", version = \"0.1.0\" }\nother = { version = \"0.1.0\" }\n";

    #[test]
    fn only_the_own_crates_get_the_version() {
        let changed = set(MANIFEST, "0.2.0").expect("a higher version");
        assert_eq!(
            changed,
            MANIFEST.replacen("version = \"0.1.0\"", "version = \"0.2.0\"", 2)
        );
        assert_eq!(set(MANIFEST, "0.1.0").as_deref(), Ok(MANIFEST));
        assert!(set(MANIFEST, "0.0.9").is_err());
        assert!(set(MANIFEST, "0.2").is_err() && set(MANIFEST, "v0.2.0").is_err());
        assert!(set(MANIFEST, "0.10.0").is_ok());
    }

    #[test]
    fn the_changelog_is_cut_and_quoted() {
        let log =
            "# Changelog\n\n## Unreleased\n\n### Fixed\n\n* A.\n\n## 0.1.0 - 2026-01-01\n\n* B.\n";
        let cut_log = cut(log, "0.2.0", "2026-02-03").expect("changes");
        assert_eq!(
            cut_log,
            "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-02-03\n\n### Fixed\n\n* A.\n\n\
             ## 0.1.0 - 2026-01-01\n\n* B.\n"
        );
        assert!(cut(&cut_log, "0.3.0", "2026-02-03").is_err(), "nothing new");
        assert!(cut(log, "0.1.0", "2026-02-03").is_err(), "a version twice");
        let prepared = log.replace(" - 2026-01-01", "");
        assert_eq!(
            cut(&prepared, "0.1.0", "2026-02-03").expect("prepared"),
            "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-02-03\n\n* B.\n\n### Fixed\n\n* A.\n"
        );
        let notes = notes(&cut_log, "0.2.0", "00  a.deb\n").expect("notes");
        assert!(
            notes.starts_with("### Fixed\n\n* A.\n\n### Files\n"),
            "{notes}"
        );
        assert!(notes.contains("00  a.deb\n```") && !notes.contains("* B."));
    }
}
