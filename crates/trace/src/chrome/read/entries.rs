//! The entries of the object that a trace is: the events, and facts about all of them.

use crate::scan::{Cursor, Scan, decode, inside_quotes};

/// What stands before the events, as nearly every trace writes it.
pub(super) const EVENTS_KEY: &[u8] = b"\"traceEvents\"";

/// One entry.
pub(super) enum Entry {
    /// The opening bracket of the events was passed.
    Events,
    /// A key, and the text of its value.
    Fact(String, Vec<u8>),
    /// The object ends.
    End,
}

/// Passes the entry that comes next; of the events, only the opening bracket.
pub(super) fn scan(cursor: &mut Cursor<'_>, is_first: bool) -> Scan<Entry> {
    if cursor.peek()? == b'}' {
        cursor.pass();
        return Ok(Entry::End);
    }
    if !is_first {
        cursor.expect(b',', "expected `,` or `}`")?;
    }
    let key = cursor.string()?;
    let key = decode(inside_quotes(key).unwrap_or_default()).0;
    cursor.expect(b':', "expected `:`")?;
    if key == "traceEvents" && cursor.peek()? == b'[' {
        cursor.pass();
        return Ok(Entry::Events);
    }
    let value = cursor.value()?;
    Ok(Entry::Fact(key.into_owned(), value.to_vec()))
}
