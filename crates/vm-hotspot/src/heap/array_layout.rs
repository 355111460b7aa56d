//! How big arrays are in this VM.

use jvmti::{Env, Jni, Live, Result};

/// How this VM lays out arrays, by type code of `newarray` (2: reference).
pub(crate) struct ArrayLayout {
    /// Bytes before the elements, by type code of `newarray` (2: reference).
    pub(crate) base: [i32; 12],
    /// Binary logarithm of an element's width.
    pub(crate) shift: [i32; 12],
    /// Object alignment.
    pub(crate) align: i32,
}

impl ArrayLayout {
    /// Measured on arrays made for it: sizes jump where the alignment is crossed.
    pub(crate) fn measure(env: Env<Live>, jni: Jni) -> Result<Self> {
        let object = jni.find_class("java/lang/Object")?;
        let bytes = |len: usize| env.object_size(jni.new_bytes(len)?);
        let longs = |len: usize| env.object_size(jni.new_longs(len)?);
        let objects = |len: usize| env.object_size(jni.new_objects(len, object, None)?);
        let empty = bytes(0)?;
        // base + full = empty exactly when one more byte needs more room.
        let full = (0..64)
            .find(|len| bytes(len + 1).is_ok_and(|size| size > empty))
            .unwrap_or(0);
        let align = bytes(full + 1)? - empty;
        let byte_base = empty - full as u64;
        let many = 64_usize;
        let reference = (objects(many)? - objects(0)?) / many as u64;
        let reference_shift = if reference >= 8 { 3 } else { 2 };
        let wide_base = longs(many)?
            .saturating_sub(8 * many as u64)
            .min(byte_base.next_multiple_of(8));
        let reference_base = byte_base.next_multiple_of(1 << reference_shift);
        let (mut base, mut shift) = ([byte_base as i32; 12], [0; 12]);
        for (code, width) in [
            (4, 0),
            (5, 1),
            (6, 2),
            (7, 3),
            (8, 0),
            (9, 1),
            (10, 2),
            (11, 3),
        ] {
            shift[code] = width;
            base[code] = byte_base.next_multiple_of(1 << width) as i32;
        }
        base[7] = wide_base as i32;
        base[11] = wide_base as i32;
        base[2] = reference_base as i32;
        shift[2] = reference_shift;
        Ok(Self {
            base,
            shift,
            align: align as i32,
        })
    }
}
