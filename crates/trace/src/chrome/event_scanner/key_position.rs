//! The position of the scanner within the text of an event, and the search for the next key.

use crate::chrome::keys::{ArgumentKey, EventKey, Key};
use crate::scan::{Cursor, Scan, Stop, decode, inside_quotes};

/// The position at which the next key is expected.
pub(super) struct KeyPosition {
    is_outside: bool,
    in_arguments: bool,
    /// Whether the key is not preceded by a comma.
    is_first: bool,
}

impl KeyPosition {
    /// After the opening brace of the arguments.
    pub(super) const ARGUMENTS: Self = Self {
        is_outside: false,
        in_arguments: true,
        is_first: true,
    };

    /// Returns the position after the value of a key.
    pub(super) const fn behind(key: Key) -> Self {
        let is_end = matches!(key, Key::End);
        Self {
            is_outside: is_end,
            in_arguments: matches!(key, Key::Argument(_)),
            is_first: is_end,
        }
    }

    /// Moves to the next value or past the end of the event. Returns the start of the entry and its
    /// key.
    pub(super) fn next_key(&mut self, cursor: &mut Cursor<'_>) -> Scan<(usize, Key)> {
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
            // White space before the value belongs to the prefix.
            cursor.peek()?;
            let inside = inside_quotes(key).unwrap_or_default();
            return Ok((entry, self.key_of(inside)));
        }
    }

    fn key_of(&self, key: &[u8]) -> Key {
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
