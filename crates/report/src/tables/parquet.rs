//! Parquet (parquet.apache.org, file format): a row group per piece, one page per column, required columns of texts,
//! whole numbers and doubles; dictionaries if texts repeat; gzip.
//!
//! Written by hand because the `parquet` crate brings 22 others for what is one page of code here; tests read the
//! files with DuckDB and Spark.

use super::thrift::{Field, Value, varint, write_struct};
use flate2::Compression;
use flate2::write::GzEncoder;
use heap_analysis::share::export::{Column, Table, Values};
use std::collections::HashMap;
use std::io::{self, Write};

const MAGIC: &[u8] = b"PAR1";
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const GZIP: i32 = 2;

/// A Parquet file that grows by row groups.
pub struct Parquet<W: Write> {
    out: W,
    at: u64,
    /// Name and type of the columns, from the first piece.
    columns: Vec<(&'static str, i32)>,
    groups: Vec<Value>,
    rows: i64,
}

fn physical(values: &Values) -> i32 {
    match values {
        Values::Text(_) => BYTE_ARRAY,
        Values::Number(_) => INT64,
        Values::Real(_) => DOUBLE,
    }
}

impl<W: Write> Parquet<W> {
    /// A file without rows yet.
    pub fn new(out: W) -> Parquet<W> {
        Parquet {
            out,
            at: 0,
            columns: Vec::new(),
            groups: Vec::new(),
            rows: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Appends a row group.
    pub fn write(&mut self, piece: &Table) -> io::Result<()> {
        if self.at == 0 {
            self.put(MAGIC)?;
            let columns = piece.columns.iter();
            self.columns = columns.map(|c| (c.name, physical(&c.values))).collect();
        }
        let rows = piece.rows() as i64;
        if rows == 0 {
            return Ok(());
        }
        let (mut chunks, mut bytes) = (Vec::new(), 0);
        for column in &piece.columns {
            let (chunk, size) = self.column(column)?;
            chunks.push(chunk);
            bytes += size;
        }
        self.rows += rows;
        self.groups.push(Value::Struct(vec![
            (1, Value::List(chunks)),
            (2, Value::I64(bytes)),
            (3, Value::I64(rows)),
        ]));
        Ok(())
    }

    /// Writes the pages of a column; returns its description and size.
    fn column(&mut self, column: &Column) -> io::Result<(Value, i64)> {
        let start = self.at as i64;
        let count = column.values.len() as i32;
        let mut plain = 0;
        let dictionary = match &column.values {
            Values::Text(list) => dictionary(list),
            _ => None,
        };
        let mut encodings = vec![Value::I32(PLAIN), Value::I32(RLE)];
        let mut data_at = start;
        match &dictionary {
            Some((words, indices)) => {
                let head = vec![(1, Value::I32(words.len() as i32)), (2, Value::I32(PLAIN))];
                plain += self.page(DICTIONARY_PAGE, (7, Value::Struct(head)), &texts(words))?;
                data_at = self.at as i64;
                encodings.push(Value::I32(RLE_DICTIONARY));
                let body = packed(indices, words.len());
                plain += self.page(DATA_PAGE, data_head(count, RLE_DICTIONARY), &body)?;
            }
            None => {
                let body = match &column.values {
                    Values::Text(list) => texts(list),
                    Values::Number(list) => list.iter().flat_map(|n| n.to_le_bytes()).collect(),
                    Values::Real(list) => list.iter().flat_map(|n| n.to_le_bytes()).collect(),
                };
                plain += self.page(DATA_PAGE, data_head(count, PLAIN), &body)?;
            }
        }
        let mut meta: Vec<Field> = vec![
            (1, Value::I32(physical(&column.values))),
            (2, Value::List(encodings)),
            (3, Value::List(vec![Value::Text(column.name.to_owned())])),
            (4, Value::I32(GZIP)),
            (5, Value::I64(i64::from(count))),
            (6, Value::I64(plain)),
            (7, Value::I64(self.at as i64 - start)),
            (9, Value::I64(data_at)),
        ];
        if dictionary.is_some() {
            meta.push((11, Value::I64(start)));
        }
        let chunk = vec![(2, Value::I64(start)), (3, Value::Struct(meta))];
        Ok((Value::Struct(chunk), plain))
    }

    /// Writes one page; returns its unpacked size, including the header.
    fn page(&mut self, kind: i32, head: Field, body: &[u8]) -> io::Result<i64> {
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(body)?;
        let stored = gz.finish()?;
        let size = |n: usize| i32::try_from(n).map_err(|_| io::Error::other("a page over 2 GiB"));
        let fields = vec![
            (1, Value::I32(kind)),
            (2, Value::I32(size(body.len())?)),
            (3, Value::I32(size(stored.len())?)),
            head,
        ];
        let mut bytes = Vec::new();
        write_struct(&fields, &mut bytes);
        self.put(&bytes)?;
        self.put(&stored)?;
        Ok((bytes.len() + body.len()) as i64)
    }

    /// Writes the footer.
    pub fn finish(mut self) -> io::Result<()> {
        let mut schema = vec![Value::Struct(vec![
            (4, Value::Text("schema".to_owned())),
            (5, Value::I32(self.columns.len() as i32)),
        ])];
        for (name, kind) in &self.columns {
            let mut element = vec![
                (1, Value::I32(*kind)),
                (3, Value::I32(0)),
                (4, Value::Text((*name).to_owned())),
            ];
            if *kind == BYTE_ARRAY {
                // Converted type UTF8.
                element.push((6, Value::I32(0)));
            }
            schema.push(Value::Struct(element));
        }
        let foot = [
            (1, Value::I32(1)),
            (2, Value::List(schema)),
            (3, Value::I64(self.rows)),
            (4, Value::List(std::mem::take(&mut self.groups))),
            (6, Value::Text("tenure".to_owned())),
        ];
        let mut bytes = Vec::new();
        write_struct(&foot, &mut bytes);
        let len = bytes.len() as u32;
        self.put(&bytes)?;
        self.put(&len.to_le_bytes())?;
        self.put(MAGIC)?;
        self.out.flush()
    }
}

fn data_head(count: i32, encoding: i32) -> Field {
    let head = vec![
        (1, Value::I32(count)),
        (2, Value::I32(encoding)),
        (3, Value::I32(RLE)),
        (4, Value::I32(RLE)),
    ];
    (5, Value::Struct(head))
}

/// PLAIN texts: length and bytes each.
fn texts<T: AsRef<str>>(list: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    for text in list {
        let text = text.as_ref();
        out.extend((text.len() as u32).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// The distinct texts, and for each text its index among them; `None` when few repeat.
fn dictionary(list: &[String]) -> Option<(Vec<&str>, Vec<u32>)> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let (mut words, mut indices) = (Vec::new(), Vec::with_capacity(list.len()));
    for text in list {
        let next = words.len() as u32;
        let number = *numbers.entry(text).or_insert(next);
        if number == next {
            words.push(text.as_str());
        }
        indices.push(number);
    }
    (words.len() * 2 <= list.len()).then_some((words, indices))
}

/// Numbers below `words` as one bit-packed run: width, run header, groups of eight numbers.
fn packed(indices: &[u32], words: usize) -> Vec<u8> {
    let width = (usize::BITS - words.saturating_sub(1).leading_zeros()).max(1);
    let groups = indices.len().div_ceil(8);
    let mut out = vec![width as u8];
    varint(&mut out, (groups as u64) << 1 | 1);
    let (mut bits, mut held) = (0u64, 0);
    let padded = indices.iter().copied().chain(std::iter::repeat(0));
    for index in padded.take(groups * 8) {
        bits |= u64::from(index) << held;
        held += width;
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
    out
}
