/* Watches a VM whose objects move and whose arenas come and go: keeps its own table of live objects
 * and compares it, at each GC_FINISH, with what the VM says and with its heap dumps of all levels.
 * Options: FILE for the report, then ",exit" to end the VM early, ",counting" where objects are
 * freed outside of collections. */
#include "dumps.h"

typedef struct {
    uintptr_t arena, size, class;
    jint kind;
} Object;

static JVMPI_Interface *vm;
static JVMPI_RawMonitor lock;
static Table objects; /* id -> Object* */
static Table arenas;  /* id -> 1 there, 2 deleted */
static Table threads; /* env -> 1 running, 2 ended */
static unsigned long seen[64], live, live_bytes, collections, moved;
static int in_gc, counting, wants_exit, held, gc_was_asked, asked_gc_came, hold_until;
static JNIEnv *stopped;
static HeapDump dump;
static unsigned long listed;
static int object_dumps, traces, raw_monitors[2], raw_is_listed;

Class *need_class(uintptr_t id) {
    if (class_at(id) == NULL && id != 0) vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, (void *)id);
    return class_at(id);
}

static Object *object_at(jobjectID id) { return (Object *)table_get(&objects, (uintptr_t)id); }

static void forget(jobjectID id) {
    Object *object = object_at(id);
    live--, live_bytes -= object->size;
    table_put(&objects, (uintptr_t)id, 0);
}

static int is_there(jint arena) { return table_get(&arenas, (uintptr_t)arena) == 1; }

static void on_alloc(JVMPI_Event *event, int requested) {
    jobjectID id = event->u.obj_alloc.obj_id, class = event->u.obj_alloc.class_id;
    Object *known = object_at(id);
    if (requested) {
        EXPECT(known && known->size == (uintptr_t)event->u.obj_alloc.size
               && known->arena == (uintptr_t)event->u.obj_alloc.arena_id && known->kind == event->u.obj_alloc.is_array,
               "the answer about %p", (void *)id);
        return;
    }
    EXPECT(known == NULL, "object %p is there already", (void *)id);
    EXPECT(is_there(event->u.obj_alloc.arena_id) && event->u.obj_alloc.size > 0, "arena %d", event->u.obj_alloc.arena_id);
    EXPECT(!in_gc, "an object is allocated in a collection");
    EXPECT((class == NULL) == (event->u.obj_alloc.is_array > JVMPI_CLASS), "class of %p", (void *)id);
    if (class) EXPECT(need_class((uintptr_t)class), "class %p", (void *)class);
    Object *object = calloc(1, sizeof *object);
    object->arena = (uintptr_t)event->u.obj_alloc.arena_id, object->size = (uintptr_t)event->u.obj_alloc.size;
    object->class = (uintptr_t)class, object->kind = event->u.obj_alloc.is_array;
    table_put(&objects, (uintptr_t)id, (uintptr_t)object);
    live++, live_bytes += object->size;
    if (seen[JVMPI_EVENT_OBJECT_ALLOC] % 37 == 0) {
        EXPECT(vm->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, id) == JVMPI_SUCCESS, "nothing is known of %p", (void *)id);
        EXPECT(vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, id) == JVMPI_SUCCESS, "no dump of %p", (void *)id);
    }
}

static void on_move(JVMPI_Event *event) {
    jobjectID from = event->u.obj_move.obj_id, to = event->u.obj_move.new_obj_id;
    Object *object = object_at(from);
    EXPECT(in_gc, "an object moves outside of a collection");
    EXPECT(object && object->arena == (uintptr_t)event->u.obj_move.arena_id && is_there(event->u.obj_move.new_arena_id),
           "%p moves from arena %d", (void *)from, event->u.obj_move.arena_id);
    EXPECT(object_at(to) == NULL, "%p moves onto %p", (void *)from, (void *)to);
    if (object == NULL) return;
    table_put(&objects, (uintptr_t)from, 0);
    object->arena = (uintptr_t)event->u.obj_move.new_arena_id;
    table_put(&objects, (uintptr_t)to, (uintptr_t)object);
    moved++;
    EXPECT(vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, NULL) == JVMPI_FAIL, "a dump while objects move");
}

