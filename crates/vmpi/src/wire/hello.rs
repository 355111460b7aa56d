//! The first frame: the sender, its version, and the kind of its ids.

use super::damage::Damage;
use super::varint::{Input, put, put_bytes};

/// The version of the format that this crate writes.
pub const WIRE_VERSION: u32 = 1;

/// Byte order of ids and pointers inside dump buffers. The rest of the stream has a fixed order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ByteOrder {
    /// Low byte first.
    #[default]
    Little = 1,
    /// High byte first.
    Big = 2,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") {
        Self::Big
    } else {
        Self::Little
    };
}

/// The first frame of a host. A reader of a newer version can read older ones; a reader whose version is below
/// [`oldest`](Hello::oldest) refuses. Later versions may append fields, which this one skips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version of the stream.
    pub version: u32,
    /// The oldest version whose readers understand it.
    pub oldest: u32,
    /// Bytes of an id in dump buffers: 4 or 8.
    pub id_width: u8,
    /// Byte order of ids in dump buffers.
    pub byte_order: ByteOrder,
    /// Ids are tags that collections do not change; then there are no moves.
    pub stable_ids: bool,
    /// Objects may be freed outside of collections (reference counting).
    pub frees_outside_gc: bool,
    /// Only collections of kind [`Full`](crate::GcKind::Full) find unreachable objects; after others, no object is
    /// freed, and objects are not known to have survived.
    pub full_gc_frees: bool,
    /// Mean bytes between two reported objects; 0 if every object is reported.
    pub sample_interval: u64,
    /// Process id, 0 if it has none.
    pub pid: u32,
    /// Name and version of the VM.
    pub vm: String,
    /// The collector's name.
    pub collector: String,
}

impl Default for Hello {
    fn default() -> Self {
        Self {
            version: WIRE_VERSION,
            oldest: 1,
            id_width: 8,
            byte_order: ByteOrder::NATIVE,
            stable_ids: false,
            frees_outside_gc: false,
            full_gc_frees: false,
            sample_interval: 0,
            pid: 0,
            vm: String::new(),
            collector: String::new(),
        }
    }
}

const STABLE: u8 = 1;
const FREES_OUTSIDE: u8 = 2;
const FULL_FREES: u8 = 4;

impl Hello {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, u64::from(self.version));
        put(&mut out, u64::from(self.oldest));
        out.push(self.id_width);
        out.push(self.byte_order as u8);
        let stable = if self.stable_ids { STABLE } else { 0 };
        let frees = if self.frees_outside_gc {
            FREES_OUTSIDE
        } else {
            0
        };
        let full = if self.full_gc_frees { FULL_FREES } else { 0 };
        out.push(stable | frees | full);
        put(&mut out, self.sample_interval);
        put(&mut out, u64::from(self.pid));
        put_bytes(&mut out, self.vm.as_bytes());
        put_bytes(&mut out, self.collector.as_bytes());
        out
    }

    pub(crate) fn decode(payload: &[u8], offset: u64) -> Result<Self, Damage> {
        let mut input = Input::new(payload);
        let short = |input: &Input<'_>, field: &'static str| {
            Damage::new(
                offset + input.position() as u64,
                "hello",
                field,
                "no such bytes",
            )
        };
        let mut number = |field| input.number().ok_or_else(|| short(&input, field));
        let version = number("the version")?;
        let oldest = number("the oldest version that can read this")?;
        if oldest > u64::from(WIRE_VERSION) || version == 0 {
            let expected = format!("a stream that version {WIRE_VERSION} can read");
            return Err(Damage::new(
                offset,
                "hello",
                expected,
                format!("version {version}"),
            ));
        }
        let id_width = input.byte().ok_or_else(|| short(&input, "the id width"))?;
        if id_width != 4 && id_width != 8 {
            let at = offset + input.position() as u64 - 1;
            return Err(Damage::new(at, "hello", "id width 4 or 8", id_width));
        }
        let byte_order = match input
            .byte()
            .ok_or_else(|| short(&input, "the byte order"))?
        {
            1 => ByteOrder::Little,
            2 => ByteOrder::Big,
            other => {
                let at = offset + input.position() as u64 - 1;
                return Err(Damage::new(at, "hello", "byte order 1 or 2", other));
            }
        };
        let flags = input.byte().ok_or_else(|| short(&input, "flags"))?;
        let mut number = |field| input.number().ok_or_else(|| short(&input, field));
        let sample_interval = number("the sampling interval")?;
        let pid = number("the process id")?;
        let vm = input.text().ok_or_else(|| short(&input, "the VM's name"))?;
        let collector = input
            .text()
            .ok_or_else(|| short(&input, "the collector's name"))?;
        Ok(Self {
            version: u32::try_from(version).unwrap_or(u32::MAX),
            oldest: oldest as u32,
            id_width,
            byte_order,
            stable_ids: flags & STABLE != 0,
            frees_outside_gc: flags & FREES_OUTSIDE != 0,
            full_gc_frees: flags & FULL_FREES != 0,
            sample_interval,
            pid: u32::try_from(pid).unwrap_or(0),
            vm,
            collector,
        })
    }
}
