//! Values of `java.lang.String` objects in every layout the JDK and Android have had.

use crate::{Heap, ObjIdx, ObjectView, Value};
use hprof::{BasicType, ObjectId};

impl Heap {
    /// The value of a `java.lang.String`; `None` for other objects, or if its characters are not
    /// in the dump.
    pub fn string(&self, object: ObjIdx) -> Option<String> {
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
                string_text(element, coder, &data[from..to])
            }
            _ => string_text(element, coder, data),
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

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|c| unit([c[0], c[1]])).collect();
    String::from_utf16_lossy(&units)
}
