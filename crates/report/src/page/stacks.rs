//! The stacks of drawn events: a tree of frames, of which only those in use are written.

use mindprof_model::{Profile, StackId};

use super::columns::Columns;
use super::strings::Strings;

/// The stacks in use. Number zero is the empty stack, and callers precede what they call.
pub(super) struct Stacks<'a> {
    profile: &'a Profile,
    /// The number of each stack of the profile; zero if it is not in use.
    numbers: Vec<u32>,
    callers: Vec<u64>,
    frames: Vec<u64>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            numbers: vec![0; profile.stacks().len() + 1],
            callers: vec![0],
            frames: vec![0],
        }
    }

    /// Returns the number of a stack.
    pub(super) fn number(&mut self, stack: StackId, strings: &mut Strings) -> u32 {
        let mut missing = Vec::new();
        let mut at = stack;
        while at != StackId::NONE && self.numbers[at.index()] == 0 {
            let Some((caller, frame)) = self.profile.stacks().node(at) else {
                break;
            };
            missing.push((at, frame));
            at = caller;
        }
        let mut caller = if at == StackId::NONE {
            0
        } else {
            self.numbers[at.index()]
        };
        for (stack, frame) in missing.into_iter().rev() {
            let text = self.profile.strings().text(frame);
            self.callers.push(u64::from(caller));
            self.frames.push(u64::from(strings.number(text)));
            caller = self.callers.len() as u32 - 1;
            self.numbers[stack.index()] = caller;
        }
        caller
    }

    pub(super) fn write(&self, columns: &mut Columns) {
        columns.push_differences("stack_caller", &self.callers);
        columns.push("stack_frame", &self.frames);
    }
}
