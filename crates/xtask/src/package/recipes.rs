//! What other package managers need in order to fetch the archives.

use super::sums::hex;
use super::{ARCHES, HOME, Release, SUMMARY};

/// Where a file of a release is.
pub fn address(release: &Release, name: &str) -> String {
    format!("{HOME}/releases/download/v{}/{name}", release.version)
}

/// A formula for Homebrew on Linux. `archives` are names and contents of the archives.
pub fn formula(release: &Release, archives: &[(String, Vec<u8>)]) -> String {
    let mut on = String::new();
    for (arch, word) in ARCHES.iter().zip(["on_intel", "on_arm"]) {
        let name = release.archive(*arch) + ".tar.gz";
        if let Some((_, content)) = archives.iter().find(|(archive, _)| *archive == name) {
            let (address, sum) = (address(release, &name), hex(content));
            on += &format!("  {word} do\n    url \"{address}\"\n    sha256 \"{sum}\"\n  end\n");
        }
    }
    format!(
        r#"class Tenure < Formula
  desc "{SUMMARY}"
  homepage "{HOME}"
  version "{}"
  license any_of: ["MIT", "Apache-2.0"]
  depends_on :linux
{on}
  def install
    bin.install "bin/tenure"
    (lib/"tenure").install Dir["lib/tenure/*"]
    include.install "include/jvmpi.h"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/tenure"
    zsh_completion.install "share/zsh/site-functions/_tenure"
    fish_completion.install "share/fish/vendor_completions.d/tenure.fish"
    doc.install Dir["share/doc/tenure/*"]
  end

  test do
    assert_match version.to_s, shell_output("\#{{bin}}/tenure --version")
  end
end
"#,
        release.version
    )
    .replace("\\#", "#")
}
