//! The text form against real output of the original agent: every file must read without a
//! finding and write back to the same bytes.

use hprof_text::{TextReader, TextRecord, is_text, write_record};
use testkit::corpus::unpacked;

/// Every text profile of the oracle with its name.
fn text_profiles() -> Vec<(String, Vec<u8>)> {
    let Some(oracle) = testkit::oracle::folder() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for case in std::fs::read_dir(oracle.join("cases"))
        .expect("cases")
        .flatten()
    {
        for file in std::fs::read_dir(case.path()).expect("case").flatten() {
            let bytes = unpacked(&file.path());
            if is_text(&bytes) {
                found.push((file.path().display().to_string(), bytes));
            }
        }
    }
    found.sort();
    assert!(found.len() > 60, "only {} text profiles", found.len());
    found
}

fn rewrite(text: &[u8]) -> (Vec<u8>, Vec<String>) {
    let mut reader = TextReader::new(text);
    let mut again = Vec::new();
    for record in reader.by_ref() {
        write_record(&mut again, &record).expect("memory");
    }
    let findings = reader
        .diagnostics()
        .iter()
        .map(ToString::to_string)
        .collect();
    (again, findings)
}

#[test]
fn every_original_text_writes_back_to_the_same_bytes() {
    for (name, text) in text_profiles() {
        let (again, findings) = rewrite(&text);
        assert_eq!(findings, Vec::<String>::new(), "{name}");
        let same = text.iter().zip(&again).take_while(|(a, b)| a == b).count();
        assert!(
            again == text,
            "{name}: differs at {same}: {:?} against {:?}",
            String::from_utf8_lossy(&text[same..text.len().min(same + 80)]),
            String::from_utf8_lossy(&again[same..again.len().min(same + 80)]),
        );
    }
}

#[test]
fn line_ends_of_windows_change_nothing() {
    for (name, text) in text_profiles()
        .into_iter()
        .filter(|(_, text)| text.len() < 200_000)
    {
        let mut crlf = Vec::with_capacity(text.len() * 2);
        for byte in &text {
            if *byte == b'\n' {
                crlf.push(b'\r');
            }
            crlf.push(*byte);
        }
        let mut reader = TextReader::new(&crlf);
        let mut plain = TextReader::new(&text);
        let same = |a: &TextRecord<'_>, b: &TextRecord<'_>| match (a, b) {
            (TextRecord::Prelude(_), TextRecord::Prelude(_)) => true,
            _ => a == b,
        };
        loop {
            match (reader.next(), plain.next()) {
                (None, None) => break,
                (Some(a), Some(b)) if same(&a, &b) => {}
                (a, b) => panic!("{name}: {a:?} against {b:?}"),
            }
        }
        assert!(reader.diagnostics().is_empty(), "{name}");
    }
}

#[test]
fn a_cut_file_gives_every_record_before_the_cut() {
    let profiles = text_profiles();
    for (name, text) in profiles.iter().filter(|(_, text)| text.len() < 60_000) {
        let whole: Vec<_> = TextReader::new(text).collect();
        for cut in (0..text.len()).step_by(997) {
            let records: Vec<_> = TextReader::new(&text[..cut]).collect();
            // The record at the cut may be shortened or dropped; those before it may not.
            let complete = records.len().saturating_sub(1);
            assert!(complete <= whole.len(), "{name} cut at {cut}");
            assert_eq!(
                records[..complete],
                whole[..complete],
                "{name} cut at {cut}"
            );
        }
    }
}
