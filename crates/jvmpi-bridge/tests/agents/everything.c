/* Enables every event, calls every function, asks for every dump, and reports what it saw. */
#include "dumps.h"
#include <signal.h>
#include <unistd.h>

static JVMPI_Interface *vm;
static JavaVM *java;

static int enabled[64];            /* what EnableEvent said */
static unsigned long seen[64];     /* how many came */
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;
static Table threads;              /* env -> 1 while the thread is known */
static Table objects;              /* id -> 1 live, 2 freed */
static JNIEnv *gc_thread;          /* who is in a collection */
static JVMPI_RawMonitor contended, quiet;
static volatile int working, system_threads_ended;
static JNIEnv *spinner, *waiter, *blocked;
static HeapDump dumps[3];
static unsigned long level_0;
static int object_dumps, monitors_found[2], raw_is_listed, in_request;
static jobjectID requested_class, requested_thread;

static void locked(void) { pthread_mutex_lock(&tables); }
static void unlocked(void) { pthread_mutex_unlock(&tables); }

Class *need_class(uintptr_t id) {
    Class *class = class_at(id);
    if (class == NULL && id != 0) {
        vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, (void *)id);
        class = class_at(id);
    }
    return class;
}

/* An object's id in an event: it may be asked for, and it is not one that was freed. */
static void see_object(jobjectID object, const char *where) {
    locked();
    uintptr_t state = table_get(&objects, (uintptr_t)object);
    if (state == 0) table_put(&objects, (uintptr_t)object, 1);
    unlocked();
    EXPECT(state != 2, "%s: object %p was freed", where, (void *)object);
    if (state == 0) EXPECT(vm->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, object) == JVMPI_SUCCESS,
                           "%s: nothing is known of %p", where, (void *)object);
}

static void on_alloc(JVMPI_Event *event, int requested) {
    jint kind = event->u.obj_alloc.is_array;
    jobjectID object = event->u.obj_alloc.obj_id, class = event->u.obj_alloc.class_id;
    EXPECT(event->u.obj_alloc.size > 0 && event->u.obj_alloc.arena_id == 1, "size %d", event->u.obj_alloc.size);
    EXPECT(kind == JVMPI_NORMAL_OBJECT || kind == JVMPI_CLASS || width_of_code(kind) > 0, "is_array %d", kind);
    if (kind > JVMPI_CLASS) EXPECT(class == NULL, "a primitive array has a class");
    if (kind == JVMPI_CLASS) EXPECT(class != NULL, "an array of objects has no element class");
    if (class != NULL && class_of(class) == NULL)
        EXPECT(vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, class) == JVMPI_SUCCESS, "class %p", (void *)class);
    locked();
    uintptr_t state = table_get(&objects, (uintptr_t)object);
    if (state == 0) table_put(&objects, (uintptr_t)object, 1);
    unlocked();
    if (!requested) EXPECT(state == 0, "object %p was allocated before (%ld)", (void *)object, (long)state);
    else EXPECT(state != 2, "object %p was freed", (void *)object);
}

static void on_free(JVMPI_Event *event) {
    uintptr_t object = (uintptr_t)event->u.obj_free.obj_id;
    EXPECT(gc_thread == event->env_id, "an object is freed outside of a collection");
    locked();
    uintptr_t state = table_get(&objects, object);
    table_put(&objects, object, 2);
    unlocked();
    EXPECT(state != 2, "object %lx is freed twice", (long)object);
}

