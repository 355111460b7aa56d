/* A hash table from words to words, and the tally of faults; used by one thread at a time. */
#ifndef TABLE_H
#define TABLE_H
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uintptr_t *keys;
    uintptr_t *values;
    size_t size, used;
} Table;

static size_t table_place(const Table *t, uintptr_t key) {
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15ull) >> 20) & (t->size - 1);
    while (t->keys[at] != 0 && t->keys[at] != key) at = (at + 1) & (t->size - 1);
    return at;
}

/* The value of a key, 0 if there is none. */
static uintptr_t table_get(const Table *t, uintptr_t key) {
    return t->size == 0 || key == 0 ? 0 : t->values[table_place(t, key)];
}

static void table_put(Table *t, uintptr_t key, uintptr_t value) {
    if (key == 0) return;
    if (2 * t->used >= t->size) {
        Table more = {0};
        more.size = t->size ? 2 * t->size : 1024;
        more.keys = calloc(more.size, sizeof(uintptr_t));
        more.values = calloc(more.size, sizeof(uintptr_t));
        for (size_t i = 0; i < t->size; i++)
            if (t->keys[i] != 0 && t->values[i] != 0) {
                size_t at = table_place(&more, t->keys[i]);
                more.keys[at] = t->keys[i];
                more.values[at] = t->values[i];
                more.used++;
            }
        free(t->keys);
        free(t->values);
        *t = more;
    }
    size_t at = table_place(t, key);
    if (t->keys[at] == 0) t->used++;
    t->keys[at] = key;
    t->values[at] = value;
}

static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *report;
static int faults;

/* One line of the report. */
static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&report_lock);
    vfprintf(report, format, args);
    fputc('\n', report);
    fflush(report);
    pthread_mutex_unlock(&report_lock);
    va_end(args);
}

/* What must hold; the first faults are told, all are counted. */
#define EXPECT(condition, ...)                                    \
    do {                                                          \
        if (!(condition) && __atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST) <= 40) { \
            char said[512];                                       \
            snprintf(said, sizeof said, __VA_ARGS__);             \
            say("FAULT %s:%d %s: %s", __FILE__, __LINE__, #condition, said); \
        }                                                         \
    } while (0)
#endif
