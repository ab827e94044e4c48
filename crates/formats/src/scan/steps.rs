//! The steps from one value of an object to the next: comma, key, colon and all white space.
//!
//! ```text
//! "ph": "X", "cat": "cpu_op", "name": ...
//!          ^-------^        ^--------^      two steps: to the key `cat`, and from there to `name`
//! ```
//!
//! Files are written by programs, so the same steps come in the same order. Each is remembered with
//! those that came after it, and is taken by one comparison when it comes again.

use super::cursor::StepText;
use super::{Cursor, Scan, Stop, decode, inside_quotes};

/// The number of a step that was seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step(u16);

impl Step {
    /// Stands before the first step of an object.
    pub(crate) const BEGIN: Self = Self(0);
    /// Stands for a step that is not remembered.
    const UNKNOWN: Self = Self(1);
}

/// No more steps than this are remembered; what comes beyond is read the slow way.
const MOST_STEPS: usize = 512;
/// How many steps are remembered to come after one.
const WAYS: usize = 4;

/// The steps of a file so far. `Key` is what a key means to the reader.
pub(crate) struct Steps<Key> {
    steps: Vec<Known<Key>>,
    key_of: fn(&[u8]) -> Key,
}

struct Known<Key> {
    text: StepText,
    /// What it leads to; nothing where it leads out of the object.
    key: Option<Key>,
    next: [Step; WAYS],
}

impl<Key: Copy + PartialEq> Steps<Key> {
    /// Makes a table in which `key_of` says what the text of a key means.
    pub(crate) fn new(key_of: fn(&[u8]) -> Key) -> Self {
        let root = || Known {
            text: StepText::new(b"").expect("nothing is short enough"),
            key: None,
            next: [Step::UNKNOWN; WAYS],
        };
        Self {
            steps: vec![root(), root()],
            key_of,
        }
    }

    /// Goes from behind a value, or from behind the opening brace, to the next value of the object.
    ///
    /// Returns the step, and the key of the value; no key where the object ends.
    #[inline]
    pub(crate) fn take(
        &mut self,
        cursor: &mut Cursor<'_>,
        from: Step,
    ) -> Scan<(Step, Option<Key>)> {
        for step in self.steps[from.0 as usize].next {
            if step == Step::UNKNOWN {
                break;
            }
            let known = &self.steps[step.0 as usize];
            if cursor.pass_step(&known.text) {
                return Ok((step, known.key));
            }
        }
        self.learn(cursor, from)
    }

    #[cold]
    fn learn(&mut self, cursor: &mut Cursor<'_>, from: Step) -> Scan<(Step, Option<Key>)> {
        let begin = cursor.at();
        let key = read_step(cursor, from == Step::BEGIN)?.map(|key| match inside_quotes(key) {
            Some(inside) if inside.contains(&b'\\') => (self.key_of)(decode(inside).0.as_bytes()),
            Some(inside) => (self.key_of)(inside),
            None => (self.key_of)(key),
        });
        let text = cursor.since(begin);
        let step = self.remember(text, key);
        let next = &mut self.steps[from.0 as usize].next;
        if from != Step::UNKNOWN && step != Step::UNKNOWN {
            // The one that came last goes first; the one that came longest ago is forgotten.
            next.rotate_right(1);
            next[0] = step;
        }
        Ok((step, key))
    }

    fn remember(&mut self, text: &[u8], key: Option<Key>) -> Step {
        let is_it = |known: &Known<Key>| known.text.bytes() == text && known.key == key;
        if let Some(index) = self.steps.iter().position(is_it) {
            return Step(index as u16);
        }
        let Some(text) = StepText::new(text).filter(|_| self.steps.len() < MOST_STEPS) else {
            return Step::UNKNOWN;
        };
        self.steps.push(Known {
            text,
            key,
            next: [Step::UNKNOWN; WAYS],
        });
        Step((self.steps.len() - 1) as u16)
    }
}

/// Passes a step and returns the key that it leads to, with its quotes; nothing at the end of the
/// object.
fn read_step<'w>(cursor: &mut Cursor<'w>, is_first: bool) -> Scan<Option<&'w [u8]>> {
    let byte = cursor.peek()?;
    if byte == b'}' {
        cursor.pass();
        return Ok(None);
    }
    if !is_first {
        if byte != b',' {
            return Err(Stop::Bad("expected `,` or `}`"));
        }
        cursor.pass();
    }
    let key = cursor.string()?;
    cursor.expect(b':', "expected `:`")?;
    // White space before the value belongs to the step, if it is all in the window.
    cursor.peek()?;
    Ok(Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads objects that stand one after another, and lists keys and values.
    fn read(text: &str) -> (Vec<String>, usize) {
        let mut steps = Steps::new(|key| key.first().copied());
        let mut cursor = Cursor::new(text.as_bytes());
        let mut found = Vec::new();
        while cursor.peek() == Ok(b'{') {
            cursor.pass();
            let mut step = Step::BEGIN;
            loop {
                let (next, key) = steps.take(&mut cursor, step).unwrap();
                step = next;
                let Some(key) = key else { break };
                let value = cursor.value().unwrap();
                let value = std::str::from_utf8(value).unwrap();
                found.push(format!("{}={value}", char::from(key.unwrap_or(b'-'))));
            }
        }
        (found, steps.steps.len())
    }

    #[test]
    fn steps_that_come_again_are_known() {
        let (found, steps) =
            read("{\"a\": 1, \"b\":  2}{\"a\": 3, \"b\":  4}{\"a\": 5}{}{\"\\u0062\":6 }");
        assert_eq!(found, ["a=1", "b=2", "a=3", "b=4", "a=5", "b=6"]);
        assert_eq!(steps, 2 + 5, "{{a, b, }}, {{b and the end with a space");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let mut steps = Steps::new(<[u8]>::len);
        for (text, stop) in [
            ("1: 2}", Stop::Bad("expected a string")),
            ("\"a\" 2}", Stop::Bad("expected `:`")),
            (", \"a\": 2}", Stop::Bad("expected a string")),
            ("\"a\":", Stop::More),
            ("\"a", Stop::More),
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            assert_eq!(steps.take(&mut cursor, Step::BEGIN), Err(stop), "{text}");
        }
    }
}