static void on_class(JVMPI_Event *event) {
    EXPECT(strchr(event->u.class_load.class_name, '/') == NULL, "%s", event->u.class_load.class_name);
    EXPECT(event->u.class_load.source_name != NULL, "%s has no source", event->u.class_load.class_name);
    for (jint i = 0; i < event->u.class_load.num_methods; i++) {
        JVMPI_Method *m = &event->u.class_load.methods[i];
        EXPECT(m->method_name && m->method_signature[0] == '(' && m->method_id && m->start_lineno <= m->end_lineno,
               "a method of %s", event->u.class_load.class_name);
    }
    locked();
    remember_class(event); /* the latest word holds */
    unlocked();
    requested_class = event->u.class_load.class_id;
    if (in_request == 0 && event->u.class_load.num_methods > 0) {
        jobjectID of = vm->GetMethodClass(event->u.class_load.methods[0].method_id);
        EXPECT(of == event->u.class_load.class_id, "GetMethodClass of %s", event->u.class_load.class_name);
    }
}

static void on_thread(JVMPI_Event *event, int requested) {
    JNIEnv *env = event->u.thread_start.thread_env_id;
    const char *name = event->u.thread_start.thread_name;
    locked();
    uintptr_t known = table_get(&threads, (uintptr_t)env);
    table_put(&threads, (uintptr_t)env, 1);
    unlocked();
    EXPECT(env != NULL && event->u.thread_start.group_name && event->u.thread_start.parent_name, "%s", name);
    if (!requested) EXPECT(!known, "thread %s started twice", name);
    EXPECT(vm->GetThreadObject(env) == event->u.thread_start.thread_id, "GetThreadObject of %s", name);
    requested_thread = event->u.thread_start.thread_id;
    if (strcmp(name, "spinner") == 0) spinner = env;
    if (strcmp(name, "waiter") == 0) waiter = env;
    if (strcmp(name, "blocked") == 0) blocked = env;
    vm->SetThreadLocalStorage(env, (void *)&threads);
}

static void on_hook(JVMPI_Event *event) {
    /* Every class goes through a copy: what the VM then loads is ours. */
    jint len = event->u.class_load_hook.class_data_len;
    EXPECT(len > 8 && memcmp(event->u.class_load_hook.class_data, "\xca\xfe\xba\xbe", 4) == 0, "no class file");
    event->u.class_load_hook.new_class_data = event->u.class_load_hook.malloc_f((unsigned)len);
    memcpy(event->u.class_load_hook.new_class_data, event->u.class_load_hook.class_data, (size_t)len);
    event->u.class_load_hook.new_class_data_len = len;
}

static void on_dump(JVMPI_Event *event) {
    int level = event->u.heap_dump.dump_level;
    const char *begin = event->u.heap_dump.begin, *end = event->u.heap_dump.end;
    if (level == 0) {
        EXPECT((end - begin) % (1 + sizeof(void *)) == 0 && event->u.heap_dump.num_traces == 0, "%ld", (long)(end - begin));
        Reader r = {(const unsigned char *)begin, (const unsigned char *)end, 0};
        while (r.at < r.end) {
            u1(&r);
            uintptr_t object = id(&r);
            if (level_0++ % 50 == 0)
                EXPECT(vm->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, (void *)object) == JVMPI_SUCCESS, "%lx", (long)object);
        }
        return;
    }
    EXPECT(event->u.heap_dump.num_traces > 3, "%d traces", event->u.heap_dump.num_traces);
    dumps[level].level = level;
    read_heap(&dumps[level], begin, end, 0);
    read_heap(&dumps[level], begin, end, 1);
}

static void on_monitors(JVMPI_Event *event) {
    int main_is_there = 0;
    read_monitors(event->u.monitor_dump.begin, event->u.monitor_dump.end, monitors_found, "contended", &raw_is_listed);
    for (jint i = 0; i < event->u.monitor_dump.num_traces; i++) {
        JVMPI_CallTrace *trace = &event->u.monitor_dump.traces[i];
        jint status = event->u.monitor_dump.threads_status[i];
        EXPECT(status >= 1 && (status & 0xff) <= 3, "status %x", status);
        if (trace->env_id == waiter) EXPECT(status == JVMPI_THREAD_CONDVAR_WAIT, "waiter: %x", status);
        if (trace->env_id == blocked) EXPECT(status == JVMPI_THREAD_MONITOR_WAIT, "blocked: %x", status);
        if (trace->env_id == spinner) EXPECT(status == JVMPI_THREAD_RUNNABLE && trace->num_frames > 0, "spinner: %x", status);
        main_is_there |= trace->num_frames > 0;
    }
    EXPECT(main_is_there, "no thread has a stack");
}

