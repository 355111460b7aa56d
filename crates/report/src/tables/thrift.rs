//! The compact protocol of Thrift, as far as Parquet's page headers and footer need it.

/// A field of a structure: its number and value.
pub(super) type Field = (i16, Value);

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    I32(i32),
    I64(i64),
    Text(String),
    List(Vec<Value>),
    Struct(Vec<Field>),
}

impl Value {
    fn kind(&self) -> u8 {
        match self {
            Value::I32(_) => 5,
            Value::I64(_) => 6,
            Value::Text(_) => 8,
            Value::List(_) => 9,
            Value::Struct(_) => 12,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::I32(n) => varint(out, zigzag(i64::from(*n))),
            Value::I64(n) => varint(out, zigzag(*n)),
            Value::Text(text) => {
                varint(out, text.len() as u64);
                out.extend_from_slice(text.as_bytes());
            }
            Value::List(list) => {
                let kind = list.first().map_or(12, Value::kind);
                if list.len() < 15 {
                    out.push((list.len() as u8) << 4 | kind);
                } else {
                    out.push(0xf0 | kind);
                    varint(out, list.len() as u64);
                }
                list.iter().for_each(|v| v.write(out));
            }
            Value::Struct(fields) => write_struct(fields, out),
        }
    }
}

/// Appends a structure; fields in ascending order, less than 15 apart.
pub(super) fn write_struct(fields: &[Field], out: &mut Vec<u8>) {
    let mut before = 0;
    for (number, value) in fields {
        out.push(((number - before) as u8) << 4 | value.kind());
        value.write(out);
        before = *number;
    }
    out.push(0);
}

fn zigzag(n: i64) -> u64 {
    (n << 1 ^ n >> 63) as u64
}

/// Appends a number, seven bits to the byte.
pub(super) fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
