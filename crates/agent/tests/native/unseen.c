/* Objects that native code makes, for Unseen.java. */
#include <jni.h>

JNIEXPORT void JNICALL Java_Unseen_allocate(JNIEnv *env, jclass unseen, jclass class, jint count) {
    (void)unseen;
    for (jint i = 0; i < count; i++) (*env)->DeleteLocalRef(env, (*env)->AllocObject(env, class));
}

JNIEXPORT void JNICALL Java_Unseen_construct(JNIEnv *env, jclass unseen, jclass class, jint count) {
    jmethodID init = (*env)->GetMethodID(env, class, "<init>", "()V");
    jvalue none[1];
    none[0].j = 0;
    (void)unseen;
    for (jint i = 0; i < count; i++) {
        jobject one = i % 2 ? (*env)->NewObject(env, class, init) : (*env)->NewObjectA(env, class, init, none);
        (*env)->DeleteLocalRef(env, one);
    }
}

JNIEXPORT void JNICALL Java_Unseen_arrays(JNIEnv *env, jclass unseen, jint count) {
    for (jint i = 0; i < count; i++) {
        jobject made[] = {
            (*env)->NewBooleanArray(env, i), (*env)->NewByteArray(env, i), (*env)->NewCharArray(env, i),
            (*env)->NewShortArray(env, i), (*env)->NewIntArray(env, i), (*env)->NewLongArray(env, i),
            (*env)->NewFloatArray(env, i), (*env)->NewDoubleArray(env, i), (*env)->NewObjectArray(env, i, unseen, NULL),
        };
        for (unsigned at = 0; at < sizeof made / sizeof *made; at++) (*env)->DeleteLocalRef(env, made[at]);
    }
}

JNIEXPORT void JNICALL Java_Unseen_strings(JNIEnv *env, jclass unseen, jint count) {
    const jchar text[] = { 't', 'e', 'x', 't' };
    (void)unseen;
    for (jint i = 0; i < count; i++) {
        jobject one = i % 2 ? (*env)->NewStringUTF(env, "text") : (*env)->NewString(env, text, 4);
        (*env)->DeleteLocalRef(env, one);
    }
}

/* An exception stays pending, and nothing can be made: the VM answers null. */
JNIEXPORT jboolean JNICALL Java_Unseen_refused(JNIEnv *env, jclass unseen, jclass abstract) {
    (void)unseen;
    jobject none = (*env)->AllocObject(env, abstract);
    jboolean is_pending = (*env)->ExceptionCheck(env);
    (*env)->ExceptionClear(env);
    return none == NULL && is_pending;
}
