//! Files that are often mistaken for a dump, and the programs that open them.

/// The offset of the magic bytes of a kind of file, these bytes, and what the file is.
const KINDS: [(usize, &[u8], &str); 9] = [
    (
        0,
        b"FLR\0",
        "a recording of JDK Flight Recorder: `tenure profile` shows it",
    ),
    (
        2,
        b"portable heap dump",
        "a heap dump of OpenJ9 (PHD): Eclipse MAT reads it with the DTFJ plug-in",
    ),
    (
        0,
        b"\x7fELF",
        "an ELF file: if it is the core file of a JVM, `tenure dump --core` makes a dump of it",
    ),
    (
        0,
        b"VMPI",
        "a recording of VM events: `tenure events` opens it",
    ),
    (
        0,
        b"7z\xbc\xaf\x27\x1c",
        "a 7z archive: unpack it with `7z x`",
    ),
    (
        0,
        b"\x04\x22\x4d\x18",
        "packed with lz4: unpack it with `lz4 -d`",
    ),
    (0, b"\x1f\x8b", "packed twice: unpack it once"),
    (0, b"<!DOCTYPE", "a web page"),
    (0, b"<html", "a web page"),
];

/// The kind of a file, by its first bytes.
pub(crate) fn recognize(data: &[u8]) -> Option<&'static str> {
    let has = |at: usize, mark: &[u8]| data.get(at..).is_some_and(|rest| rest.starts_with(mark));
    let kind = KINDS.iter().find(|(at, mark, _)| has(*at, mark));
    kind.map(|(_, _, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::recognize;

    #[test]
    fn known_files_are_recognized_by_their_marks() {
        let cases: [(&[u8], Option<&str>); 4] = [
            (b"FLR\0\0\x02\0\0", Some("Flight Recorder")),
            (b"\0\x12portable heap dump", Some("PHD")),
            (b"\x7fELF\x02\x01", Some("--core")),
            (b"JAVA", None),
        ];
        for (data, expected) in cases {
            let found = recognize(data);
            match expected {
                Some(part) => assert!(found.is_some_and(|what| what.contains(part)), "{found:?}"),
                None => assert_eq!(found, None),
            }
        }
    }
}
