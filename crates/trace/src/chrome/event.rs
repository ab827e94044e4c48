//! One event of a trace, in the form of its text.
//!
//! Repeating texts are ids of fragments; most numbers stay text until it is clear that they are
//! needed. If a key occurs twice, the last value counts.

use super::keys::{ArgumentKey, ArgumentKeys};
use super::time::Stated;
use crate::scan::{Fragment, Fragments, Prefix};

/// The kinds of fragments, each of which is predicted independently. Arguments come first, by key.
pub(super) const CATEGORY: usize = ArgumentKey::TEXTS;
pub(super) const NAME: usize = CATEGORY + 1;

/// The interned texts of a trace.
pub(super) type Texts = Fragments<{ NAME + 1 }>;

/// The fields of an event that profiles use. Missing values are empty.
///
/// The scanner fills one event over and over, and the collector copies what it keeps.
#[derive(Debug, Default)]
pub(super) struct RawEvent<'w> {
    /// The first letter of the phase, or zero if it is not a letter.
    pub(super) phase: u8,
    pub(super) category: Fragment,
    pub(super) name: Fragment,
    pub(super) process: &'w [u8],
    pub(super) thread: &'w [u8],
    /// The prefix that determines both process and thread.
    pub(super) track: Option<Prefix>,
    pub(super) start: Option<Stated>,
    pub(super) duration: Option<Stated>,
    pub(super) arguments: RawArguments<'w>,
    /// The whole event, with its braces.
    pub(super) whole: &'w [u8],
}

impl<'w> RawEvent<'w> {
    /// Clears the event for the next one.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.phase = 0;
        (self.category, self.name) = (Fragment::NONE, Fragment::NONE);
        (self.process, self.thread, self.whole) = (&[], &[], &[]);
        (self.track, self.start, self.duration) = (None, None, None);
        self.arguments.clear();
    }

    pub(super) const fn set_process(&mut self, process: &'w [u8]) {
        (self.process, self.track) = (process, None);
    }

    pub(super) const fn set_thread(&mut self, thread: &'w [u8]) {
        (self.thread, self.track) = (thread, None);
    }
}

/// The arguments of an event that profiles use.
#[derive(Debug, Default)]
pub(super) struct RawArguments<'w> {
    /// The arguments that are present; the arrays below still hold old values for the others.
    pub(super) said: ArgumentKeys,
    texts: [Fragment; ArgumentKey::TEXTS],
    values: [&'w [u8]; ArgumentKey::VALUES],
}

impl<'w> RawArguments<'w> {
    /// Clears the arguments for the next event.
    #[inline]
    pub(super) const fn clear(&mut self) {
        self.said = ArgumentKeys::NONE;
    }

    /// Returns the fragment of an argument whose values are interned.
    #[inline]
    pub(super) const fn text(&self, key: ArgumentKey) -> Fragment {
        if self.said.contains(key) {
            self.texts[key as usize]
        } else {
            Fragment::NONE
        }
    }

    /// Returns the value of any other argument.
    #[inline]
    pub(super) const fn value(&self, key: ArgumentKey) -> &'w [u8] {
        if self.said.contains(key) {
            self.values[key as usize - ArgumentKey::TEXTS]
        } else {
            &[]
        }
    }

    #[inline]
    pub(super) fn set_text(&mut self, key: ArgumentKey, text: Fragment) {
        self.said.add(key);
        self.texts[key as usize] = text;
    }

    #[inline]
    pub(super) fn set_value(&mut self, key: ArgumentKey, value: &'w [u8]) {
        self.said.add(key);
        self.values[key as usize - ArgumentKey::TEXTS] = value;
    }
}

/// Unknown fields and arguments of an event: entries of JSON objects, each followed by a comma.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub(super) fields: Vec<u8>,
    pub(super) arguments: Vec<u8>,
}

impl Rest {
    pub(super) fn clear(&mut self) {
        self.fields.clear();
        self.arguments.clear();
    }
}
