//! The wire: what goes in comes out, in an order the VM could have had; what is
//! dropped is counted; what is damaged is reported as such, and never panics.

use std::collections::BTreeMap;

use proptest::prelude::*;
use vmpi::wire::{Damage, Decoder, Encoder, Frame, Hello, Item, read_all};
use vmpi::*;

fn encode(hello: &Hello, items: &[(u64, Item)]) -> Vec<u8> {
    let mut encoder = Encoder::new(hello);
    for (env, item) in items {
        encoder.item(EnvId(*env), item);
    }
    encoder.finish()
}

/// Everything a stream says, and its damage.
fn decode(bytes: &[u8]) -> (Vec<(u64, Item)>, Option<Damage>) {
    let mut items = Vec::new();
    let result = read_all(bytes, |frame| {
        if let Frame::Batch(batch) = frame {
            let env = batch.env().0;
            for item in batch {
                items.push((env, item?));
            }
        }
        Ok(())
    });
    (items, result.err())
}

fn by_thread(items: &[(u64, Item)]) -> BTreeMap<u64, Vec<&Item>> {
    let mut threads: BTreeMap<u64, Vec<&Item>> = BTreeMap::new();
    for (env, item) in items {
        threads.entry(*env).or_default().push(item);
    }
    threads
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_thread_reads_what_it_wrote(items in prop::collection::vec((0u64..4, crate::any::item()), 0..200)) {
        let (got, damage) = decode(&encode(&Hello::default(), &items));
        prop_assert_eq!(damage, None);
        prop_assert_eq!(by_thread(&got), by_thread(&items));
    }

    #[test]
    fn one_thread_keeps_its_order_whatever_the_portions(
        items in prop::collection::vec(crate::any::item(), 0..60),
        portion in 1usize..40,
    ) {
        let items: Vec<_> = items.into_iter().map(|item| (7, item)).collect();
        let bytes = encode(&Hello::default(), &items);
        let mut decoder = Decoder::new();
        let mut got = Vec::new();
        for portion in bytes.chunks(portion) {
            decoder.push(portion);
            while let Some(frame) = decoder.next_frame().unwrap() {
                if let Frame::Batch(batch) = frame {
                    got.extend(batch.map(|item| (7, item.unwrap())));
                }
            }
        }
        prop_assert_eq!(decoder.missing(), None);
        prop_assert_eq!(got, items);
    }

    #[test]
    fn a_cut_recording_answers_up_to_the_cut(
        items in prop::collection::vec((0u64..3, crate::any::item()), 1..60),
        cut in 0.0..1.0f64,
    ) {
        let bytes = encode(&Hello::default(), &items);
        let cut = (bytes.len() as f64 * cut) as usize;
        let (got, damage) = decode(&bytes[..cut]);
        let damage = damage.expect("a cut is damage");
        prop_assert!(damage.offset <= cut as u64);
        let (whole, _) = decode(&bytes);
        prop_assert_eq!(&whole[..got.len()], &got[..]);
    }

    #[test]
    fn a_changed_byte_is_found_and_nothing_wrong_is_reported(
        items in prop::collection::vec((0u64..3, crate::any::item()), 1..60),
        at in 0.0..1.0f64,
        change in 1u8..=255,
    ) {
        let mut bytes = encode(&Hello::default(), &items);
        let (whole, _) = decode(&bytes);
        let at = ((bytes.len() - 1) as f64 * at) as usize;
        bytes[at] ^= change;
        let (got, damage) = decode(&bytes);
        prop_assert!(damage.is_some(), "byte {} of {}", at, bytes.len());
        prop_assert_eq!(&whole[..got.len()], &got[..]);
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = vmpi::wire::MAGIC.to_vec();
        bytes.extend(&noise);
        decode(&noise);
        decode(&bytes);
        let (items, _) = decode(&vmpi::wire::frame_of_batch(&noise));
        prop_assert!(items.len() <= noise.len(), "a batch has no more items than bytes");
    }
}

fn alloc(object: u64) -> Item {
    Item::event(Body::ObjectAlloc(ObjectAlloc {
        object: ObjectHandle(object),
        class: ObjectHandle(0x1000),
        size: 24,
        arena: ArenaId(1),
        trace: TraceId(3),
        array: None,
    }))
}

fn free(object: u64) -> Item {
    Item::event(Body::ObjectFree {
        object: ObjectHandle(object),
    })
}

#[test]
fn an_id_that_is_freed_and_given_again_by_another_thread_keeps_its_order() {
    let start = Item::event(Body::GcStart { kind: GcKind::Full });
    let finish = Item::event(Body::GcFinish(GcInfo::default()));
    let mut items = Vec::new();
    for round in 0..50u64 {
        items.push((round % 3 + 1, alloc(8)));
        items.push((9, start.clone()));
        items.push((9, free(8)));
        items.push((9, finish.clone()));
    }
    let (got, damage) = decode(&encode(&Hello::default(), &items));
    assert_eq!(damage, None);
    assert_eq!(got, items);
}

