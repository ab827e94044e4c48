//! Scans the events of a trace one by one, and speeds up as it learns their layout.
//!
//! The text between two values that vary, rarely changing values included, is usually the same for
//! many events. It is passed in one step by the [`PrefixPredictor`]. Unknown entries are set aside.

use self::key_position::KeyPosition;
use self::step_effect::{Span, StepEffect, phase_of};
use self::unknown_run::{UnknownRun, push_entries};
use super::event::{CATEGORY, NAME, RawEvent, Rest, Texts};
use super::keys::{ArgumentKey, EventKey, Key};
use super::time::Stated;
use crate::scan::{Cursor, Fragment, Prefix, PrefixPredictor, Scan};

mod key_position;
mod step_effect;
mod unknown_run;

/// The longest value and the longest prefix for which values are included in a prefix.
const LONGEST_PASSED: usize = 32;
const LONGEST_PREFIX: usize = 256;

/// Scans events, and remembers their layout between events.
///
/// A trace has one scanner, which owns the interned texts that events refer to.
pub(super) struct EventScanner {
    pub(super) texts: Texts,
    /// The unknown entries of the last event.
    pub(super) rest: Rest,
    predictor: PrefixPredictor<StepEffect>,
    /// The last prefix of the last event.
    last: Prefix,
}

impl EventScanner {
    pub(super) fn new() -> Self {
        Self {
            texts: Texts::new(),
            rest: Rest::default(),
            predictor: PrefixPredictor::new(),
            last: Prefix::BEGIN,
        }
    }

    /// Passes the next event, which starts with a brace, and fills `event`.
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
        let mut prefix = std::mem::take(&mut self.last);
        let mut unknown = UnknownRun::default();
        loop {
            let before = cursor.at();
            prefix = match self.predictor.match_next(cursor, prefix) {
                Some(prefix) => prefix,
                None => self.walk(cursor, prefix)?,
            };
            let effect = self.predictor.effect(prefix);
            if effect.says_more {
                let text = cursor.since(before);
                if effect.opens_arguments {
                    event.arguments.clear();
                    self.rest.arguments.clear();
                    unknown = UnknownRun::default();
                }
                effect.say(event, text, prefix);
                if let Some(place) = effect.unknown {
                    let (from, to) = (before + place.begin, before + place.end);
                    unknown.add(from, to, cursor.passed(), &mut self.rest);
                }
            }
            match effect.key {
                Key::Field(EventKey::Name) => {
                    event.name = self.texts.scan(cursor, NAME, event.category)?;
                }
                Key::Field(EventKey::Start) => event.start = Some(Stated::scan(cursor)?),
                Key::Field(EventKey::Duration) => event.duration = Some(Stated::scan(cursor)?),
                Key::End => break,
                Key::Argument(ArgumentKey::Other) => {
                    let from = before + effect.entry;
                    cursor.value()?;
                    unknown.add(from, cursor.at(), cursor.passed(), &mut self.rest);
                }
                Key::Argument(key) if key.is_text() => {
                    let text = self.texts.scan(cursor, key as usize, event.name)?;
                    event.arguments.set_text(key, text);
                }
                Key::Argument(key) => event.arguments.set_value(key, cursor.value()?),
                Key::Field(EventKey::Category) => {
                    event.category = self.texts.scan(cursor, CATEGORY, Fragment::NONE)?;
                }
                Key::Field(EventKey::Phase) => event.phase = phase_of(cursor.value()?),
                Key::Field(EventKey::Process) => event.set_process(cursor.value()?),
                Key::Field(EventKey::Thread) => event.set_thread(cursor.value()?),
                Key::Field(EventKey::Arguments) => {
                    let value = cursor.value()?;
                    event.arguments.clear();
                    self.rest.arguments.clear();
                    unknown = UnknownRun::default();
                    // Arguments that are not an object are kept as one argument named `args`.
                    self.rest.arguments.extend_from_slice(b"\"args\":");
                    push_entries(&mut self.rest.arguments, value);
                }
                Key::Field(EventKey::Other) => {
                    let from = before + effect.entry;
                    cursor.value()?;
                    push_entries(&mut self.rest.fields, cursor.since(from));
                }
            }
        }
        unknown.set_aside(cursor.passed(), &mut self.rest);
        event.whole = cursor.since(begin);
        self.last = prefix;
        Ok(())
    }

    /// Passes a prefix that has not recently followed `from`.
    #[cold]
    fn walk(&mut self, cursor: &mut Cursor<'_>, from: Prefix) -> Scan<Prefix> {
        let begin = cursor.at();
        let may_pass = self.predictor.may_pass(from);
        let mut position = KeyPosition::behind(self.predictor.effect(from).key);
        let mut effect = StepEffect::default();
        loop {
            let (entry, key) = position.next_key(cursor)?;
            let value_begin = cursor.at();
            if key == Key::Field(EventKey::Arguments) {
                if cursor.peek()? == b'{' {
                    cursor.pass();
                    position = KeyPosition::ARGUMENTS;
                    effect.open_arguments();
                    continue;
                }
                if cursor.value()? == b"null" {
                    effect.open_arguments();
                    continue;
                }
                // The text up to here could also precede a brace, so it is not remembered.
                cursor.back_to(value_begin);
                effect.key = key;
                return Ok(self.predictor.hold(effect));
            }
            if may_pass && key.is_steady() {
                let value = cursor.value()?;
                let value_place = Span::new(value_begin - begin, cursor.at() - begin);
                let entry_place = Span::new(entry - begin, cursor.at() - begin);
                if is_short(value, value_place)
                    && effect.pass(key, value, (value_place, entry_place), &mut self.texts)
                {
                    continue;
                }
                cursor.back_to(value_begin);
            }
            (effect.key, effect.entry) = (key, entry - begin);
            return Ok(self.predictor.train(from, cursor.since(begin), effect));
        }
    }
}

fn is_short(value: &[u8], place: Span) -> bool {
    let is_list = matches!(value.first(), Some(b'[' | b'{'));
    !is_list && value.len() <= LONGEST_PASSED && place.end <= LONGEST_PREFIX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Stop;

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
        // The prefixes are known in the second round.
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
            assert_eq!(scanner.rest.arguments, b"\"args\":5,");
        }
    }

    #[test]
    fn arguments_may_be_an_object_or_not() {
        let mut scanner = EventScanner::new();
        for (arguments, rest) in [
            ("{}", ""),
            ("null", ""),
            ("{\"x\":1}", "\"x\":1,"),
            ("5", "\"args\":5,"),
            ("[{}]", "\"args\":[{}],"),
        ]
        .repeat(3)
        {
            let text = format!("{{\"ph\":\"X\",\"tid\":1,\"args\":{arguments},\"pid\":2}}");
            let event = scan(&mut scanner, text.as_bytes()).unwrap();
            assert_eq!((event.thread, event.process), (&b"1"[..], &b"2"[..]));
            assert_eq!(scanner.rest.arguments, rest.as_bytes());
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
        assert!(
            scanner.predictor.len() < 400,
            "{} prefixes",
            scanner.predictor.len()
        );
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
