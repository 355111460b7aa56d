//! Threads that were interrupted while the frame of a compiled method is partial, between the call and the end of its
//! first instructions or in its last ones, or in a routine that compiled code calls without a frame (such as the stubs
//! that look up the method of an interface call). AsyncGetCallTrace takes the frame for a complete one, so it finds no
//! caller or a wrong one.
//!
//! 1. [`completed`] decodes the instructions around the position, and returns registers that belong to the complete
//!    frame: AsyncGetCallTrace then finds the method and its callers.
//! 2. [`callers`] are the registers after the return from a routine: the innermost frame is the method that called it.
//!
//! Instructions are decoded on x86_64 only: on other processors the stacks of threads in partial frames are not found.

use crate::cpu::code_cache::{Code, CodeCache, Kind};
use crate::cpu::registers::Registers;

const WORD: usize = size_of::<usize>();
/// The most words in the frame of a routine.
const MOST_WORDS: usize = 256;
/// The most bytes from the position to the end of the return instruction, which are read.
const MOST_BYTES: usize = 32;

/// The part of a frame that is on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Partial {
    /// Words on the stack below the return address.
    below: usize,
    /// Whether the frame pointer of the caller is only in its register.
    is_unsaved: bool,
}

/// The registers for the complete frame of the method that was interrupted; `None` if its frame is complete. May write
/// the word of the stack that the method is about to write.
///
/// # Safety
/// The registers are those of this thread, which a signal has interrupted in this code.
pub(super) unsafe fn completed(code: &Code, now: Registers) -> Option<Registers> {
    if cfg!(not(target_arch = "x86_64")) || code.kind != Kind::Method || code.words < 2 {
        return None;
    }
    // SAFETY: the instructions of the method, as far as its memory reaches.
    let bytes = |from: usize, to: usize| unsafe {
        std::slice::from_raw_parts(from as *const u8, to.saturating_sub(from))
    };
    let (partial, pc) = match now.pc < code.complete {
        true => {
            let done = now.pc.checked_sub(code.begin)?;
            let first = bytes(code.begin, code.complete);
            (at_begin(first, done, code.words)?, code.complete)
        }
        false => {
            let end = code.end.min(now.pc + MOST_BYTES);
            (at_end(bytes(now.pc, end))?, now.pc)
        }
    };
    let back = now.sp + partial.below * WORD;
    if partial.is_unsaved {
        // SAFETY: the word below the return address is a part of the frame, and the method writes the same there next. If
        // it is below the stack pointer, it is in the space that the system leaves there (System V ABI, section 3.2.2).
        unsafe { ((back - WORD) as *mut usize).write_volatile(now.fp) };
    }
    Some(Registers {
        pc,
        sp: (back + WORD).checked_sub(code.words * WORD)?,
        fp: now.fp,
    })
}

/// The registers after the return from a routine of the VM, by each place where its return address may be: where the
/// stack ends, if the thread `is_inside` and has not called from there; and of a routine that may have a frame, at the
/// end of the complete frame, if the VM knows its size, and above the caller's frame pointer.
///
/// # Safety
/// The registers are those of this thread, in a routine or where a routine has called.
pub(super) unsafe fn callers(
    cache: &CodeCache,
    now: Registers,
    is_inside: bool,
) -> impl Iterator<Item = Registers> {
    let code = cache
        .code_at(now.pc)
        .filter(|_| now.sp.is_multiple_of(WORD));
    let code = code.filter(|code| matches!(code.kind, Kind::Jump | Kind::Routine));
    let with_frame = code.filter(|code| code.kind == Kind::Routine);
    // SAFETY: the stack of this thread, which has more bytes than these above its innermost frame.
    let word = |place: usize| unsafe { (place as *const usize).read() };
    let at_end = is_inside && cfg!(target_arch = "x86_64");
    let at_end = code.filter(|_| at_end).map(|_| Registers {
        pc: word(now.sp),
        sp: now.sp + WORD,
        fp: now.fp,
    });
    // The frame pointer and the return address are the last words of a frame.
    let above = |frame: usize| Registers {
        pc: word(frame + WORD),
        sp: frame + 2 * WORD,
        fp: word(frame),
    };
    let by_size = with_frame.map(|code| code.words);
    let by_size = by_size.filter(|words| (2..=MOST_WORDS).contains(words));
    let by_size = by_size.map(|words| above(now.sp + (words - 2) * WORD));
    let linked = now.sp..now.sp + MOST_WORDS * WORD;
    let is_linked = linked.contains(&now.fp) && now.fp.is_multiple_of(WORD);
    let linked = with_frame.filter(|_| is_linked).map(|_| above(now.fp));
    let all = [at_end, by_size, linked].into_iter().flatten();
    all.filter(|caller| cache.is_safe(caller.pc))
}

