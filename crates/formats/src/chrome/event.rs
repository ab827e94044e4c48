//! One event of a trace, as its text says it.
//!
//! Texts that come again are numbers of fragments; numbers stay text until it is known whether they
//! are needed. A key that comes twice counts as it was said last; what is not known is passed over.

use crate::scan::{Cursor, Fragment, Fragments, Scan, Step, Steps, decode, inside_quotes};

/// What a fragment is: each kind is guessed by itself.
#[derive(Clone, Copy)]
enum Kind {
    Category,
    Name,
    Dims,
    Types,
    Strides,
    Values,
    ListTypes,
    CallStack,
    ArgumentName,
}

/// The texts of a trace.
pub(super) type Texts = Fragments<9>;

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
}

/// The arguments of an event that profiles are made of.
#[derive(Debug, Default)]
pub(super) struct RawArguments<'w> {
    pub(super) sequence: &'w [u8],
    pub(super) forward_thread: &'w [u8],
    /// Dims, types, strides and values of the inputs, and the types of tensors in lists.
    pub(super) inputs: [Fragment; 5],
    pub(super) finished: &'w [u8],
    pub(super) asynchronous: &'w [u8],
    pub(super) name: Fragment,
    pub(super) call_stack: Fragment,
    pub(super) external: &'w [u8],
    pub(super) correlation: &'w [u8],
    pub(super) python: &'w [u8],
    pub(super) python_parent: &'w [u8],
    pub(super) storages: &'w [u8],
    pub(super) roles: &'w [u8],
    pub(super) memory: RawMemory<'w>,
}

/// The arguments of a memory record.
#[derive(Debug, Default)]
pub(super) struct RawMemory<'w> {
    pub(super) bytes: &'w [u8],
    pub(super) address: &'w [u8],
    pub(super) total_allocated: &'w [u8],
    pub(super) total_reserved: &'w [u8],
    pub(super) device: &'w [u8],
    pub(super) device_index: &'w [u8],
}

/// Reads events, and gets faster with what it has seen.
pub(super) struct EventScanner {
    pub(super) texts: Texts,
    event_steps: Steps<EventKey>,
    argument_steps: Steps<ArgumentKey>,
}

impl EventScanner {
    pub(super) fn new() -> Self {
        Self {
            texts: Texts::new(),
            event_steps: Steps::new(event_key),
            argument_steps: Steps::new(argument_key),
        }
    }

    /// Passes the event whose opening brace comes next.
    pub(super) fn scan<'w>(&mut self, cursor: &mut Cursor<'w>) -> Scan<RawEvent<'w>> {
        cursor.expect(b'{', "expected an event, which is an object")?;
        let mut event = RawEvent::default();
        let mut step = Step::BEGIN;
        loop {
            let (next, key) = self.event_steps.take(cursor, step)?;
            step = next;
            let Some(key) = key else { return Ok(event) };
            match key {
                EventKey::Phase => event.phase = phase_of(cursor.value()?),
                EventKey::Category => {
                    let kind = Kind::Category as usize;
                    event.category = self.texts.scan(cursor, kind, Fragment::NONE)?;
                }
                EventKey::Name => {
                    event.name = self
                        .texts
                        .scan(cursor, Kind::Name as usize, event.category)?;
                }
                EventKey::Process => event.process = cursor.value()?,
                EventKey::Thread => event.thread = cursor.value()?,
                EventKey::Start => event.start = cursor.value()?,
                EventKey::Duration => event.duration = cursor.value()?,
                EventKey::Arguments => {
                    event.arguments = self.scan_arguments(cursor, event.name)?;
                }
                EventKey::Other => {
                    cursor.value()?;
                }
            }
        }
    }

    fn scan_arguments<'w>(
        &mut self,
        cursor: &mut Cursor<'w>,
        name: Fragment,
    ) -> Scan<RawArguments<'w>> {
        let mut found = RawArguments::default();
        if cursor.peek()? != b'{' {
            cursor.value()?;
            return Ok(found);
        }
        cursor.pass();
        let mut step = Step::BEGIN;
        loop {
            let (next, key) = self.argument_steps.take(cursor, step)?;
            step = next;
            let Some(key) = key else { return Ok(found) };
            let mut text = |kind: Kind| self.texts.scan(cursor, kind as usize, name);
            match key {
                ArgumentKey::Dims => found.inputs[0] = text(Kind::Dims)?,
                ArgumentKey::Types => found.inputs[1] = text(Kind::Types)?,
                ArgumentKey::Strides => found.inputs[2] = text(Kind::Strides)?,
                ArgumentKey::Values => found.inputs[3] = text(Kind::Values)?,
                ArgumentKey::ListTypes => found.inputs[4] = text(Kind::ListTypes)?,
                ArgumentKey::CallStack => found.call_stack = text(Kind::CallStack)?,
                ArgumentKey::Name => found.name = text(Kind::ArgumentName)?,
                ArgumentKey::Sequence => found.sequence = cursor.value()?,
                ArgumentKey::ForwardThread => found.forward_thread = cursor.value()?,
                ArgumentKey::Finished => found.finished = cursor.value()?,
                ArgumentKey::Asynchronous => found.asynchronous = cursor.value()?,
                ArgumentKey::External => found.external = cursor.value()?,
                ArgumentKey::Correlation => found.correlation = cursor.value()?,
                ArgumentKey::Python => found.python = cursor.value()?,
                ArgumentKey::PythonParent => found.python_parent = cursor.value()?,
                ArgumentKey::Storages => found.storages = cursor.value()?,
                ArgumentKey::Roles => found.roles = cursor.value()?,
                ArgumentKey::Bytes => found.memory.bytes = cursor.value()?,
                ArgumentKey::Address => found.memory.address = cursor.value()?,
                ArgumentKey::TotalAllocated => found.memory.total_allocated = cursor.value()?,
                ArgumentKey::TotalReserved => found.memory.total_reserved = cursor.value()?,
                ArgumentKey::DeviceType => found.memory.device = cursor.value()?,
                ArgumentKey::DeviceId => found.memory.device_index = cursor.value()?,
                ArgumentKey::Other => {
                    cursor.value()?;
                }
            }
        }
    }
}

