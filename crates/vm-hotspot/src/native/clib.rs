//! What C libraries do not have in common. One file of the agent is loaded by glibc from 2.17 on and
//! by musl, so it links only what both have; `./x package` compares its symbols with theirs.

use std::ffi::{c_int, c_void};

type Handler = unsafe extern "C" fn();

/// Runs `handler` in each child of `fork`; false if the C library offers no way to.
///
/// `pthread_atfork` is a part of each library that is linked with glibc and calls
/// `__register_atfork`; in musl it is a function like others.
pub(crate) fn in_each_child(handler: Handler) -> bool {
    type Glibc = unsafe extern "C" fn(
        Option<Handler>,
        Option<Handler>,
        Option<Handler>,
        *mut c_void,
    ) -> c_int;
    type Musl = unsafe extern "C" fn(Option<Handler>, Option<Handler>, Option<Handler>) -> c_int;
    // SAFETY: functions looked up by name have the signature of that name. No handle of a library
    // is given, so the handler stays registered; its library stays loaded, too.
    unsafe {
        let glibc = libc::dlsym(libc::RTLD_DEFAULT, c"__register_atfork".as_ptr());
        if !glibc.is_null() {
            let register = std::mem::transmute::<*mut c_void, Glibc>(glibc);
            return register(None, None, Some(handler), std::ptr::null_mut()) == 0;
        }
        let musl = libc::dlsym(libc::RTLD_DEFAULT, c"pthread_atfork".as_ptr());
        if !musl.is_null() {
            let register = std::mem::transmute::<*mut c_void, Musl>(musl);
            return register(None, None, Some(handler)) == 0;
        }
    }
    false
}

// The standard library for glibc links two functions that musl does not have. It reads the version
// before it starts a program and after a failed look-up of a host name; if glibc is older than 2.26, it
// then calls `__res_init`, so that a changed /etc/resolv.conf is read. The agent has its own: the
// version is the oldest that it supports, for which the standard library uses what works everywhere, and
// the other does nothing, because the only look-up is that of `net=HOST:PORT` at the start. They are
// hidden: no other library sees them.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
std::arch::global_asm!(
    ".globl __res_init",
    ".hidden __res_init",
    "__res_init:",
    "xor eax, eax",
    "ret",
    ".globl gnu_get_libc_version",
    ".hidden gnu_get_libc_version",
    "gnu_get_libc_version:",
    "lea rax, [rip + 2f]",
    "ret",
    "2:",
    ".asciz \"2.17\"",
);

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "aarch64"))]
std::arch::global_asm!(
    ".globl __res_init",
    ".hidden __res_init",
    ".p2align 2",
    "__res_init:",
    "mov w0, wzr",
    "ret",
    ".globl gnu_get_libc_version",
    ".hidden gnu_get_libc_version",
    "gnu_get_libc_version:",
    "adr x0, 2f",
    "ret",
    "2:",
    ".asciz \"2.17\"",
    ".p2align 2",
);

#[cfg(test)]
mod tests {
    use super::in_each_child;
    use std::sync::atomic::{AtomicBool, Ordering};

    static RAN: AtomicBool = AtomicBool::new(false);

    unsafe extern "C" fn ran() {
        RAN.store(true, Ordering::SeqCst);
    }

    #[test]
    fn the_child_of_a_fork_runs_the_handler_and_the_parent_does_not() {
        assert!(in_each_child(ran));
        // SAFETY: the child only loads a word and ends.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(i32::from(RAN.load(Ordering::SeqCst)));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            status
        };
        assert_eq!(libc::WEXITSTATUS(status), 1);
        assert!(!RAN.load(Ordering::SeqCst));
    }
}
