//! The texts that an array may have, in pieces.

use heap_graph::string_text;
use hprof::BasicType;

/// How many bytes of a long text are searched at a time, and how many of them once more with the next ones.
pub(super) const PIECE: usize = 1 << 20;
const OVERLAP: usize = 1 << 12;

/// How many ASCII characters make an array of bytes UTF-16 text.
const WIDE: usize = 8;

/// The pieces of a long text, and whether each is the last.
pub(super) fn pieces(data: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    let begins = (0..data.len().saturating_sub(OVERLAP).max(1)).step_by(PIECE - OVERLAP);
    begins.map(|from| {
        let end = data.len().min(from + PIECE);
        (&data[from..end], end == data.len())
    })
}

/// Text in UTF-8 without the parts of characters that a piece begins and ends with.
fn utf8(data: &[u8]) -> Option<&str> {
    let begin = data.iter().take(3).take_while(|b| **b & 0xc0 == 0x80);
    let data = &data[begin.count()..];
    match std::str::from_utf8(data) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&data[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

/// What the bytes may say. Bytes are text in UTF-8 or else Latin-1; with the high bytes of ASCII characters, in UTF-16,
/// too.
pub(super) fn texts_of(element: BasicType, data: &[u8]) -> Vec<String> {
    if element != BasicType::Byte {
        return string_text(element, None, data).into_iter().collect();
    }
    let latin = || data.iter().map(|byte| char::from(*byte)).collect();
    let narrow = utf8(data).map_or_else(latin, str::to_owned);
    let high = data.iter().skip(1).step_by(2);
    let is_wide = high.filter(|byte| **byte == 0).take(WIDE).count() == WIDE;
    let wide = is_wide.then(|| string_text(element, Some(1), data));
    std::iter::once(narrow).chain(wide.flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_a_text_begins_and_ends_with_whole_characters() {
        let text = "a\u{e9}\u{1f600}b\u{e9}".as_bytes();
        assert_eq!(utf8(text), Some("a\u{e9}\u{1f600}b\u{e9}"));
        assert_eq!(utf8(&text[2..text.len() - 1]), Some("\u{1f600}b"));
        assert_eq!(utf8(b"a\xe9b"), None);
        let long = vec![b'x'; 2 * PIECE];
        let parts: Vec<_> = pieces(&long)
            .map(|(piece, last)| (piece.len(), last))
            .collect();
        let rest = 2 * OVERLAP;
        assert_eq!(parts, [(PIECE, false), (PIECE, false), (rest, true)]);
        assert_eq!(pieces(&[0; 3]).count(), 1);
    }
}
