/* Global and weak references of JNI, for References.java. */
#include <jni.h>
#include <pthread.h>
#include <stdint.h>

#define CLASS jclass class __attribute__((unused))

static JavaVM *vm;
static jobject shared;
static int makes, drops;

JNIEXPORT jlong JNICALL Java_References_hold(JNIEnv *env, CLASS, jobject object) {
    return (jlong)(intptr_t)(*env)->NewGlobalRef(env, object);
}

JNIEXPORT void JNICALL Java_References_release(JNIEnv *env, CLASS, jlong reference) {
    (*env)->DeleteGlobalRef(env, (jobject)(intptr_t)reference);
}

JNIEXPORT jlong JNICALL Java_References_holdWeakly(JNIEnv *env, CLASS, jobject object) {
    return (jlong)(intptr_t)(*env)->NewWeakGlobalRef(env, object);
}

JNIEXPORT void JNICALL Java_References_releaseWeak(JNIEnv *env, CLASS, jlong reference) {
    (*env)->DeleteWeakGlobalRef(env, (jweak)(intptr_t)reference);
}

JNIEXPORT jlong JNICALL Java_References_holdInCriticalRegion(JNIEnv *env, CLASS, jobject object, jintArray array) {
    void *elements = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
    jobject reference = (*env)->NewGlobalRef(env, object);
    (*env)->ReleasePrimitiveArrayCritical(env, array, elements, 0);
    return (jlong)(intptr_t)reference;
}

JNIEXPORT void JNICALL Java_References_holdException(JNIEnv *env, CLASS) {
    jclass thrown = (*env)->FindClass(env, "java/lang/IllegalStateException");
    (*env)->ThrowNew(env, thrown, "pending");
    (*env)->NewGlobalRef(env, (*env)->ExceptionOccurred(env));
}

static void *run(void *nothing) {
    JNIEnv *env;
    jobject made[64];
    if ((*vm)->AttachCurrentThread(vm, (void **)&env, NULL) != JNI_OK) return nothing;
    for (int i = 0; i < makes; i++) made[i] = (*env)->NewGlobalRef(env, shared);
    for (int i = 0; i < drops; i++) (*env)->DeleteGlobalRef(env, made[i]);
    (*vm)->DetachCurrentThread(vm);
    return nothing;
}

JNIEXPORT void JNICALL Java_References_attach(JNIEnv *env, CLASS, jint count, jint make, jint drop, jobject object) {
    pthread_t threads[16];
    (*env)->GetJavaVM(env, &vm);
    makes = make < 64 ? make : 64;
    drops = drop;
    shared = (*env)->NewGlobalRef(env, object);
    for (int i = 0; i < count && i < 16; i++) pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < count && i < 16; i++) pthread_join(threads[i], NULL);
    (*env)->DeleteGlobalRef(env, shared);
}
