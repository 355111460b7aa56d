//! Names in a dump: the JVM's modified UTF-8, and class names in different notations.

use std::borrow::Cow;

/// Decodes modified UTF-8 (JVM specification 4.4.7): NUL as two bytes, characters beyond the basic plane as two
/// three-byte surrogates. Invalid bytes become U+FFFD.
pub fn decode_modified_utf8(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut units: Vec<u16> = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let cont = |k: usize| {
            bytes
                .get(i + k)
                .filter(|b| *b & 0xc0 == 0x80)
                .map(|b| u16::from(b & 0x3f))
        };
        let b = u16::from(bytes[i]);
        let (unit, len) = match b {
            0x00..=0x7f => (b, 1),
            0xc0..=0xdf => match cont(1) {
                Some(c) => ((b & 0x1f) << 6 | c, 2),
                None => (0xfffd, 1),
            },
            0xe0..=0xef => match (cont(1), cont(2)) {
                (Some(c), Some(d)) => ((b & 0x0f) << 12 | c << 6 | d, 3),
                _ => (0xfffd, 1),
            },
            0xf0..=0xf7 => match (cont(1), cont(2), cont(3)) {
                // Not modified UTF-8, but some writers use the standard four-byte form.
                (Some(c), Some(d), Some(e)) => {
                    let code = u32::from(b & 7) << 18
                        | u32::from(c) << 12
                        | u32::from(d) << 6
                        | u32::from(e);
                    let mut buffer = [0u16; 2];
                    let ch = char::from_u32(code).unwrap_or('\u{fffd}');
                    units.extend_from_slice(ch.encode_utf16(&mut buffer));
                    i += 4;
                    continue;
                }
                _ => (0xfffd, 1),
            },
            _ => (0xfffd, 1),
        };
        units.push(unit);
        i += len;
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

/// A class name as Java source would write it: dots, `int[]`, `java.lang.Object[]`. Accepts
/// slashed and dotted names, JVM array descriptors (`[I`, `[Ljava/lang/Object;`) and names that
/// are already readable. Hidden classes keep their `/0x…` or `+0x…` suffix with a plus sign.
pub fn readable_class_name(raw: &str) -> String {
    let dims = raw.bytes().take_while(|b| *b == b'[').count();
    let base = &raw[dims..];
    let base = if dims > 0 {
        match base {
            "Z" => "boolean",
            "B" => "byte",
            "C" => "char",
            "S" => "short",
            "I" => "int",
            "J" => "long",
            "F" => "float",
            "D" => "double",
            _ => base
                .strip_prefix('L')
                .and_then(|b| b.strip_suffix(';'))
                .unwrap_or(base),
        }
    } else {
        base
    };
    let mut name = base.replace('/', ".");
    if let Some(at) = name.rfind(".0x")
        && name[at + 3..].bytes().all(|b| b.is_ascii_hexdigit())
        && name.len() > at + 3
    {
        name.replace_range(at..=at, "+");
    }
    for _ in 0..dims {
        name.push_str("[]");
    }
    name
}

/// The package of a readable class name; the component's package for arrays; empty for none.
pub fn package_of(name: &str) -> &str {
    let base = name.trim_end_matches("[]");
    let base = base.split_once('+').map_or(base, |(head, _)| head);
    base.rfind('.').map_or("", |at| &base[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modified_utf8_decodes_nul_surrogates_and_garbage() {
        assert_eq!(decode_modified_utf8(b"plain"), "plain");
        assert_eq!(decode_modified_utf8(&[0x61, 0xc0, 0x80, 0x62]), "a\0b");
        assert_eq!(
            decode_modified_utf8(&[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]),
            "\u{1f600}"
        );
        assert_eq!(
            decode_modified_utf8(&[0xff, 0x41, 0xed, 0xa0]),
            "\u{fffd}A\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn class_names_become_readable() {
        for (raw, want) in [
            ("java/lang/String", "java.lang.String"),
            ("[I", "int[]"),
            ("[[Ljava/lang/Object;", "java.lang.Object[][]"),
            ("[Ljava.lang.Object;", "java.lang.Object[]"),
            ("byte[]", "byte[]"),
            ("A$$Lambda/0x00007f01", "A$$Lambda+0x00007f01"),
            ("A$$Lambda+0x00007f01", "A$$Lambda+0x00007f01"),
            ("A$$Lambda$14", "A$$Lambda$14"),
            ("", ""),
        ] {
            assert_eq!(readable_class_name(raw), want, "{raw}");
        }
    }

    #[test]
    fn the_package_is_the_part_before_the_class() {
        assert_eq!(package_of("java.lang.String[]"), "java.lang");
        assert_eq!(package_of("Zoo$Node"), "");
        assert_eq!(package_of("a.b.C+0x00.1"), "a.b");
    }
}
