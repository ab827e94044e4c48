//! The effect of one step of the scanner: a prefix sets fields of the event by itself, and leads to
//! the next value.

use crate::chrome::event::{RawEvent, Texts};
use crate::chrome::keys::{ArgumentKey, EventKey, Key};
use crate::scan::{Fragment, Prefix, decode, inside_quotes};

/// The fields that the text of a prefix sets, and the key whose value follows it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StepEffect {
    /// The key of the value that follows the prefix.
    pub(super) key: Key,
    /// The offset in the prefix of the entry that it leads to.
    pub(super) entry: usize,
    /// Whether the prefix changes the event, beyond leading to a value.
    pub(super) says_more: bool,
    pub(super) opens_arguments: bool,
    phase: Option<u8>,
    category: Option<Fragment>,
    process: Option<Span>,
    thread: Option<Span>,
    values: Vec<(ArgumentKey, Span)>,
    /// Adjacent unknown arguments.
    pub(super) unknown: Option<Span>,
}

/// A range of bytes in a prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) begin: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) const fn new(begin: usize, end: usize) -> Self {
        Self { begin, end }
    }
}

impl StepEffect {
    /// Records the start of the arguments, which replace earlier ones.
    pub(super) fn open_arguments(&mut self) {
        self.says_more = true;
        self.opens_arguments = true;
        self.values.clear();
        self.unknown = None;
    }

    /// Records a value within the prefix. Returns whether there is room for it.
    pub(super) fn pass(
        &mut self,
        key: Key,
        value: &[u8],
        (place, entry): (Span, Span),
        texts: &mut Texts,
    ) -> bool {
        match key {
            Key::Field(EventKey::Phase) => self.phase = Some(phase_of(value)),
            Key::Field(EventKey::Category) => self.category = Some(texts.intern(value)),
            Key::Field(EventKey::Process) => self.process = Some(place),
            Key::Field(EventKey::Thread) => self.thread = Some(place),
            Key::Argument(ArgumentKey::Other) => match &mut self.unknown {
                Some(unknown) if unknown.end == entry.begin => unknown.end = entry.end,
                Some(_) => return false,
                None => self.unknown = Some(entry),
            },
            Key::Argument(key) if !key.is_text() => self.values.push((key, place)),
            // Texts, times and lists are read individually.
            Key::Field(
                EventKey::Name
                | EventKey::Start
                | EventKey::Duration
                | EventKey::Arguments
                | EventKey::Other,
            )
            | Key::Argument(_)
            | Key::End => return false,
        }
        self.says_more = true;
        true
    }

    /// Applies the effect of a prefix with this text to an event.
    #[inline]
    pub(super) fn say<'w>(&self, event: &mut RawEvent<'w>, text: &'w [u8], prefix: Prefix) {
        if let Some(phase) = self.phase {
            event.phase = phase;
        }
        if let Some(category) = self.category {
            event.category = category;
        }
        match (self.process, self.thread) {
            (Some(process), Some(thread)) => {
                event.process = &text[process.begin..process.end];
                event.thread = &text[thread.begin..thread.end];
                event.track = prefix.known();
            }
            (Some(process), None) => event.set_process(&text[process.begin..process.end]),
            (None, Some(thread)) => event.set_thread(&text[thread.begin..thread.end]),
            (None, None) => {}
        }
        for &(key, place) in &self.values {
            let value = &text[place.begin..place.end];
            event.arguments.set_value(key, value);
        }
    }
}

/// Returns the first letter of a phase, or zero if it is not a letter.
pub(super) fn phase_of(raw: &[u8]) -> u8 {
    match raw {
        [b'"', letter, b'"'] => *letter,
        _ => match inside_quotes(raw).map(|inside| decode(inside).0) {
            Some(text) if text.len() == 1 => text.as_bytes()[0],
            Some(_) | None => 0,
        },
    }
}
