//! The frames of another thread, which runs on while they are read.
//!
//! The frames of a thread lie one after the other in a stretch of memory that changes little from
//! one reading to the next. The stretch of the last reading is therefore copied at once, in a
//! fraction of a microsecond, and the frames are read from the copy. Only frames elsewhere, such as
//! those of generators, are read one by one. A call that ends in between can then still be seen
//! under a caller that it did not have; it takes two calls to end and another to begin within that
//! time.
//!
//! The frame that is innermost at the first look is the one that is reported, however short its
//! calls are. To take any moment at which the frames do not change would favour long calls: a
//! function that runs for 60 ns at a time is hardly ever innermost before and after a copy.

use crate::layout::FrameLayout;
use crate::memory::{Checked, Snapshot, read_many};
use crate::walk::{RawFrame, innermost, walk_from};

/// The longest stretch that is copied, and the room for new frames at its end, in bytes.
const LONGEST: u64 = 64 << 10;
const ROOM: u64 = 1 << 10;

/// How often the thread is looked at until the same frame is innermost before and after a copy.
const ATTEMPTS: usize = 32;

/// The memory of a thread between two readings.
#[derive(Debug, Default)]
pub struct ForeignThread {
    /// The stretch of memory with its frames.
    begin: u64,
    end: u64,
    copy: Vec<u64>,
    /// The copy that was taken right after the first look.
    first_copy: Vec<u64>,
    addresses: Vec<u64>,
}

impl ForeignThread {
    /// Fills `frames` with the frames of the thread with this state, as [`walk`](crate::walk()) does.
    ///
    /// Returns `None` if something cannot be read.
    pub fn walk(
        &mut self,
        layout: &FrameLayout,
        state: u64,
        has_local: impl Fn(u64) -> bool,
        most: usize,
        frames: &mut Vec<RawFrame>,
    ) -> Option<()> {
        let innermost = self.take_copy(layout, state)?;
        let memory = Snapshot {
            begin: self.begin,
            words: &self.copy,
        };
        self.addresses.clear();
        let visit = |address| self.addresses.push(address);
        let found = walk_from(&memory, layout, innermost, has_local, most, frames, visit);
        self.remember();
        found
    }

    /// Returns the address of the frame that is innermost now, and copies the stretch at a moment
    /// at which it is innermost too, now or soon.
    ///
    /// ```text
    /// innermost     a b a b b a a a b        looks: * at the first, ! around a copy
    ///               *         ! !            `a` is reported, with its callers at the copy
    /// ```
    ///
    /// If there is no such moment, the copy is the one that followed the first look. Its frames lie
    /// where they lay then, unless other calls have taken their place.
    fn take_copy(&mut self, layout: &FrameLayout, state: u64) -> Option<u64> {
        let first = innermost(&Checked, layout, state)?;
        self.copy_stretch();
        let mut now = innermost(&Checked, layout, state)?;
        if now == first {
            return Some(first);
        }
        self.first_copy.clone_from(&self.copy);
        for _ in 0..ATTEMPTS {
            let is_back = now == first;
            if is_back {
                self.copy_stretch();
            }
            now = innermost(&Checked, layout, state)?;
            if is_back && now == first {
                return Some(first);
            }
        }
        std::mem::swap(&mut self.copy, &mut self.first_copy);
        Some(first)
    }

    fn copy_stretch(&mut self) {
        self.copy.clear();
        // With room for further frames, and without it if that cannot be read.
        for room in [ROOM, 0] {
            let length = (self.end - self.begin).saturating_sub(ROOM - room);
            self.copy.resize(length as usize / 8, 0);
            if self.copy.is_empty() || read_many(self.begin, &mut self.copy) {
                return;
            }
        }
        self.copy.clear();
    }

    /// Remembers the stretch of the outermost frame and those after it.
    fn remember(&mut self) {
        let Some(&first) = self.addresses.last() else {
            return;
        };
        let near = first..first.saturating_add(LONGEST);
        let near = self
            .addresses
            .iter()
            .filter(|address| near.contains(address));
        self.begin = first;
        self.end = near
            .max()
            .copied()
            .unwrap_or(first)
            .saturating_add(2 * ROOM)
            & !7;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const LAYOUT: FrameLayout = FrameLayout {
        state: 0,
        link: None,
        object: 3,
        previous: 0,
        code: 1,
        instruction: 2,
        local: 4,
    };

    /// Three frames of five words each: the second is the innermost, then the third is.
    #[test]
    fn frames_are_those_of_the_moment_of_the_reading() {
        let mut stack = vec![0_u64; 4096];
        let base = stack.as_ptr() as u64;
        let mut thread = ForeignThread::default();
        let mut read = |stack: &mut Vec<u64>, innermost: u64| {
            for index in 0..3_u64 {
                let frame = 5 * index as usize;
                let caller = if index == 0 {
                    0
                } else {
                    base + 40 * (index - 1)
                };
                let code = 1000 + 100 * index;
                stack[frame..frame + 3].copy_from_slice(&[caller, code, code + 8]);
            }
            let state = [base + 40 * innermost];
            let mut frames = Vec::new();
            let address = state.as_ptr() as u64;
            thread
                .walk(&LAYOUT, address, |_| false, 10, &mut frames)
                .unwrap();
            frames.iter().map(|frame| frame.code).collect::<Vec<_>>()
        };
        assert_eq!(read(&mut stack, 1), [1100, 1000]);
        assert_eq!(read(&mut stack, 2), [1200, 1100, 1000]);
        assert_eq!(read(&mut stack, 0), [1000]);
        assert_eq!(
            read(&mut stack, 2),
            [1200, 1100, 1000],
            "from a copy that is too short"
        );
    }

    #[test]
    fn a_stretch_that_is_gone_is_read_elsewhere() {
        let frame = [0_u64, 1000, 1008, 0, 0];
        let state = [frame.as_ptr() as u64];
        let mut thread = ForeignThread {
            begin: 1 << 60,
            end: (1 << 60) + 4096,
            ..ForeignThread::default()
        };
        let mut frames = Vec::new();
        let address = state.as_ptr() as u64;
        thread
            .walk(&LAYOUT, address, |_| false, 10, &mut frames)
            .unwrap();
        assert_eq!(frames.len(), 1);
        assert_eq!(thread.walk(&LAYOUT, 64, |_| false, 10, &mut frames), None);
    }
}