#[test]
fn an_allocation_takes_few_bytes() {
    let items: Vec<_> = (0..10_000)
        .map(|n| (1, alloc(0x7f00_0000_0000 + n * 24)))
        .collect();
    let bytes = encode(&Hello::default(), &items);
    assert!(bytes.len() < 2 * items.len(), "{} bytes", bytes.len());
}

#[test]
fn what_a_stopped_reader_misses_is_counted_exactly() {
    let mut encoder = Encoder::with_limit(&Hello::default(), 20_000);
    let class = Item::event(Body::ClassLoad(Box::new(ClassLoad {
        class: ObjectHandle(0x1000),
        name: "A".into(),
        ..ClassLoad::default()
    })));
    let mut reported = 0u64;
    for n in 0..100_000u64 {
        encoder.item(EnvId(1), &alloc(n * 3_333_333));
        reported += 1;
        if n % 10_000 == 0 {
            encoder.item(EnvId(2), &class);
        }
    }
    encoder.flush();
    let dropped = encoder.dropped();
    assert!(dropped > 0);
    let first = encoder.take();
    // The reader is back: the count comes before anything new.
    encoder.item(EnvId(1), &alloc(1));
    let mut bytes = first;
    bytes.extend(encoder.finish());
    let (got, damage) = decode(&bytes);
    assert_eq!(damage, None);
    let count =
        |test: &dyn Fn(&Item) -> bool| got.iter().filter(|(_, item)| test(item)).count() as u64;
    let allocs = count(&|item| {
        matches!(
            item,
            Item::Event {
                body: Body::ObjectAlloc(_),
                ..
            }
        )
    });
    let lost: u64 = got
        .iter()
        .filter_map(|(_, item)| match item {
            Item::Lost {
                kind: Some(EventKind::ObjectAlloc),
                count,
            } => Some(*count),
            Item::Lost { .. } => panic!("only allocations were dropped"),
            _ => None,
        })
        .sum();
    assert_eq!(lost, dropped);
    assert_eq!(allocs + lost, reported + 1);
    assert_eq!(count(&|item| *item == class), 10, "definitions are kept");
    let place = |test: &dyn Fn(&Item) -> bool| got.iter().rposition(|(_, item)| test(item));
    assert!(place(&|item| matches!(item, Item::Lost { .. })) < place(&|item| *item == alloc(1)));
}

#[test]
fn the_time_reaches_each_thread_before_its_next_item() {
    let mut encoder = Encoder::new(&Hello::default());
    encoder.item(EnvId(1), &alloc(1));
    encoder.clock(500);
    encoder.item(EnvId(1), &alloc(2));
    encoder.item(EnvId(1), &alloc(3));
    let (got, _) = decode(&encoder.finish());
    let items: Vec<_> = got.into_iter().map(|(_, item)| item).collect();
    assert_eq!(
        items,
        [alloc(1), Item::Clock { ns: 500 }, alloc(2), alloc(3)]
    );
}

#[test]
fn a_dump_larger_than_a_frame_travels_in_pieces() {
    let data: Vec<u8> = (0..5_000_000u32).map(|n| (n * 7) as u8).collect();
    let dump = Item::Event {
        requested: true,
        body: Body::HeapDump(Box::new(HeapDump {
            level: DumpLevel::Values,
            data,
            traces: Vec::new(),
        })),
    };
    let items = [(1, alloc(8)), (1, dump), (1, alloc(16))];
    let bytes = encode(&Hello::default(), &items);
    assert_eq!(decode(&bytes), (items.to_vec(), None));
    let (got, damage) = decode(&bytes[..3_000_000]);
    // A dump has a batch of its own, whose end is missing.
    assert_eq!(got, items[..1]);
    assert!(damage.is_some());
}

#[test]
fn the_greeting_states_width_order_and_kind_of_ids() {
    let hello = Hello {
        id_width: 4,
        byte_order: vmpi::wire::ByteOrder::Big,
        stable_ids: true,
        frees_outside_gc: true,
        full_gc_frees: true,
        sample_interval: 65_536,
        pid: 4711,
        vm: "refheap".into(),
        collector: "reference_counting".into(),
        ..Hello::default()
    };
    let mut decoder = Decoder::new();
    decoder.push(&encode(&hello, &[]));
    let Ok(Some(Frame::Hello(got))) = decoder.next_frame() else {
        panic!("no greeting");
    };
    assert_eq!(got, hello);
}

#[test]
fn a_stream_for_later_readers_only_is_refused() {
    let hello = Hello {
        version: 9,
        oldest: 9,
        ..Hello::default()
    };
    let (_, damage) = decode(&encode(&hello, &[]));
    assert_eq!(
        damage.unwrap().to_string(),
        "byte 17: hello: expected a stream that version 1 can read, found version 9"
    );
}

#[test]
fn another_file_is_no_stream() {
    let (_, damage) = decode(b"JAVA PROFILE 1.0.2\0");
    let damage = damage.unwrap();
    assert_eq!((damage.offset, damage.what), (0, "stream"));
}
