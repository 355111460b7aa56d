//! Walks the adjacent objects of a heap.

use crate::damage::Damage;
use crate::heap::Space;
use crate::klass::{self, Classes, Shape};
use crate::marks::Marks;
use crate::memory::Address;
use crate::vm::{Header, Vm};
use rustc_hash::FxHashMap;
use std::io;

/// Bytes of the heap that are read at once.
const WINDOW: usize = 4 << 20;
/// Objects up to this size are passed as a whole.
pub(crate) const WHOLE: u64 = 1 << 20;
/// After a gap, this many objects must be adjacent before the first of them is accepted.
const CONVINCING: u32 = 8;
/// The first bytes of an object, which are enough to determine its class and size.
const FIRST: usize = 24;
/// Classes that are cached.
const RECENT: usize = 256;
/// The most classes outside of the lists that are cached.
const MOST_STRANGERS: usize = 1 << 16;

/// An object.
pub(crate) struct Object<'a> {
    pub(crate) at: Address,
    pub(crate) class: u32,
    /// The number of elements of an array.
    pub(crate) len: u32,
    /// Its bytes: all of them, unless it is larger than [`WHOLE`].
    pub(crate) bytes: &'a [u8],
}

/// Receives the objects.
pub(crate) trait Visitor {
    /// An object.
    fn object(&mut self, object: &Object<'_>) -> io::Result<()>;
}

/// The parts that were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Bytes in which no objects could be recognized.
    pub(crate) gap: u64,
    /// Objects whose class is not loaded (any more).
    pub(crate) strangers: u64,
    /// Bytes of objects that the collector has found dead.
    pub(crate) dead: u64,
}

/// The data in the first bytes of an object.
#[derive(Clone, Copy)]
struct Head {
    /// `None` for a class that is not in the lists.
    class: Option<u32>,
    len: u32,
    size: u64,
}

/// The walk over a heap.
pub(crate) struct Walk<'v, 'm> {
    vm: &'v Vm<'m>,
    classes: &'v Classes,
    marks: Option<&'v Marks>,
    window: Vec<u8>,
    start: Address,
    /// Cached classes.
    recent: [(Address, Option<u32>); RECENT],
    strangers: FxHashMap<Address, Option<Shape>>,
    size_of_mirror: Option<u32>,
    pub(crate) passed: Passed,
}

impl<'v, 'm> Walk<'v, 'm> {
    pub(crate) fn new(
        vm: &'v Vm<'m>,
        classes: &'v Classes,
        marks: Option<&'v Marks>,
    ) -> Walk<'v, 'm> {
        let size = vm.tables.find_static("java_lang_Class._oop_size_offset");
        Walk {
            vm,
            classes,
            marks,
            window: Vec::new(),
            start: 0,
            recent: [(0, None); RECENT],
            strangers: FxHashMap::default(),
            size_of_mirror: size.and_then(|at| vm.memory.u32(at)),
            passed: Passed::default(),
        }
    }

    /// Passes all objects of a piece of the heap to the visitor. Fails if the visitor fails, and if the process has
    /// ended.
    pub(crate) fn piece(
        &mut self,
        piece: Space,
        damage: &mut Damage,
        visitor: &mut dyn Visitor,
    ) -> io::Result<()> {
        let marks = self.marks.filter(|marks| marks.cover(piece.from));
        let mut at = piece.from;
        while at < piece.to {
            if let Some(marks) = marks {
                let next = marks.next(self.vm, at, piece.to);
                self.passed.dead += next - at;
                at = next;
                if at == piece.to {
                    break;
                }
            }
            let Some(head) = self.head(at, piece.to) else {
                if self.vm.memory.direct().has_ended() {
                    return Err(io::ErrorKind::NotFound.into());
                }
                let next = match marks {
                    Some(marks) => marks.next(self.vm, at + self.vm.alignment, piece.to),
                    None => self.next_object(at, piece.to),
                };
                damage.count("a stretch of the heap has no readable objects", at);
                self.passed.gap += next - at;
                at = next;
                continue;
            };
            match head.class {
                Some(class) => {
                    let len = head.size.min(WHOLE) as usize;
                    let Some(bytes) = load(
                        self.vm,
                        &mut self.window,
                        &mut self.start,
                        at,
                        len,
                        piece.to,
                    ) else {
                        damage.count("an object is missing in part", at);
                        self.passed.gap += head.size;
                        at += head.size;
                        continue;
                    };
                    visitor.object(&Object {
                        at,
                        class,
                        len: head.len,
                        bytes,
                    })?;
                }
                None => self.passed.strangers += 1,
            }
            at += head.size;
        }
        Ok(())
    }

    /// Bytes of the heap, up to the end of a piece.
    fn bytes(&mut self, at: Address, len: usize, end: Address) -> Option<&[u8]> {
        load(self.vm, &mut self.window, &mut self.start, at, len, end)
    }

