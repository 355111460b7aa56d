/* Known allocations for Native.java: every function says in Java how much it takes. */
#define _GNU_SOURCE
#include <jni.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST (1 << 20)
static void *kept[MOST];
static int count;

static void keep(void *block) {
    kept[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % MOST] = block;
}

__attribute__((noinline)) static void leak(jint blocks, jint size) {
    for (jint i = 0; i < blocks; i++) keep(malloc(size));
}

JNIEXPORT void JNICALL Java_Native_leak(JNIEnv *env, jclass class, jint blocks, jint size) {
    leak(blocks, size);
}

/* Allocated and freed by the same thread. */
JNIEXPORT void JNICALL Java_Native_churn(JNIEnv *env, jclass class, jint blocks, jint size) {
    for (jint i = 0; i < blocks; i++) {
        char *volatile block = malloc(size);
        free(block);
    }
}

/* 100 blocks of 24 bytes that grow to 1000, of which every second one is freed. */
JNIEXPORT void JNICALL Java_Native_grow(JNIEnv *env, jclass class) {
    for (int i = 0; i < 100; i++) {
        void *block = calloc(3, 8);
        block = realloc(block, 1000);
        if (i % 2) free(block); else keep(block);
    }
}

/* One block of each of the others: 64, 128, 256 and 512 bytes, and 10 of a string. */
JNIEXPORT void JNICALL Java_Native_others(JNIEnv *env, jclass class) {
    void *block = NULL;
    if (posix_memalign(&block, 64, 64) == 0) keep(block);
    keep(aligned_alloc(128, 128));
    keep(memalign(256, 256));
    keep(reallocarray(NULL, 8, 64));
    keep(strdup("123456789"));
    keep(NULL);
    free(NULL);
    keep(realloc(NULL, 7000));
    free(realloc(malloc(10), 20));
}

/* All that was kept goes. */
JNIEXPORT void JNICALL Java_Native_freeAll(JNIEnv *env, jclass class) {
    for (int i = 0; i < count && i < MOST; i++) free(kept[i]);
    count = 0;
}

/* A child that allocates and frees, and ends; its exit code. */
JNIEXPORT jint JNICALL Java_Native_fork(JNIEnv *env, jclass class, jint blocks) {
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < blocks; i++) keep(malloc(100));
        for (int i = 0; i < count && i < MOST; i++) free(kept[i]);
        _exit(dlsym(RTLD_DEFAULT, "malloc") == NULL ? 1 : 7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

/* Calls `late(count)` of a library that is loaded here. */
JNIEXPORT void JNICALL Java_Native_load(JNIEnv *env, jclass class, jstring path, jint blocks) {
    const char *name = (*env)->GetStringUTFChars(env, path, NULL);
    void *library = dlopen(name, RTLD_NOW);
    (*env)->ReleaseStringUTFChars(env, path, name);
    void (*late)(int) = (void (*)(int))dlsym(library, "late");
    late(blocks);
}

static volatile int is_done;

static void *look(void *nothing) {
    for (int i = 0; !is_done; i++) {
        dlsym(RTLD_DEFAULT, "malloc");
        usleep(i % 1000);
    }
    return nothing;
}

/* Loads a library so many times, while other threads look for symbols; blocks of 4096 bytes. */
JNIEXPORT void JNICALL Java_Native_race(JNIEnv *env, jclass class, jstring path, jint times) {
    pthread_t threads[4];
    is_done = 0;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, look, NULL);
    const char *name = (*env)->GetStringUTFChars(env, path, NULL);
    for (int i = 0; i < times; i++) {
        void *library = dlopen(name, RTLD_NOW);
        void *(*many)(void) = (void *(*)(void))dlsym(library, "many");
        keep(many());
        dlclose(library);
    }
    (*env)->ReleaseStringUTFChars(env, path, name);
    is_done = 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
