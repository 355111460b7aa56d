//! See `tenure_fuzz::records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenure_fuzz::records(data));
