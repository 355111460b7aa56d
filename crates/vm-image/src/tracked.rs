//! Objects whose allocation stack is known to an agent inside of the process. Before the process is copied, the agent
//! stores the addresses of its tables in its memory. A reader of the copy finds the objects and stacks there.

use crate::memory::{Address, Structures};
use crate::symbols::Symbols;
use hprof::{IdSize, ObjectId, Record, Serial, decode_modified_utf8, map_file};
use rustc_hash::FxHashMap;
use std::mem::size_of;

/// The first of the words.
const MAGIC: u64 = u64::from_le_bytes(*b"stacks 1");
/// Words before the lists.
const HEAD: usize = 9;
/// The most lists of an agent.
const MOST_LISTS: usize = 1 << 10;
/// The most bytes of names and stacks.
const MOST_STACKS: u64 = 1 << 32;
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// Low bits of a JNI reference, which encode its kind; the other bits are the address of its slot.
const KIND: u64 = 7;

/// The layout of a list entry. Offsets and sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The size of an entry.
    pub size: usize,
    /// The offset of the weak JNI reference to its object.
    pub reference_at: usize,
    /// The offset of the number of its allocation site, in 32 bits.
    pub site_at: usize,
    /// The bits of that number.
    pub site_mask: u32,
}

/// The tables of an agent.
#[derive(Clone, Debug)]
pub struct Tracked<'a> {
    /// A dump with names, classes, frames and stack traces, and without objects.
    pub stacks: &'a [u8],
    /// The serials of the stack traces of allocation sites, by site number; 0 for none.
    pub sites: &'a [u32],
    /// Addresses and lengths of lists of entries.
    pub lists: &'a [(Address, usize)],
    /// The layout of the entries.
    pub layout: Layout,
}

impl Tracked<'_> {
    /// The words that the agent stores.
    pub fn words(&self) -> Vec<u64> {
        let layout = self.layout;
        let mut words = vec![
            MAGIC,
            self.stacks.as_ptr() as u64,
            self.stacks.len() as u64,
            self.sites.as_ptr() as u64,
            self.sites.len() as u64,
            layout.size as u64,
            layout.reference_at as u64,
            layout.site_at as u64,
            layout.site_mask.into(),
        ];
        let lists = self.lists.iter();
        words.extend(lists.flat_map(|(at, len)| [*at, *len as u64]));
        words
    }
}

/// The position of the words: an address and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The address of the first one; 0 for none.
    pub at: Address,
    /// How many there are.
    pub len: u64,
}

/// Stack traces that allocated objects.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// Ids and names of classes, by the number that frames have instead of a serial.
    pub(crate) classes: Vec<(ObjectId, Vec<u8>)>,
    /// Frames; their class serial is an index in `classes`.
    pub(crate) frames: Vec<hprof::Frame>,
    /// Serials and numbers of frames.
    pub(crate) traces: Vec<(Serial, Vec<u32>)>,
}

/// The objects that these stacks allocated.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// In order of addresses, with the serials of the traces.
    all: Vec<(Address, Serial)>,
    /// The first object at or above the last requested address.
    next: usize,
    last: Address,
}

/// Reads the tables. Their contents are not trusted: invalid entries are left out.
pub(crate) fn read(
    memory: &Structures<'_>,
    words: Words,
    symbols: &mut Symbols,
) -> (Stacks, Places) {
    tried(memory, words, symbols).unwrap_or_default()
}

fn tried(memory: &Structures<'_>, words: Words, symbols: &mut Symbols) -> Option<(Stacks, Places)> {
    let count = usize::try_from(words.len).ok()?;
    (HEAD..=HEAD + 2 * MOST_LISTS)
        .contains(&count)
        .then_some(())?;
    let bytes = memory.bytes(words.at, count * size_of::<u64>())?;
    let words = bytes.as_chunks().0.iter();
    let words: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
    let (head, lists) = words.split_first_chunk::<HEAD>()?;
    let [magic, stacks, stacks_len, sites, sites_len, layout @ ..] = *head;
    (magic == MAGIC && stacks_len <= MOST_STACKS).then_some(())?;
    let layout = Layout {
        size: usize::try_from(layout[0]).ok()?,
        reference_at: usize::try_from(layout[1]).ok()?,
        site_at: usize::try_from(layout[2]).ok()?,
        site_mask: u32::try_from(layout[3]).ok()?,
    };
    let fits = |at: usize, len| at.checked_add(len).is_some_and(|end| end <= layout.size);
    (layout.size <= PIECE && fits(layout.reference_at, 8) && fits(layout.site_at, 4))
        .then_some(())?;
    let stacks = Stacks::of_dump(&pieces(memory, stacks, stacks_len, 1)?, symbols)?;
    let sites = pieces(memory, sites, sites_len, size_of::<u32>())?;
    let mut places = Places::default();
    for [at, len] in lists.as_chunks().0 {
        places.add(memory, (*at, *len), layout, sites.as_chunks().0);
    }
    places.all.sort_unstable_by_key(|(at, _)| *at);
    places.all.dedup_by_key(|(at, _)| *at);
    Some((stacks, places))
}

