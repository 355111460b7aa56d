//! See `hostile::events`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::events(data));
