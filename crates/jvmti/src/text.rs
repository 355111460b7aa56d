//! Strings of the VM.

/// Decodes Java's modified UTF-8: NUL as two bytes, characters beyond 16 bits as surrogate pairs. Malformed bytes
/// become U+FFFD.
#[must_use]
pub fn decode_modified_utf8(bytes: &[u8]) -> String {
    if bytes.is_ascii() {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        let (unit, used) = match (first, tail) {
            (0x00..=0x7f, _) => (u16::from(first), 0),
            (0xc0..=0xdf, [a, ..]) => (u16::from(first & 0x1f) << 6 | u16::from(a & 0x3f), 1),
            (0xe0..=0xef, [a, b, ..]) => (
                u16::from(first & 0x0f) << 12 | u16::from(a & 0x3f) << 6 | u16::from(b & 0x3f),
                2,
            ),
            _ => (0xfffd, 0),
        };
        units.push(unit);
        rest = &tail[used..];
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modified_utf8_is_decoded_and_malformed_bytes_are_marked() {
        let check = |bytes: &[u8], text: &str| assert_eq!(decode_modified_utf8(bytes), text);
        check(b"main", "main");
        check("Grüße".as_bytes(), "Grüße");
        check(&[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80], "\u{1f600}");
        check(&[b'a', 0xc0, 0x80], "a\0");
        check(&[0xe2, 0x82], "\u{fffd}\u{fffd}");
    }
}
