/* Has the system call that copies a process fail, as where too little memory is left for a copy. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...) {
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_list all;
    va_start(all, number);
    long a[6];
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(all, long);
    }
    va_end(all);
    if (number == SYS_clone) {
        errno = ENOMEM;
        return -1;
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