static void on_event(JVMPI_Event *event, int type, int requested) {
    switch (type) {
    case JVMPI_EVENT_OBJECT_ALLOC: on_alloc(event, requested); break;
    case JVMPI_EVENT_OBJECT_FREE: on_free(event); break;
    case JVMPI_EVENT_CLASS_LOAD: on_class(event); break;
    case JVMPI_EVENT_CLASS_UNLOAD:
        locked();
        EXPECT(class_of(event->u.class_unload.class_id), "a class that was never loaded is unloaded");
        unlocked();
        break;
    case JVMPI_EVENT_THREAD_START: on_thread(event, requested); break;
    case JVMPI_EVENT_THREAD_END:
        EXPECT(vm->GetThreadLocalStorage(event->env_id) == (void *)&threads, "thread-local storage is lost");
        locked();
        table_put(&threads, (uintptr_t)event->env_id, 0);
        unlocked();
        break;
    case JVMPI_EVENT_CLASS_LOAD_HOOK: on_hook(event); break;
    case JVMPI_EVENT_HEAP_DUMP: on_dump(event); break;
    case JVMPI_EVENT_OBJECT_DUMP: {
        HeapDump one = {0};
        Reader r = {(const unsigned char *)event->u.object_dump.data, NULL, 0};
        r.end = r.at + event->u.object_dump.data_len;
        one.level = 2;
        read_heap(&one, (const char *)r.at, (const char *)r.end, 0);
        EXPECT(one.instances + one.arrays + one.primitive_arrays + one.class_records == 1, "not one record");
        object_dumps++;
        break;
    }
    case JVMPI_EVENT_MONITOR_DUMP: on_monitors(event); break;
    case JVMPI_EVENT_GC_START:
        EXPECT(gc_thread == NULL, "a collection inside of another");
        gc_thread = event->env_id;
        break;
    case JVMPI_EVENT_GC_FINISH:
        EXPECT(gc_thread == event->env_id, "a collection ends elsewhere");
        EXPECT(event->u.gc_info.used_object_space > 0
               && event->u.gc_info.total_object_space >= event->u.gc_info.used_object_space
               && event->u.gc_info.used_objects > 0, "heap statistics");
        gc_thread = NULL;
        break;
    case JVMPI_EVENT_METHOD_ENTRY: case JVMPI_EVENT_METHOD_ENTRY2: case JVMPI_EVENT_METHOD_EXIT:
        EXPECT(event->u.method.method_id != NULL, "no method");
        if (type == JVMPI_EVENT_METHOD_ENTRY2 && event->u.method_entry2.obj_id)
            see_object(event->u.method_entry2.obj_id, "METHOD_ENTRY2");
        /* They make the program crawl: enough is enough. */
        if (seen[type] == 3000) EXPECT(vm->DisableEvent(type, NULL) == JVMPI_SUCCESS, "DisableEvent %d", type);
        break;
    case JVMPI_EVENT_COMPILED_METHOD_LOAD:
        EXPECT(event->u.compiled_method_load.code_addr && event->u.compiled_method_load.code_size > 0, "no code");
        for (jint i = 0; i < event->u.compiled_method_load.lineno_table_size; i++) {
            jint offset = event->u.compiled_method_load.lineno_table[i].offset;
            EXPECT(offset >= 0 && offset <= event->u.compiled_method_load.code_size, "offset %d", offset);
        }
        break;
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTER: case JVMPI_EVENT_MONITOR_CONTENDED_ENTERED:
    case JVMPI_EVENT_MONITOR_CONTENDED_EXIT: see_object(event->u.monitor.object, "a monitor"); break;
    case JVMPI_EVENT_MONITOR_WAIT: case JVMPI_EVENT_MONITOR_WAITED:
        if (event->u.monitor_wait.object) see_object(event->u.monitor_wait.object, "wait");
        else if (type == JVMPI_EVENT_MONITOR_WAIT) seen[0]++; /* sleeps */
        break;
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER: case JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTERED:
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT:
        EXPECT(strcmp(event->u.raw_monitor.name, "contended") == 0 && event->u.raw_monitor.id == contended, "%s",
               event->u.raw_monitor.name);
        break;
    case JVMPI_EVENT_JNI_GLOBALREF_ALLOC: case JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC:
        if (event->u.jni_globalref_alloc.obj_id) see_object(event->u.jni_globalref_alloc.obj_id, "JNI reference");
        break;
    default: break;
    }
}

