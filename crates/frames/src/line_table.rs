//! The table of lines in a code object, in the format that Python has used since 3.11.
//!
//! Each entry covers some instructions. Its first byte holds a kind and the number of two-byte
//! units; further bytes, which depend on the kind, hold how much the line changes and the columns.

/// The kinds of entries that change the line by more than the kind says itself.
const NO_LINE: u8 = 15;
const LONG: u8 = 14;
const NO_COLUMNS: u8 = 13;
/// The first of the kinds that mean a change by zero, one or two lines.
const ONE_LINE: u8 = 10;

/// The bytes of one unit of instructions.
const UNIT: u64 = 2;

/// Returns the line of the instruction at an offset in bytes, in a function that begins at
/// `first_line`. Returns `None` if the instruction has no line or is not in the table.
pub(crate) fn line_at(table: &[u8], first_line: i32, offset: u64) -> Option<u32> {
    let mut bytes = table.iter().copied();
    let mut line = i64::from(first_line);
    let mut begin = 0;
    while let Some(head) = bytes.next() {
        let kind = head >> 3 & 15;
        match kind {
            NO_LINE => {}
            LONG => {
                line += signed(&mut bytes)?;
                for _ in 0..3 {
                    unsigned(&mut bytes)?;
                }
            }
            NO_COLUMNS => line += signed(&mut bytes)?,
            ONE_LINE.. => {
                line += i64::from(kind - ONE_LINE);
                bytes.nth(1)?;
            }
            _ => {
                bytes.next()?;
            }
        }
        let end = begin + UNIT * (u64::from(head & 7) + 1);
        if (begin..end).contains(&offset) {
            return (kind != NO_LINE)
                .then(|| u32::try_from(line).ok())
                .flatten();
        }
        begin = end;
    }
    None
}

/// Reads a number in groups of six bits, the lowest first.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..60).step_by(6) {
        let byte = bytes.next()?;
        number |= u64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(number);
        }
    }
    None
}

/// Reads a number whose lowest bit is the sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let number = unsigned(bytes)?;
    let amount = (number >> 1) as i64;
    Some(if number & 1 == 0 { amount } else { -amount })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The table that Python 3.13 compiles this function to, which begins in line 10:
    ///
    /// ```text
    /// 10  def f(x):
    /// 11      y = x + 1
    /// 12      for i in y:
    /// 13          g(i,
    /// 14            x)
    /// 15      return y
    /// ```
    const TABLE: [u8; 41] = [
        128, 0, 216, 8, 9, 136, 65, 137, 5, 128, 65, 219, 13, 14, 136, 1, 220, 8, 9, 136, 33, 216,
        10, 11, 246, 3, 1, 9, 13, 241, 3, 0, 14, 15, 240, 6, 0, 12, 13, 128, 72,
    ];

    /// The result of its `co_lines()`, with neighbours of one line joined.
    const LINES: [(u64, u64, u32); 8] = [
        (0, 2, 10),
        (2, 12, 11),
        (12, 22, 12),
        (22, 34, 13),
        (34, 36, 14),
        (36, 50, 13),
        (50, 54, 12),
        (54, 58, 15),
    ];

    #[test]
    fn lines_are_those_of_the_interpreter() {
        for (begin, end, line) in LINES {
            for offset in (begin..end).step_by(2) {
                assert_eq!(line_at(&TABLE, 10, offset), Some(line), "at {offset}");
            }
        }
        assert_eq!(line_at(&TABLE, 10, 58), None, "after the end");
    }

    #[test]
    fn jumps_back_and_large_changes_are_read() {
        // Minus three lines without columns, then plus 100 in the long form.
        let table = [
            0x80 | NO_COLUMNS << 3,
            7,
            0x80 | LONG << 3 | 1,
            64 | 8,
            3,
            0,
            0,
            0,
        ];
        assert_eq!(line_at(&table, 50, 0), Some(47));
        assert_eq!(line_at(&table, 50, 2), Some(147));
        assert_eq!(line_at(&table, 50, 4), Some(147));
        assert_eq!(line_at(&table, 50, 6), None, "after the end");
        let table = [0x80 | NO_LINE << 3, 0x80 | (ONE_LINE + 2) << 3, 0, 0];
        assert_eq!(line_at(&table, 50, 0), None, "no line");
        assert_eq!(line_at(&table, 50, 2), Some(52));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            table in proptest::collection::vec(any::<u8>(), 0..200),
            first: i32,
            offset in 0_u64..500,
        ) {
            let _ = line_at(&table, first, offset);
        }
    }
}