static void on_arena_delete(uintptr_t arena) {
    EXPECT(in_gc && is_there((jint)arena), "arena %lu is deleted", (unsigned long)arena);
    table_put(&arenas, arena, 2);
    for (size_t i = 0; i < objects.size; i++) {
        Object *object = (Object *)objects.values[i];
        if (object && object->arena == arena) forget((jobjectID)objects.keys[i]);
    }
}

static void dump_heap(jint level) {
    JVMPI_HeapDumpArg arg = {level};
    memset(&dump, 0, sizeof dump);
    dump.level = level, listed = 0;
    EXPECT(vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &arg) == JVMPI_SUCCESS, "HEAP_DUMP %d", level);
    unsigned long count = level == 0 ? listed : dump.instances + dump.arrays + dump.primitive_arrays;
    EXPECT(count == live, "level %d has %lu objects, not %lu", level, count, live);
    for (size_t i = 0; level > 0 && i < objects.size; i++)
        if (objects.values[i]) EXPECT(table_get(&dump.objects, objects.keys[i]), "%lx is not in the dump", (long)objects.keys[i]);
    free(dump.objects.keys), free(dump.objects.values);
}

static void on_dump(JVMPI_Event *event) {
    const char *begin = event->u.heap_dump.begin, *end = event->u.heap_dump.end;
    if (event->u.heap_dump.dump_level == 0) {
        Reader r = {(const unsigned char *)begin, (const unsigned char *)end, 0};
        while (r.at < r.end) {
            int kind = u1(&r);
            Object *object = (Object *)table_get(&objects, id(&r));
            EXPECT(object && object->kind == kind, "an object of kind %d is listed", kind);
            listed++;
        }
        EXPECT(!r.short_of, "the list ends inside a record");
        return;
    }
    EXPECT(event->u.heap_dump.dump_level == dump.level, "level %d", event->u.heap_dump.dump_level);
    read_heap(&dump, begin, end, 0);
    read_heap(&dump, begin, end, 1);
}

static void on_gc_finish(JVMPI_Event *event) {
    in_gc = 0, collections++;
    EXPECT(event->u.gc_info.used_objects == (jlong)live && event->u.gc_info.used_object_space == (jlong)live_bytes,
           "the VM has %ld objects of %ld bytes, the agent %lu of %lu", (long)event->u.gc_info.used_objects,
           (long)event->u.gc_info.used_object_space, live, live_bytes);
    EXPECT(event->u.gc_info.total_object_space >= event->u.gc_info.used_object_space, "more is used than there is");
    say("gc %lu %lu %lu %lu", collections, live, live_bytes, moved);
    for (jint level = 0; level <= 2; level++) dump_heap(level);
}

static void on_thread(JVMPI_Event *event, int requested) {
    JNIEnv *env = event->u.thread_start.thread_env_id;
    EXPECT(vm->GetThreadObject(env) == event->u.thread_start.thread_id, "GetThreadObject of %s", event->u.thread_start.thread_name);
    if (requested) return;
    EXPECT(!table_get(&threads, (uintptr_t)env), "%s started twice", event->u.thread_start.thread_name);
    table_put(&threads, (uintptr_t)env, 1);
    vm->SetThreadLocalStorage(env, (void *)((uintptr_t)env + 7));
    if (event->u.thread_start.thread_id)
        EXPECT(vm->RequestEvent(JVMPI_EVENT_THREAD_START, event->u.thread_start.thread_id) == JVMPI_SUCCESS, "THREAD_START");
    if (strcmp(event->u.thread_start.thread_name, "worker") == 0) {
        /* It stands still until another thread has entered ten methods. */
        jint result = 7;
        JNIEnv *list[] = {env};
        vm->SuspendThreadList(1, list, &result);
        EXPECT(result == JVMPI_SUCCESS, "SuspendThreadList %d", result);
        EXPECT(vm->GetThreadStatus(env) == JVMPI_THREAD_RUNNABLE, "our suspension shows");
        stopped = env;
    }
}

