//! SHA-256 and base64, as packages want them.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal digits.
pub fn hex(content: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(content) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// SHA-256 in base64 for URLs, without padding.
pub fn base64(content: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in Sha256::digest(content).chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for letter in 0..=three.len() {
            let at = bits >> (18 - 6 * letter) & 63;
            text.push(char::from(LETTERS[at as usize]));
        }
    }
    text
}

/// A list that `sha256sum --check` reads.
pub fn list(files: &[(String, Vec<u8>)]) -> String {
    let mut sorted: Vec<_> = files.iter().collect();
    sorted.sort();
    let lines = sorted
        .iter()
        .map(|(name, content)| format!("{}  {name}\n", hex(content)));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::{base64, hex};

    #[test]
    fn sums_are_those_of_other_programs() {
        // sha256sum, and openssl dgst -sha256 -binary | basenc --base64url.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(b"abc"), expected);
        assert_eq!(
            base64(b"abc"),
            "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"
        );
    }
}
