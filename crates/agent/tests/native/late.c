/* A library that is loaded late: blocks of 333 bytes that are never freed. */
#include <stdlib.h>

static void *last;

void late(int blocks) {
    for (int i = 0; i < blocks; i++) {
        void *block = malloc(333);
        *(void **)block = last;
        last = block;
    }
}