    /// The head of an object, if there is one that ends before `end`.
    fn head(&mut self, at: Address, end: Address) -> Option<Head> {
        let vm = self.vm;
        let first = self.bytes(at, FIRST.min((end - at) as usize), end)?;
        let mark = u64::from_le_bytes(*first.first_chunk()?);
        // The smallest objects have no second word.
        let second = first.get(8..16).and_then(|bytes| bytes.first_chunk());
        let len = first.get(vm.length_offset()..);
        let len = len.and_then(|bytes| bytes.first_chunk());
        let len = len.map_or(0, |len| u32::from_le_bytes(*len));
        let klass = vm.klass(mark, second.map_or(0, |word| u64::from_le_bytes(*word)));
        let (class, shape) = self.shape(klass)?;
        let number = |walk: &mut Self, offset: Option<u32>| {
            let bytes = walk.bytes(at.checked_add(offset?.into())?, 4, end)?;
            Some(u32::from_le_bytes(*bytes.first_chunk()?))
        };
        let (len, size) = match shape {
            Shape::Instance(size) => (0, size),
            Shape::Mirror(least) => {
                let words = number(self, self.size_of_mirror)?;
                let size = u64::from(words) * 8;
                (size >= least).then_some((0, size))?
            }
            Shape::StackChunk(least) => {
                let words = u64::from(number(self, self.classes.chunk_size)?);
                // After the stack there is a bitmap with a bit for each possible reference
                // (`InstanceStackChunkKlass::instance_size`).
                let bits = if self.vm.narrow.is_some() {
                    words * 2
                } else {
                    words
                };
                (0, least + (words + bits.div_ceil(64)) * 8)
            }
            Shape::References(header) => (
                len,
                header + u64::from(len) * self.vm.reference_size() as u64,
            ),
            Shape::Primitives(header, kind) => (len, header + u64::from(len) * kind.size(8) as u64),
        };
        let is_length = len <= i32::MAX as u32;
        // The alignment is a power of two.
        let below = self.vm.alignment - 1;
        let size = size.checked_add(below)? & !below;
        let is_size = size > 0 && size <= end - at;
        (is_length && is_size).then_some(Head { class, len, size })
    }

    fn shape(&mut self, klass: Address) -> Option<(Option<u32>, Shape)> {
        if klass == 0 || !klass.is_multiple_of(8) {
            return None;
        }
        let place = (klass >> 3 ^ klass >> 11) as usize % RECENT;
        let mut recent = self.recent[place];
        if recent.0 != klass {
            recent = (klass, self.classes.get(klass));
            self.recent[place] = recent;
        }
        if let Some(class) = recent.1 {
            return Some((Some(class), self.classes.all[class as usize].shape));
        }
        // A class that was unloaded while its objects still exist, or an archived class that is not used.
        let known = self.strangers.get(&klass).copied();
        let shape = known.unwrap_or_else(|| {
            let shape = stranger(self.vm, klass);
            if self.strangers.len() < MOST_STRANGERS {
                self.strangers.insert(klass, shape);
            }
            shape
        });
        Some((None, shape?))
    }

    /// The next address at which a sequence of objects begins, or the end.
    fn next_object(&mut self, at: Address, end: Address) -> Address {
        let mut at = at + self.vm.alignment;
        while at < end {
            if self.bytes(at, 8, end).is_none() {
                // Unreadable: continues at the next readable address.
                let next = self.vm.memory.direct().next_readable(at + 1);
                at = next.map_or(end, |next| {
                    next.next_multiple_of(self.vm.alignment).max(at + 8)
                });
                continue;
            }
            if self.is_convincing(at, end) {
                return at;
            }
            at += self.vm.alignment;
        }
        end
    }

    fn is_convincing(&mut self, start: Address, end: Address) -> bool {
        let mut at = start;
        for _ in 0..CONVINCING {
            if at == end {
                return at > start;
            }
            let head = self.head(at, end).filter(|head| head.class.is_some());
            let Some(head) = head.filter(|_| self.has_mark(at, end)) else {
                return false;
            };
            at += head.size;
        }
        true
    }

    /// Whether the mark word is that of an object that is not being moved.
    fn has_mark(&mut self, at: Address, end: Address) -> bool {
        let compact = matches!(self.vm.header, Header::Compact(_));
        let Some(mark) = self
            .bytes(at, 8, end)
            .and_then(|bytes| bytes.first_chunk().copied())
        else {
            return false;
        };
        let mark = u64::from_le_bytes(mark);
        // 1 is unlocked, with only hash and age in the upper bits; 3 is moved.
        match mark & 3 {
            3 => false,
            1 if !compact => mark >> 56 == 0,
            _ => true,
        }
    }
}

/// Bytes of the heap, read in large pieces.
fn load<'w>(
    vm: &Vm<'_>,
    window: &'w mut Vec<u8>,
    start: &mut Address,
    at: Address,
    len: usize,
    end: Address,
) -> Option<&'w [u8]> {
    let inside = at.checked_sub(*start).map(|offset| offset as usize);
    if inside.is_none_or(|offset| offset.saturating_add(len) > window.len()) {
        let room = end.checked_sub(at)?;
        (len as u64 <= room).then_some(())?;
        window.resize(room.min(WINDOW as u64) as usize, 0);
        let there = vm.memory.direct().read(at, window);
        window.truncate(there);
        *start = at;
    }
    let offset = (at - *start) as usize;
    window.get(offset..offset.checked_add(len)?)
}

/// The layout of a class that is not in the lists, if its memory still looks like one.
fn stranger(vm: &Vm<'_>, klass: Address) -> Option<Shape> {
    let shape = klass::shape(vm, klass)?;
    let name = vm.tables.find("Klass._name")?;
    let name = vm.memory.pointer_unaligned(klass.wrapping_add(name))?;
    let len = vm.tables.find("Symbol._length")?;
    let len = vm.memory.u16(name.wrapping_add(len))?;
    let body = vm
        .tables
        .find("Symbol._body[0]")
        .or(vm.tables.find("Symbol._body"))?;
    let text = vm.memory.bytes(name.wrapping_add(body), len.into())?;
    let is_name = !text.is_empty() && text.iter().all(|byte| *byte > b' ');
    is_name.then_some(shape)
}
