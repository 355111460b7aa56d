//! See `hostile::query`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::query(data));
