//! The bitmaps of an Android heap: size in pixels, where their bytes are, and which are equal.
//! Since Android 8 the pixels are in native memory and not in the dump.

use crate::describe::{ObjectRef, describe};
use crate::fields::{class_named, field_int, field_ref};
use heap_graph::{Heap, ObjIdx, ObjectView};
use hprof::Bytes;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::hash::{Hash, Hasher};

/// A bitmap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bitmap {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Width in pixels.
    pub width: i64,
    /// Height in pixels.
    pub height: i64,
    /// Bytes of pixels in the dump; 0 when they are in native memory.
    pub pixels: Bytes,
    /// How many bitmaps of the dump have the same size and pixels, this one included; 1 when the
    /// pixels are not in the dump.
    pub equal: u64,
}

/// All bitmaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bitmaps {
    /// Largest first, by pixels.
    pub rows: Vec<Bitmap>,
    /// Pixel bytes of bitmaps that are equal to another, but for one of each.
    pub wasted: Bytes,
}

/// The bitmap class of Android.
pub const BITMAP: &str = "android.graphics.Bitmap";

/// Lists the reachable bitmaps.
pub fn bitmaps(heap: &Heap) -> Bitmaps {
    let mut rows: Vec<(u64, Bitmap)> = Vec::new();
    let class = class_named(heap, BITMAP);
    let objects = class.into_iter().flat_map(|c| heap.objects_of(c));
    for object in objects.filter(|o| heap.is_reachable(*o)) {
        let size = |name| field_int(heap, object, name).unwrap_or(0);
        let data = buffer(heap, object).unwrap_or_default();
        let mut hasher = rustc_hash::FxHasher::default();
        (size("mWidth"), size("mHeight"), data).hash(&mut hasher);
        rows.push((
            hasher.finish(),
            Bitmap {
                object: describe(heap, object),
                width: size("mWidth"),
                height: size("mHeight"),
                pixels: Bytes(data.len() as u64),
                equal: 1,
            },
        ));
    }
    let mut counts: FxHashMap<(u64, Bytes), u64> = FxHashMap::default();
    for (hash, bitmap) in rows.iter().filter(|(_, b)| b.pixels.0 > 0) {
        *counts.entry((*hash, bitmap.pixels)).or_default() += 1;
    }
    let wasted = counts.iter().map(|((_, bytes), n)| bytes.0 * (n - 1)).sum();
    for (hash, bitmap) in &mut rows {
        bitmap.equal = counts.get(&(*hash, bitmap.pixels)).copied().unwrap_or(1);
    }
    let mut rows: Vec<Bitmap> = rows.into_iter().map(|(_, b)| b).collect();
    rows.sort_by_key(|b| {
        (
            std::cmp::Reverse((b.pixels, b.width * b.height)),
            b.object.object,
        )
    });
    Bitmaps {
        rows,
        wasted: Bytes(wasted),
    }
}

/// The bytes of `mBuffer`, if the dump has them.
fn buffer(heap: &Heap, bitmap: ObjIdx) -> Option<&[u8]> {
    match heap.object(field_ref(heap, bitmap, "mBuffer")?).ok()? {
        ObjectView::PrimitiveArray { data, .. } => Some(data),
        _ => None,
    }
}
