//! See `hostile::profile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::profile(data));
