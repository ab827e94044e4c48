//! Reads the events of a trace one by one, and gets faster with what it has seen.
//!
//! Between two values that differ from event to event stands mostly the same text, other values
//! included: it is passed in one step, see [`Steps`]. What is not known is set aside.

use super::event::{CATEGORY, NAME, RawEvent, Rest, Texts};
use super::keys::{ArgumentKey, EventKey, Key};
use super::time::Stated;
use crate::scan::{
    Cursor, Fragment, Passed, Scan, Step, Steps, Stop, Walked, decode, inside_quotes,
};

/// Values that are longer are not passed within a step, and not in one that is longer.
const LONGEST_PASSED: usize = 32;
const LONGEST_STEP: usize = 256;

/// Reads events.
pub(super) struct EventScanner {
    pub(super) texts: Texts,
    /// What the last event said beyond what is known.
    pub(super) rest: Rest,
    steps: Steps<Key>,
    /// The last step of the last event.
    last: Step,
    passed: Vec<Passed<Key>>,
}

impl EventScanner {
    pub(super) fn new() -> Self {
        Self {
            texts: Texts::new(),
            rest: Rest::default(),
            steps: Steps::new(Key::End),
            last: Step::BEGIN,
            passed: Vec::new(),
        }
    }

    /// Passes the event whose opening brace comes next, and fills `event`.
    #[inline]
    pub(super) fn scan<'w>(
        &mut self,
        cursor: &mut Cursor<'w>,
        event: &mut RawEvent<'w>,
    ) -> Scan<()> {
        event.clear();
        self.rest.clear();
        cursor.peek()?;
        let begin = cursor.at();
        let mut step = std::mem::take(&mut self.last);
        let mut strange = Strange::default();
        loop {
            let before = cursor.at();
            step = match self.steps.take(cursor, step) {
                Some(step) => step,
                None => self.walk(cursor, step)?,
            };
            for passed in self.steps.passed(step) {
                let (from, to) = (before + passed.begin as usize, before + passed.end as usize);
                match passed.key {
                    Key::Argument(ArgumentKey::Other) => {
                        strange.add(from, to, cursor.passed(), &mut self.rest);
                    }
                    Key::Field(EventKey::Arguments) => {
                        strange = Strange::default();
                        self.rest.arguments.clear();
                        event.arguments.clear();
                    }
                    key => set(event, key, &cursor.passed()[from..to], passed.fragment),
                }
            }
            match self.steps.key(step) {
                Key::Field(EventKey::Category) => {
                    event.category = self.texts.scan(cursor, CATEGORY, Fragment::NONE)?;
                }
                Key::Field(EventKey::Name) => {
                    event.name = self.texts.scan(cursor, NAME, event.category)?;
                }
                Key::Field(EventKey::Start) => event.start = Some(Stated::scan(cursor)?),
                Key::Field(EventKey::Duration) => event.duration = Some(Stated::scan(cursor)?),
                Key::Field(EventKey::Arguments) => {
                    cursor.value()?;
                    strange = Strange::default();
                    self.rest.arguments.clear();
                    event.arguments.clear();
                }
                Key::Field(EventKey::Other) => {
                    cursor.value()?;
                    let entry = cursor.since(before + self.steps.entry(step));
                    push_entries(&mut self.rest.fields, entry);
                }
                Key::Argument(key) if key.is_text() => {
                    let text = self.texts.scan(cursor, key as usize, event.name)?;
                    event.arguments.set_text(key, text);
                }
                Key::Argument(ArgumentKey::Other) => {
                    cursor.value()?;
                    let from = before + self.steps.entry(step);
                    strange.add(from, cursor.at(), cursor.passed(), &mut self.rest);
                }
                Key::End => break,
                key => set(event, key, cursor.value()?, Fragment::NONE),
            }
        }
        strange.set_aside(cursor.passed(), &mut self.rest);
        event.whole = cursor.since(begin);
        self.last = step;
        Ok(())
    }

    /// Goes a step that did not come after `from` lately.
    #[cold]
    fn walk(&mut self, cursor: &mut Cursor<'_>, from: Step) -> Scan<Step> {
        let begin = cursor.at();
        let may_pass = self.steps.may_pass(from);
        let mut place = Place::behind(self.steps.key(from));
        self.passed.clear();
        let (entry, key) = loop {
            let (entry, key) = place.next_key(cursor)?;
            if key == Key::Field(EventKey::Arguments) && cursor.peek()? == b'{' {
                cursor.pass();
                place = Place::ARGUMENTS;
                self.passed.push(Passed {
                    key,
                    begin: 0,
                    end: 0,
                    fragment: Fragment::NONE,
                });
                continue;
            }
            let value_begin = cursor.at();
            if !may_pass || !key.is_steady() || !self.pass_value(cursor, key, (begin, entry))? {
                cursor.back_to(value_begin);
                break (entry, key);
            }
        };
        Ok(self.steps.learn(
            from,
            &Walked {
                text: cursor.since(begin),
                passed: &self.passed,
                entry: entry - begin,
                key,
            },
        ))
    }

    /// Passes a value within the step that begins at `begin`, if it is short.
    fn pass_value(
        &mut self,
        cursor: &mut Cursor<'_>,
        key: Key,
        (begin, entry): (usize, usize),
    ) -> Scan<bool> {
        let value_begin = cursor.at();
        let value = cursor.value()?;
        let is_list = matches!(value.first(), Some(b'[' | b'{'));
        if is_list || value.len() > LONGEST_PASSED || cursor.at() - begin > LONGEST_STEP {
            return Ok(false);
        }
        let end = (cursor.at() - begin) as u32;
        let mut passed = Passed {
            key,
            begin: (value_begin - begin) as u32,
            end,
            fragment: Fragment::NONE,
        };
        if key == Key::Field(EventKey::Category) {
            passed.fragment = self.texts.intern(value);
        }
        if key == Key::Argument(ArgumentKey::Other) {
            // Of these all is kept, and mostly they stand side by side.
            passed.begin = (entry - begin) as u32;
            if let Some(last) = self.passed.last_mut()
                && last.key == key
                && last.end == passed.begin
            {
                last.end = end;
                return Ok(true);
            }
        }
        self.passed.push(passed);
        Ok(true)
    }
}

