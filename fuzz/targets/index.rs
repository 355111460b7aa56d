//! See `tenure_fuzz::index`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenure_fuzz::index(data));
