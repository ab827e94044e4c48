//! What an event says that is not known, while it is set aside.

use crate::chrome::event::Rest;

/// Arguments that are not known and stand side by side, which are set aside at once.
#[derive(Default)]
pub(super) struct UnknownRun {
    begin: usize,
    end: usize,
}

impl UnknownRun {
    /// Adds the entry at a place of what was `passed`.
    #[inline]
    pub(super) fn add(&mut self, begin: usize, end: usize, passed: &[u8], rest: &mut Rest) {
        if self.end != begin {
            self.set_aside(passed, rest);
            self.begin = begin;
        }
        self.end = end;
    }

    #[inline]
    pub(super) fn set_aside(&self, passed: &[u8], rest: &mut Rest) {
        if self.end > self.begin {
            push_entries(&mut rest.arguments, &passed[self.begin..self.end]);
        }
    }
}

/// Appends entries, with the comma before them or without, and a comma.
pub(super) fn push_entries(entries: &mut Vec<u8>, text: &[u8]) {
    let is_before = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
    let begin = text.iter().position(|byte| !is_before(byte));
    entries.extend_from_slice(&text[begin.unwrap_or(text.len())..]);
    entries.push(b',');
}