/// Sets what an event says under a key.
#[inline]
fn set<'w>(event: &mut RawEvent<'w>, key: Key, raw: &'w [u8], fragment: Fragment) {
    match key {
        Key::Field(EventKey::Phase) => event.phase = phase_of(raw),
        Key::Field(EventKey::Category) => event.category = fragment,
        Key::Field(EventKey::Process) => event.process = raw,
        Key::Field(EventKey::Thread) => event.thread = raw,
        Key::Argument(key) if !key.is_text() => event.arguments.set_value(key, raw),
        // Texts, times and lists are read where they stand.
        Key::Field(
            EventKey::Name
            | EventKey::Start
            | EventKey::Duration
            | EventKey::Arguments
            | EventKey::Other,
        )
        | Key::Argument(_)
        | Key::End => {}
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

/// Arguments that are not known and stand side by side, which are set aside at once.
#[derive(Default)]
struct Strange {
    begin: usize,
    end: usize,
}

impl Strange {
    /// Adds the entry at a place of what was `passed`.
    #[inline]
    fn add(&mut self, begin: usize, end: usize, passed: &[u8], rest: &mut Rest) {
        if self.end != begin {
            self.set_aside(passed, rest);
            self.begin = begin;
        }
        self.end = end;
    }

    #[inline]
    fn set_aside(&self, passed: &[u8], rest: &mut Rest) {
        if self.end > self.begin {
            push_entries(&mut rest.arguments, &passed[self.begin..self.end]);
        }
    }
}

/// Appends entries, with the comma before them or without, and a comma.
fn push_entries(entries: &mut Vec<u8>, text: &[u8]) {
    let is_before = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
    let begin = text.iter().position(|byte| !is_before(byte));
    entries.extend_from_slice(&text[begin.unwrap_or(text.len())..]);
    entries.push(b',');
}

/// Where in an event the next key is looked for.
struct Place {
    is_outside: bool,
    in_arguments: bool,
    /// Whether no comma comes before the key.
    is_first: bool,
}

impl Place {
    /// Behind the opening brace of the arguments.
    const ARGUMENTS: Self = Self {
        is_outside: false,
        in_arguments: true,
        is_first: true,
    };

    /// Returns the place behind the value of a key.
    const fn behind(key: Key) -> Self {
        let is_end = matches!(key, Key::End);
        Self {
            is_outside: is_end,
            in_arguments: matches!(key, Key::Argument(_)),
            is_first: is_end,
        }
    }

    /// Goes up to the next value, or behind the end of the event. Returns where the entry begins
    /// that it is the value of, and its key.
    fn next_key(&mut self, cursor: &mut Cursor<'_>) -> Scan<(usize, Key)> {
        if std::mem::take(&mut self.is_outside) {
            cursor.expect(b'{', "expected an event, which is an object")?;
        }
        loop {
            let entry = cursor.at();
            let byte = cursor.peek()?;
            if byte == b'}' {
                cursor.pass();
                self.is_first = false;
                if !std::mem::take(&mut self.in_arguments) {
                    return Ok((entry, Key::End));
                }
                continue;
            }
            if !std::mem::take(&mut self.is_first) {
                if byte != b',' {
                    return Err(Stop::Bad("expected `,` or `}`"));
                }
                cursor.pass();
            }
            let key = cursor.string()?;
            cursor.expect(b':', "expected `:`")?;
            // White space before the value belongs to the step.
            cursor.peek()?;
            let inside = inside_quotes(key).unwrap_or_default();
            return Ok((entry, self.meaning(inside)));
        }
    }

    fn meaning(&self, key: &[u8]) -> Key {
        let decoded;
        let key = if key.contains(&b'\\') {
            decoded = decode(key).0;
            decoded.as_bytes()
        } else {
            key
        };
        if self.in_arguments {
            Key::Argument(ArgumentKey::of(key))
        } else {
            Key::Field(EventKey::of(key))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan<'w>(scanner: &mut EventScanner, text: &'w [u8]) -> Scan<RawEvent<'w>> {
        let mut event = RawEvent::default();
        scanner.scan(&mut Cursor::new(text), &mut event)?;
        Ok(event)
    }

    #[test]
    fn keys_may_come_in_any_order_and_twice() {
        let text = br#"{"args": {"correlation": 7, "correlation": 8, "x": {"name": 1}}, "tid": 1,
            "name": "a", "\u0070h": "\u0058", "tid": 2, "cat": "c"}"#;
        let mut scanner = EventScanner::new();
        // The second time the steps are known.
        for _ in 0..2 {
            let event = scan(&mut scanner, text).unwrap();
            assert_eq!((event.phase, event.thread), (b'X', &b"2"[..]));
            assert_eq!(event.arguments.value(ArgumentKey::Correlation), b"8");
            assert_eq!(scanner.texts.text(event.name), b"\"a\"");
            assert_eq!(scanner.texts.text(event.category), b"\"c\"");
            assert_eq!(scanner.rest.arguments, b"\"x\": {\"name\": 1},");
        }
    }

    #[test]
    fn arguments_that_are_said_again_are_said_anew() {
        let mut scanner = EventScanner::new();
        let twice = br#"{"ph":"X","args":{"a":1,"correlation":7,"b":2},"args":{"c":3,"d":4}}"#;
        let none = br#"{"ph":"X","args":{"a":1,"correlation":7,"b":2},"args":5,"tid":1}"#;
        for _ in 0..2 {
            let event = scan(&mut scanner, twice).unwrap();
            assert!(event.arguments.said.is_empty());
            assert_eq!(scanner.rest.arguments, br#""c":3,"d":4,"#);
            let event = scan(&mut scanner, none).unwrap();
            assert!(event.arguments.said.is_empty() && event.thread == b"1");
            assert_eq!(scanner.rest.arguments, b"");
        }
    }

    #[test]
    fn values_that_turn_out_to_differ_are_read_one_by_one() {
        let mut scanner = EventScanner::new();
        for number in 0..10_000 {
            let text = format!(
                r#"{{"ph":"X","pid":{},"tid":{number},"args":{{"a":{number},"b":1}},"id":3}} "#,
                number % 3
            );
            let event = scan(&mut scanner, text.as_bytes()).unwrap();
            assert_eq!(event.process, (number % 3).to_string().as_bytes());
            assert_eq!(event.thread, number.to_string().as_bytes());
            let arguments = format!(r#""a":{number},"b":1,"#);
            assert_eq!(scanner.rest.arguments, arguments.as_bytes());
            assert_eq!(scanner.rest.fields, br#""id":3,"#);
        }
        assert!(scanner.steps.len() < 400, "{} steps", scanner.steps.len());
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let mut scanner = EventScanner::new();
        for (text, stop) in [
            ("[", Stop::Bad("expected an event, which is an object")),
            ("{1: 2}", Stop::Bad("expected a string")),
            ("{\"a\" 2}", Stop::Bad("expected `:`")),
            ("{, \"a\": 2}", Stop::Bad("expected a string")),
            ("{\"a\": 2 \"b\"}", Stop::Bad("expected `,` or `}`")),
            ("{\"args\": {\"a\": 2}, }", Stop::Bad("expected a string")),
            ("{\"a\":", Stop::More),
            ("{\"a", Stop::More),
            ("{\"args\": {\"a\": 2}", Stop::More),
        ] {
            assert_eq!(
                scan(&mut scanner, text.as_bytes()).err(),
                Some(stop),
                "{text}"
            );
        }
    }
}
