//! See `tenure_fuzz::segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenure_fuzz::segment(data));
