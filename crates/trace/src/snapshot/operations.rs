//! The operations of a pickle of protocols 2 to 5: decodes one from the begin of a window.

/// An operation that only handles data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation<'a> {
    /// A protocol or a frame, which change nothing.
    Skip,
    Stop,
    Mark,
    None,
    Bool(bool),
    Int(i64),
    /// A float, bytes, or an integer of more than 64 bits: no answer needs one.
    Other,
    Text(&'a [u8]),
    EmptyDict,
    EmptyList,
    /// An empty tuple or set.
    EmptyOther,
    /// A tuple of the topmost values.
    Tuple(usize),
    /// A tuple or frozen set of the values behind the mark.
    MarkedOther,
    MarkedList,
    MarkedDict,
    Append,
    Appends,
    SetItem,
    SetItems,
    /// Adds the values behind the mark to a set.
    AddItems,
    Put(u32),
    Memoize,
    Get(u32),
    Pop,
    PopMark,
    Duplicate,
}

/// The begin of a window, decoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decoded<'a> {
    /// An operation and its length.
    Operation(Operation<'a>, usize),
    /// A text or bytes that are too long to be of use: the length of the operation and of the data.
    Long(usize, u64),
    /// The window has to be at least this long.
    More(usize),
    /// The name of an operation that would run code.
    Code(&'static str),
    /// Nothing that a pickle of these protocols contains.
    Bad(String),
}

/// The longest text that is kept. Names of files and functions are shorter.
const LONGEST_TEXT: u64 = 64 << 10;

/// The most bytes of an imported name that are shown.
pub(super) const LONGEST_NAME: usize = 120;

/// Decodes the operation at the begin of a window.
pub(super) fn decode(window: &[u8]) -> Decoded<'_> {
    let Some(&code) = window.first() else {
        return Decoded::More(1);
    };
    if let Some(operation) = without_argument(code) {
        return Decoded::Operation(operation, 1);
    }
    if let Some(name) = code_name(code) {
        return Decoded::Code(name);
    }
    let with = |bytes: usize, operation: fn(u64) -> Operation<'static>| match number(window, bytes)
    {
        Some(number) => Decoded::Operation(operation(number), 1 + bytes),
        None => Decoded::More(1 + bytes),
    };
    match code {
        0x80 => protocol(window),
        0x95 => with(8, |_| Operation::Skip),
        b'J' => with(4, |number| Operation::Int(i64::from(number as u32 as i32))),
        b'K' => with(1, |number| Operation::Int(number as i64)),
        b'M' => with(2, |number| Operation::Int(number as i64)),
        b'G' => with(8, |_| Operation::Other),
        b'q' => with(1, |number| Operation::Put(number as u32)),
        b'r' => with(4, |number| Operation::Put(number as u32)),
        b'h' => with(1, |number| Operation::Get(number as u32)),
        b'j' => with(4, |number| Operation::Get(number as u32)),
        0x8a => counted(window, 1, integer),
        0x8b => counted(window, 4, integer),
        0x8c => counted(window, 1, Operation::Text),
        b'X' => counted(window, 4, Operation::Text),
        0x8d => counted(window, 8, Operation::Text),
        b'C' => counted(window, 1, |_| Operation::Other),
        b'B' => counted(window, 4, |_| Operation::Other),
        0x8e | 0x96 => counted(window, 8, |_| Operation::Other),
        0x97 | 0x98 => Decoded::Bad("it refers to a buffer outside of the file".into()),
        b'I' | b'L' | b'F' | b'S' | b'T' | b'U' | b'V' | b'g' | b'p' => {
            Decoded::Bad("expected protocol 2 to 5, found an operation of an older one".into())
        }
        code => Decoded::Bad(format!("unknown operation {code:#04x}")),
    }
}

const fn without_argument(code: u8) -> Option<Operation<'static>> {
    Some(match code {
        b'.' => Operation::Stop,
        b'(' => Operation::Mark,
        b'N' => Operation::None,
        0x88 => Operation::Bool(true),
        0x89 => Operation::Bool(false),
        b'}' => Operation::EmptyDict,
        b']' => Operation::EmptyList,
        b')' | 0x8f => Operation::EmptyOther,
        0x85 => Operation::Tuple(1),
        0x86 => Operation::Tuple(2),
        0x87 => Operation::Tuple(3),
        b't' | 0x91 => Operation::MarkedOther,
        b'l' => Operation::MarkedList,
        b'd' => Operation::MarkedDict,
        b'a' => Operation::Append,
        b'e' => Operation::Appends,
        b's' => Operation::SetItem,
        b'u' => Operation::SetItems,
        0x90 => Operation::AddItems,
        0x94 => Operation::Memoize,
        b'0' => Operation::Pop,
        b'1' => Operation::PopMark,
        b'2' => Operation::Duplicate,
        _ => return None,
    })
}

