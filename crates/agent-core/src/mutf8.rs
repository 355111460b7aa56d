//! Java's modified UTF-8, the encoding of every name in both forms.

use std::borrow::Cow;

/// Encodes: NUL takes two bytes, a character above U+FFFF becomes two surrogates of three bytes.
pub(crate) fn encode(text: &str) -> Cow<'_, [u8]> {
    if text.bytes().all(|byte| byte != 0 && byte < 0xf0) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len() + 8);
    for unit in text.encode_utf16() {
        match unit {
            1..=0x7f => out.push(unit as u8),
            0 | 0x80..=0x7ff => out.extend([0xc0 | (unit >> 6) as u8, low(unit)]),
            _ => out.extend([0xe0 | (unit >> 12) as u8, low(unit >> 6), low(unit)]),
        }
    }
    Cow::Owned(out)
}

/// A continuation byte.
fn low(unit: u16) -> u8 {
    0x80 | (unit & 0x3f) as u8
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn encodes_what_the_reader_decodes() {
        for text in [
            "",
            "plain",
            "größe 日本",
            "a\0b",
            "😀 mixed \u{10ffff}",
            "\u{7ff}\u{800}",
        ] {
            let bytes = encode(text);
            assert!(!bytes.contains(&0), "{text}");
            assert_eq!(hprof::decode_modified_utf8(&bytes), text);
        }
        assert_eq!(&*encode("\0"), [0xc0, 0x80]);
    }
}
