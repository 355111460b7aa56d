//! See `hostile::index`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::index(data));
