/* Native threads that attach to the VM, call Java and detach, for Attached.java. */
#include <jni.h>
#include <pthread.h>

static JavaVM *vm;
static jclass attached;
static jmethodID work;

static void *run(void *number) {
    JNIEnv *env;
    JavaVMAttachArgs args = { JNI_VERSION_1_6, "native", NULL };
    int as_daemon = (int)(long)number % 2;
    jint code = as_daemon ? (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&env, &args)
                          : (*vm)->AttachCurrentThread(vm, (void **)&env, &args);
    if (code == JNI_OK) {
        (*env)->CallStaticVoidMethod(env, attached, work);
        (*vm)->DetachCurrentThread(vm);
    }
    return NULL;
}

JNIEXPORT void JNICALL Java_Attached_attach(JNIEnv *env, jclass class, jint count) {
    pthread_t threads[64];
    (*env)->GetJavaVM(env, &vm);
    attached = (*env)->NewGlobalRef(env, class);
    work = (*env)->GetStaticMethodID(env, class, "work", "()V");
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    (*env)->DeleteGlobalRef(env, attached);
}
