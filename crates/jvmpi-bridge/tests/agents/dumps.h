/* Reads heap dumps and monitor dumps to their last byte and checks what they say. */
#ifndef DUMPS_H
#define DUMPS_H
#include "table.h"
#include <jvmpi.h>

/* What CLASS_LOAD said of a class. */
typedef struct {
    char *name;
    jint interfaces, statics, instances;
    char *static_types;   /* first letters of the signatures */
    char *instance_types;
    uintptr_t super;      /* from its dump */
    unsigned long count, bytes; /* instances dumped */
} Class;

static Table classes; /* id -> Class* */

static pthread_mutex_t classes_lock = PTHREAD_MUTEX_INITIALIZER;

static Class *class_at(uintptr_t id) {
    pthread_mutex_lock(&classes_lock);
    Class *found = (Class *)table_get(&classes, id);
    pthread_mutex_unlock(&classes_lock);
    return found;
}

static Class *class_of(jobjectID id) { return class_at((uintptr_t)id); }

static char *types_of(JVMPI_Field *fields, jint count) {
    char *types = calloc((size_t)count + 1, 1);
    for (jint i = 0; i < count; i++) types[i] = fields[i].field_signature[0];
    return types;
}

static Class *remember_class(JVMPI_Event *event) {
    Class *known = class_of(event->u.class_load.class_id);
    Class *class = known ? known : calloc(1, sizeof *class);
    class->name = strdup(event->u.class_load.class_name);
    class->interfaces = event->u.class_load.num_interfaces;
    class->statics = event->u.class_load.num_static_fields;
    class->instances = event->u.class_load.num_instance_fields;
    class->static_types = types_of(event->u.class_load.statics, class->statics);
    class->instance_types = types_of(event->u.class_load.instances, class->instances);
    pthread_mutex_lock(&classes_lock);
    table_put(&classes, (uintptr_t)event->u.class_load.class_id, (uintptr_t)class);
    pthread_mutex_unlock(&classes_lock);
    return class;
}

static int width_of(char type) {
    switch (type) {
    case 'Z': case 'B': return 1;
    case 'C': case 'S': return 2;
    case 'I': case 'F': return 4;
    case 'J': case 'D': return 8;
    case 'L': case '[': return sizeof(void *);
    default: return -1;
    }
}

static int width_of_code(int code) {
    switch (code) {
    case JVMPI_BOOLEAN: case JVMPI_BYTE: return 1;
    case JVMPI_CHAR: case JVMPI_SHORT: return 2;
    case JVMPI_INT: case JVMPI_FLOAT: return 4;
    case JVMPI_LONG: case JVMPI_DOUBLE: return 8;
    default: return -1;
    }
}

typedef struct {
    const unsigned char *at, *end;
    int short_of; /* ran past the end */
} Reader;

static const unsigned char *take(Reader *r, size_t count) {
    static const unsigned char zeros[16];
    if ((size_t)(r->end - r->at) < count) {
        r->short_of = 1;
        r->at = r->end;
        return count <= sizeof zeros ? zeros : NULL;
    }
    const unsigned char *found = r->at;
    r->at += count;
    return found;
}

static int u1(Reader *r) { return *take(r, 1); }
static int u2(Reader *r) { const unsigned char *b = take(r, 2); return b[0] << 8 | b[1]; }
static uint32_t u4(Reader *r) {
    const unsigned char *b = take(r, 4);
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}
static uintptr_t id(Reader *r) {
    uintptr_t found;
    memcpy(&found, take(r, sizeof found), sizeof found);
    return found;
}

/* Bytes of the values of one instance of a class in a dump of this level. */
static long size_in_dump(const Class *class, int level) {
    long size = 0;
    for (int depth = 0; class != NULL && depth < 1000; depth++) {
        for (const char *type = class->instance_types; *type; type++)
            if (level == 2 || *type == 'L' || *type == '[') size += width_of(*type);
        class = class_at(class->super);
    }
    return size;
}

/* What one reading of a heap dump counts and finds. */
typedef struct {
    int level;
    Table objects;             /* id -> 1 */
    unsigned long roots, instances, arrays, primitive_arrays, class_records, edges;
    uintptr_t an_instance, an_array, a_primitive_array, a_class;
} HeapDump;

/* Asks for classes that were not told yet. */
extern Class *need_class(uintptr_t id);

static void edge(HeapDump *dump, int check, uintptr_t to) {
    if (to == 0) return;
    dump->edges++;
    if (check) EXPECT(table_get(&dump->objects, to), "an object that is not in the dump: %lx", (long)to);
}