static void on_entry(JVMPI_Event *event) {
    JVMPI_CallFrame frames[4];
    JVMPI_CallTrace trace = {event->env_id, 9, frames};
    vm->GetCallTrace(&trace, 4);
    EXPECT(trace.num_frames > 0 && frames[0].method_id == event->u.method.method_id, "%d frames", trace.num_frames);
    EXPECT(need_class((uintptr_t)vm->GetMethodClass(event->u.method.method_id)), "the class of a method");
    traces++;
    if (seen[JVMPI_EVENT_METHOD_ENTRY] == 5) { /* no collection, also if asked for one, until held is over */
        vm->DisableGC(), vm->DisableGC(), vm->EnableGC();
        vm->RunGC();
        held = 1, hold_until = 12;
    }
    if ((int)seen[JVMPI_EVENT_METHOD_ENTRY] == hold_until) held = 0, gc_was_asked = 1, vm->EnableGC();
    if (seen[JVMPI_EVENT_METHOD_ENTRY] == 10 && stopped) {
        EXPECT(!vm->ThreadHasRun(stopped), "a suspended thread ran");
        vm->ResumeThread(stopped);
        stopped = NULL;
    }
    if (wants_exit && seen[JVMPI_EVENT_METHOD_ENTRY] == 20) vm->ProfilerExit(7);
}

/* What no agent should pass, and some do. */
static void bad_input(void) {
    vm->GetCallTrace(NULL, 4);
    JVMPI_CallTrace trace = {(JNIEnv *)99, 5, NULL};
    vm->GetCallTrace(&trace, 4);
    EXPECT(trace.num_frames == 0, "frames of no thread");
    EXPECT(vm->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, (void *)3) == JVMPI_FAIL, "an object that never was");
    EXPECT(vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, (void *)3) == JVMPI_FAIL, "a class that never was");
    EXPECT(vm->RequestEvent(JVMPI_EVENT_GC_START, NULL) == JVMPI_NOT_AVAILABLE, "a collection is no answer");
    JVMPI_HeapDumpArg arg = {9};
    EXPECT(vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &arg) == JVMPI_FAIL, "level 9");
    EXPECT(vm->GetThreadObject((JNIEnv *)99) == NULL && vm->GetMethodClass((jmethodID)0x7fff0001) == NULL, "no such thing");
    EXPECT(vm->GetThreadStatus((JNIEnv *)99) == 0 && vm->GetThreadLocalStorage((JNIEnv *)99) == NULL, "no such thread");
    EXPECT(vm->CreateSystemThread("t", 5, NULL) == JNI_ERR, "a thread");
    EXPECT(vm->jobjectID2jobject((jobjectID)8) == NULL && vm->jobject2jobjectID((jobject)8) == NULL, "no references");
    vm->RawMonitorExit((JVMPI_RawMonitor)77);
    vm->RawMonitorEnter((JVMPI_RawMonitor)77);
    vm->SuspendThread((JNIEnv *)99);
    vm->ResumeThread((JNIEnv *)99);
}

static void on_shut_down(void) {
    EXPECT(wants_exit || asked_gc_came, "the collection that was asked for");
    EXPECT(vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL) == JVMPI_SUCCESS && raw_is_listed, "the raw monitor is not listed");
    for (int i = 1; i <= JVMPI_MAX_EVENT_TYPE_VAL; i++)
        if (seen[i]) say("seen %d %lu", i, seen[i]);
    say("live %lu %lu", live, live_bytes);
    say("faults %d", faults);
    say("end");
    vm->RawMonitorExit(lock);
}