extern void work(void);

static void body(void *arg) {
    (void)arg;
    work();
}

static void second(void *arg) {
    (void)arg;
    while (!working) usleep(1000);
    vm->RawMonitorEnter(contended);
    vm->RawMonitorWait(contended, 5);
    vm->RawMonitorNotifyAll(contended);
    system_threads_ended++;
    vm->RawMonitorExit(contended);
}

static void notify(JVMPI_Event *event) {
    int type = event->event_type & ~JVMPI_REQUESTED_EVENT;
    int requested = (event->event_type & JVMPI_REQUESTED_EVENT) != 0;
    EXPECT(type > 0 && type <= JVMPI_MAX_EVENT_TYPE_VAL, "event type %x", event->event_type);
    if (type <= 0 || type > JVMPI_MAX_EVENT_TYPE_VAL) return;
    __atomic_add_fetch(&seen[type], 1, __ATOMIC_SEQ_CST);
    if (type == JVMPI_EVENT_CLASS_LOAD_HOOK) { /* comes before the VM is up */
        on_event(event, type, requested);
        return;
    }
    locked();
    int known = table_get(&threads, (uintptr_t)event->env_id) != 0;
    unlocked();
    if (type != JVMPI_EVENT_THREAD_START) EXPECT(known, "event %d on thread %p that never started", type, (void *)event->env_id);
    on_event(event, type, requested);
    if (type == JVMPI_EVENT_JVM_INIT_DONE) {
        EXPECT(vm->CreateSystemThread("agent worker", JVMPI_NORMAL_PRIORITY, body) == JNI_OK, "CreateSystemThread");
        EXPECT(vm->CreateSystemThread("agent second", JVMPI_MINIMUM_PRIORITY, second) == JNI_OK, "CreateSystemThread");
    }
    if (type == JVMPI_EVENT_JVM_SHUT_DOWN) {
        for (int i = 1; i <= JVMPI_MAX_EVENT_TYPE_VAL; i++) say("event %d %d %lu", i, enabled[i], seen[i]);
        say("sleeps %lu", seen[0]);
        for (int i = 1; i <= 2; i++)
            say("level %d: %lu roots %lu instances %lu arrays %lu primitive %lu classes %lu edges", i, dumps[i].roots,
                dumps[i].instances, dumps[i].arrays, dumps[i].primitive_arrays, dumps[i].class_records, dumps[i].edges);
        say("level 0: %lu objects", level_0);
        say("monitors %d java %d raw", monitors_found[0], monitors_found[1]);
        say("faults %d", faults);
        say("end");
    }
}

static JNIEnv *attached(void) {
    JNIEnv *env = NULL;
    EXPECT((*java)->GetEnv(java, (void **)&env, JNI_VERSION_1_2) == JNI_OK, "no JNI");
    return env;
}

static jint status(JNIEnv *thread) { return vm->GetThreadStatus(thread); }

