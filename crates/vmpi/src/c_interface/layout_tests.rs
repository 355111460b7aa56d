use std::process::Command;

use super::*;

/// Sizes and offsets in this crate, as C expressions and numbers.
fn ours() -> Vec<(String, usize)> {
    let mut rows: Vec<(String, usize)> = vec![
        ("sizeof(JVMPI_Interface)".into(), size_of::<Interface>()),
        ("sizeof(JVMPI_Event)".into(), size_of::<Event>()),
        ("sizeof(JVMPI_CallFrame)".into(), size_of::<CallFrame>()),
        ("sizeof(JVMPI_CallTrace)".into(), size_of::<CallTrace>()),
        ("sizeof(JVMPI_Method)".into(), size_of::<Method>()),
        ("sizeof(JVMPI_Field)".into(), size_of::<Field>()),
        ("sizeof(JVMPI_Lineno)".into(), size_of::<Lineno>()),
    ];
    macro_rules! offsets {
        ($c:literal, $base:expr, $type:ty: $($rust:ident = $field:literal),* $(,)?) => {
            $(rows.push((
                format!("offsetof({}{})", $c, $field),
                $base + std::mem::offset_of!($type, $rust),
            ));)*
        };
    }
    offsets!("JVMPI_Interface, ", 0, Interface:
        notify = "NotifyEvent", enable_event = "EnableEvent", disable_event = "DisableEvent",
        request_event = "RequestEvent", get_call_trace = "GetCallTrace",
        profiler_exit = "ProfilerExit", raw_monitor_create = "RawMonitorCreate",
        raw_monitor_enter = "RawMonitorEnter", raw_monitor_exit = "RawMonitorExit",
        raw_monitor_wait = "RawMonitorWait", raw_monitor_notify_all = "RawMonitorNotifyAll",
        raw_monitor_destroy = "RawMonitorDestroy",
        get_current_thread_cpu_time = "GetCurrentThreadCpuTime",
        suspend_thread = "SuspendThread", resume_thread = "ResumeThread",
        get_thread_status = "GetThreadStatus", thread_has_run = "ThreadHasRun",
        create_system_thread = "CreateSystemThread",
        set_thread_local_storage = "SetThreadLocalStorage",
        get_thread_local_storage = "GetThreadLocalStorage", disable_gc = "DisableGC",
        enable_gc = "EnableGC", run_gc = "RunGC", get_thread_object = "GetThreadObject",
        get_method_class = "GetMethodClass", id_to_object = "jobjectID2jobject",
        object_to_id = "jobject2jobjectID", suspend_thread_list = "SuspendThreadList",
        resume_thread_list = "ResumeThreadList");
    offsets!("JVMPI_CallTrace, ", 0, CallTrace: env = "env_id", count = "num_frames", frames = "frames");
    offsets!("JVMPI_Method, ", 0, Method: name = "method_name", signature = "method_signature",
        start = "start_lineno", end = "end_lineno", id = "method_id");
    let u = std::mem::offset_of!(Event, payload);
    offsets!("JVMPI_Event, u.class_load.", u, ClassLoad: name = "class_name", source = "source_name",
        interfaces = "num_interfaces", method_count = "num_methods", methods = "methods",
        static_count = "num_static_fields", statics = "statics",
        instance_count = "num_instance_fields", instances = "instances", class = "class_id");
    offsets!("JVMPI_Event, u.class_load_hook.", u, ClassLoadHook: data = "class_data",
        len = "class_data_len", new_data = "new_class_data", new_len = "new_class_data_len",
        malloc = "malloc_f");
    offsets!("JVMPI_Event, u.thread_start.", u, ThreadStart: name = "thread_name",
        group = "group_name", parent = "parent_name", thread = "thread_id", env = "thread_env_id");
    offsets!("JVMPI_Event, u.new_arena.", u, NewArena: arena = "arena_id", name = "arena_name");
    offsets!("JVMPI_Event, u.obj_alloc.", u, ObjAlloc: arena = "arena_id", class = "class_id",
        is_array = "is_array", size = "size", object = "obj_id");
    offsets!("JVMPI_Event, u.obj_move.", u, ObjMove: arena = "arena_id", object = "obj_id",
        new_arena = "new_arena_id", new_object = "new_obj_id");
    offsets!("JVMPI_Event, u.gc_info.", u, GcInfo: used_objects = "used_objects",
        used_space = "used_object_space", total_space = "total_object_space");
    offsets!("JVMPI_Event, u.method_entry2.", u, MethodEntry2: method = "method_id", object = "obj_id");
    offsets!("JVMPI_Event, u.compiled_method_load.", u, CompiledMethodLoad: method = "method_id",
        code = "code_addr", len = "code_size", line_count = "lineno_table_size",
        lines = "lineno_table");
    offsets!("JVMPI_Event, u.raw_monitor.", u, RawMonitorEvent: name = "name", id = "id");
    offsets!("JVMPI_Event, u.monitor_wait.", u, MonitorWait: object = "object", timeout = "timeout");
    offsets!("JVMPI_Event, u.monitor_dump.", u, MonitorDump: begin = "begin", end = "end",
        trace_count = "num_traces", traces = "traces", statuses = "threads_status");
    offsets!("JVMPI_Event, u.heap_dump.", u, HeapDump: level = "dump_level", begin = "begin",
        end = "end", trace_count = "num_traces", traces = "traces");
    offsets!("JVMPI_Event, u.object_dump.", u, ObjectDump: len = "data_len", data = "data");
    offsets!("JVMPI_Event, u.jni_globalref_alloc.", u, GlobalRef: object = "obj_id", reference = "ref_id");
    rows
}

#[test]
fn layouts_are_those_of_the_document() {
    // Measured with the original header on a 64-bit machine.
    assert_eq!(size_of::<Interface>(), 240);
    assert_eq!(
        (size_of::<Event>(), std::mem::offset_of!(Event, payload)),
        (88, 16)
    );
    assert_eq!(std::mem::offset_of!(Interface, get_call_trace), 40);
    assert_eq!(
        std::mem::offset_of!(Interface, get_current_thread_cpu_time),
        104
    );
    assert_eq!(std::mem::offset_of!(Interface, id_to_object), 208);
}

#[test]
fn layouts_are_those_of_our_header() {
    let skip = |need, text: &str| testkit::skip("layouts of the header", need, text);
    let Some(jdk) = testkit::jvm::jdks()
        .into_iter()
        .find(|jdk| jdk.home.join("include/jni.h").is_file())
    else {
        return skip(testkit::Need::Jdk, "no JDK with include/jni.h");
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("layout.c");
    let mut text = String::from("#include <stddef.h>\n#include \"jvmpi.h\"\n");
    for (expression, value) in ours() {
        text += &format!("_Static_assert({expression} == {value}, \"{expression}\");\n");
    }
    std::fs::write(&source, text).unwrap();
    let include = jdk.home.join("include");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only"])
        .arg(format!("-I{}", include.display()))
        .arg(format!("-I{}", include.join("linux").display()))
        .arg(concat!(
            "-I",
            env!("CARGO_MANIFEST_DIR"),
            "/../jvmpi-bridge/include"
        ))
        .arg(&source)
        .output();
    match compiled {
        Err(_) => skip(testkit::Need::Cc, "no C compiler (cc)"),
        Ok(compiled) => assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        ),
    }
}
