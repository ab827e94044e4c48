//! One event of a trace, as its text says it.
//!
//! Texts that come again are numbers of fragments; numbers stay text until it is known whether they
//! are needed. A key that comes twice counts as it was said last; what is not known is set aside.

use super::keys::{ArgumentKey, ArgumentKeys, EventKey};
use crate::scan::{Cursor, Fragment, Fragments, Scan, Step, Steps, decode, inside_quotes};

/// What a fragment is: each kind is guessed by itself. Arguments come first, by their keys.
const CATEGORY: usize = ArgumentKey::TEXTS;
const NAME: usize = CATEGORY + 1;

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
    pub(super) start: &'w [u8],
    pub(super) duration: &'w [u8],
    pub(super) arguments: RawArguments<'w>,
    /// All of it, with its braces.
    pub(super) whole: &'w [u8],
}

/// The arguments of an event that profiles are made of.
#[derive(Debug, Default)]
pub(super) struct RawArguments<'w> {
    /// Those that are there.
    pub(super) said: ArgumentKeys,
    texts: [Fragment; ArgumentKey::TEXTS],
    values: [&'w [u8]; ArgumentKey::VALUES],
}

impl<'w> RawArguments<'w> {
    /// Returns the text of an argument that texts are kept of.
    #[inline]
    pub(super) const fn text(&self, key: ArgumentKey) -> Fragment {
        self.texts[key as usize]
    }

    /// Returns the value of another argument.
    #[inline]
    pub(super) const fn value(&self, key: ArgumentKey) -> &'w [u8] {
        self.values[key as usize - ArgumentKey::TEXTS]
    }

    pub(super) fn set_text(&mut self, key: ArgumentKey, text: Fragment) {
        self.said.add(key);
        self.texts[key as usize] = text;
    }

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
    fn clear(&mut self) {
        self.fields.clear();
        self.arguments.clear();
    }
}

/// Appends entries, with the comma before them or without, and a comma.
fn push_entries(entries: &mut Vec<u8>, text: &[u8]) {
    let is_before = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
    let begin = text.iter().position(|byte| !is_before(byte));
    entries.extend_from_slice(&text[begin.unwrap_or(text.len())..]);
    entries.push(b',');
}

/// Reads events, and gets faster with what it has seen.
pub(super) struct EventScanner {
    pub(super) texts: Texts,
    /// What the last event said beyond what is known.
    pub(super) rest: Rest,
    event_steps: Steps<EventKey>,
    argument_steps: Steps<ArgumentKey>,
}

impl EventScanner {
    pub(super) fn new() -> Self {
        Self {
            texts: Texts::new(),
            rest: Rest::default(),
            event_steps: Steps::new(EventKey::of),
            argument_steps: Steps::new(ArgumentKey::of),
        }
    }

    /// Passes the event whose opening brace comes next, and fills `event`, which is empty.
    #[inline]
    pub(super) fn scan<'w>(
        &mut self,
        cursor: &mut Cursor<'w>,
        event: &mut RawEvent<'w>,
    ) -> Scan<()> {
        cursor.peek()?;
        let begin = cursor.at();
        cursor.expect(b'{', "expected an event, which is an object")?;
        self.rest.clear();
        let mut step = Step::BEGIN;
        loop {
            let before = cursor.at();
            let (next, key) = self.event_steps.take(cursor, step)?;
            step = next;
            let Some(key) = key else { break };
            match key {
                EventKey::Phase => event.phase = phase_of(cursor.value()?),
                EventKey::Category => {
                    event.category = self.texts.scan(cursor, CATEGORY, Fragment::NONE)?;
                }
                EventKey::Name => {
                    event.name = self.texts.scan(cursor, NAME, event.category)?;
                }
                EventKey::Process => event.process = cursor.value()?,
                EventKey::Thread => event.thread = cursor.value()?,
                EventKey::Start => event.start = cursor.value()?,
                EventKey::Duration => event.duration = cursor.value()?,
                EventKey::Arguments => {
                    if !event.arguments.said.is_empty() || !self.rest.arguments.is_empty() {
                        self.rest.arguments.clear();
                        event.arguments = RawArguments::default();
                    }
                    self.scan_arguments(cursor, event.name, &mut event.arguments)?;
                }
                EventKey::Other => {
                    cursor.value()?;
                    push_entries(&mut self.rest.fields, cursor.since(before));
                }
            }
        }
        event.whole = cursor.since(begin);
        Ok(())
    }

    fn scan_arguments<'w>(
        &mut self,
        cursor: &mut Cursor<'w>,
        name: Fragment,
        found: &mut RawArguments<'w>,
    ) -> Scan<()> {
        if cursor.peek()? != b'{' {
            let value = cursor.value()?;
            if value != b"null" {
                // It is one argument, under the name that it has.
                self.rest.arguments.extend_from_slice(b"\"args\":");
                push_entries(&mut self.rest.arguments, value);
            }
            return Ok(());
        }
        cursor.pass();
        let mut step = Step::BEGIN;
        // Those that are not known mostly stand side by side, and are set aside at once.
        let mut strange = None;
        loop {
            let before = cursor.at();
            let (next, key) = self.argument_steps.take(cursor, step)?;
            step = next;
            if key == Some(ArgumentKey::Other) {
                cursor.value()?;
                strange.get_or_insert(before);
                continue;
            }
            if let Some(begin) = strange.take() {
                let text = &cursor.passed()[begin..before];
                push_entries(&mut self.rest.arguments, text);
            }
            let Some(key) = key else { return Ok(()) };
            if key.is_text() {
                let text = self.texts.scan(cursor, key as usize, name)?;
                found.set_text(key, text);
            } else {
                found.set_value(key, cursor.value()?);
            }
        }
    }
}

fn phase_of(raw: &[u8]) -> u8 {
    match raw {
        [b'"', letter, b'"'] => *letter,
        _ => match inside_quotes(raw).map(|inside| decode(inside).0) {
            Some(text) if text.len() == 1 => text.as_bytes()[0],
            Some(_) | None => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_come_in_any_order_and_twice() {
        let text = br#"{"args": {"correlation": 7, "correlation": 8, "x": {"name": 1}}, "tid": 1,
            "name": "a", "\u0070h": "\u0058", "tid": 2, "cat": "c"}"#;
        let mut scanner = EventScanner::new();
        let mut event = RawEvent::default();
        scanner.scan(&mut Cursor::new(text), &mut event).unwrap();
        assert_eq!((event.phase, event.thread), (b'X', &b"2"[..]));
        assert_eq!(event.arguments.value(ArgumentKey::Correlation), b"8");
        assert_eq!(scanner.texts.text(event.name), b"\"a\"");
        assert_eq!(scanner.texts.text(event.category), b"\"c\"");
        assert_eq!(scanner.rest.arguments, b"\"x\": {\"name\": 1},");
    }
}
