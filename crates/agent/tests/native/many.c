/* A library that the linker takes a while for: 4096 functions, each looked up by its name, in
   slots that become read-only at the end. */
#include <stdlib.h>

#define EACH(DO, P) DO(P##0) DO(P##1) DO(P##2) DO(P##3) DO(P##4) DO(P##5) DO(P##6) DO(P##7) \
    DO(P##8) DO(P##9) DO(P##a) DO(P##b) DO(P##c) DO(P##d) DO(P##e) DO(P##f)
#define EACH_OF_16(DO, P) DO(P##0) DO(P##1) DO(P##2) DO(P##3) DO(P##4) DO(P##5) DO(P##6) DO(P##7) \
    DO(P##8) DO(P##9) DO(P##a) DO(P##b) DO(P##c) DO(P##d) DO(P##e) DO(P##f)
#define EACH_OF_256(DO, P) DO(P##0) DO(P##1) DO(P##2) DO(P##3) DO(P##4) DO(P##5) DO(P##6) DO(P##7) \
    DO(P##8) DO(P##9) DO(P##a) DO(P##b) DO(P##c) DO(P##d) DO(P##e) DO(P##f)

#define MAKE(P) __attribute__((noplt)) void P(void) {}
#define MAKE_16(P) EACH(MAKE, P)
#define MAKE_256(P) EACH_OF_16(MAKE_16, P)
#define CALL(P) P();
#define CALL_16(P) EACH(CALL, P)
#define CALL_256(P) EACH_OF_16(CALL_16, P)

EACH_OF_256(MAKE_256, many_)

extern __attribute__((noplt)) void *malloc(size_t size);

void *many(void) {
    EACH_OF_256(CALL_256, many_)
    return malloc(4096);
}
