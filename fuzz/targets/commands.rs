//! See `hostile::commands`.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: {
        hostile::answer_nobody().expect("/dev/null");
    },
    |data: &[u8]| hostile::commands(data)
);
