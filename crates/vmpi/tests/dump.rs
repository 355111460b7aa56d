//! Dump buffers: both directions, byte for byte where the document gives bytes.

use std::collections::HashMap;

use vmpi::dump::heap::{decode, decode_ids, encode, encode_ids};
use vmpi::dump::monitor::{self, MonitorName, MonitorRecord};
use vmpi::dump::{
    ClassDump, HeapRecord, IdLayout, IdRecord, RootKind, Shapes, Types, field_bytes, field_values,
};
use vmpi::wire::ByteOrder;
use vmpi::*;

const LAYOUTS: [IdLayout; 4] = [
    IdLayout {
        width: 4,
        order: ByteOrder::Little,
    },
    IdLayout {
        width: 4,
        order: ByteOrder::Big,
    },
    IdLayout {
        width: 8,
        order: ByteOrder::Little,
    },
    IdLayout {
        width: 8,
        order: ByteOrder::Big,
    },
];

fn h(id: u64) -> ObjectHandle {
    ObjectHandle(id)
}

fn shapes() -> HashMap<ObjectHandle, ClassLoad> {
    let field = |signature: &str| FieldDef {
        name: "f".into(),
        signature: signature.into(),
    };
    let class = ClassLoad {
        class: h(0x10),
        interfaces: 2,
        statics: vec![field("J"), field("Ljava/lang/Object;"), field("Z")],
        ..ClassLoad::default()
    };
    HashMap::from([(class.class, class)])
}

fn records(layout: IdLayout, level: DumpLevel) -> Vec<HeapRecord> {
    let root = |object, why| HeapRecord::Root {
        object: h(object),
        why,
    };
    let full = level == DumpLevel::Values;
    let fields = [Value::Int(-5), Value::Object(h(0x40)), Value::Double(1.5)];
    let statics = [
        Value::Long(-2),
        Value::Object(h(0x99)),
        Value::Boolean(true),
    ];
    let statics = statics
        .into_iter()
        .filter(|v| full || matches!(v, Value::Object(_)));
    vec![
        root(1, RootKind::Unknown),
        root(2, RootKind::JniGlobal(RefId(0x77))),
        root(3, RootKind::JniLocal(EnvId(5), -1)),
        root(4, RootKind::JavaFrame(EnvId(5), 3)),
        root(5, RootKind::NativeStack(EnvId(6))),
        root(6, RootKind::StickyClass),
        root(7, RootKind::ThreadBlock(EnvId(6))),
        root(8, RootKind::MonitorUsed),
        HeapRecord::Class(ClassDump {
            class: h(0x10),
            superclass: h(0x11),
            loader: h(0x12),
            signers: h(0),
            protection_domain: h(0x13),
            instance_size: 24,
            interfaces: vec![h(0x20), h(0x21)],
            constants: vec![(7, Value::Int(9)), (8, Value::Object(h(0x30)))],
            statics: statics.collect(),
        }),
        HeapRecord::Instance {
            object: h(0x40),
            class: h(0x10),
            fields: field_bytes(&fields, !full, layout),
        },
        HeapRecord::ObjectArray {
            object: h(0x41),
            element_class: h(0),
            elements: vec![h(0x40), h(0)],
        },
        HeapRecord::PrimitiveArray {
            object: h(0x42),
            element: BasicType::Char,
            len: 3,
            data: if full {
                b"\0H\0i\0!".to_vec()
            } else {
                Vec::new()
            },
        },
    ]
}

#[test]
fn levels_1_and_2_come_back_in_every_layout() {
    for layout in LAYOUTS {
        for level in [DumpLevel::References, DumpLevel::Values] {
            let records = records(layout, level);
            let mut bytes = Vec::new();
            for record in &records {
                encode(&mut bytes, record, level, layout);
            }
            assert_eq!(decode(&bytes, level, layout, &shapes()), (records, None));
        }
    }
}

/// Classes of which reading all fields is a fault.
struct Endless;

impl Shapes for Endless {
    fn interfaces(&self, _class: ObjectHandle) -> Option<u32> {
        Some(0)
    }

    fn static_references(&self, _class: ObjectHandle) -> Option<u32> {
        Some(1)
    }

    fn statics(&self, _class: ObjectHandle) -> Option<Types<'_>> {
        Some(Box::new(std::iter::repeat(Some(BasicType::Byte))))
    }
}

#[test]
fn a_record_of_a_class_reads_no_more_fields_than_it_has_values() {
    let layout = IdLayout::NATIVE;
    let record = HeapRecord::Class(ClassDump {
        class: h(0x10),
        statics: vec![Value::Object(h(0x99))],
        ..ClassDump::default()
    });
    let mut bytes = Vec::new();
    encode(&mut bytes, &record, DumpLevel::References, layout);
    let read = |level| decode(&bytes, level, layout, &Endless);
    assert_eq!(read(DumpLevel::References), (vec![record.clone()], None));
    assert!(read(DumpLevel::Values).1.is_some());
}

