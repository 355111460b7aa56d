/* Allocation by site, as the profilers of JDK 1.2 did it: a stack at each OBJECT_ALLOC, sums by
 * class and stack, a heap dump and a monitor dump at the end. Report: a line per class with how
 * many objects and bytes were allocated, are live, and are in the dump. */
#include "dumps.h"

#define DEPTH 4

static JVMPI_Interface *vm;
static JVMPI_RawMonitor lock;
static Table traces; /* hash of a stack -> its number */
static Table sites;  /* hash of class and stack -> Site* */
static Table objects; /* id -> Site* */
static unsigned long trace_count;
static HeapDump dump;
static int monitors[2], has_name;

typedef struct {
    char class[200];
    JVMPI_CallFrame top;
    unsigned long allocated, bytes, live, live_bytes, sizes;
} Site;

static Site *all[100000];
static int site_count;

Class *need_class(uintptr_t id) {
    if (class_at(id) == NULL && id != 0) vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, (void *)id);
    return class_at(id);
}

static uintptr_t mix(uintptr_t hash, uintptr_t value) { return (hash ^ value) * 0x100000001b3ull + 1; }

static void name_of(JVMPI_Event *event, char name[200]) {
    static const char *primitive[] = {"", "", "", "", "boolean[]", "char[]", "float[]", "double[]", "byte[]", "short[]", "int[]", "long[]"};
    jint kind = event->u.obj_alloc.is_array;
    if (kind > JVMPI_CLASS && kind <= JVMPI_LONG) {
        snprintf(name, 200, "%s", primitive[kind]);
        return;
    }
    Class *class = need_class((uintptr_t)event->u.obj_alloc.class_id);
    const char *of = class ? class->name : "java.lang.Class";
    snprintf(name, 200, "%s%s", of, kind == JVMPI_CLASS ? "[]" : "");
}

static void on_alloc(JVMPI_Event *event) {
    JVMPI_CallFrame frames[DEPTH] = {{0}};
    JVMPI_CallTrace trace = {event->env_id, 0, frames};
    char name[200];
    if (class_at((uintptr_t)event->u.obj_alloc.class_id) == NULL) need_class((uintptr_t)event->u.obj_alloc.class_id);
    vm->GetCallTrace(&trace, DEPTH);
    vm->RawMonitorEnter(lock);
    uintptr_t hash = 14695981039346656037ull;
    for (int i = 0; i < trace.num_frames; i++)
        hash = mix(mix(hash, (uintptr_t)frames[i].method_id), (uintptr_t)(unsigned)frames[i].lineno);
    if (table_get(&traces, hash) == 0) table_put(&traces, hash, ++trace_count);
    uintptr_t key = mix(mix(hash, (uintptr_t)event->u.obj_alloc.class_id), (uintptr_t)event->u.obj_alloc.is_array);
    Site *site = (Site *)table_get(&sites, key);
    if (site == NULL && site_count < 100000) {
        site = calloc(1, sizeof *site);
        name_of(event, name);
        strcpy(site->class, name);
        site->top = frames[0];
        table_put(&sites, key, (uintptr_t)site);
        all[site_count++] = site;
    }
    if (site) {
        unsigned long size = (unsigned long)event->u.obj_alloc.size;
        site->allocated++, site->bytes += size, site->live++, site->live_bytes += size;
        site->sizes = size;
        table_put(&objects, (uintptr_t)event->u.obj_alloc.obj_id, (uintptr_t)site | 1);
        /* Sizes differ among arrays of one site: remembered beside the object. */
        table_put(&traces, (uintptr_t)event->u.obj_alloc.obj_id * 2 + 1, size);
    }
    vm->RawMonitorExit(lock);
}

static void on_free(JVMPI_Event *event) {
    uintptr_t object = (uintptr_t)event->u.obj_free.obj_id;
    Site *site = (Site *)(table_get(&objects, object) & ~(uintptr_t)1);
    if (site) site->live--, site->live_bytes -= table_get(&traces, object * 2 + 1);
    table_put(&objects, object, 0);
}

static void finish(void) {
    vm->DisableEvent(JVMPI_EVENT_OBJECT_ALLOC, NULL);
    EXPECT(vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, NULL) == JVMPI_SUCCESS, "HEAP_DUMP");
    EXPECT(vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL) == JVMPI_SUCCESS, "MONITOR_DUMP");
    for (int i = 0; i < site_count; i++)
        say("site %s %lu %lu %lu %lu %d", all[i]->class, all[i]->allocated, all[i]->bytes, all[i]->live, all[i]->live_bytes,
            all[i]->top.lineno);
    for (size_t i = 0; i < classes.size; i++) {
        Class *class = (Class *)classes.values[i];
        if (class && class->count) say("dumped %s %lu %lu", class->name, class->count, class->bytes);
    }
    say("traces %lu", trace_count);
    say("faults %d", faults);
    say("end");
}

static void notify(JVMPI_Event *event) {
    switch (event->event_type & ~JVMPI_REQUESTED_EVENT) {
    case JVMPI_EVENT_OBJECT_ALLOC:
        if (!(event->event_type & JVMPI_REQUESTED_EVENT)) on_alloc(event);
        break;
    case JVMPI_EVENT_CLASS_LOAD: remember_class(event); break;
    case JVMPI_EVENT_GC_START: vm->RawMonitorEnter(lock); break;
    case JVMPI_EVENT_OBJECT_FREE: on_free(event); break;
    case JVMPI_EVENT_GC_FINISH: vm->RawMonitorExit(lock); break;
    case JVMPI_EVENT_HEAP_DUMP:
        dump.level = event->u.heap_dump.dump_level;
        EXPECT(dump.level == JVMPI_DUMP_LEVEL_2, "level %d by default", dump.level);
        read_heap(&dump, event->u.heap_dump.begin, event->u.heap_dump.end, 0);
        read_heap(&dump, event->u.heap_dump.begin, event->u.heap_dump.end, 1);
        break;
    case JVMPI_EVENT_MONITOR_DUMP:
        read_monitors(event->u.monitor_dump.begin, event->u.monitor_dump.end, monitors, "none", &has_name);
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN: finish(); break;
    default: break;
    }
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *java, char *options, void *reserved) {
    (void)reserved;
    report = fopen(options && *options ? options : "report.txt", "w");
    if (report == NULL || (*java)->GetEnv(java, (void **)&vm, JVMPI_VERSION_1) != JNI_OK) return JNI_ERR;
    vm->NotifyEvent = notify;
    lock = vm->RawMonitorCreate("_sites");
    jint wanted[] = {JVMPI_EVENT_OBJECT_ALLOC, JVMPI_EVENT_OBJECT_FREE, JVMPI_EVENT_OBJECT_MOVE, JVMPI_EVENT_GC_START,
                     JVMPI_EVENT_GC_FINISH, JVMPI_EVENT_CLASS_LOAD, JVMPI_EVENT_JVM_SHUT_DOWN};
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) vm->EnableEvent(wanted[i], NULL);
    return JNI_OK;
}
