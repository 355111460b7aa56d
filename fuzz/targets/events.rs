//! See `tenure_fuzz::events`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenure_fuzz::events(data));