#[test]
fn level_1_leaves_primitive_values_out() {
    let layout = IdLayout::NATIVE;
    let size = |level| {
        let mut bytes = Vec::new();
        for record in records(layout, DumpLevel::Values) {
            encode(&mut bytes, &record, level, layout);
        }
        bytes.len()
    };
    // A long, a boolean and six bytes of characters.
    assert_eq!(
        size(DumpLevel::Values) - size(DumpLevel::References),
        8 + 1 + 6
    );
}

#[test]
fn ids_are_native_and_numbers_high_byte_first() {
    let layout = IdLayout {
        width: 4,
        order: ByteOrder::Little,
    };
    let mut bytes = Vec::new();
    let why = RootKind::JavaFrame(EnvId(0x0a0b), 1);
    encode(
        &mut bytes,
        &HeapRecord::Root {
            object: h(0x0102),
            why,
        },
        DumpLevel::Values,
        layout,
    );
    assert_eq!(bytes, [3, 2, 1, 0, 0, 0x0b, 0x0a, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn level_0_is_types_and_ids() {
    let records = [
        IdRecord {
            object: h(0x11),
            array: None,
        },
        IdRecord {
            object: h(0x12),
            array: Some(BasicType::Object),
        },
        IdRecord {
            object: h(0x13),
            array: Some(BasicType::Long),
        },
    ];
    for layout in LAYOUTS {
        let bytes = encode_ids(&records, layout);
        assert_eq!(bytes.len(), 3 * (1 + usize::from(layout.width)));
        assert_eq!(
            (bytes[0], decode_ids(&bytes, layout)),
            (0, (records.to_vec(), None))
        );
    }
}

#[test]
fn fields_come_back_by_their_types() {
    use BasicType as T;
    let values = [
        Value::Boolean(true),
        Value::Char(0x2615),
        Value::Float(0.25),
        Value::Double(-1e300),
        Value::Byte(-1),
        Value::Short(-300),
        Value::Int(i32::MIN),
        Value::Long(i64::MAX),
        Value::Object(h(0xdead)),
    ];
    let types = [
        T::Boolean,
        T::Char,
        T::Float,
        T::Double,
        T::Byte,
        T::Short,
        T::Int,
        T::Long,
        T::Object,
    ];
    for layout in LAYOUTS {
        let bytes = field_bytes(&values, false, layout);
        assert_eq!(field_values(&bytes, &types, layout).unwrap(), values);
        assert!(field_values(&bytes, &types[1..], layout).is_err());
        assert!(field_values(&bytes[1..], &types, layout).is_err());
    }
}

#[test]
fn a_monitor_dump_comes_back() {
    let threads = |ids: &[u64]| ids.iter().copied().map(EnvId).collect::<Vec<_>>();
    let records = vec![
        MonitorRecord {
            monitor: MonitorName::Java(h(0x50)),
            owner: EnvId(1),
            entry_count: 2,
            waiting_to_enter: threads(&[2, 3]),
            waiting_to_be_notified: threads(&[4]),
        },
        MonitorRecord {
            monitor: MonitorName::Raw {
                name: 0xabc,
                monitor: RawMonitorId(0x60),
            },
            owner: EnvId(0),
            entry_count: 0,
            waiting_to_enter: Vec::new(),
            waiting_to_be_notified: Vec::new(),
        },
    ];
    for layout in LAYOUTS {
        let mut bytes = Vec::new();
        records
            .iter()
            .for_each(|record| monitor::encode(&mut bytes, record, layout));
        assert_eq!(monitor::decode(&bytes, layout), (records.clone(), None));
        for cut in 0..bytes.len() {
            let (got, damage) = monitor::decode(&bytes[..cut], layout);
            assert!(records.starts_with(&got));
            let whole_records = cut == 0 || got.len() == 1 && damage.is_none();
            assert!(whole_records || damage.is_some(), "cut at {cut}");
        }
    }
}

#[test]
fn damage_is_placed_and_never_panics() {
    let layout = IdLayout::NATIVE;
    let mut bytes = Vec::new();
    for record in records(layout, DumpLevel::Values) {
        encode(&mut bytes, &record, DumpLevel::Values, layout);
    }
    for cut in 0..bytes.len() {
        let (_, damage) = decode(&bytes[..cut], DumpLevel::Values, layout, &shapes());
        assert!(damage.is_none_or(|damage| damage.offset <= cut as u64));
    }
    for at in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] = 0xee;
        let _ = decode(&broken, DumpLevel::Values, layout, &shapes());
        let _ = decode(&broken, DumpLevel::References, layout, &());
    }
    let claims = [0x23u8, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 11];
    let (records, damage) = decode(&claims, DumpLevel::Values, layout, &());
    assert_eq!(records, []);
    assert_eq!(damage.unwrap().found, "0 bytes");
    assert_eq!(().interfaces(h(1)), Some(0));
}

#[test]
fn elements_of_this_machine_become_high_byte_first() {
    let native: Vec<u8> = [1_u32, 0x0203_0405]
        .iter()
        .flat_map(|n| n.to_ne_bytes())
        .collect();
    assert_eq!(
        vmpi::dump::element_bytes(&native, 4),
        [0, 0, 0, 1, 2, 3, 4, 5]
    );
    assert_eq!(vmpi::dump::element_bytes(&[7, 8], 1), [7, 8]);
}
