//! Walks the frames of a thread, and the threads of the interpreter.

use crate::layout::{FrameLayout, ThreadLayout};
use crate::memory::Memory;

/// The bits of a pointer that are marks. From 3.14 on, pointers in frames have them.
const MARKS: u64 = 3;

/// The most threads that are listed: a list that changes while it is read may not end.
const MOST_THREADS: usize = 1 << 14;

/// A frame: numbers that tell frames apart, to be resolved by [`CodeLayout`](crate::CodeLayout).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawFrame {
    /// The address of its code object. It may be another kind of object: the interpreter has frames
    /// of its own.
    pub code: u64,
    /// The address of its current instruction.
    pub instruction: u64,
    /// The address of its first argument, for code that was asked for, and zero otherwise.
    pub local: u64,
}

/// Fills `frames` with the frames of the thread with this state, innermost first, at most as many
/// as it has room for. `has_local` tells for which code the first argument is read.
///
/// Returns `None` if something cannot be read.
#[inline]
pub fn walk<M: Memory>(
    memory: &M,
    layout: &FrameLayout,
    state: u64,
    has_local: impl Fn(u64) -> bool,
    most: usize,
    frames: &mut Vec<RawFrame>,
) -> Option<()> {
    let innermost = innermost(memory, layout, state)?;
    walk_from(memory, layout, innermost, has_local, most, frames, |_| ())
}

/// Returns the address of the innermost frame of the thread with this state, or zero if it has none.
#[inline]
pub(crate) fn innermost<M: Memory>(memory: &M, layout: &FrameLayout, state: u64) -> Option<u64> {
    let [frame] = memory.gather(state, [layout.state])?;
    match layout.link {
        Some(link) if frame != 0 => memory.gather(frame, [link]).map(|[frame]| frame),
        Some(_) | None => Some(frame),
    }
}

/// Walks from an innermost frame as [`walk`] does, and calls `visit` with the address of each frame.
#[inline]
pub(crate) fn walk_from<M: Memory>(
    memory: &M,
    layout: &FrameLayout,
    innermost: u64,
    has_local: impl Fn(u64) -> bool,
    most: usize,
    frames: &mut Vec<RawFrame>,
    mut visit: impl FnMut(u64),
) -> Option<()> {
    frames.clear();
    let mut frame = innermost;
    while frame != 0 && frames.len() < most {
        let fields = [layout.previous, layout.code, layout.instruction];
        let [previous, code, instruction] = memory.gather(frame, fields)?;
        let code = code & !MARKS;
        let local = if has_local(code) {
            let [local] = memory.gather(frame, [layout.local])?;
            local & !MARKS
        } else {
            0
        };
        visit(frame);
        frames.push(RawFrame {
            code,
            instruction,
            local,
        });
        frame = previous;
    }
    Some(())
}

/// Returns the addresses of the interpreter's thread states and the operating system's numbers of
/// the threads.
///
/// Returns `None` if something cannot be read: the list changed meanwhile.
pub fn threads<M: Memory>(memory: &M, layout: &ThreadLayout) -> Option<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    let [mut state] = memory.gather(layout.head, [0])?;
    while state != 0 && found.len() < MOST_THREADS {
        let [next, native] = memory.gather(state, [layout.next, layout.native])?;
        found.push((state, native));
        state = next;
    }
    Some(found)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::memory::Checked;

    const LAYOUT: FrameLayout = FrameLayout {
        state: 1,
        link: None,
        object: 3,
        previous: 0,
        code: 1,
        instruction: 2,
        local: 4,
    };

    fn address(words: &[u64]) -> u64 {
        words.as_ptr() as u64
    }

    #[test]
    fn frames_come_innermost_first() {
        let outer = [0, 800, 820, 0, 5000];
        // The lowest bits are marks.
        let inner = [address(&outer), 901, 908, 0, 6001];
        let state = [7, address(&inner)];
        let mut frames = Vec::new();
        let read = |most: usize, frames: &mut Vec<RawFrame>| {
            walk(
                &Checked,
                &LAYOUT,
                address(&state),
                |code| code == 900,
                most,
                frames,
            )
        };
        read(10, &mut frames).unwrap();
        let frame = |code, instruction, local| RawFrame {
            code,
            instruction,
            local,
        };
        assert_eq!(frames, [frame(900, 908, 6000), frame(800, 820, 0)]);
        read(1, &mut frames).unwrap();
        assert_eq!(frames, [frame(900, 908, 6000)], "no room for more");
    }

    #[test]
    fn a_chain_that_leads_nowhere_is_refused() {
        let inner = [16, 900, 908, 0, 0];
        let state = [7, address(&inner)];
        let found = walk(
            &Checked,
            &LAYOUT,
            address(&state),
            |_| false,
            9,
            &mut Vec::new(),
        );
        assert_eq!(found, None);
    }

    #[test]
    fn threads_follow_the_list() {
        let second = [0, 22];
        let first = [address(&second), 11];
        let head = [address(&first)];
        let layout = ThreadLayout {
            head: address(&head),
            next: 0,
            native: 1,
        };
        let found = threads(&Checked, &layout).unwrap();
        assert_eq!(found, [(address(&first), 11), (address(&second), 22)]);
        let circle = &mut [0, 33];
        circle[0] = address(circle);
        let head = [address(circle)];
        let layout = ThreadLayout {
            head: address(&head),
            ..layout
        };
        assert_eq!(threads(&Checked, &layout).unwrap().len(), MOST_THREADS);
    }
}
