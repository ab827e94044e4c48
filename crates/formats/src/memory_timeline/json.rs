//! The memory timeline in torch's two JSON layouts: points in time, or one row for each change.
//!
//! Points are computed twice, once for their times and once for their sizes, which is cheaper than
//! storing them.

use std::io::Write;

use mindprof_analyze::{Analysis, CategoryBytes, MemoryAction, MemoryCategory, MemoryPlace};

use super::points::points;
use crate::error::Result;

/// The number of bytes to buffer before writing.
const GATHERED: usize = 1 << 16;

/// Writes `[times, sizes]`: the times in microseconds, and for each time a zero followed by the bytes
/// in each category, as torch does.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_memory_timeline(
    analysis: &Analysis,
    place: MemoryPlace,
    out: &mut dyn Write,
) -> Result<()> {
    let mut list = List::new(out);
    list.text("[[")?;
    for (index, point) in points(analysis, place).enumerate() {
        list.separate(index)?;
        list.number(point.time);
    }
    list.text("], [")?;
    let mut row = Row::new();
    for (index, point) in points(analysis, place).enumerate() {
        list.separate(index)?;
        list.bytes(row.of(&point.bytes))?;
    }
    list.text("]]")?;
    list.finish()
}

/// The text of the sizes at one point. The next point reuses the text before the first category that
/// changed.
struct Row {
    bytes: CategoryBytes,
    text: Vec<u8>,
    /// The end of the number of each category in the text.
    ends: [usize; MemoryCategory::ALL.len()],
}

impl Row {
    fn new() -> Self {
        // No size is as low as this, so every category changes at the first point.
        Self {
            bytes: [i64::MIN; MemoryCategory::ALL.len()],
            text: b"[0".to_vec(),
            ends: [0; MemoryCategory::ALL.len()],
        }
    }

    fn of(&mut self, bytes: &CategoryBytes) -> &[u8] {
        let mut pairs = self.bytes.iter().zip(bytes);
        let Some(first) = pairs.position(|(before, now)| before != now) else {
            return &self.text;
        };
        let begin = first
            .checked_sub(1)
            .map_or(b"[0".len(), |last| self.ends[last]);
        self.text.truncate(begin);
        for (&bytes, end) in bytes.iter().zip(&mut self.ends).skip(first) {
            self.text.extend_from_slice(b", ");
            let mut digits = itoa::Buffer::new();
            self.text.extend_from_slice(digits.format(bytes).as_bytes());
            *end = self.text.len();
        }
        self.text.push(b']');
        self.bytes = *bytes;
        &self.text
    }
}

/// Writes a row `[time, action, bytes, category]` for each change, as torch does. A write to a block
/// has two rows, because it may change the category of the block.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_memory_timeline_raw(
    analysis: &Analysis,
    place: MemoryPlace,
    out: &mut dyn Write,
) -> Result<()> {
    let reference = analysis.profile().reference_unix_ns();
    let mut list = List::new(out);
    let mut index = 0;
    list.text("[")?;
    for change in analysis.memory_timeline().changes_in(place) {
        let time = change.time.map_or(-1, |time| (reference + time.0) as i64);
        let bytes = change.bytes as i64;
        let mut row = |bytes: i64, category: usize| {
            list.separate(index)?;
            index += 1;
            list.text("[")?;
            list.number(time);
            for value in [i64::from(change.action as u8), bytes, category as i64] {
                list.text(", ")?;
                list.number(value);
            }
            list.text("]")
        };
        match change.action {
            MemoryAction::Preexisting | MemoryAction::Create => {
                row(bytes, change.category.index())?;
            }
            MemoryAction::IncrementVersion => {
                row(-bytes, change.category.index())?;
                row(bytes, change.after.index())?;
            }
            MemoryAction::Destroy => row(-bytes, change.category.index())?,
        }
    }
    list.text("]")?;
    list.finish()
}

/// A buffered writer of JSON lists with the same spaces as Python's `json` module.
struct List<'a> {
    out: &'a mut dyn Write,
    text: Vec<u8>,
    digits: itoa::Buffer,
}

impl<'a> List<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            text: Vec::with_capacity(GATHERED + 256),
            digits: itoa::Buffer::new(),
        }
    }

    fn separate(&mut self, index: usize) -> Result<()> {
        self.text(if index == 0 { "" } else { ", " })
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= GATHERED {
            self.out.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }

    fn number(&mut self, number: impl itoa::Integer) {
        self.text
            .extend_from_slice(self.digits.format(number).as_bytes());
    }

    fn finish(self) -> Result<()> {
        Ok(self.out.write_all(&self.text)?)
    }
}
