//! The bytes of the tracker's class, adapted to this VM.

/// Compiled from `tracker/HprofTracker.java`.
const BYTES: &[u8] = include_bytes!("../../tracker/HprofTracker.class");

/// How the tracker reads the id of a thread. It never calls `getId`, which a subclass may override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadIds {
    /// From JDK 19 on: `Thread.threadId`, which is final.
    Final,
    /// From JDK 9 on: the field `tid`, read with `jdk.internal.misc.Unsafe`.
    Internal,
    /// JDK 8: the same with `sun.misc.Unsafe`.
    Old,
}

impl ThreadIds {
    /// Name of the class whose native methods make objects without a constructor.
    pub(crate) fn unsafe_class(self) -> &'static str {
        match self {
            Self::Old => "sun/misc/Unsafe",
            Self::Internal | Self::Final => "jdk/internal/misc/Unsafe",
        }
    }

    /// Name of the class that reads the field.
    pub(crate) fn unsafe_name(self) -> Option<&'static str> {
        match self {
            Self::Final => None,
            Self::Internal | Self::Old => Some(self.unsafe_class()),
        }
    }
}

/// A name in the form of a constant pool.
fn constant(name: &str) -> Vec<u8> {
    let length = (name.len() as u16).to_be_bytes();
    [&[1], &length[..], name.as_bytes()].concat()
}

/// Replaces one name in a class file.
fn rename(bytes: Vec<u8>, old: &str, new: &str) -> Vec<u8> {
    let (old, new) = (constant(old), constant(new));
    let at = bytes.windows(old.len()).position(|window| window == old);
    match at {
        Some(at) => [&bytes[..at], &new, &bytes[at + old.len()..]].concat(),
        None => bytes,
    }
}

/// The bytes to define. `has_carriers`: virtual threads run on other threads.
pub(crate) fn class_bytes(ids: ThreadIds, has_carriers: bool) -> Vec<u8> {
    let mut bytes = BYTES.to_vec();
    if has_carriers {
        bytes = rename(bytes, "java/lang/HprofCarrier", "java/lang/Thread");
    }
    match ids {
        ThreadIds::Final => rename(bytes, "getId", "threadId"),
        ThreadIds::Internal => {
            let bytes = rename(bytes, "sun/misc/Unsafe", "jdk/internal/misc/Unsafe");
            rename(bytes, "Lsun/misc/Unsafe;", "Ljdk/internal/misc/Unsafe;")
        }
        ThreadIds::Old => {
            let annotations = "Ljdk/internal/vm/annotation/";
            let mut bytes = bytes;
            for (name, old) in [
                ("DontInline;", "Ljava/lang/invoke/DontInline;"),
                ("Contended;", "Lsun/misc/Contended;"),
            ] {
                bytes = rename(bytes, &format!("{annotations}{name}"), old);
            }
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::rewrite::TRACKER;

    #[test]
    fn the_class_is_made_for_every_kind_of_thread() {
        let has = |bytes: &[u8], name: &str| {
            let constant = constant(name);
            bytes
                .windows(constant.len())
                .any(|window| window == constant)
        };
        let old = classfile::Class::parse(BYTES).expect("a class file");
        assert_eq!(old.name, TRACKER.as_bytes());
        for (ids, threads, reader) in [
            (ThreadIds::Final, "threadId", "sun/misc/Unsafe"),
            (ThreadIds::Internal, "getId", "jdk/internal/misc/Unsafe"),
            (ThreadIds::Old, "getId", "sun/misc/Unsafe"),
        ] {
            let has_carriers = ids == ThreadIds::Final;
            let bytes = class_bytes(ids, has_carriers);
            assert_eq!(has(&bytes, "java/lang/HprofCarrier"), !has_carriers);
            let new = classfile::Class::parse(&bytes).expect("a class file");
            assert_eq!(new.methods.len(), old.methods.len());
            assert!(has(&bytes, threads) && has(&bytes, reader), "{ids:?}");
            assert!(has(&bytes, &format!("L{reader};")), "{ids:?}");
            assert_eq!(has(&bytes, "getId"), ids != ThreadIds::Final);
        }
    }
}
