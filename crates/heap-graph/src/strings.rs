//! Values of `java.lang.String` objects in every layout the JDK and Android have had.

use crate::{Heap, ObjIdx, ObjectView, Value};
use hprof::{BasicType, ObjectId};

/// See [`Heap::string_data`].
type Text<'a> = (BasicType, Option<i8>, &'a [u8]);

impl Heap {
    /// The value of a `java.lang.String`; `None` for other objects, or if its characters are not
    /// in the dump.
    pub fn string(&self, object: ObjIdx) -> Option<String> {
        let (element, coder, data) = self.string_data(object)?;
        string_text(element, coder, data)
    }

    /// The first characters of a `java.lang.String`, at most `characters`. The rest is not decoded: a string may have
    /// hundreds of millions.
    pub fn string_prefix(&self, object: ObjIdx, characters: usize) -> Option<String> {
        let (element, coder, data) = self.string_data(object)?;
        string_text_prefix(element, coder, data, characters)
    }

    /// The number of characters of a `java.lang.String`, counted without a copy of its text.
    pub fn string_length(&self, object: ObjIdx) -> Option<u64> {
        let (element, coder, data) = self.string_data(object)?;
        string_text_length(element, coder, data)
    }

    /// The part of an array that has the text of a `java.lang.String`: the type of its elements, the `coder` of the string,
    /// and its bytes, as [`string_text`] takes them; `None` as for [`string`](Self::string).
    pub fn string_data(&self, object: ObjIdx) -> Option<Text<'_>> {
        if self.class(self.class_of(object)).name != "java.lang.String" {
            return None;
        }
        let ObjectView::Instance { fields, .. } = self.object(object).ok()? else {
            return None;
        };
        let mut array = ObjectId::NULL;
        let (mut offset, mut count, mut coder) = (0usize, None, None);
        for field in &fields {
            match (field.name, field.value) {
                ("value", Value::Reference(id)) => array = id,
                ("offset", Value::Int(n)) => offset = usize::try_from(n).ok()?,
                ("count", Value::Int(n)) => count = usize::try_from(n).ok(),
                ("coder", Value::Byte(n)) => coder = Some(n),
                _ => {}
            }
        }
        let ObjectView::PrimitiveArray { element, data, .. } =
            self.object(self.find(array)?).ok()?
        else {
            return None;
        };
        match element {
            BasicType::Char => {
                // Before JDK 7u6 several strings shared one array.
                let from = (offset * 2).min(data.len());
                let to = count.map_or(data.len(), |n| (from + n * 2).min(data.len()));
                Some((element, coder, &data[from..to]))
            }
            _ => Some((element, coder, data)),
        }
    }
}

/// The text in the array of a string. `coder` is the string's field of that name, 1 for UTF16;
/// `None` for elements that are neither bytes nor chars.
pub fn string_text(element: BasicType, coder: Option<i8>, data: &[u8]) -> Option<String> {
    Some(match (element, coder) {
        (BasicType::Char, _) => utf16(data, u16::from_be_bytes),
        // The JVM writes a UTF16 string's bytes as they lie in memory: little-endian.
        (BasicType::Byte, Some(1)) => utf16(data, u16::from_le_bytes),
        (BasicType::Byte, _) => data.iter().map(|b| char::from(*b)).collect(),
        _ => return None,
    })
}

/// The characters of [`string_text`], one after the other.
pub fn string_characters(
    element: BasicType,
    coder: Option<i8>,
    data: &[u8],
) -> Option<impl Iterator<Item = char> + '_> {
    let (wide, unit): (bool, fn([u8; 2]) -> u16) = match (element, coder) {
        (BasicType::Char, _) => (true, u16::from_be_bytes),
        (BasicType::Byte, Some(1)) => (true, u16::from_le_bytes),
        (BasicType::Byte, _) => (false, u16::from_le_bytes),
        _ => return None,
    };
    let (units, bytes) = if wide {
        (data, &[][..])
    } else {
        (&[][..], data)
    };
    let units = units.chunks_exact(2).map(move |c| unit([c[0], c[1]]));
    let units = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    Some(units.chain(bytes.iter().map(|b| char::from(*b))))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|c| unit([c[0], c[1]])).collect();
    String::from_utf16_lossy(&units)
}

/// The beginning of [`string_text`], at most `characters`; the rest is not decoded.
pub fn string_text_prefix(
    element: BasicType,
    coder: Option<i8>,
    data: &[u8],
    characters: usize,
) -> Option<String> {
    // A character of UTF-16 has at most two units.
    let is_wide = element == BasicType::Char || coder == Some(1);
    let most = characters.saturating_mul(if is_wide { 4 } else { 1 });
    let mut text = string_text(element, coder, &data[..data.len().min(most)])?;
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
    }
    Some(text)
}

/// The number of characters of [`string_text`], counted without a copy.
pub fn string_text_length(element: BasicType, coder: Option<i8>, data: &[u8]) -> Option<u64> {
    let count = |unit: fn([u8; 2]) -> u16| {
        let units = data.chunks_exact(2).map(|c| unit([c[0], c[1]]));
        char::decode_utf16(units).count()
    };
    let characters = match (element, coder) {
        (BasicType::Char, _) => count(u16::from_be_bytes),
        (BasicType::Byte, Some(1)) => count(u16::from_le_bytes),
        (BasicType::Byte, _) => data.len(),
        _ => return None,
    };
    Some(characters as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_the_beginning_of_the_text() {
        let texts = [
            "",
            "plain text",
            "größer",
            "日本語",
            "a\u{1f600}b\u{1f600}\u{1f601}c",
        ];
        for text in texts {
            let units: Vec<u16> = text.encode_utf16().collect();
            let chars: Vec<u8> = units.iter().flat_map(|u| u.to_be_bytes()).collect();
            let wide: Vec<u8> = units.iter().flat_map(|u| u.to_le_bytes()).collect();
            let latin: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
            // The last one ends within a pair.
            let broken = wide[..wide.len() / 4 * 2].to_vec();
            let mut forms = vec![
                (BasicType::Char, None, chars),
                (BasicType::Byte, Some(1), wide),
                (BasicType::Byte, Some(1), broken),
            ];
            forms.extend(latin.map(|bytes| (BasicType::Byte, Some(0), bytes)));
            for (element, coder, data) in forms {
                let whole = string_text(element, coder, &data).unwrap();
                let count = whole.chars().count();
                assert_eq!(
                    string_text_length(element, coder, &data),
                    Some(count as u64)
                );
                for characters in 0..count + 2 {
                    let prefix = string_text_prefix(element, coder, &data, characters).unwrap();
                    let want: String = whole.chars().take(characters).collect();
                    assert_eq!(prefix, want, "{characters} of {whole:?}");
                }
            }
        }
    }
}
