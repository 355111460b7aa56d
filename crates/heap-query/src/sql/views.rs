//! Names that other tools use for the same tables: Perfetto's heap graph and the MAT Calcite plug-in. Ids of the heap
//! graph are numbers there, so these views return addresses.

/// Name and definition of each view.
pub(crate) const VIEWS: &[(&str, &str)] = &[
    (
        "heap_graph_class",
        "select number as id, name, null as deobfuscated_name, null as location, \
         superclass_number as superclass_id, loader_address as classloader_id, kind from classes",
    ),
    (
        "heap_graph_object",
        "select address as id, 1 as upid, heap_timestamp() as graph_sample_ts, \
         shallow as self_size, 0 as native_size, address as reference_set_id, \
         reachable, heap as heap_type, class_number as type_id, root_type, \
         ifnull(root_distance, -1) as root_distance from objects",
    ),
    (
        "heap_graph_reference",
        "select from_address as reference_set_id, from_address as owner_id, \
         to_address as owned_id, field as field_name, to_class as field_type_name, \
         null as deobfuscated_field_name from \"references\"",
    ),
    (
        "heap_graph_dominator_tree",
        "select address as id, dominator_address as idom_id, \
         dominated_objects as dominated_obj_count, retained as dominated_size_bytes, \
         0 as dominated_native_size_bytes, depth + 1 as depth from objects where reachable",
    ),
    (
        "ThreadStackFrames",
        "select thread_id as thread, depth, frame as text, \
         (select json_group_array(l.id) from locals l where l.thread_serial = f.thread_serial \
         and l.depth = f.depth) as objects from frames f",
    ),
];
