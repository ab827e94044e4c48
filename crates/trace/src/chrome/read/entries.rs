//! The entries of the top-level object of a trace: the events, and metadata about the whole.

use crate::scan::{Cursor, Scan, decode, inside_quotes};

/// The key of the events, as nearly every trace spells it.
pub(super) const EVENTS_KEY: &[u8] = b"\"traceEvents\"";

/// One entry of the object.
pub(super) enum Entry {
    /// The events; their opening bracket was passed.
    Events,
    /// A key, and the text of its value.
    Fact(String, Vec<u8>),
    /// The end of the object.
    End,
}

/// Passes the next entry, or the opening bracket of the events.
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
