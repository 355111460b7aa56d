//! Analyses of Android heaps: the heaps of ART, native memory registered for objects (`NativeAllocationRegistry`),
//! bitmaps, and objects that were destroyed and are still held.
//!
//! Each object of the classes concerned is read once.

pub mod bitmaps;
pub mod destroyed;

use crate::android::bitmaps::{Bitmap, bitmaps};
use crate::android::destroyed::{Destroyed, destroyed};
use crate::objects::fields::{class_named, field_int, field_ref, instances};
use crate::tables::ranking::cut;
use heap_graph::{Control, Heap, HeapError, Value};
use hprof::Bytes;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A heap of ART, the Android runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArtHeap {
    /// Its name: `app`, `zygote` or `image`.
    pub name: String,
    /// Number of objects in it.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
}

/// Native memory of the objects of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NativeRow {
    /// Class of the objects that own the memory.
    pub class: String,
    /// Number of allocations that are registered for objects of this class.
    pub objects: u64,
    /// Size of the memory, as registered.
    pub bytes: Bytes,
}

/// The tables about an Android app.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Android {
    /// SDK level of the device; `null` if the dump does not have it.
    pub sdk: Option<i64>,
    /// Manufacturer and model of the device; `null` if the dump does not have them.
    pub device: Option<String>,
    /// ART's heaps; empty for a dump in the standard format.
    pub heaps: Vec<ArtHeap>,
    /// Destroyed objects that are still strongly reachable, largest first.
    pub destroyed: Vec<Destroyed>,
    /// Native memory by class of the owners, most first.
    pub native: Vec<NativeRow>,
    /// Sum of the native memory of all classes.
    pub native_bytes: Bytes,
    /// Bitmaps, largest first.
    pub bitmaps: Vec<Bitmap>,
    /// Number of bitmaps that were left out.
    pub omitted_bitmaps: u64,
    /// Bytes of all bitmaps.
    pub bitmap_bytes: Bytes,
}

/// Makes all Android tables.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn android(
    heap: &Heap,
    top: Option<usize>,
    control: &Control<'_>,
) -> Result<Android, HeapError> {
    let heaps = heap.summary().heaps.iter();
    let heaps = heaps.map(|(name, (objects, shallow))| ArtHeap {
        name: name.clone(),
        objects: *objects,
        shallow: *shallow,
    });
    let (native, native_bytes) = native(heap);
    let found = bitmaps(heap);
    let mut bitmaps = found.rows;
    let omitted_bitmaps = cut(&mut bitmaps, top);
    Ok(Android {
        sdk: static_int(heap, "android.os.Build$VERSION", "SDK_INT"),
        device: device(heap),
        heaps: heaps.collect(),
        destroyed: destroyed(heap, control)?,
        native,
        native_bytes,
        bitmaps,
        omitted_bitmaps,
        bitmap_bytes: found.bytes,
    })
}

fn static_int(heap: &Heap, class: &str, name: &str) -> Option<i64> {
    let info = heap.class(class_named(heap, class)?);
    let field = info.statics.iter().find(|s| s.name == name)?;
    match Value::from_bits(field.kind, field.bits) {
        Value::Int(n) => Some(i64::from(n)),
        _ => None,
    }
}

fn device(heap: &Heap) -> Option<String> {
    let class = class_named(heap, "android.os.Build")?;
    let part =
        |name| crate::objects::fields::static_ref(heap, class, name).and_then(|s| heap.string(s));
    let words: Vec<String> = [part("MANUFACTURER"), part("MODEL")]
        .into_iter()
        .flatten()
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Native memory by class. A `sun.misc.Cleaner` (or the registry's own cleaner) refers to a thunk, and the thunk to
/// the registry, which has the size of each registration.
fn native(heap: &Heap) -> (Vec<NativeRow>, Bytes) {
    let mut rows: FxHashMap<String, (u64, u64)> = FxHashMap::default();
    for cleaner in instances(heap, "sun.misc.Cleaner") {
        let registry = field_ref(heap, cleaner, "thunk").and_then(|thunk| {
            let class = &heap.class(heap.class_of(thunk)).name;
            class
                .starts_with("libcore.util.NativeAllocationRegistry")
                .then(|| field_ref(heap, thunk, "this$0"))?
        });
        let size = registry.and_then(|r| field_int(heap, r, "size"));
        let (Some(size), Some(owner)) = (size, field_ref(heap, cleaner, "referent")) else {
            continue;
        };
        // Since Android 10 the lowest bit marks memory that malloc allocated.
        let size = u64::try_from(size).unwrap_or(0) & !1;
        let class = heap.class(heap.class_of(owner)).name.clone();
        let sum = rows.entry(class).or_default();
        *sum = (sum.0 + 1, sum.1 + size);
    }
    let mut rows: Vec<NativeRow> = rows
        .into_iter()
        .map(|(class, (objects, bytes))| NativeRow {
            class,
            objects,
            bytes: Bytes(bytes),
        })
        .collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
    let sum = rows.iter().map(|r| r.bytes.0).sum();
    (rows, Bytes(sum))
}
