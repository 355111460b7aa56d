//! See `hostile::source`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::source(data));
