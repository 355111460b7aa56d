//! The bitmaps of an Android heap: their size in pixels, where the pixels are stored, which bitmaps are equal, and the
//! pictures. From Android 3 to 7 the pixels are a `byte[]` of the Java heap; since Android 8 they are in native memory
//! and not in the dump.

use crate::objects::describe::{ObjectRef, describe};
use crate::objects::fields::{class_named, field_int, field_ref};
use crate::sets::object_set::hash_of;
use heap_graph::{Heap, ObjIdx, ObjectView};
use hprof::Bytes;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;

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
    /// Bytes of its pixels; four per pixel if the pixels are not in the dump.
    pub bytes: Bytes,
    /// True when the pixels are in the dump.
    pub in_heap: bool,
    /// Number of other bitmaps with the same size and pixels; 0 if the pixels are not in the dump.
    pub copies: u64,
}

/// All bitmaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bitmaps {
    /// The bitmaps, largest first by bytes.
    pub rows: Vec<Bitmap>,
    /// Bytes of all of them.
    pub bytes: Bytes,
    /// Bytes of all copies but one of each group of equal bitmaps.
    pub wasted: Bytes,
}

/// The bitmap class of Android.
pub const BITMAP: &str = "android.graphics.Bitmap";

/// Lists the reachable bitmaps.
pub fn bitmaps(heap: &Heap) -> Bitmaps {
    let mut equal: FxHashMap<u64, u64> = FxHashMap::default();
    let mut wasted = 0;
    let mut list: Vec<(Bitmap, Option<u64>)> = Vec::new();
    let class = class_named(heap, BITMAP);
    let objects = class.into_iter().flat_map(|c| heap.objects_of(c));
    for object in objects.filter(|o| heap.is_reachable(*o)) {
        let (width, height) = size(heap, object);
        let data = buffer(heap, object);
        let hash = data.map(|d| hash_of(width as u64, d));
        if let (Some(hash), Some(data)) = (hash, data) {
            let count = equal.entry(hash).or_default();
            *count += 1;
            wasted += if *count > 1 { data.len() as u64 } else { 0 };
        }
        let four = width.saturating_mul(height).saturating_mul(4) as u64;
        let bitmap = Bitmap {
            object: describe(heap, object),
            width,
            height,
            bytes: Bytes(data.map_or(four, |d| d.len() as u64)),
            in_heap: data.is_some(),
            copies: 0,
        };
        list.push((bitmap, hash));
    }
    for (bitmap, hash) in &mut list {
        bitmap.copies = hash.map_or(0, |h| equal[&h] - 1);
    }
    let mut rows: Vec<Bitmap> = list.into_iter().map(|b| b.0).collect();
    rows.sort_by_key(|b| (Reverse(b.bytes), b.object.object));
    Bitmaps {
        bytes: Bytes(rows.iter().map(|b| b.bytes.0).sum()),
        rows,
        wasted: Bytes(wasted),
    }
}

/// Width and height, never negative.
fn size(heap: &Heap, bitmap: ObjIdx) -> (i64, i64) {
    let number = |name| field_int(heap, bitmap, name).unwrap_or(0).max(0);
    (number("mWidth"), number("mHeight"))
}

/// The bytes of `mBuffer`, if the dump has them.
fn buffer(heap: &Heap, bitmap: ObjIdx) -> Option<&[u8]> {
    match heap.object(field_ref(heap, bitmap, "mBuffer")?).ok()? {
        ObjectView::PrimitiveArray { data, .. } if !data.is_empty() => Some(data),
        _ => None,
    }
}

/// The picture of a bitmap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// The bitmap.
    pub bitmap: ObjectRef,
    /// Width and height of the bitmap.
    pub size: (i64, i64),
    /// `ARGB_8888`, `RGB_565` or `ALPHA_8`, inferred from the bytes per pixel because the dump does not state it.
    /// `null` if the pixels are not in the dump, or are fewer than width times height.
    pub format: Option<&'static str>,
    /// Width and height of the picture: those of the bitmap, or smaller.
    pub shown: (u32, u32),
    /// Red, green, blue and opacity of each pixel, two hexadecimal digits each, row by row; empty
    /// without a format. Colours are not multiplied by the opacity.
    pub pixels: String,
}

/// Makes the picture of a bitmap, at most `most` pixels wide and high; larger ones are reduced by omitting rows and
/// columns. `None` for an object that is not a bitmap.
pub fn picture(heap: &Heap, object: ObjIdx, most: u32) -> Option<Picture> {
    if heap.class(heap.class_of(object)).name != BITMAP {
        return None;
    }
    let (width, height) = size(heap, object);
    let mut picture = Picture {
        bitmap: describe(heap, object),
        size: (width, height),
        format: None,
        shown: (0, 0),
        pixels: String::new(),
    };
    let area = usize::try_from(width.saturating_mul(height)).unwrap_or(usize::MAX);
    let data = buffer(heap, object).unwrap_or_default();
    // A buffer may be longer than the bitmap: a bitmap that is made smaller keeps its buffer.
    let bytes = match data.len().checked_div(area) {
        Some(4..) => 4,
        Some(2..) => 2,
        Some(1) => 1,
        Some(0) | None => return Some(picture),
    };
    picture.format = Some(match bytes {
        4 => "ARGB_8888",
        2 => "RGB_565",
        _ => "ALPHA_8",
    });
    let step = (width.max(height) as u64).div_ceil(u64::from(most.max(1))) as usize;
    let (width, height) = (width as usize, height as usize);
    picture.shown = (width.div_ceil(step) as u32, height.div_ceil(step) as u32);
    for y in (0..height).step_by(step) {
        for x in (0..width).step_by(step) {
            let at = (y * width + x) * bytes;
            for part in colour(&data[at..at + bytes]) {
                for digit in [part >> 4, part & 15] {
                    picture
                        .pixels
                        .push(char::from(b"0123456789abcdef"[usize::from(digit)]));
                }
            }
        }
    }
    Some(picture)
}

/// Red, green, blue, opacity of a pixel of four, two or one bytes.
fn colour(pixel: &[u8]) -> [u8; 4] {
    match *pixel {
        [r, g, b, a] => {
            // Android stores colours multiplied by the opacity.
            let whole = |c: u8| (u32::from(c) * 255 / u32::from(a.max(1))).min(255) as u8;
            [whole(r), whole(g), whole(b), a]
        }
        [low, high] => {
            let n = u16::from_le_bytes([low, high]);
            let wide = |value: u16, bits: u32| (u32::from(value) * 255 / ((1 << bits) - 1)) as u8;
            [wide(n >> 11, 5), wide(n >> 5 & 63, 6), wide(n & 31, 5), 255]
        }
        [a] => [0, 0, 0, a],
        _ => [0; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::colour;

    #[test]
    fn pixels_of_every_format_have_their_colours() {
        assert_eq!(colour(&[255, 128, 0, 255]), [255, 128, 0, 255]);
        assert_eq!(colour(&[64, 32, 0, 128]), [127, 63, 0, 128], "half opaque");
        assert_eq!(colour(&[9, 9, 9, 0])[3], 0, "not seen at all");
        assert_eq!(colour(&0xf800u16.to_le_bytes()), [255, 0, 0, 255]);
        assert_eq!(colour(&0x07e0u16.to_le_bytes()), [0, 255, 0, 255]);
        assert_eq!(colour(&0x001fu16.to_le_bytes()), [0, 0, 255, 255]);
        assert_eq!(colour(&[200]), [0, 0, 0, 200]);
    }
}
