//! The texts of a dump.

use hprof::{HeaderError, IdSize, Record, decode_modified_utf8, map_file};
use rustc_hash::{FxHashMap, FxHashSet};

/// The texts of a dump and the records that use them.
pub(super) struct Texts<'a> {
    pub(super) by_id: FxHashMap<u64, &'a [u8]>,
    /// Ids of more than one text. Which of these is the name is unknown.
    pub(super) repeated: FxHashSet<u64>,
    /// Class and text id of its name.
    pub(super) loaded: Vec<(u64, u64)>,
    /// Class by class serial.
    pub(super) serials: FxHashMap<u32, u64>,
    /// Class serial; text ids of method, signature and source.
    pub(super) frames: Vec<(u32, [u64; 3])>,
    pub(super) frame_ids: FxHashSet<u64>,
    /// Number of heap dumps in the file.
    pub(super) dumps: u32,
}

impl<'a> Texts<'a> {
    pub(super) fn read(data: &'a [u8]) -> Result<(Texts<'a>, IdSize), HeaderError> {
        let ids = hprof::Header::parse(data)?.id_size;
        let mut texts = Texts {
            by_id: FxHashMap::default(),
            repeated: FxHashSet::default(),
            loaded: Vec::new(),
            serials: FxHashMap::default(),
            frames: Vec::new(),
            frame_ids: FxHashSet::default(),
            dumps: 0,
        };
        let map = map_file(data, |record| match record.decode(ids) {
            Some(Record::Utf8 { id, bytes }) => {
                let before = texts.by_id.insert(id.0, bytes);
                if before.is_some_and(|before| before != bytes) {
                    texts.repeated.insert(id.0);
                }
            }
            Some(Record::LoadClass {
                serial,
                class,
                name,
                ..
            }) => {
                texts.loaded.push((class.0, name.0));
                texts.serials.insert(serial.0, class.0);
            }
            Some(Record::Frame(f)) => {
                let names = [f.method.0, f.signature.0, f.source.0];
                texts.frames.push((f.class.0, names));
                texts.frame_ids.insert(f.id.0);
            }
            _ => {}
        })?;
        texts.dumps = map.snapshots;
        Ok((texts, ids))
    }

    pub(super) fn text(&self, id: u64) -> String {
        let bytes = self.by_id.get(&id).copied().unwrap_or_default();
        decode_modified_utf8(bytes).into_owned()
    }
}