/* One pass over the bytes: the first collects, the second checks. */
static void read_heap(HeapDump *dump, const char *begin, const char *end, int check) {
    Reader r = {(const unsigned char *)begin, (const unsigned char *)end, 0};
    const char *before = "";
    while (r.at < r.end) {
        int tag = u1(&r);
        switch (tag) {
        case JVMPI_GC_ROOT_UNKNOWN: case JVMPI_GC_ROOT_STICKY_CLASS: case JVMPI_GC_ROOT_MONITOR_USED:
            dump->roots++, edge(dump, check, id(&r));
            break;
        case JVMPI_GC_ROOT_JNI_GLOBAL: case JVMPI_GC_ROOT_NATIVE_STACK: case JVMPI_GC_ROOT_THREAD_BLOCK:
            dump->roots++, edge(dump, check, id(&r)), id(&r);
            break;
        case JVMPI_GC_ROOT_JNI_LOCAL: case JVMPI_GC_ROOT_JAVA_FRAME:
            dump->roots++, edge(dump, check, id(&r)), id(&r), u4(&r);
            break;
        case JVMPI_GC_CLASS_DUMP: {
            uintptr_t self = id(&r);
            Class *class = need_class(self);
            EXPECT(class != NULL, "a class that cannot be asked for: %lx", (long)self);
            if (class == NULL) return;
            if (!check) {
                table_put(&dump->objects, self, 1);
                dump->class_records++, dump->a_class = self;
            }
            class->super = id(&r), before = class->name;
            edge(dump, check, class->super);
            for (int i = 0; i < 3; i++) edge(dump, check, id(&r));
            id(&r), id(&r), u4(&r);
            for (jint i = 0; i < class->interfaces; i++) edge(dump, check, id(&r));
            for (int left = u2(&r); left > 0 && !r.short_of; left--) {
                u2(&r); /* its index in the constant pool */
                EXPECT(u1(&r) == JVMPI_CLASS, "a constant of %s that is no object", class->name);
                edge(dump, check, id(&r));
            }
            for (const char *type = class->static_types; *type; type++) {
                if (*type == 'L' || *type == '[') edge(dump, check, id(&r));
                else if (dump->level == 2) take(&r, (size_t)width_of(*type));
            }
            break;
        }
        case JVMPI_GC_INSTANCE_DUMP: {
            uintptr_t self = id(&r), of = id(&r);
            uint32_t size = u4(&r);
            Class *class = need_class(of);
            if (!check) {
                EXPECT(!table_get(&dump->objects, self), "dumped twice: %lx", (long)self);
                table_put(&dump->objects, self, 1);
                dump->instances++, dump->an_instance = self;
                if (class) class->count++, class->bytes += size;
            } else {
                EXPECT(class != NULL, "an instance of no class: %lx", (long)of);
                if (class) EXPECT((long)size == size_in_dump(class, dump->level), "%u bytes of %s, not %ld", size,
                                  class->name, size_in_dump(class, dump->level));
            }
            const unsigned char *values = take(&r, size);
            if (check && class && values) {
                Reader fields = {values, values + size, 0};
                for (Class *c = class; c != NULL; c = class_at(c->super))
                    for (const char *type = c->instance_types; *type; type++) {
                        if (*type == 'L' || *type == '[') edge(dump, check, id(&fields));
                        else if (dump->level == 2) take(&fields, (size_t)width_of(*type));
                    }
                EXPECT(!fields.short_of && fields.at == fields.end, "fields of %s", class->name);
            }
            break;
        }
        case JVMPI_GC_OBJ_ARRAY_DUMP: {
            uintptr_t self = id(&r);
            uint32_t count = u4(&r);
            uintptr_t element = id(&r);
            if (check) EXPECT(element == 0 || need_class(element), "elements of no class: %lx", (long)element);
            else table_put(&dump->objects, self, 1), dump->arrays++, dump->an_array = self;
            for (uint32_t i = 0; i < count && !r.short_of; i++) edge(dump, check, id(&r));
            break;
        }
        case JVMPI_GC_PRIM_ARRAY_DUMP: {
            uintptr_t self = id(&r);
            uint32_t count = u4(&r);
            int width = width_of_code(u1(&r));
            EXPECT(width > 0, "elements of no type");
            if (width <= 0) return;
            if (!check) table_put(&dump->objects, self, 1), dump->primitive_arrays++, dump->a_primitive_array = self;
            if (dump->level == 2) take(&r, (size_t)count * (size_t)width);
            break;
        }
        default:
            EXPECT(0, "record type %x at %ld of %ld, after class %s", tag, (long)(r.at - (const unsigned char *)begin),
                   (long)(end - begin), before);
            return;
        }
    }
    EXPECT(!r.short_of, "the dump ends inside a record");
}

/* Reads a monitor dump; how many Java and raw monitors there are, and whether one has `name`. */
static void read_monitors(const char *begin, const char *end, int found[2], const char *name, int *has_name) {
    Reader r = {(const unsigned char *)begin, (const unsigned char *)end, 0};
    while (r.at < r.end && !r.short_of) {
        int tag = u1(&r);
        EXPECT(tag == JVMPI_MONITOR_JAVA || tag == JVMPI_MONITOR_RAW, "record type %x", tag);
        if (tag != JVMPI_MONITOR_JAVA && tag != JVMPI_MONITOR_RAW) return;
        found[tag - 1]++;
        if (tag == JVMPI_MONITOR_RAW) {
            const char *raw_name = (const char *)id(&r);
            if (strcmp(raw_name, name) == 0) *has_name = 1;
        }
        id(&r), id(&r), u4(&r);
        for (int list = 0; list < 2; list++) {
            uint32_t count = u4(&r);
            EXPECT(count < 10000, "%u threads", count);
            for (uint32_t i = 0; i < count && !r.short_of; i++) EXPECT(id(&r) != 0, "a thread without env");
        }
    }
    EXPECT(!r.short_of, "the dump ends inside a record");
}
#endif