impl Stacks {
    /// The records of a dump that has only stacks.
    fn of_dump(bytes: &[u8], symbols: &mut Symbols) -> Option<Stacks> {
        let mut stacks = Stacks::default();
        let mut names: FxHashMap<ObjectId, &[u8]> = FxHashMap::default();
        let mut ids: FxHashMap<ObjectId, ObjectId> = FxHashMap::default();
        let mut classes: FxHashMap<Serial, Serial> = FxHashMap::default();
        let mut frames: FxHashMap<ObjectId, u32> = FxHashMap::default();
        map_file(bytes, |record| match record.decode(IdSize::Eight) {
            Some(Record::Utf8 { id, bytes }) => {
                names.insert(id, bytes);
            }
            Some(Record::LoadClass { serial, name, .. }) => {
                let name = names.get(&name).copied().unwrap_or_default();
                // The VM's format of the name.
                let name = decode_modified_utf8(name).replace('.', "/");
                let id = ObjectId(symbols.add(name.clone().into_bytes().into()));
                classes.insert(serial, Serial(stacks.classes.len() as u32));
                stacks.classes.push((id, name.into_bytes()));
            }
            Some(Record::Frame(frame)) => {
                let mut id = |id: ObjectId| match names.get(&id) {
                    None => ObjectId::NULL,
                    Some(name) => *ids
                        .entry(id)
                        .or_insert_with(|| ObjectId(symbols.add(name.to_vec().into()))),
                };
                frames.insert(frame.id, stacks.frames.len() as u32);
                let class = classes.get(&frame.class).copied();
                stacks.frames.push(hprof::Frame {
                    method: id(frame.method),
                    signature: id(frame.signature),
                    source: id(frame.source),
                    class: class.unwrap_or(Serial(u32::MAX)),
                    ..frame
                });
            }
            Some(Record::Trace {
                serial, frames: of, ..
            }) => {
                let of = of.iter().filter_map(|frame| frames.get(frame).copied());
                stacks.traces.push((serial, of.collect()));
            }
            _ => {}
        })
        .ok()?;
        Some(stacks)
    }
}

impl Places {
    /// Adds the objects of a list.
    fn add(
        &mut self,
        memory: &Structures<'_>,
        (start, len): (Address, u64),
        layout: Layout,
        sites: &[[u8; 4]],
    ) {
        let in_piece = (PIECE / layout.size) as u64;
        let mut done = 0;
        while done < len {
            let count = (len - done).min(in_piece);
            let mut piece = vec![0; count as usize * layout.size];
            let at = start.wrapping_add(done.wrapping_mul(layout.size as u64));
            let there = memory.direct().read(at, &mut piece);
            for entry in piece[..there].chunks_exact(layout.size) {
                self.all.extend(place(memory, entry, layout, sites));
            }
            if there < piece.len() {
                return;
            }
            done += count;
        }
    }

    /// The stack that allocated an object. Addresses are requested mostly in their order.
    pub(crate) fn of(&mut self, at: Address) -> Option<Serial> {
        if at < self.last {
            self.next = self.all.partition_point(|(place, _)| *place < at);
        }
        self.last = at;
        while let Some((place, serial)) = self.all.get(self.next) {
            if *place >= at {
                return (*place == at).then_some(*serial);
            }
            self.next += 1;
        }
        None
    }
}

/// An object and the serial of its stack trace, if it is live and has one.
fn place(
    memory: &Structures<'_>,
    entry: &[u8],
    layout: Layout,
    sites: &[[u8; 4]],
) -> Option<(Address, Serial)> {
    let reference = u64::from_le_bytes(*entry.get(layout.reference_at..)?.first_chunk()?);
    let site = u32::from_le_bytes(*entry.get(layout.site_at..)?.first_chunk()?);
    let serial = u32::from_le_bytes(*sites.get((site & layout.site_mask) as usize)?);
    // The collector updates the slot of a reference, and clears it when the object is freed.
    let at = memory.pointer(reference & !KIND)?;
    (serial != 0).then_some((at, Serial(serial)))
}