/* Suspends a thread twice with a pause between; whether it ran. */
static int has_run(JNIEnv *thread) {
    vm->DisableGC();
    vm->SuspendThread(thread);
    JVMPI_CallFrame frames[2][8];
    JVMPI_CallTrace first = {thread, 0, frames[0]}, again = {thread, 0, frames[1]};
    vm->GetCallTrace(&first, 8);
    usleep(5000);
    vm->GetCallTrace(&again, 8);
    EXPECT(first.num_frames > 0 && first.num_frames == again.num_frames
           && first.frames[0].lineno == again.frames[0].lineno, "a suspended thread moved");
    EXPECT((status(thread) & JVMPI_THREAD_SUSPENDED) == 0, "our suspension shows");
    vm->ResumeThread(thread);
    vm->EnableGC();
    usleep(40000);
    jint results[2] = {7, 7};
    JNIEnv *list[2] = {thread, (JNIEnv *)8};
    vm->SuspendThreadList(2, list, results);
    EXPECT(results[0] == JVMPI_SUCCESS && results[1] == JVMPI_FAIL, "SuspendThreadList %d %d", results[0], results[1]);
    int ran = vm->ThreadHasRun(thread);
    vm->ResumeThreadList(2, list, results);
    EXPECT(results[0] == JVMPI_SUCCESS && results[1] == JVMPI_FAIL, "ResumeThreadList %d %d", results[0], results[1]);
    return ran;
}

/* What no agent should pass, and some do. */
static void bad_input(void) {
    void *bad[] = {NULL, (void *)1, (void *)8, (void *)0xdeadbeefdeadul, (void *)-8};
    jint answer = 3;
    for (int i = 0; i < 5; i++) {
        JNIEnv *thread = bad[i];
        JVMPI_CallFrame frame;
        JVMPI_CallTrace trace = {thread, 5, &frame};
        vm->GetCallTrace(&trace, 1);
        EXPECT(trace.num_frames == 0, "a stack of no thread");
        vm->SuspendThread(thread);
        vm->ResumeThread(thread);
        EXPECT(status(thread) == 0 && vm->ThreadHasRun(thread) == JNI_FALSE && vm->GetThreadObject(thread) == NULL, "%d", i);
        EXPECT(vm->GetThreadLocalStorage(thread) == NULL, "storage of no thread");
        EXPECT(vm->GetMethodClass((jmethodID)bad[i]) == NULL, "a class of no method");
        if (i != 2) { /* 8 is the first object's id */
            EXPECT(vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, bad[i]) == JVMPI_FAIL, "class %d", i);
            EXPECT(vm->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, bad[i]) == JVMPI_FAIL, "object %d", i);
            EXPECT(vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, bad[i]) == JVMPI_FAIL, "dump %d", i);
            EXPECT(vm->jobjectID2jobject((jobjectID)bad[i]) == NULL, "jobject %d", i);
        }
        EXPECT(vm->RequestEvent(JVMPI_EVENT_THREAD_START, bad[i]) == JVMPI_FAIL, "thread %d", i);
        EXPECT(vm->jobject2jobjectID((jobject)bad[i]) == NULL, "id of no object");
        vm->RawMonitorEnter(bad[i] == (void *)1 ? (JVMPI_RawMonitor)77 : bad[i]);
        vm->RawMonitorExit(bad[i] == (void *)1 ? (JVMPI_RawMonitor)77 : bad[i]);
        vm->RawMonitorNotifyAll((JVMPI_RawMonitor)0x7777);
        vm->RawMonitorWait((JVMPI_RawMonitor)0x7777, 1);
        vm->RawMonitorDestroy((JVMPI_RawMonitor)0x7777);
    }
    vm->GetCallTrace(NULL, 5);
    JVMPI_CallTrace empty = {attached(), 5, NULL};
    vm->GetCallTrace(&empty, 5);
    vm->GetCallTrace(&empty, -5);
    vm->SuspendThread(attached());
    vm->SuspendThreadList(1, NULL, &answer);
    EXPECT(answer == 3, "a list of nothing");
    JVMPI_HeapDumpArg level = {3};
    EXPECT(vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &level) == JVMPI_FAIL, "level 3");
    EXPECT(vm->CreateSystemThread(NULL, 99, NULL) == JNI_ERR, "a thread that does nothing");
    vm->EnableGC();
    for (int type = -3; type < 3000; type += type > 70 ? 100 : 1) {
        int dump = type == JVMPI_EVENT_HEAP_DUMP || type == JVMPI_EVENT_OBJECT_DUMP || type == JVMPI_EVENT_MONITOR_DUMP;
        if (type < 1 || type > JVMPI_MAX_EVENT_TYPE_VAL || dump)
            EXPECT(vm->EnableEvent(type, NULL) == JVMPI_NOT_AVAILABLE && vm->DisableEvent(type, NULL) == JVMPI_NOT_AVAILABLE,
                   "event %d", type);
        if (!dump && type != JVMPI_EVENT_CLASS_LOAD && type != JVMPI_EVENT_THREAD_START && type != JVMPI_EVENT_OBJECT_ALLOC)
            EXPECT(vm->RequestEvent(type, NULL) == JVMPI_NOT_AVAILABLE, "request %d", type);
    }
}

