//! Where the fields of a good dump are: what a mutator must know to damage a length and not any
//! four bytes. Written from the format text, for whole files only.

use std::collections::HashMap;

/// What stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Width of ids in the header.
    IdWidth,
    /// Tag of a top-level record.
    TopTag,
    /// Length of a top-level record.
    TopLength,
    /// Id that a string record defines.
    StringId,
    /// Id of a name, of a method, of a source file.
    Name,
    /// Serial of a class, a thread or a stack trace.
    Serial,
    /// Id of a frame.
    Frame,
    /// Number of something that follows.
    Count,
    /// Tag of a heap sub-record.
    SubTag,
    /// Id that a class dump or a class record defines.
    ClassId,
    /// Id that an instance or an array defines.
    ObjectId,
    /// Class of an instance or of an array.
    ClassOf,
    /// Superclass.
    Super,
    /// Loader, signers, protection domain.
    Loader,
    /// Size of an instance as a class states it.
    InstanceSize,
    /// Type of a field or of elements.
    Type,
    /// Bytes of an instance, elements of an array.
    Length,
    /// A reference in a field, a static or an array.
    Reference,
    /// A primitive value in a field, a static or an array.
    Value,
    /// The object of a root.
    Root,
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Where it begins.
    pub at: usize,
    /// Its bytes.
    pub width: usize,
    /// What stands in it.
    pub what: What,
    /// The id of the object or class that it belongs to, 0 for none.
    pub owner: u64,
}

/// A record or sub-record.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Where its tag is.
    pub at: usize,
    /// Its tag.
    pub tag: u8,
    /// All its bytes, head included.
    pub len: usize,
    /// Number of the top-level record, its own or that around it.
    pub top: usize,
}

/// The fields of a dump.
#[derive(Clone, Debug)]
pub struct Fields {
    /// Bytes of an id.
    pub ids: usize,
    /// Bytes before the first record.
    pub header: usize,
    /// Top-level records.
    pub top: Vec<Record>,
    /// Heap sub-records.
    pub sub: Vec<Record>,
    /// Every field, in file order.
    pub all: Vec<Field>,
    by_what: HashMap<What, Vec<usize>>,
}

const SEGMENT: [u8; 2] = [0x0c, 0x1c];
const OBJECT: u8 = 2;

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    ids: usize,
    owner: u64,
    all: Vec<Field>,
    layouts: HashMap<u64, (u64, Vec<u8>)>,
}

impl Reader<'_> {
    fn number(&self, at: usize, width: usize) -> u64 {
        let bytes = &self.data[at..at + width];
        bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
    }

    /// The next field.
    fn take(&mut self, what: What, width: usize) -> u64 {
        let value = self.number(self.at, width);
        let (at, owner) = (self.at, self.owner);
        self.all.push(Field {
            at,
            width,
            what,
            owner,
        });
        self.at += width;
        value
    }

    fn id(&mut self, what: What) -> u64 {
        self.take(what, self.ids)
    }

    fn value(&mut self, ty: u8) {
        match ty {
            OBJECT => self.id(What::Reference),
            _ => self.take(What::Value, width_of(ty)),
        };
    }

    fn top(&mut self, tag: u8, end: usize) {
        match tag {
            0x01 => {
                self.id(What::StringId);
            }
            0x02 => {
                self.take(What::Serial, 4);
                self.id(What::ClassId);
                self.take(What::Serial, 4);
                self.id(What::Name);
            }
            0x04 => {
                self.id(What::Frame);
                for _ in 0..3 {
                    self.id(What::Name);
                }
                self.take(What::Serial, 4);
                self.take(What::Value, 4);
            }
            0x05 => {
                self.take(What::Serial, 4);
                self.take(What::Serial, 4);
                for _ in 0..self.take(What::Count, 4) {
                    self.id(What::Frame);
                }
            }
            _ => {}
        }
        self.at = end;
    }

    fn class(&mut self) {
        self.owner = self.number(self.at, self.ids);
        self.id(What::ClassId);
        self.take(What::Serial, 4);
        let above = self.id(What::Super);
        for _ in 0..5 {
            self.id(What::Loader);
        }
        self.take(What::InstanceSize, 4);
        for _ in 0..self.take(What::Count, 2) {
            self.take(What::Value, 2);
            let ty = self.take(What::Type, 1) as u8;
            self.value(ty);
        }
        for _ in 0..self.take(What::Count, 2) {
            self.id(What::Name);
            let ty = self.take(What::Type, 1) as u8;
            self.value(ty);
        }
        let mut types = Vec::new();
        for _ in 0..self.take(What::Count, 2) {
            self.id(What::Name);
            types.push(self.take(What::Type, 1) as u8);
        }
        self.layouts.insert(self.owner, (above, types));
    }

    fn instance(&mut self) {
        self.owner = self.number(self.at, self.ids);
        self.id(What::ObjectId);
        self.take(What::Serial, 4);
        let mut class = self.id(What::ClassOf);
        let end = self.take(What::Length, 4) as usize + self.at;
        while let Some((above, types)) = self.layouts.get(&class).cloned() {
            types.into_iter().for_each(|ty| self.value(ty));
            class = above;
        }
        self.at = end;
    }

    fn array(&mut self, tag: u8) {
        self.owner = self.number(self.at, self.ids);
        self.id(What::ObjectId);
        self.take(What::Serial, 4);
        let length = self.take(What::Length, 4) as usize;
        if tag == 0x22 {
            self.id(What::ClassOf);
            for _ in 0..length {
                self.id(What::Reference);
            }
        } else {
            let ty = self.take(What::Type, 1) as u8;
            let end = self.at + length * width_of(ty);
            if length > 0 {
                self.take(What::Value, width_of(ty));
            }
            self.at = end;
        }
    }

    fn sub(&mut self) -> u8 {
        self.owner = 0;
        let tag = self.take(What::SubTag, 1) as u8;
        match tag {
            0x20 => self.class(),
            0x21 => self.instance(),
            0x22 | 0x23 => self.array(tag),
            0xfe => {
                self.take(What::Serial, 4);
                self.id(What::Name);
            }
            _ => {
                self.id(What::Root);
                let serials = match tag {
                    0x01 => {
                        self.id(What::Value);
                        0
                    }
                    0x02 | 0x03 | 0x08 | 0x8e => 2,
                    0x04 | 0x06 => 1,
                    _ => 0,
                };
                for _ in 0..serials {
                    self.take(What::Serial, 4);
                }
            }
        }
        tag
    }
}