/// This many values of this size, read in pieces: unreadable data causes no allocation.
fn pieces(memory: &Structures<'_>, at: Address, count: u64, size: usize) -> Option<Vec<u8>> {
    let len = count.checked_mul(size as u64)?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < len {
        let (done, wanted) = (bytes.len(), (len - bytes.len() as u64).min(PIECE as u64));
        bytes.resize(done + wanted as usize, 0);
        let there = memory
            .direct()
            .read(at.checked_add(done as u64)?, &mut bytes[done..]);
        (there as u64 == wanted).then_some(())?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use hprof::{Frame, Header, Writer};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    /// The memory of this process.
    struct Own(File);

    impl Memory for Own {
        fn read(&self, at: Address, into: &mut [u8]) -> usize {
            self.0.read_at(into, at).unwrap_or(0)
        }

        fn next_readable(&self, _: Address) -> Option<Address> {
            None
        }
    }

    fn stacks() -> Vec<u8> {
        let header = Header {
            format: "JAVA PROFILE 1.0.2".to_owned(),
            id_size: IdSize::Eight,
            timestamp_ms: 0,
            len: 31,
        };
        let mut out = Writer::new(Vec::new(), &header).expect("a header");
        let names = ["a.Shop", "buy", "()V", "Shop.java"];
        let mut records: Vec<_> = (1..)
            .zip(names)
            .map(|(id, name)| Record::Utf8 {
                id: ObjectId(id),
                bytes: name.as_bytes(),
            })
            .collect();
        records.push(Record::LoadClass {
            serial: Serial(9),
            class: ObjectId(77),
            trace: Serial(0),
            name: ObjectId(1),
        });
        records.push(Record::Frame(Frame {
            id: ObjectId(5),
            method: ObjectId(2),
            signature: ObjectId(3),
            source: ObjectId(4),
            class: Serial(9),
            line: 12,
        }));
        records.push(Record::Trace {
            serial: Serial(300_001),
            thread: Serial(0),
            frames: vec![ObjectId(5), ObjectId(5)],
        });
        for record in &records {
            out.record(0, record).expect("written");
        }
        out.into_inner()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn objects_find_their_stacks_and_no_word_is_believed() {
        let memory = Own(File::open("/proc/self/mem").expect("memory"));
        // One object was freed, and one has no site.
        let slots = [0x7000_u64, 0, 0x3000, 0x5000];
        let entry = |(slot, site): (&u64, u64)| [std::ptr::from_ref(slot) as u64 | 1, site];
        let entries: Vec<[u64; 2]> = slots
            .iter()
            .zip([1, 1, 1 | 1 << 31, 2])
            .map(entry)
            .collect();
        let stacks = stacks();
        let words = Tracked {
            stacks: &stacks,
            sites: &[0, 300_001],
            lists: &[(entries.as_ptr() as u64, entries.len())],
            layout: Layout {
                size: 16,
                reference_at: 0,
                site_at: 8,
                site_mask: 0xffff,
            },
        }
        .words();
        let read_words = |words: &[u64]| {
            let structures = Structures::new(&memory);
            let at = words.as_ptr() as u64;
            let len = words.len() as u64;
            let mut symbols = Symbols::default();
            let found = read(&structures, Words { at, len }, &mut symbols);
            (found, symbols.all().len())
        };
        let ((stacks, mut places), names) = read_words(&words);
        assert_eq!(stacks.traces, [(Serial(300_001), vec![0, 0])]);
        assert_eq!(stacks.classes[0].1, b"a/Shop");
        assert_eq!((stacks.frames.len(), names), (1, 4));
        let of = [0x3000, 0x5000, 0x7000, 0x3000, 0x1000].map(|at| places.of(at));
        let known = Some(Serial(300_001));
        assert_eq!(of, [known, None, known, known, None]);
        for i in 0..words.len() {
            for wrong in [0, 1, 7, 1 << 20, 1 << 33, u64::MAX, words[i] + 1] {
                let mut wrong_words = words.clone();
                wrong_words[i] = wrong;
                read_words(&wrong_words);
            }
            let ((stacks, _), _) = read_words(&words[..i]);
            assert!(i > 8 || stacks.traces.is_empty());
        }
    }
}
