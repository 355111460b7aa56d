// Objects of C++: 5 of 40 bytes that stay, 5 of 80 that are deleted.
#include <jni.h>

struct Small { long words[5]; };
struct Large { long words[10]; };
static Small *volatile small;

extern "C" JNIEXPORT void JNICALL Java_Native_make(JNIEnv *, jclass) {
    for (int i = 0; i < 5; i++) {
        small = new Small();
        Large *volatile large = new Large();
        delete large;
    }
}
