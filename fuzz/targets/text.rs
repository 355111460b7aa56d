//! See `tenure_fuzz::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenure_fuzz::text(data));