/// `push rbp`, `pop rbp` and `ret`.
const PUSH: u8 = 0x55;
const POP: u8 = 0x5d;
/// `push rbp` and `mov rbp, rsp`.
const LINKS: [[u8; 4]; 2] = [[PUSH, 0x48, 0x8b, 0xec], [PUSH, 0x48, 0x89, 0xe5]];
const RETURN: u8 = 0xc3;

/// The partial frame after so many bytes of the first instructions. These are, after a check of the class and of the
/// end of the stack: `push rbp`, maybe `mov rbp, rsp`, and `sub rsp`; or `sub rsp` alone, and a move of `rbp` to the
/// frame.
fn at_begin(first: &[u8], done: usize, words: usize) -> Option<Partial> {
    let partial = |below, is_unsaved| Partial { below, is_unsaved };
    let before = first.get(..done)?;
    let is_linked = LINKS.iter().any(|link| before.ends_with(link));
    let is_pushed = before.last() == Some(&PUSH) || is_linked;
    // The bytes since the room was made, and whether it is for more than was pushed before.
    let (since, is_short) = match subtraction(first, words) {
        Some((at, length, size)) => (done.checked_sub(at + length), size == (words - 2) * WORD),
        // A frame of two words needs no more room.
        None if words == 2 => (None, true),
        None => return None,
    };
    Some(match since {
        Some(since) => partial(words - 1, !is_short && since == 0),
        None if is_short && is_pushed => partial(1, false),
        None => partial(0, true),
    })
}

/// The instruction that makes room for a frame of so many words: where it is, its length, and the bytes of room.
fn subtraction(first: &[u8], words: usize) -> Option<(usize, usize, usize)> {
    let sizes = [(words - 2) * WORD, (words - 1) * WORD];
    (0..first.len()).find_map(|at| {
        let (length, size) = match *first.get(at..)? {
            [0x48, 0x83, 0xec, size, ..] => (4, usize::from(size)),
            [0x48, 0x81, 0xec, a, b, c, d, ..] => (7, u32::from_le_bytes([a, b, c, d]) as usize),
            _ => return None,
        };
        sizes.contains(&size).then_some((at, length, size))
    })
}

