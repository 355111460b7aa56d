//! Kinds of processors.

/// The processor of a VM. The layout of frames is the same on both; the registers of a thread differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// The processor with this number in ELF files.
    pub(crate) fn of_elf(number: u16) -> Option<Machine> {
        match number {
            62 => Some(Machine::X86_64),
            183 => Some(Machine::Aarch64),
            _ => None,
        }
    }

    /// The processor of this process.
    pub(crate) fn own() -> Machine {
        match cfg!(target_arch = "x86_64") {
            true => Machine::X86_64,
            false => Machine::Aarch64,
        }
    }

    /// The index of the stack pointer in the words of the kernel's `user_regs_struct`.
    pub(crate) fn stack_pointer(self) -> usize {
        match self {
            Machine::X86_64 => 19,
            Machine::Aarch64 => 31,
        }
    }

    /// The index of the frame pointer.
    pub(crate) fn frame_pointer(self) -> usize {
        match self {
            Machine::X86_64 => 4,
            Machine::Aarch64 => 29,
        }
    }

    /// The index of the program counter.
    pub(crate) fn program_counter(self) -> usize {
        match self {
            Machine::X86_64 => 16,
            Machine::Aarch64 => 32,
        }
    }
}
