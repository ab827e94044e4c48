//! One event of a trace, as its text says it.
//!
//! Texts that come again are numbers of fragments; most numbers stay text until it is known whether
//! they are needed. A key that comes twice counts as it was said last.

use super::keys::{ArgumentKey, ArgumentKeys};
use super::time::Stated;
use crate::scan::{Fragment, Fragments, Prefix};

/// What a fragment is: each kind is guessed by itself. Arguments come first, by their keys.
pub(super) const CATEGORY: usize = ArgumentKey::TEXTS;
pub(super) const NAME: usize = CATEGORY + 1;

/// The texts of a trace.
pub(super) type Texts = Fragments<{ NAME + 1 }>;

/// The parts of an event that profiles are made of. Values that are not there are empty.
#[derive(Debug, Default)]
pub(super) struct RawEvent<'w> {
    /// The first letter of the phase, zero if it is no letter.
    pub(super) phase: u8,
    pub(super) category: Fragment,
    pub(super) name: Fragment,
    pub(super) process: &'w [u8],
    pub(super) thread: &'w [u8],
    /// The prefix that says both process and thread.
    pub(super) track: Option<Prefix>,
    pub(super) start: Option<Stated>,
    pub(super) duration: Option<Stated>,
    pub(super) arguments: RawArguments<'w>,
    /// All of it, with its braces.
    pub(super) whole: &'w [u8],
}

impl<'w> RawEvent<'w> {
    /// Empties it for the next event.
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

/// The arguments of an event that profiles are made of.
#[derive(Debug, Default)]
pub(super) struct RawArguments<'w> {
    /// Those that are there; of the others, the last event's still lie below.
    pub(super) said: ArgumentKeys,
    texts: [Fragment; ArgumentKey::TEXTS],
    values: [&'w [u8]; ArgumentKey::VALUES],
}

impl<'w> RawArguments<'w> {
    /// Empties them for the next event.
    #[inline]
    pub(super) const fn clear(&mut self) {
        self.said = ArgumentKeys::NONE;
    }

    /// Returns the text of an argument that texts are kept of.
    #[inline]
    pub(super) const fn text(&self, key: ArgumentKey) -> Fragment {
        if self.said.contains(key) {
            self.texts[key as usize]
        } else {
            Fragment::NONE
        }
    }

    /// Returns the value of another argument.
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

/// What an event says that is not known: entries of JSON objects with a comma behind each.
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
