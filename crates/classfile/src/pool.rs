//! The constant pool: read in place, extended at its end.

use std::collections::HashMap;

use crate::error::Error;
use crate::reader::Reader;

const UTF8: u8 = 1;
const INTEGER: u8 = 3;
const FLOAT: u8 = 4;
const LONG: u8 = 5;
const DOUBLE: u8 = 6;
const CLASS: u8 = 7;
const FIELD_REF: u8 = 9;
const METHOD_REF: u8 = 10;
const INTERFACE_METHOD_REF: u8 = 11;
const NAME_AND_TYPE: u8 = 12;

/// The constants of the original class.
#[derive(Clone, Debug)]
pub struct Pool<'a> {
    bytes: &'a [u8],
    /// Offset of each entry's tag; 0 for entry 0 and for the second entry of a `long` or `double`.
    offsets: Vec<u32>,
}

impl<'a> Pool<'a> {
    /// Reads the pool; `reader` is positioned at its count.
    pub(crate) fn read(bytes: &'a [u8], reader: &mut Reader<'a>) -> Result<Self, Error> {
        let count = usize::from(reader.u2()?);
        let mut offsets = Vec::with_capacity(count);
        offsets.push(0);
        while offsets.len() < count {
            let at = reader.at();
            offsets.push(at as u32);
            let tag = reader.u1()?;
            let size = match tag {
                UTF8 => usize::from(reader.u2()?),
                CLASS | 8 | 16 | 19 | 20 => 2,
                15 => 3,
                INTEGER | FLOAT | FIELD_REF..=NAME_AND_TYPE | 17 | 18 => 4,
                LONG | DOUBLE => {
                    offsets.push(0);
                    8
                }
                _ => return Err(Error::PoolTag { tag, at }),
            };
            reader.take(size)?;
        }
        if offsets.len() > count.max(1) {
            return Err(Error::PoolIndex(count as u16));
        }
        Ok(Self { bytes, offsets })
    }

    /// The number of entries, including the unused entry 0.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    fn entry(&self, index: u16, tag: u8) -> Result<Reader<'a>, Error> {
        let offset = self.offsets.get(usize::from(index)).copied().unwrap_or(0);
        let mut reader = Reader::at_offset(self.bytes, offset as usize);
        if offset == 0 || reader.u1()? != tag {
            Err(Error::PoolIndex(index))
        } else {
            Ok(reader)
        }
    }

    /// The bytes of a Utf8 constant, in modified UTF-8.
    pub fn utf8(&self, index: u16) -> Result<&'a [u8], Error> {
        let mut reader = self.entry(index, UTF8)?;
        let len = reader.u2()?;
        reader.take(usize::from(len))
    }

    /// The name of a Class constant.
    pub fn class_name(&self, index: u16) -> Result<&'a [u8], Error> {
        let name = self.entry(index, CLASS)?.u2()?;
        self.utf8(name)
    }

    /// The class of a field reference.
    pub fn field_owner(&self, index: u16) -> Result<&'a [u8], Error> {
        let class = self.entry(index, FIELD_REF)?.u2()?;
        self.class_name(class)
    }

    /// Whether the constant is a number, so that loading it runs no code.
    #[must_use]
    pub fn is_number(&self, index: u16) -> bool {
        [INTEGER, FLOAT, LONG, DOUBLE]
            .iter()
            .any(|tag| self.entry(index, *tag).is_ok())
    }

    /// Owner, name and descriptor of a (interface) method reference.
    pub fn method_ref(&self, index: u16) -> Result<[&'a [u8]; 3], Error> {
        let mut reader = self
            .entry(index, METHOD_REF)
            .or_else(|_| self.entry(index, INTERFACE_METHOD_REF))?;
        let (class, name_and_type) = (reader.u2()?, reader.u2()?);
        let mut pair = self.entry(name_and_type, NAME_AND_TYPE)?;
        let (name, descriptor) = (pair.u2()?, pair.u2()?);
        Ok([
            self.class_name(class)?,
            self.utf8(name)?,
            self.utf8(descriptor)?,
        ])
    }
}

/// Constants to be appended. Equal ones are added once; those already in the class are not searched, which costs a few
/// bytes and saves a search per class.
#[derive(Debug)]
pub struct PoolBuilder {
    next: usize,
    bytes: Vec<u8>,
    made: HashMap<Vec<u8>, u16>,
    full: bool,
}

impl PoolBuilder {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            next: len.max(1),
            bytes: Vec::new(),
            made: HashMap::new(),
            full: false,
        }
    }

    /// Number of entries including the appended ones and entry 0; an error if a constant did not fit.
    pub(crate) fn count(&self) -> Result<u16, Error> {
        if self.full {
            Err(Error::PoolFull)
        } else {
            Ok(self.next as u16)
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn add(&mut self, entry: Vec<u8>, slots: usize) -> u16 {
        if let Some(index) = self.made.get(&entry) {
            return *index;
        }
        if self.next + slots > usize::from(u16::MAX) {
            self.full = true;
            return 0;
        }
        let index = self.next as u16;
        self.next += slots;
        self.bytes.extend_from_slice(&entry);
        self.made.insert(entry, index);
        index
    }

    /// A Utf8 constant in modified UTF-8 (plain ASCII is valid modified UTF-8); at most 65,535 bytes.
    pub fn utf8(&mut self, text: impl AsRef<[u8]>) -> u16 {
        let text = text.as_ref();
        let mut entry = vec![UTF8];
        entry.extend((text.len() as u16).to_be_bytes());
        entry.extend(text);
        self.add(entry, 1)
    }

    /// A Class constant.
    pub fn class(&mut self, name: impl AsRef<[u8]>) -> u16 {
        let name = self.utf8(name);
        self.add(pair(CLASS, name, None), 1)
    }

    /// A reference to a class method.
    pub fn method_ref(&mut self, class: &str, name: &str, descriptor: &str) -> u16 {
        let class = self.class(class);
        let (name, descriptor) = (self.utf8(name), self.utf8(descriptor));
        let name_and_type = self.add(pair(NAME_AND_TYPE, name, Some(descriptor)), 1);
        self.add(pair(METHOD_REF, class, Some(name_and_type)), 1)
    }

    /// An `int` constant.
    pub fn integer(&mut self, value: i32) -> u16 {
        let mut entry = vec![INTEGER];
        entry.extend(value.to_be_bytes());
        self.add(entry, 1)
    }

    /// A `long` constant.
    pub fn long(&mut self, value: i64) -> u16 {
        let mut entry = vec![LONG];
        entry.extend(value.to_be_bytes());
        self.add(entry, 2)
    }
}

/// A constant made of one or two indices.
fn pair(tag: u8, first: u16, second: Option<u16>) -> Vec<u8> {
    let mut entry = vec![tag];
    entry.extend(first.to_be_bytes());
    if let Some(second) = second {
        entry.extend(second.to_be_bytes());
    }
    entry
}