/// The partial frame before these instructions: `pop rbp`, a check of the safepoint, and `ret`; `None` if they are
/// others.
fn at_end(next: &[u8]) -> Option<Partial> {
    let (below, mut rest) = match next {
        [POP, rest @ ..] => (1, rest),
        rest => (0, rest),
    };
    loop {
        let length = match rest {
            [RETURN, ..] => break,
            // `cmp rsp, [r15 + place]` and `ja` (JDK 16 and later).
            [0x49, 0x3b, 0x67, ..] => 4,
            [0x49, 0x3b, 0xa7, ..] => 7,
            [0x0f, 0x87, ..] => 6,
            // `mov r10, [r15 + place]` and `test [r10], eax` (JDK 10 to 15).
            [0x4d, 0x8b, 0x57, ..] => 4,
            [0x4d, 0x8b, 0x97, ..] => 7,
            [0x41, 0x85, 0x02, ..] => 3,
            // `test [rip + place], eax`, or the place in `r10` (JDK 8 and 9).
            [0x85, 0x05, ..] => 6,
            [0x4c, 0x8d, 0x15, ..] => 7,
            [0x49, 0xba, ..] => 10,
            _ => return None,
        };
        rest = rest.get(length..)?;
    }
    Some(Partial {
        below,
        is_unsaved: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The partial frame after each instruction of a method's begin.
    fn begins(instructions: &[&[u8]], words: usize) -> Vec<(usize, bool)> {
        let first = instructions.concat();
        let mut done = 0;
        let mut found = Vec::new();
        for instruction in instructions {
            let Partial { below, is_unsaved } = at_begin(&first, done, words).expect("known");
            found.push((below, is_unsaved));
            done += instruction.len();
        }
        found
    }

    const CHECK: &[u8] = &[0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff];
    const PUSHED: &[u8] = &[PUSH];

    #[test]
    fn the_frame_at_the_begin_of_a_method_grows_with_its_instructions() {
        // A frame of 10 words: the return address, the frame pointer, and 0x40 bytes.
        let room: &[u8] = &[0x48, 0x83, 0xec, 0x40];
        let barrier: &[u8] = &[0x41, 0x81, 0x7f, 0x20, 1, 0, 0, 0];
        let found = begins(&[CHECK, PUSHED, room, barrier], 10);
        assert_eq!(found, [(0, true), (0, true), (1, false), (9, false)]);
        let link: &[u8] = &[0x48, 0x8b, 0xec];
        let found = begins(&[CHECK, PUSHED, link, room, barrier], 10);
        let linked = [(0, true), (0, true), (1, false), (1, false), (9, false)];
        assert_eq!(found, linked);
        // All at once, and then the frame pointer is saved.
        let room: &[u8] = &[0x48, 0x81, 0xec, 0x48, 0, 0, 0];
        let save: &[u8] = &[0x48, 0x89, 0x6c, 0x24, 0x40];
        let found = begins(&[room, save, barrier], 10);
        assert_eq!(found, [(0, true), (9, true), (9, false)]);
        // Nothing but the frame pointer.
        assert_eq!(
            begins(&[CHECK, PUSHED, barrier], 2)[..2],
            [(0, true), (0, true)]
        );
        // Other instructions.
        assert_eq!(at_begin(&[CHECK, PUSHED].concat(), 8, 10), None);
    }

    #[test]
    fn the_frame_at_the_end_of_a_method_is_known_by_the_instructions_that_follow() {
        let polls: [&[u8]; 5] = [
            &[],
            &[0x85, 0x05, 1, 2, 3, 4],
            &[0x4d, 0x8b, 0x97, 8, 1, 0, 0, 0x41, 0x85, 0x02],
            &[0x49, 0x3b, 0x67, 0x28, 0x0f, 0x87, 1, 0, 0, 0],
            &[0x49, 0x3b, 0xa7, 0x50, 4, 0, 0, 0x0f, 0x87, 1, 0, 0, 0],
        ];
        let below = |next: &[u8]| at_end(next).map(|partial| partial.below);
        for poll in polls {
            assert_eq!(below(&[poll, &[RETURN]].concat()), Some(0), "{poll:x?}");
            let before = [&[POP], poll, &[RETURN]].concat();
            assert_eq!(below(&before), Some(1), "{poll:x?}");
            let whole = [&[0x48, 0x83, 0xc4, 0x40, POP], poll, &[RETURN]].concat();
            assert_eq!(below(&whole), None, "{poll:x?}");
            assert_eq!(below(poll), None, "no end: {poll:x?}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_partial_frame_is_made_a_complete_one() {
        let instructions = [CHECK, PUSHED, &[0x48, 0x83, 0xec, 0x40], &[0x90; 8]].concat();
        let begin = instructions.as_ptr() as usize;
        let code = Code {
            kind: Kind::Method,
            is_compiled: true,
            structure: 0,
            begin,
            end: begin + instructions.len(),
            complete: begin + 12,
            words: 10,
        };
        let mut stack = [0_usize; 24];
        let back = stack.as_mut_ptr() as usize + 16 * WORD;
        // SAFETY: writes at most the word below the return address, in the live stack.
        let at = |pc, sp| unsafe { completed(&code, Registers { pc, sp, fp: 77 }) };
        let expected = Registers {
            pc: begin + 12,
            sp: back - 9 * WORD,
            fp: 77,
        };
        assert_eq!(at(begin + 8, back - WORD), Some(expected), "pushed");
        assert_eq!(stack[15], 0, "it has been saved by the method");
        assert_eq!(at(begin, back), Some(expected), "called");
        assert_eq!(stack[15], 77);
        assert_eq!(at(begin + 13, back - 9 * WORD), None, "complete");
    }
}
