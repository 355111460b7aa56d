//! See `tenure_fuzz::dump`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenure_fuzz::dump(data));
