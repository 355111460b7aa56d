/* A program that has its own use for SIGPROF, as profilers of native code do. */
#include <jni.h>
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t caught;
static struct sigaction before;

static void plain(int signal) { (void) signal; caught++; }

static void with_origin(int signal, siginfo_t *info, void *context) {
    (void) context;
    if (signal == SIGPROF && info->si_code != SI_TIMER) caught++;
}

/* Passes signals to the handler that it has replaced. */
static void passing(int signal, siginfo_t *info, void *context) {
    if (info->si_code != SI_TIMER) caught++;
    if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(signal, info, context);
}

JNIEXPORT void JNICALL Java_Signals_passOn(JNIEnv *env, jclass caller) {
    struct sigaction action;
    (void) env, (void) caller;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = passing;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGPROF, &action, &before);
}

JNIEXPORT void JNICALL Java_Signals_install(JNIEnv *env, jclass caller, jboolean wants_origin) {
    struct sigaction action;
    (void) env, (void) caller;
    memset(&action, 0, sizeof action);
    if (wants_origin) { action.sa_sigaction = with_origin; action.sa_flags = SA_SIGINFO; }
    else action.sa_handler = plain;
    sigaction(SIGPROF, &action, NULL);
}

JNIEXPORT void JNICALL Java_Signals_raise(JNIEnv *env, jclass caller) {
    (void) env, (void) caller;
    raise(SIGPROF);
}

JNIEXPORT jint JNICALL Java_Signals_caught(JNIEnv *env, jclass caller) {
    (void) env, (void) caller;
    return caught;
}