static void references(JNIEnv *env) {
    jclass string = (*env)->FindClass(env, "java/lang/String");
    jobject global = (*env)->NewGlobalRef(env, string), weak = (*env)->NewWeakGlobalRef(env, string);
    jobjectID object = vm->jobject2jobjectID(global);
    EXPECT(object != NULL && object == vm->jobject2jobjectID(weak) && object == vm->jobject2jobjectID(string), "ids differ");
    jobject back = vm->jobjectID2jobject(object);
    EXPECT((*env)->IsSameObject(env, back, string), "an id leads elsewhere");
    requested_class = NULL;
    EXPECT(vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, object) == JVMPI_SUCCESS && requested_class == object, "CLASS_LOAD");
    requested_thread = NULL;
    jobjectID me = vm->GetThreadObject(env);
    EXPECT(vm->RequestEvent(JVMPI_EVENT_THREAD_START, me) == JVMPI_SUCCESS && requested_thread == me, "THREAD_START");
    jobject fresh = (*env)->NewStringUTF(env, "fresh");
    jobjectID named = vm->jobject2jobjectID(fresh);
    EXPECT(named && (*env)->IsSameObject(env, vm->jobjectID2jobject(named), fresh), "a fresh string's id");
    (*env)->DeleteGlobalRef(env, global);
    (*env)->DeleteWeakGlobalRef(env, weak);
}

static void ask_for_dumps(void) {
    vm->RawMonitorEnter(contended);
    EXPECT(vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL) == JVMPI_SUCCESS, "MONITOR_DUMP");
    vm->RawMonitorExit(contended);
    EXPECT(monitors_found[0] >= 1 && raw_is_listed, "%d monitors", monitors_found[0]);
    for (int level = 0; level <= 2; level++) {
        JVMPI_HeapDumpArg arg = {level};
        in_request++;
        EXPECT(vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, level == 2 ? NULL : &arg) == JVMPI_SUCCESS, "level %d", level);
        in_request--;
    }
    HeapDump *dump = &dumps[2];
    EXPECT(level_0 > 1000 && dump->instances > 1000 && dump->roots > 10 && dump->class_records > 300, "%lu", level_0);
    uintptr_t wanted[] = {dump->an_instance, dump->an_array, dump->a_primitive_array, dump->a_class};
    for (int i = 0; i < 4; i++)
        EXPECT(vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, (void *)wanted[i]) == JVMPI_SUCCESS, "object dump %d", i);
    EXPECT(object_dumps == 4, "%d object dumps", object_dumps);
}

