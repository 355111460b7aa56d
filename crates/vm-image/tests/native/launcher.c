/* Starts a VM in a second thread and ends the main thread: launcher LIBJVM CLASS OPTION... */
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <stdlib.h>

static int count;
static char **words;

static void *run(void *unused) {
    typedef jint create(JavaVM **, void **, void *);
    void *library = dlopen(words[1], RTLD_NOW);
    create *make = library ? (create *) dlsym(library, "JNI_CreateJavaVM") : NULL;
    JavaVMOption options[count];
    for (int i = 3; i < count; i++) {
        options[i - 3].optionString = words[i];
    }
    JavaVMInitArgs args = {JNI_VERSION_1_8, count - 3, options, JNI_TRUE};
    JavaVM *vm;
    JNIEnv *env;
    if (make == NULL || make(&vm, (void **) &env, &args) != JNI_OK) {
        exit(1);
    }
    jclass text = (*env)->FindClass(env, "java/lang/String");
    jclass class = (*env)->FindClass(env, words[2]);
    jmethodID method = (*env)->GetStaticMethodID(env, class, "main", "([Ljava/lang/String;)V");
    (*env)->CallStaticVoidMethod(env, class, method, (*env)->NewObjectArray(env, 0, text, NULL));
    exit(0);
}

int main(int argc, char **argv) {
    pthread_attr_t attributes;
    pthread_t thread;
    count = argc;
    words = argv;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    pthread_create(&thread, &attributes, run, NULL);
    pthread_exit(NULL);
}
