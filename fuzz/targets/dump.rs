//! See `hostile::dump`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::dump(data));
