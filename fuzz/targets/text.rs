//! See `hostile::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::text(data));
