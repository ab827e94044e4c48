//! Collects the unknown entries of an event.

use crate::chrome::event::Rest;

/// A run of adjacent unknown arguments, which are copied together.
#[derive(Default)]
pub(super) struct UnknownRun {
    begin: usize,
    end: usize,
}

impl UnknownRun {
    /// Adds an entry, given its range in the `passed` text.
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

/// Appends entries without their leading comma, followed by a comma.
pub(super) fn push_entries(entries: &mut Vec<u8>, text: &[u8]) {
    let is_before = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
    let begin = text.iter().position(|byte| !is_before(byte));
    entries.extend_from_slice(&text[begin.unwrap_or(text.len())..]);
    entries.push(b',');
}
