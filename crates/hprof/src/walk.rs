//! The walk over heap sub-records, the hot loop of every analysis. It creates no record objects, reads only the heads,
//! and checks every length.

use crate::heap_record::{ClassFault, parse_class};
use crate::{
    BasicType, ClassDump, DamageKind, Diagnostic, FileOffset, HeapTag, HeapVisitor, IdSize,
    Instance, ObjectArray, ObjectId, PrimitiveArray, Root, Serial, SubRecord,
};

/// The position and reason where a walk could not continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Offset of the tag of the sub-record that could not be read.
    pub at: u64,
    /// The reason.
    pub reason: StopReason,
}

/// Why a sub-record could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// Not a sub-record tag.
    Tag(u8),
    /// The sub-record needs more bytes than its segment has.
    RunsOver {
        /// Which sub-record.
        tag: HeapTag,
        /// Bytes it needs, tag included.
        want: u64,
        /// Bytes that are available.
        have: u64,
    },
    /// A basic type that does not exist.
    Type {
        /// Which sub-record.
        tag: HeapTag,
        /// The byte.
        found: u8,
    },
}

impl Stop {
    /// The finding that describes it.
    pub fn diagnostic(&self) -> Diagnostic {
        match self.reason {
            StopReason::Tag(tag) => Diagnostic::new(
                DamageKind::UnknownTag,
                self.at,
                "HEAP_DUMP_SEGMENT",
                "sub-record tag",
                "a sub-record tag",
                format!("0x{tag:02x}"),
            ),
            StopReason::RunsOver { tag, want, have } => Diagnostic::new(
                DamageKind::RunsOver,
                self.at,
                tag.name(),
                "length",
                format!("at most {have} bytes to the end of the segment"),
                format!("{want} bytes"),
            ),
            StopReason::Type { tag, found } => Diagnostic::new(
                DamageKind::BadType,
                self.at,
                tag.name(),
                "type",
                "a basic type (2, 4..11)",
                found.to_string(),
            ),
        }
    }
}

/// Longest fixed head of the sub-records on the hot path (8-byte ids): tag, id, u4, id, u4.
const HEAD: usize = 25;

/// Walks the sub-records of `data[from..end]` until the first boundary at or after `until`. `data` is the whole file,
/// so offsets are file offsets. Returns the offset of that boundary.
///
/// # Errors
/// When a sub-record has an unknown tag or type, or reaches past `end`, with its offset. The visitor has received those
/// before it.
pub fn walk<V: HeapVisitor>(
    data: &[u8],
    ids: IdSize,
    from: u64,
    until: u64,
    end: u64,
    visitor: &mut V,
) -> Result<u64, Stop> {
    let end = end.min(data.len() as u64);
    let data = &data[..end as usize];
    match ids {
        IdSize::Four => walk_width::<4, V>(data, from as usize, until, visitor),
        IdSize::Eight => walk_width::<8, V>(data, from as usize, until, visitor),
    }
}

