//! Protobuf messages, encoded by hand.

/// A protobuf message under construction.
#[derive(Debug, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; 0 is the default and is left out.
    pub fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
    }

    /// A number of eight bytes; 0 is left out.
    pub fn fixed(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3 | 1);
            self.0.extend(value.to_le_bytes());
        }
    }

    /// Bytes, a text, or the bytes of another message.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A list of numbers.
    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}
