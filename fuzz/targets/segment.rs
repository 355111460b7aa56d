//! See `hostile::segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::segment(data));