fn width_of(ty: u8) -> usize {
    match ty {
        4 | 8 => 1,
        5 | 9 => 2,
        6 | 10 => 4,
        7 | 11 => 8,
        other => panic!("a good dump has no element type {other}"),
    }
}

impl Fields {
    /// Finds the fields of a good, unpacked dump.
    ///
    /// # Panics
    /// When the dump is not good.
    pub fn of(data: &[u8]) -> Fields {
        let name = data.iter().position(|b| *b == 0).expect("a version string");
        let mut r = Reader {
            data,
            at: name + 1,
            ids: 4,
            owner: 0,
            all: Vec::new(),
            layouts: HashMap::new(),
        };
        r.ids = r.take(What::IdWidth, 4) as usize;
        r.at += 8;
        let (ids, header) = (r.ids, r.at);
        let (mut top, mut sub) = (Vec::new(), Vec::new());
        while r.at < data.len() {
            let at = r.at;
            r.owner = 0;
            let tag = r.take(What::TopTag, 1) as u8;
            r.at += 4;
            let end = r.take(What::TopLength, 4) as usize + r.at;
            if SEGMENT.contains(&tag) {
                while r.at < end {
                    let from = r.at;
                    let tag = r.sub();
                    sub.push(Record {
                        at: from,
                        tag,
                        len: r.at - from,
                        top: top.len(),
                    });
                }
            } else {
                r.top(tag, end);
            }
            top.push(Record {
                at,
                tag,
                len: end - at,
                top: top.len(),
            });
        }
        let mut by_what: HashMap<What, Vec<usize>> = HashMap::new();
        for (n, field) in r.all.iter().enumerate() {
            by_what.entry(field.what).or_default().push(n);
        }
        Fields {
            ids,
            header,
            top,
            sub,
            all: r.all,
            by_what,
        }
    }

    /// The fields with this in them.
    pub fn with(&self, what: What) -> impl ExactSizeIterator<Item = Field> + '_ {
        let list = self.by_what.get(&what).map_or(&[][..], Vec::as_slice);
        list.iter().map(|n| self.all[*n])
    }

    /// Every kind of field that there is, each once.
    pub fn kinds(&self) -> Vec<What> {
        let mut all: Vec<What> = self.by_what.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// The sub-records with this tag.
    pub fn subs(&self, tag: u8) -> impl Iterator<Item = Record> + '_ {
        self.sub.iter().copied().filter(move |r| r.tag == tag)
    }

    /// The top-level records with heap sub-records in them.
    pub fn segments(&self) -> impl Iterator<Item = Record> + '_ {
        let heap = |r: &Record| SEGMENT.contains(&r.tag);
        self.top.iter().copied().filter(heap)
    }
}