static void on_event(JVMPI_Event *event, int type, int requested) {
    switch (type) {
    case JVMPI_EVENT_OBJECT_ALLOC: on_alloc(event, requested); break;
    case JVMPI_EVENT_OBJECT_FREE:
        EXPECT(in_gc || counting, "an object is freed outside of a collection");
        EXPECT(object_at(event->u.obj_free.obj_id), "%p is freed", (void *)event->u.obj_free.obj_id);
        if (object_at(event->u.obj_free.obj_id)) forget(event->u.obj_free.obj_id);
        break;
    case JVMPI_EVENT_OBJECT_MOVE: on_move(event); break;
    case JVMPI_EVENT_ARENA_NEW:
        EXPECT(!is_there(event->u.new_arena.arena_id) && event->u.new_arena.arena_name[0], "arena %d", event->u.new_arena.arena_id);
        table_put(&arenas, (uintptr_t)event->u.new_arena.arena_id, 1);
        break;
    case JVMPI_EVENT_ARENA_DELETE: on_arena_delete((uintptr_t)event->u.delete_arena.arena_id); break;
    case JVMPI_EVENT_CLASS_LOAD: remember_class(event); break;
    case JVMPI_EVENT_GC_START:
        EXPECT(!in_gc && !held, "a collection in a collection, or while they are disabled");
        in_gc = 1, asked_gc_came |= gc_was_asked;
        break;
    case JVMPI_EVENT_GC_FINISH: on_gc_finish(event); break;
    case JVMPI_EVENT_THREAD_START: on_thread(event, requested); break;
    case JVMPI_EVENT_THREAD_END:
        EXPECT(vm->GetThreadLocalStorage(event->env_id) == (void *)((uintptr_t)event->env_id + 7), "thread-local storage");
        EXPECT(vm->GetThreadObject(event->env_id) != NULL, "the object of a thread that ends");
        EXPECT(vm->GetCurrentThreadCpuTime() > 0, "the clock stands");
        table_put(&threads, (uintptr_t)event->env_id, 2);
        break;
    case JVMPI_EVENT_HEAP_DUMP: on_dump(event); break;
    case JVMPI_EVENT_OBJECT_DUMP: {
        HeapDump one = {.level = 2};
        read_heap(&one, event->u.object_dump.data, event->u.object_dump.data + event->u.object_dump.data_len, 0);
        EXPECT(one.instances + one.arrays + one.primitive_arrays == 1, "not one record");
        object_dumps++;
        break;
    }
    case JVMPI_EVENT_MONITOR_DUMP:
        read_monitors(event->u.monitor_dump.begin, event->u.monitor_dump.end, raw_monitors, "arenas", &raw_is_listed);
        break;
    case JVMPI_EVENT_METHOD_ENTRY: on_entry(event); break;
    case JVMPI_EVENT_METHOD_EXIT:
        EXPECT(seen[type] <= 15, "an event that is disabled");
        if (seen[type] == 15) EXPECT(vm->DisableEvent(type, NULL) == JVMPI_SUCCESS, "DisableEvent");
        break;
    case JVMPI_EVENT_JVM_INIT_DONE:
        bad_input();
        vm->RawMonitorEnter(lock);
        vm->RawMonitorWait(lock, 5);
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN: on_shut_down(); break;
    default: EXPECT(0, "event %d", type); break;
    }
}

static void notify(JVMPI_Event *event) {
    int type = event->event_type & ~JVMPI_REQUESTED_EVENT, requested = event->event_type != type;
    seen[type] += !requested;
    EXPECT(event->env_id != NULL && event->env_id != stopped, "an event of a suspended thread");
    on_event(event, type, requested);
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *java, char *options, void *reserved) {
    (void)reserved;
    wants_exit = options && strstr(options, ",exit"), counting = options && strstr(options, ",counting");
    report = fopen(strtok(options, ","), "w");
    void *jni = NULL;
    if (report == NULL || (*java)->GetEnv(java, (void **)&vm, JVMPI_VERSION_1_2) != JNI_OK) return JNI_ERR;
    EXPECT((*java)->GetEnv(java, &jni, JNI_VERSION_1_2) == JNI_EVERSION && jni == NULL, "JNI where there is none");
    vm->NotifyEvent = notify;
    lock = vm->RawMonitorCreate("arenas");
    for (int type = 1; type <= JVMPI_MAX_EVENT_TYPE_VAL; type++) say("event %d %d", type, vm->EnableEvent(type, NULL));
    EXPECT(vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, NULL) == JVMPI_FAIL, "a dump before there is a VM");
    return JNI_OK;
}
