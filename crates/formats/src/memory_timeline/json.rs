//! The timeline as torch's JSON: points, or one row for each change. Points are walked twice, which
//! costs less than to hold them.

use std::io::Write;

use mindprof_analyze::{Analysis, MemoryAction, MemoryDevice};

use super::points::points;
use crate::Result;

/// How much text is gathered before it is written.
const GATHERED: usize = 1 << 16;

/// Writes `[times, sizes]`: microseconds, and for each of them a zero and the bytes by category.
///
/// # Errors
/// When `out` refuses.
pub fn write_memory_timeline(
    analysis: &Analysis,
    device: MemoryDevice,
    out: &mut dyn Write,
) -> Result<()> {
    let mut list = List::new(out);
    list.text("[[")?;
    for (index, (time, _)) in points(analysis, device).enumerate() {
        list.separate(index)?;
        list.number(time);
    }
    list.text("], [")?;
    for (index, (_, bytes)) in points(analysis, device).enumerate() {
        list.separate(index)?;
        list.text("[0")?;
        for bytes in bytes {
            list.text(", ")?;
            list.number(bytes);
        }
        list.text("]")?;
    }
    list.text("]]")?;
    list.finish()
}

/// Writes one row `[time, action, bytes, category]` for each change, and two where a block is
/// written to.
///
/// # Errors
/// When `out` refuses.
pub fn write_memory_timeline_raw(
    analysis: &Analysis,
    device: MemoryDevice,
    out: &mut dyn Write,
) -> Result<()> {
    let reference = analysis.profile().reference_unix_ns();
    let mut list = List::new(out);
    let mut index = 0;
    list.text("[")?;
    for change in analysis.memory_timeline().changes_on(device) {
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

/// Text that is gathered and written in large pieces, with Python's spaces.
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
        self.text.extend_from_slice(text.as_bytes());
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
