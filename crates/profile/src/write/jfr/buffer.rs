//! The encoding of JFR: compressed integers, strings and sized events.

/// Bytes of a part of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffer(pub(super) Vec<u8>);

impl Buffer {
    /// A compressed unsigned integer: seven bits a byte, the ninth byte whole.
    pub(super) fn varint(&mut self, mut value: u64) {
        for _ in 0..8 {
            if value < 0x80 {
                self.0.push(value as u8);
                return;
            }
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A string in place: 0 is null, 1 is empty, 3 is UTF-8 with its length.
    pub(super) fn string(&mut self, text: &str) {
        if text.is_empty() {
            self.0.push(1);
            return;
        }
        self.0.push(3);
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Appends an event: its size, which counts itself, and its body.
    pub(super) fn event(&mut self, body: &Buffer) {
        let mut width = 1;
        while (body.0.len() + width) >> (7 * width) != 0 {
            width += 1;
        }
        self.varint((body.0.len() + width) as u64);
        self.0.extend_from_slice(&body.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_at_most_nine_bytes() {
        let bytes = |value| {
            let mut buffer = Buffer::default();
            buffer.varint(value);
            buffer.0
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(300), [0xac, 2]);
        assert_eq!(bytes(u64::MAX), [0xff; 9]);
    }

    #[test]
    fn the_size_of_an_event_counts_itself() {
        for length in [0, 1, 125, 126, 127, 128, 16_381, 16_382, 16_383] {
            let mut out = Buffer::default();
            out.event(&Buffer(vec![0; length]));
            let (mut size, mut shift) = (0usize, 0);
            for byte in &out.0 {
                size |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if *byte < 0x80 {
                    break;
                }
            }
            assert_eq!(size, out.0.len(), "{length}");
        }
    }
}
