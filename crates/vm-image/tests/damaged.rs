//! Damaged images: whatever the bytes are, there is an answer, and it does not take long.

use crate::common::Program;
use std::cell::Cell;
use std::io;
use testkit::jvm;
use vm_image::{Address, Core, Memory, Place, Process};

/// A memory in which some bytes are wrong and some pages are missing.
struct Damaged<'m> {
    inner: &'m dyn Memory,
    seed: u64,
    /// One page in so many is damaged.
    rarity: u64,
    read: Cell<u64>,
}

/// A number that is different for each seed and page, and always the same for both.
fn mixed(seed: u64, page: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ page.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 29;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 32
}

impl Memory for Damaged<'_> {
    fn read(&self, at: Address, into: &mut [u8]) -> usize {
        let there = self.inner.read(at, into);
        self.read.set(self.read.get() + there as u64);
        let (first, last) = (at / 4096, at.saturating_add(there as u64) / 4096);
        for page in first..=last {
            let number = mixed(self.seed, page);
            if !number.is_multiple_of(self.rarity) {
                continue;
            }
            let Some(inside) = (page * 4096).checked_sub(at) else {
                continue;
            };
            // Every eighth of the damaged pages is missing.
            if number >> 40 & 7 == 0 {
                return (inside as usize).min(there);
            }
            for i in 0..8 {
                let place = mixed(number, i);
                let byte = inside as usize + (place % 4096) as usize;
                if let Some(byte) = into[..there].get_mut(byte) {
                    *byte = (place >> 32) as u8;
                }
            }
        }
        there
    }

    fn next_readable(&self, at: Address) -> Option<Address> {
        self.inner.next_readable(at)
    }
}

#[test]
fn a_damaged_image_is_dumped_or_refused() {
    let jdks = jvm::tested();
    if jdks.is_empty() {
        testkit::skip("damaged images", testkit::Need::Jdk, jvm::NO_JDK);
    }
    for (i, jdk) in jdks.iter().enumerate() {
        let collector = ["-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC"][i % 3];
        let Some(program) = Program::start(jdk, "Rest", &[collector]) else {
            return;
        };
        let process = Process::open(program.pid()).expect("a process");
        let place = Place {
            libjvm: process.libjvm(),
            registers: Vec::new(),
            ..Place::default()
        };
        let whole = Damaged {
            inner: &process,
            seed: 0,
            rarity: u64::MAX,
            read: Cell::new(0),
        };
        vm_image::dump(&whole, &place, io::sink()).expect("a dump");
        let (mut dumped, mut damaged) = (0, 0);
        for seed in 1..=60 {
            let memory = Damaged {
                inner: &process,
                seed,
                rarity: [40, 400, 4000][seed as usize % 3],
                read: Cell::new(0),
            };
            if let Ok(summary) = vm_image::dump(&memory, &place, io::sink()) {
                dumped += 1;
                damaged += u32::from(summary.damage.total() > 0);
            }
            let (read, most) = (memory.read.get(), whole.read.get() * 20);
            assert!(read < most, "seed {seed} reads {read} bytes");
        }
        assert!(dumped >= 10 && damaged >= 5, "{dumped} {damaged}");
    }
}

#[test]
fn a_file_that_is_no_core_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("core");
    let elf = std::fs::read(std::env::current_exe().expect("a program")).expect("an ELF file");
    for (bytes, why) in [
        (&b""[..], "too short"),
        (&[0; 4096][..], "does not begin"),
        (&elf[..4096], "another kind"),
    ] {
        std::fs::write(&path, bytes).expect("written");
        let fault = Core::open(&path, None).expect_err("no core").to_string();
        assert!(fault.contains(why), "{fault}");
    }
}
