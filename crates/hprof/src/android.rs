//! Converts dumps of Android to the standard format (as AOSP's `hprof-conv`), and back.
//!
//! To the standard format: version 1.0.2; ART's kinds of roots become roots of unknown kind; objects that ART found
//! unreachable stay, but their marks are removed; heap switches are removed; arrays without contents become arrays of
//! length 0 with contents. To Android: version 1.0.3, and one heap, `app`.

use crate::{
    Edit, FileMap, FileOffset, Header, HeaderError, HeapTag, HeapVisitor, ObjectId, PrimitiveArray,
    RawRecord, Record, RecordTag, Rewriter, Root, Stretch, SubRecord, encode_sub_record, map_file,
    walk_stretch,
};

/// Numbers of ART's zygote and boot image heaps (`Z` and `I`).
const NOT_THE_APPS: [u32; 2] = [b'Z' as u32, b'I' as u32];

/// The version string of Android.
pub const ANDROID: &str = "JAVA PROFILE 1.0.3";
/// The version string of HotSpot.
pub const STANDARD: &str = "JAVA PROFILE 1.0.2";

/// Rewrites an Android dump as a standard one.
#[derive(Debug)]
pub struct ToStandard {
    header: Header,
    /// Offsets from which objects belong to another heap, and its number; only with `app_only`.
    switches: Vec<(u64, u32)>,
}

#[derive(Default)]
struct Switches(Vec<(u64, u32)>);

impl HeapVisitor for Switches {
    fn heap_info(&mut self, at: FileOffset, heap: u32, _: ObjectId) {
        self.0.push((at.0, heap));
    }
}

fn walk_all(data: &[u8], map: &FileMap, visitor: &mut impl HeapVisitor) {
    for s in &map.segments {
        let all = Stretch {
            from: s.body,
            until: s.end,
            end: s.end,
        };
        walk_stretch(data, map.header.id_size, all, &|_| true, visitor);
    }
}

impl ToStandard {
    /// For a dump; `app_only` omits the objects of the zygote and of the boot image (`hprof-conv -z`), which needs a
    /// pass over the dump to find the heap switches.
    ///
    /// # Errors
    /// When the header is not valid: see [`Header::parse`].
    pub fn new(data: &[u8], app_only: bool) -> Result<ToStandard, HeaderError> {
        let mut switches = Switches::default();
        let map = map_file(data, |_| {})?;
        if app_only {
            walk_all(data, &map, &mut switches);
        }
        Ok(ToStandard {
            header: map.header,
            switches: switches.0,
        })
    }

    fn is_app(&self, at: FileOffset) -> bool {
        let n = self.switches.partition_point(|s| s.0 <= at.0);
        let heap = n.checked_sub(1).map(|n| self.switches[n].1);
        !heap.is_some_and(|h| NOT_THE_APPS.contains(&h))
    }
}

impl Rewriter for ToStandard {
    fn header(&self, header: &Header) -> Header {
        Header {
            format: STANDARD.to_owned(),
            ..header.clone()
        }
    }

    fn sub_record(&self, at: FileOffset, record: &SubRecord<'_>, out: &mut Vec<u8>) -> Edit {
        let ids = self.header.id_size;
        match record {
            SubRecord::HeapInfo { .. } => Edit::Drop,
            SubRecord::Root(root) => match root.kind {
                HeapTag::RootUnreachable => Edit::Drop,
                HeapTag::RootInternedString
                | HeapTag::RootFinalizing
                | HeapTag::RootDebugger
                | HeapTag::RootReferenceCleanup
                | HeapTag::RootVmInternal
                | HeapTag::RootJniMonitor => {
                    let root = Root {
                        kind: HeapTag::RootUnknown,
                        ..*root
                    };
                    encode_sub_record(&SubRecord::Root(root), ids, out);
                    Edit::Replace
                }
                _ => Edit::Keep,
            },
            SubRecord::Instance(_) | SubRecord::ObjectArray(_) | SubRecord::PrimitiveArray(_)
                if !self.is_app(at) =>
            {
                Edit::Drop
            }
            SubRecord::PrimitiveArray(a) if !a.has_data => {
                let array = PrimitiveArray {
                    len: 0,
                    has_data: true,
                    ..*a
                };
                encode_sub_record(&SubRecord::PrimitiveArray(array), ids, out);
                Edit::Replace
            }
            _ => Edit::Keep,
        }
    }
}

/// Rewrites a standard dump to the format that Android's tools expect: all objects are in the heap `app`.
#[derive(Debug)]
pub struct ToAndroid {
    header: Header,
    /// The id of the text `app`, and the record after which it is written if the dump has no such text.
    name: ObjectId,
    first_segment: Option<u64>,
    last_text: Option<FileOffset>,
}

const APP: &[u8] = b"app";

impl ToAndroid {
    /// For a dump.
    ///
    /// # Errors
    /// When the header is not valid: see [`Header::parse`].
    pub fn new(data: &[u8]) -> Result<ToAndroid, HeaderError> {
        let ids = Header::parse(data)?.id_size;
        let (mut known, mut largest, mut last_text) = (None, 0u64, None);
        let map = map_file(data, |record| {
            if let Some(Record::Utf8 { id, bytes }) = record.decode(ids) {
                largest = largest.max(id.0);
                last_text = Some(record.at);
                if bytes == APP {
                    known = Some(id);
                }
            }
        })?;
        Ok(ToAndroid {
            header: map.header,
            name: known.unwrap_or(ObjectId(largest.wrapping_add(1))),
            first_segment: map.segments.iter().find(|s| !s.is_empty()).map(|s| s.body),
            last_text: last_text.filter(|_| known.is_none()),
        })
    }
}

impl Rewriter for ToAndroid {
    fn header(&self, header: &Header) -> Header {
        Header {
            format: ANDROID.to_owned(),
            ..header.clone()
        }
    }

    /// The text with the name of the heap is written after the last text.
    fn after(&self, record: &RawRecord<'_>) -> Option<(u8, Vec<u8>)> {
        (self.last_text == Some(record.at)).then(|| {
            let mut body = Vec::new();
            crate::write::push_id(&mut body, self.name, self.header.id_size);
            body.extend_from_slice(APP);
            (RecordTag::Utf8 as u8, body)
        })
    }

    fn sub_record(&self, at: FileOffset, record: &SubRecord<'_>, out: &mut Vec<u8>) -> Edit {
        if self.first_segment != Some(at.0) {
            return Edit::Keep;
        }
        let info = SubRecord::HeapInfo {
            heap: u32::from(b'A'),
            name: self.name,
        };
        encode_sub_record(&info, self.header.id_size, out);
        encode_sub_record(record, self.header.id_size, out);
        Edit::Replace
    }
}
