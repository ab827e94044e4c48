//! Columns of whole numbers as bytes that compress well and decode without branches.
//!
//! A column is written byte plane by byte plane: first the lowest byte of every value, then the
//! second lowest, and so on. A sorted column holds differences, which are small. `columns.js` reads
//! them.

use serde::Serialize;

/// Columns one after the other, and the table of where each begins.
#[derive(Debug, Default)]
pub(super) struct Columns {
    table: Vec<Place>,
    bytes: Vec<u8>,
}

/// The place of a column among the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Place {
    name: &'static str,
    offset: usize,
    count: usize,
    /// The number of planes.
    width: usize,
    /// Whether values are differences from the value before, modulo the width.
    is_difference: bool,
}

/// The largest number of planes. Values stay below [`LARGEST`].
const WIDEST: usize = 7;

/// The largest number that scripts count exactly.
pub(super) const LARGEST: u64 = 1 << 53;

impl Columns {
    /// Appends a column of values.
    pub(super) fn push(&mut self, name: &'static str, values: &[u64]) {
        self.push_planes(name, values, false);
    }

    /// Appends a column of values, each as the difference from the one before. Values may fall: then
    /// the difference wraps around.
    pub(super) fn push_differences(&mut self, name: &'static str, values: &[u64]) {
        self.push_planes(name, values, true);
    }

    fn push_planes(&mut self, name: &'static str, values: &[u64], is_difference: bool) {
        let most = values.iter().copied().max().unwrap_or(0);
        let width = (most.checked_ilog2().unwrap_or(0) as usize / 8 + 1).min(WIDEST);
        let offset = self.bytes.len();
        for plane in 0..width {
            let shift = 8 * plane;
            if is_difference {
                let before = std::iter::once(&0).chain(values);
                let pairs = values.iter().zip(before);
                let bytes =
                    pairs.map(|(value, before)| (value.wrapping_sub(*before) >> shift) as u8);
                self.bytes.extend(bytes);
            } else {
                self.bytes
                    .extend(values.iter().map(|value| (value >> shift) as u8));
            }
        }
        self.table.push(Place {
            name,
            offset,
            count: values.len(),
            width,
            is_difference,
        });
    }

    /// Returns the table of columns as JSON, and the bytes.
    pub(super) fn into_parts(self) -> (serde_json::Value, Vec<u8>) {
        let table = serde_json::to_value(&self.table);
        (table.expect("names and numbers are JSON"), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_follow_each_other() {
        let mut columns = Columns::default();
        columns.push("name", &[1, 258, 3]);
        let (table, bytes) = columns.into_parts();
        assert_eq!(bytes, [1, 2, 3, 0, 1, 0]);
        assert_eq!(table[0]["width"], 2);
    }

    #[test]
    fn the_largest_number_is_kept() {
        let mut columns = Columns::default();
        columns.push("duration", &[LARGEST, 1]);
        let (table, bytes) = columns.into_parts();
        assert_eq!(table[0]["width"], 7);
        let planes = bytes.chunks(2).enumerate();
        let value: u64 = planes
            .map(|(plane, bytes)| u64::from(bytes[0]) << (8 * plane))
            .sum();
        assert_eq!(value, LARGEST);
    }

    #[test]
    fn differences_wrap_around() {
        let mut columns = Columns::default();
        columns.push_differences("start", &[5, 7, 250, 2]);
        let (table, bytes) = columns.into_parts();
        assert_eq!(bytes, [5, 2, 243, 8]);
        assert_eq!(table[0]["is_difference"], true);
    }
}
