//! Why a class was not patched.

/// The fault in a class file; the offset is into the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It does not begin with 0xCAFEBABE.
    #[error("not a class file: magic {0:#010x}")]
    Magic(u32),
    /// It ends in the middle of something.
    #[error("class file ends at {at}, {wanted} more bytes expected")]
    Truncated {
        /// Where reading stopped.
        at: usize,
        /// How many bytes were expected there.
        wanted: usize,
    },
    /// An unknown constant pool tag.
    #[error("constant pool tag {tag} at {at}")]
    PoolTag {
        /// The tag.
        tag: u8,
        /// Its offset.
        at: usize,
    },
    /// An index that refers to no constant of the right kind.
    #[error("constant pool index {0} is not what is expected")]
    PoolIndex(u16),
    /// The pool is full: 65,535 entries.
    #[error("the constant pool is full")]
    PoolFull,
    /// An opcode that does not exist, or a branch into the middle of an instruction.
    #[error("malformed code at {at} of a method")]
    Code {
        /// Offset in the method's code.
        at: usize,
    },
    /// A stack map frame or table entry with an invalid offset.
    #[error("malformed {0} attribute")]
    Attribute(&'static str),
    /// The method would become too long, or a branch too far.
    #[error("the patched method does not fit")]
    TooLarge,
}