#[inline(always)]
fn be4(head: &[u8; HEAD], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

#[inline(always)]
fn be_id<const W: usize>(head: &[u8; HEAD], at: usize) -> ObjectId {
    if W == 8 {
        ObjectId(u64::from(be4(head, at)) << 32 | u64::from(be4(head, at + 4)))
    } else {
        ObjectId(u64::from(be4(head, at)))
    }
}

fn walk_width<const W: usize, V: HeapVisitor>(
    data: &[u8],
    mut pos: usize,
    until: u64,
    visitor: &mut V,
) -> Result<u64, Stop> {
    let mut padded;
    let until = until.min(data.len() as u64) as usize;
    while pos < until {
        // Near the end the head may be truncated: it is copied, and the length check below detects this.
        let head: &[u8; HEAD] = match data[pos..].first_chunk::<HEAD>() {
            Some(head) => head,
            None => {
                let rest = &data[pos..];
                padded = [0u8; HEAD];
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            }
        };
        let at = FileOffset(pos as u64);
        let stop = |reason| Stop {
            at: pos as u64,
            reason,
        };
        let over = |tag: HeapTag, want: usize| {
            stop(StopReason::RunsOver {
                tag,
                want: want as u64,
                have: (data.len() - pos) as u64,
            })
        };
        let size = match head[0] {
            0x21 => {
                let len = be4(head, 1 + 2 * W + 4) as usize;
                let size = 2 * W + 9 + len;
                let Some(fields) = data.get(pos + 2 * W + 9..pos + size) else {
                    return Err(over(HeapTag::InstanceDump, size));
                };
                visitor.instance(
                    at,
                    Instance {
                        id: be_id::<W>(head, 1),
                        trace: Serial(be4(head, 1 + W)),
                        class: be_id::<W>(head, 5 + W),
                        fields,
                    },
                );
                size
            }
            0x23 | 0xc3 => {
                let tag = if head[0] == 0x23 {
                    HeapTag::PrimitiveArrayDump
                } else {
                    HeapTag::PrimitiveArrayNoData
                };
                let len = be4(head, 5 + W);
                let found = head[9 + W];
                let fixed = 10 + W;
                if pos + fixed > data.len() {
                    return Err(over(tag, fixed));
                }
                let element = match BasicType::from_u8(found) {
                    Some(element) if element != BasicType::Object => element,
                    _ => return Err(stop(StopReason::Type { tag, found })),
                };
                let has_data = tag == HeapTag::PrimitiveArrayDump;
                let bytes = if has_data {
                    len as usize * element.size(W)
                } else {
                    0
                };
                let Some(slice) = data.get(pos + fixed..pos + fixed + bytes) else {
                    return Err(over(tag, fixed + bytes));
                };
                visitor.primitive_array(
                    at,
                    PrimitiveArray {
                        id: be_id::<W>(head, 1),
                        trace: Serial(be4(head, 1 + W)),
                        len,
                        element,
                        data: slice,
                        has_data,
                    },
                );
                fixed + bytes
            }
            0x22 => {
                let len = be4(head, 5 + W);
                let size = 2 * W + 9 + len as usize * W;
                let Some(elements) = data.get(pos + 2 * W + 9..pos + size) else {
                    return Err(over(HeapTag::ObjectArrayDump, size));
                };
                visitor.object_array(
                    at,
                    ObjectArray {
                        id: be_id::<W>(head, 1),
                        trace: Serial(be4(head, 1 + W)),
                        class: be_id::<W>(head, 9 + W),
                        len,
                        elements,
                    },
                );
                size
            }
            byte => match cold::<W, V>(data, pos, head, byte, visitor) {
                Ok(size) => size,
                Err(reason) => return Err(stop(reason)),
            },
        };
        pos += size;
    }
    Ok(pos as u64)
}

/// Classes, roots and ART's heap switches, which are rare and therefore outside of the loop.
#[inline(never)]
fn cold<const W: usize, V: HeapVisitor>(
    data: &[u8],
    pos: usize,
    head: &[u8; HEAD],
    byte: u8,
    visitor: &mut V,
) -> Result<usize, StopReason> {
    let at = FileOffset(pos as u64);
    let have = data.len() - pos;
    let tag = HeapTag::from_u8(byte).ok_or(StopReason::Tag(byte))?;
    let over = |want: usize| StopReason::RunsOver {
        tag,
        want: want as u64,
        have: have as u64,
    };
    let ids = if W == 8 { IdSize::Eight } else { IdSize::Four };
    match tag {
        HeapTag::ClassDump => match parse_class(&data[pos + 1..], ids) {
            Ok((class, len)) => {
                visitor.class(at, &class);
                Ok(1 + len)
            }
            Err(ClassFault::Short) => Err(over(have + 1)),
            Err(ClassFault::Type { found }) => Err(StopReason::Type { tag, found }),
        },
        HeapTag::HeapDumpInfo => {
            let size = 5 + W;
            if have < size {
                return Err(over(size));
            }
            visitor.heap_info(at, be4(head, 1), be_id::<W>(head, 5));
            Ok(size)
        }
        _ => {
            let extra = tag.root_extra(W);
            let size = 1 + W + extra;
            if have < size {
                return Err(over(size));
            }
            let mut root = Root {
                kind: tag,
                object: be_id::<W>(head, 1),
                thread: Serial(0),
                frame: u32::MAX,
                reference: ObjectId::NULL,
            };
            if tag == HeapTag::RootJniGlobal {
                root.reference = be_id::<W>(head, 1 + W);
            } else if extra >= 4 {
                root.thread = Serial(be4(head, 1 + W));
                if extra == 8 {
                    root.frame = be4(head, 5 + W);
                }
            }
            visitor.root(at, root);
            Ok(size)
        }
    }
}

/// Reads the sub-record at `pos` as a value; also returns the offset of the next one.
///
/// # Errors
/// When the sub-record has an unknown tag or type, or reaches past `end`, or `pos` is not before `end`.
pub fn read_sub_record(
    data: &[u8],
    ids: IdSize,
    pos: u64,
    end: u64,
) -> Result<(SubRecord<'_>, u64), Stop> {
    struct One<'a> {
        data: &'a [u8],
        ids: IdSize,
        out: Option<SubRecord<'a>>,
    }
    impl<'a> HeapVisitor for One<'a> {
        fn root(&mut self, _: FileOffset, root: Root) {
            self.out = Some(SubRecord::Root(root));
        }
        fn class(&mut self, at: FileOffset, _: &ClassDump<'_>) {
            let body = &self.data[at.0 as usize + 1..];
            self.out = parse_class(body, self.ids)
                .ok()
                .map(|(class, _)| SubRecord::Class(class));
        }
        fn instance(&mut self, at: FileOffset, i: Instance<'_>) {
            let start = at.0 as usize + 2 * self.ids.bytes() + 9;
            let fields = &self.data[start..start + i.fields.len()];
            self.out = Some(SubRecord::Instance(Instance { fields, ..i }));
        }
        fn object_array(&mut self, at: FileOffset, a: ObjectArray<'_>) {
            let start = at.0 as usize + 2 * self.ids.bytes() + 9;
            let elements = &self.data[start..start + a.elements.len()];
            self.out = Some(SubRecord::ObjectArray(ObjectArray { elements, ..a }));
        }
        fn primitive_array(&mut self, at: FileOffset, a: PrimitiveArray<'_>) {
            let start = at.0 as usize + self.ids.bytes() + 10;
            let data = &self.data[start..start + a.data.len()];
            self.out = Some(SubRecord::PrimitiveArray(PrimitiveArray { data, ..a }));
        }
        fn heap_info(&mut self, _: FileOffset, heap: u32, name: ObjectId) {
            self.out = Some(SubRecord::HeapInfo { heap, name });
        }
    }
    let end = end.min(data.len() as u64);
    let mut one = One {
        data,
        ids,
        out: None,
    };
    let next = walk(
        data,
        ids,
        pos,
        pos.saturating_add(1).min(end),
        end,
        &mut one,
    )?;
    match one.out {
        Some(record) => Ok((record, next)),
        None => Err(Stop {
            at: pos,
            reason: StopReason::Tag(0),
        }),
    }
}