/// Returns the name of an operation that imports, calls or builds something.
const fn code_name(code: u8) -> Option<&'static str> {
    Some(match code {
        b'c' => "GLOBAL",
        0x93 => "STACK_GLOBAL",
        b'R' => "REDUCE",
        b'b' => "BUILD",
        b'i' => "INST",
        b'o' => "OBJ",
        0x81 => "NEWOBJ",
        0x92 => "NEWOBJ_EX",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        _ => return None,
    })
}

/// Returns the module and the name that an operation at the begin of a window imports, if lines with
/// them follow it.
pub(super) fn imported_names(window: &[u8]) -> String {
    let rest = match window {
        [b'c' | b'i', rest @ ..] => &rest[..rest.len().min(LONGEST_NAME)],
        _ => return String::new(),
    };
    let names = rest.split(|&byte| byte == b'\n').take(2);
    let names: Vec<_> = names.map(String::from_utf8_lossy).collect();
    names.join(".")
}

fn protocol(window: &[u8]) -> Decoded<'_> {
    match window.get(1) {
        None => Decoded::More(2),
        Some(2..=5) => Decoded::Operation(Operation::Skip, 2),
        Some(found) => Decoded::Bad(format!("expected protocol 2 to 5, found {found}")),
    }
}

/// Returns the number of this many bytes after the code, or `None` if the window is too short.
fn number(window: &[u8], bytes: usize) -> Option<u64> {
    let bytes = window.get(1..=bytes)?;
    let number = bytes.iter().rev();
    Some(number.fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Decodes an operation whose data follows a length of this many bytes.
fn counted<'a>(
    window: &'a [u8],
    bytes: usize,
    operation: impl Fn(&'a [u8]) -> Operation<'a>,
) -> Decoded<'a> {
    let head = 1 + bytes;
    let Some(length) = number(window, bytes) else {
        return Decoded::More(head);
    };
    if length > LONGEST_TEXT {
        return Decoded::Long(head, length);
    }
    let end = head + length as usize;
    match window.get(head..end) {
        Some(data) => Decoded::Operation(operation(data), end),
        None => Decoded::More(end),
    }
}

/// Returns an integer of any length, lowest byte first, with a sign.
///
/// An address may have 64 bits and then takes nine bytes. It keeps its bits, so that
/// `as u64` returns it.
fn integer(data: &[u8]) -> Operation<'_> {
    let data = match data {
        [low @ .., 0] if low.len() == 8 => low,
        data => data,
    };
    let Some(&last) = data.last() else {
        return Operation::Int(0);
    };
    if data.len() > 8 {
        return Operation::Other;
    }
    let sign = if last >= 0x80 { [0xff; 8] } else { [0; 8] };
    let mut bytes = sign;
    bytes[..data.len()].copy_from_slice(data);
    Operation::Int(i64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(window: &[u8]) -> Operation<'_> {
        match decode(window) {
            Decoded::Operation(operation, length) => {
                assert_eq!(length, window.len());
                operation
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn integers_have_a_sign_and_any_length() {
        assert_eq!(whole(b"K\xff"), Operation::Int(255));
        assert_eq!(whole(b"J\xff\xff\xff\xff"), Operation::Int(-1));
        assert_eq!(whole(b"\x8a\x00"), Operation::Int(0));
        assert_eq!(whole(b"\x8a\x02\x00\xff"), Operation::Int(-256));
        assert_eq!(whole(b"\x8a\x02\xff\x00"), Operation::Int(255));
        let address = b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00";
        assert_eq!(whole(address), Operation::Int(i64::MIN));
        assert_eq!(whole(b"\x8a\x0a0123456789"), Operation::Other);
    }

    #[test]
    fn data_that_is_missing_is_asked_for() {
        assert_eq!(decode(b""), Decoded::More(1));
        assert_eq!(decode(b"X\x04\x00"), Decoded::More(5));
        assert_eq!(decode(b"X\x04\x00\x00\x00ab"), Decoded::More(9));
        let long = b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff";
        assert_eq!(decode(long), Decoded::Long(9, u64::MAX));
    }

    #[test]
    fn imported_names_are_told() {
        assert_eq!(decode(b"cos\nsystem\n"), Decoded::Code("GLOBAL"));
        assert_eq!(imported_names(b"cos\nsystem\n(X"), "os.system");
        assert_eq!(imported_names(b"R"), "");
    }
}
