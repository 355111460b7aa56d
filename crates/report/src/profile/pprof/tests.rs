use super::super::tests::profile;
use super::*;
use std::io::Read;

/// A decoded field: its number, and a number or bytes.
enum Field<'a> {
    Number(u32, u64),
    Bytes(u32, &'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a varint without end");
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = (key >> 3) as u32;
        match key & 7 {
            0 => fields.push(Field::Number(number, varint(&mut bytes))),
            2 => {
                let length = varint(&mut bytes) as usize;
                fields.push(Field::Bytes(number, &bytes[..length]));
                bytes = &bytes[length..];
            }
            wire => panic!("wire type {wire}"),
        }
    }
    fields
}

fn messages<'a>(fields: &'a [Field<'a>], number: u32) -> Vec<&'a [u8]> {
    let wanted = |field: &&Field<'a>| matches!(field, Field::Bytes(found, _) if *found == number);
    let bytes = fields.iter().filter(wanted).map(|field| match field {
        Field::Bytes(_, bytes) => *bytes,
        Field::Number(..) => unreachable!(),
    });
    bytes.collect()
}

fn number(message: &[u8], wanted: u32) -> u64 {
    let mut found = fields(message).into_iter().filter_map(|field| match field {
        Field::Number(number, value) if number == wanted => Some(value),
        _ => None,
    });
    found.next().unwrap_or(0)
}

fn packed(message: &[u8], wanted: u32) -> Vec<u64> {
    let fields = fields(message);
    let mut bytes = messages(&fields, wanted)[0];
    let mut values = Vec::new();
    while !bytes.is_empty() {
        values.push(varint(&mut bytes));
    }
    values
}

#[test]
fn every_stack_and_value_comes_back() {
    let profile = profile();
    let metrics = profile.metrics();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&write(&profile, &metrics)[..])
        .read_to_end(&mut plain)
        .expect("gzip");
    let fields_of = fields(&plain);
    let strings: Vec<String> = messages(&fields_of, 6)
        .into_iter()
        .map(|bytes| String::from_utf8(bytes.to_vec()).expect("UTF-8"))
        .collect();
    assert_eq!(strings[0], "");
    let kinds: Vec<_> = messages(&fields_of, 1)
        .into_iter()
        .map(|kind| {
            (
                &*strings[number(kind, 1) as usize],
                &*strings[number(kind, 2) as usize],
            )
        })
        .collect();
    assert_eq!(kinds.len(), metrics.len());
    assert_eq!(kinds[0], ("samples", "count"));
    let functions: HashMap<u64, String> = messages(&fields_of, 5)
        .into_iter()
        .map(|one| (number(one, 1), strings[number(one, 2) as usize].clone()))
        .collect();
    let mut lines = HashMap::new();
    let locations: HashMap<u64, String> = messages(&fields_of, 4)
        .into_iter()
        .map(|one| {
            let inner = fields(one);
            let place = messages(&inner, 4)[0];
            lines.insert(number(one, 1), number(place, 2));
            (number(one, 1), functions[&number(place, 1)].clone())
        })
        .collect();
    let mut totals = vec![0; metrics.len()];
    let mut hot = None;
    for sample in messages(&fields_of, 2) {
        let ids = packed(sample, 1);
        let values = packed(sample, 2);
        assert_eq!(values.len(), metrics.len());
        totals
            .iter_mut()
            .zip(&values)
            .for_each(|(total, value)| *total += value);
        if ids
            .first()
            .is_some_and(|id| locations[id] == "demo.Cpu.hot")
        {
            hot = Some((ids.len(), lines[&ids[0]], values[0]));
        }
    }
    assert_eq!(hot, Some((2, 3, 9)));
    for (metric, total) in metrics.iter().zip(totals) {
        let sum: u64 = profile.stacks(*metric).map(|stack| stack.value).sum();
        assert_eq!(total, sum, "{metric:?}");
    }
}

#[test]
fn the_same_profile_gives_the_same_bytes() {
    let profile = profile();
    let metrics = profile.metrics();
    assert_eq!(write(&profile, &metrics), write(&profile, &metrics));
}
