//! Bytes of dumps: ids and pointers as this machine has them, numbers most
//! significant byte first.

use vmpi::Value;

use crate::abi::ObjectId;

/// A dump being written.
#[derive(Debug, Default)]
pub(crate) struct DumpBytes(pub(crate) Vec<u8>);

impl DumpBytes {
    pub(crate) fn u1(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u2(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    /// `u4`, also for numbers that may be -1.
    pub(crate) fn u4(&mut self, value: i32) {
        self.0.extend(value.to_be_bytes());
    }

    /// A count; what does not fit into the format is its largest.
    pub(crate) fn count(&mut self, value: usize) {
        self.u4(i32::try_from(value).unwrap_or(i32::MAX));
    }

    /// An id or pointer.
    pub(crate) fn pointer(&mut self, value: usize) {
        self.0.extend(value.to_ne_bytes());
    }

    pub(crate) fn pointers(&mut self, values: &[usize]) {
        for value in values {
            self.pointer(*value);
        }
    }

    /// A field or element; references are ids.
    pub(crate) fn value(&mut self, value: Value) {
        match value {
            Value::Object(object) => self.pointer(object.0 as ObjectId),
            Value::Boolean(value) => self.u1(u8::from(value)),
            Value::Byte(value) => self.u1(value.cast_unsigned()),
            Value::Char(value) => self.u2(value),
            Value::Short(value) => self.u2(value.cast_unsigned()),
            Value::Int(value) => self.u4(value),
            Value::Float(value) => self.0.extend(value.to_be_bytes()),
            Value::Long(value) => self.0.extend(value.to_be_bytes()),
            Value::Double(value) => self.0.extend(value.to_be_bytes()),
        }
    }

    /// Elements of a primitive array, `width` bytes each in this machine's order.
    pub(crate) fn elements(&mut self, bytes: &[u8], width: usize) {
        if width == 1 || cfg!(target_endian = "big") {
            self.0.extend_from_slice(bytes);
            return;
        }
        for element in bytes.chunks_exact(width) {
            self.0.extend(element.iter().rev());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi::ObjectHandle;

    #[test]
    fn numbers_are_big_endian_and_pointers_native() {
        let mut dump = DumpBytes::default();
        dump.u1(0x21);
        dump.u2(0x0102);
        dump.u4(-2);
        dump.pointer(0x1234);
        dump.value(Value::Char(0x41));
        dump.value(Value::Double(1.0));
        dump.value(Value::Object(ObjectHandle(8)));
        dump.elements(&1_u32.to_ne_bytes(), 4);
        let mut expected = vec![0x21, 1, 2, 0xff, 0xff, 0xff, 0xfe];
        expected.extend(0x1234_usize.to_ne_bytes());
        expected.extend([0, 0x41, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
        expected.extend(8_usize.to_ne_bytes());
        expected.extend([0, 0, 0, 1]);
        assert_eq!(dump.0, expected);
    }
}