/// Returns the integer of a JSON number, zero for other JSON and for what does not fit.
pub(super) fn number_of<T: TryFrom<i128> + Default>(raw: &[u8]) -> T {
    integer_of(raw).unwrap_or_default()
}

/// Returns the integer of a JSON number, if it is one and fits.
pub(super) fn integer_of<T: TryFrom<i128>>(raw: &[u8]) -> Option<T> {
    let (is_negative, digits) = match raw.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, raw),
    };
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    let magnitude = if digits.len() < 19 {
        i128::from(decimal(digits)?)
    } else {
        let (high, low) = digits.split_at(digits.len() - 18);
        i128::from(decimal(high)?) * 1_000_000_000_000_000_000 + i128::from(decimal(low)?)
    };
    T::try_from(if is_negative { -magnitude } else { magnitude }).ok()
}

/// Returns the number of at most 18 decimal digits.
fn decimal(digits: &[u8]) -> Option<u64> {
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKey {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Start,
    Duration,
    Arguments,
    Other,
}

fn event_key(text: &[u8]) -> EventKey {
    match text {
        b"ph" => EventKey::Phase,
        b"cat" => EventKey::Category,
        b"name" => EventKey::Name,
        b"pid" => EventKey::Process,
        b"tid" => EventKey::Thread,
        b"ts" => EventKey::Start,
        b"dur" => EventKey::Duration,
        b"args" => EventKey::Arguments,
        _ => EventKey::Other,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentKey {
    Sequence,
    ForwardThread,
    Dims,
    Types,
    Strides,
    Values,
    ListTypes,
    Finished,
    Asynchronous,
    Name,
    CallStack,
    External,
    Correlation,
    Python,
    PythonParent,
    Storages,
    Roles,
    Bytes,
    Address,
    TotalAllocated,
    TotalReserved,
    DeviceType,
    DeviceId,
    Other,
}

fn argument_key(text: &[u8]) -> ArgumentKey {
    match text {
        b"Sequence number" => ArgumentKey::Sequence,
        b"Fwd thread id" => ArgumentKey::ForwardThread,
        b"Input Dims" => ArgumentKey::Dims,
        b"Input type" => ArgumentKey::Types,
        b"Input Strides" => ArgumentKey::Strides,
        b"Concrete Inputs" => ArgumentKey::Values,
        b"Input List type" => ArgumentKey::ListTypes,
        b"finished" => ArgumentKey::Finished,
        b"Async" => ArgumentKey::Asynchronous,
        b"name" => ArgumentKey::Name,
        b"Call stack" => ArgumentKey::CallStack,
        b"External id" => ArgumentKey::External,
        b"correlation" => ArgumentKey::Correlation,
        b"Python id" => ArgumentKey::Python,
        b"Python parent id" => ArgumentKey::PythonParent,
        b"Input Storages" => ArgumentKey::Storages,
        b"Tensor Roles" => ArgumentKey::Roles,
        b"Bytes" => ArgumentKey::Bytes,
        b"Addr" => ArgumentKey::Address,
        b"Total Allocated" => ArgumentKey::TotalAllocated,
        b"Total Reserved" => ArgumentKey::TotalReserved,
        b"Device Type" => ArgumentKey::DeviceType,
        b"Device Id" => ArgumentKey::DeviceId,
        _ => ArgumentKey::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_fit_or_are_none() {
        assert_eq!(integer_of(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer_of::<u64>(b"18446744073709551616"), None);
        assert_eq!(integer_of(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer_of::<u32>(b"-1"), None);
        for text in ["", "-", "1.0", "1e3", "x", "\"1\"", "999999999999999999999"] {
            assert_eq!(integer_of::<i64>(text.as_bytes()), None, "{text}");
        }
        assert_eq!(number_of::<u32>(b"null"), 0);
    }

    #[test]
    fn keys_may_come_in_any_order_and_twice() {
        let text = br#"{"args": {"correlation": 7, "correlation": 8, "x": {"name": 1}}, "tid": 1,
            "name": "a", "\u0070h": "\u0058", "tid": 2, "cat": "c"}"#;
        let mut scanner = EventScanner::new();
        let event = scanner.scan(&mut Cursor::new(text)).unwrap();
        assert_eq!((event.phase, event.thread), (b'X', &b"2"[..]));
        assert_eq!(event.arguments.correlation, b"8");
        assert_eq!(scanner.texts.text(event.name), b"\"a\"");
        assert_eq!(scanner.texts.text(event.category), b"\"c\"");
    }
}