void work(void) {
    JNIEnv *env = attached();
    jclass program = (*env)->FindClass(env, "Everything");
    EXPECT(program != NULL, "the program's class");
    jfieldID ready = (*env)->GetStaticFieldID(env, program, "ready", "Z");
    jfieldID done = (*env)->GetStaticFieldID(env, program, "done", "Z");
    for (int i = 0; i < 6000 && !(*env)->GetStaticBooleanField(env, program, ready); i++) usleep(10000);
    EXPECT(vm->GetThreadLocalStorage(env) == (void *)&threads, "thread-local storage");
    vm->RawMonitorEnter(contended);
    vm->RawMonitorEnter(quiet);
    working = 1;
    /* The second thread comes to the monitor, which is given back when the event has come. */
    for (int i = 0; i < 60000 && !seen[JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER]; i++) usleep(1000);
    vm->RawMonitorExit(quiet);
    vm->RawMonitorExit(contended);
    vm->RawMonitorEnter(contended);
    for (int i = 0; i < 500 && !system_threads_ended; i++) vm->RawMonitorWait(contended, 10);
    EXPECT(system_threads_ended == 1, "the second thread");
    vm->RawMonitorExit(contended);
    EXPECT(spinner && waiter && blocked, "threads of the program");
    EXPECT(status(spinner) == JVMPI_THREAD_RUNNABLE, "spinner %x", status(spinner));
    EXPECT(status(waiter) == JVMPI_THREAD_CONDVAR_WAIT, "waiter %x", status(waiter));
    EXPECT(status(blocked) == JVMPI_THREAD_MONITOR_WAIT, "blocked %x", status(blocked));
    EXPECT(has_run(spinner), "the spinner did not run");
    EXPECT(!has_run(waiter), "the waiter ran");
    jlong before = vm->GetCurrentThreadCpuTime();
    for (volatile int i = 0; i < 3000000; i++) {}
    EXPECT(vm->GetCurrentThreadCpuTime() > before, "the clock stands");
    references(env);
    say("part references %d", faults);
    bad_input();
    say("part input %d", faults);
    ask_for_dumps();
    say("part dumps %d", faults);
    unsigned long frees = seen[JVMPI_EVENT_OBJECT_FREE];
    vm->RunGC();
    vm->DisableGC();
    vm->DisableGC();
    vm->RunGC();
    vm->EnableGC();
    vm->EnableGC();
    EXPECT(enabled[JVMPI_EVENT_OBJECT_FREE] != JVMPI_SUCCESS || seen[JVMPI_EVENT_OBJECT_FREE] > 0, "%lu frees", frees);
    kill(getpid(), SIGQUIT);
    for (int i = 0; i < 500 && !seen[JVMPI_EVENT_DATA_DUMP_REQUEST]; i++) usleep(10000);
    vm->RawMonitorDestroy(quiet);
    say("part work %d", faults);
    (*env)->SetStaticBooleanField(env, program, done, JNI_TRUE);
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *given, char *options, void *reserved) {
    (void)reserved;
    java = given;
    report = fopen(options && *options ? options : "report.txt", "w");
    if (report == NULL) return JNI_ERR;
    jint versions[] = {JVMPI_VERSION_1_1, JVMPI_VERSION_1_2, JVMPI_VERSION_1};
    for (int i = 0; i < 3; i++) {
        EXPECT((*java)->GetEnv(java, (void **)&vm, versions[i]) == JNI_OK && vm->version == versions[i], "GetEnv %x", versions[i]);
    }
    void *other = NULL;
    EXPECT((*java)->GetEnv(java, &other, 0x10000009) != JNI_OK, "a version that never was");
    vm->NotifyEvent = notify;
    contended = vm->RawMonitorCreate("contended");
    quiet = vm->RawMonitorCreate("_quiet");
    vm->RawMonitorEnter(quiet);
    vm->RawMonitorExit(quiet);
    for (int type = 1; type <= JVMPI_MAX_EVENT_TYPE_VAL; type++) enabled[type] = vm->EnableEvent(type, NULL);
    return JNI_OK;
}
