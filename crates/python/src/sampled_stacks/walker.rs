//! The stacks of operators, read by the thread that calls them.
//!
//! A thread remembers the frames of its last operator. The next one usually shares all but the
//! innermost frames, so that only those are named again.

use mindprof_frames::{Direct, Layout, RawFrame, walk};
use mindprof_record::{Stack, recording_number};

use super::calls_module;
use super::places::{Named, Places};

/// The most frames of a stack that are read; the outermost are left out.
const MOST_FRAMES: usize = 1024;

/// The frames of a thread's last operator.
#[derive(Default)]
pub(super) struct Walker {
    recording: u32,
    /// The stack of all operators while the thread is paused.
    paused: Option<Stack>,
    /// The frames that were just read, innermost first.
    frames: Vec<RawFrame>,
    /// The frames of the last operator, outermost first, each with what tells its code from other
    /// code at the same address, and with the stack up to it.
    last: Vec<(RawFrame, Option<[u64; 4]>, Stack)>,
    places: Places,
}

impl Walker {
    /// Gives operators this stack until [`Self::resume`].
    pub(super) fn pause(&mut self, stack: Stack) {
        self.paused = Some(stack);
    }

    /// Walks the frames of operators again.
    pub(super) fn resume(&mut self) {
        self.paused = None;
    }

    /// Returns the stack of the thread with this state, or `None` if it cannot be read.
    ///
    /// # Safety
    /// The state must be that of the calling thread, and its frames must not change until this
    /// function returns.
    #[expect(unsafe_code, reason = "reads memory that the caller keeps alive")]
    pub(super) unsafe fn stack(&mut self, layout: &Layout, state: u64) -> Option<Stack> {
        let recording = recording_number();
        if self.recording != recording {
            self.last.clear();
            self.recording = recording;
            self.paused = None;
        }
        if let Some(stack) = self.paused {
            return Some(stack);
        }
        // SAFETY: the caller guarantees that the state and its frames stay alive, and with them
        // their code.
        let memory = unsafe { Direct::new() };
        walk(
            &memory,
            &layout.frames,
            state,
            calls_module,
            MOST_FRAMES,
            &mut self.frames,
        )?;
        let identity = |frame: &RawFrame| layout.code.identity(&memory, frame.code);
        let outermost_first = || self.frames.iter().rev();
        let common = outermost_first()
            .zip(&self.last)
            .take_while(|(frame, (last, known, _))| *frame == last && identity(frame) == *known)
            .count();
        self.last.truncate(common);
        let mut stack = self.last.last().map_or(Stack::NONE, |&(.., stack)| stack);
        for frame in outermost_first().skip(common) {
            if let Named::As(name) = self.places.name(layout, &memory, frame)? {
                stack = stack.push(name);
            }
            self.last.push((*frame, identity(frame), stack));
        }
        Some(stack)
    }
}
