/* Functions that use the processor, each called by the next. */
#include <jni.h>

static volatile double sum;

static __attribute__((noinline)) void inner(jint n) {
    for (jint i = 1; i < n; i++) sum += 1.0 / i;
}

__attribute__((noinline)) void spun_outer(jint n) {
    inner(n);
    sum += 1;
}

JNIEXPORT void JNICALL Java_InNative_spin(JNIEnv *env, jclass caller, jint n) {
    (void) env;
    (void) caller;
    spun_outer(n);
    sum += 1;
}
