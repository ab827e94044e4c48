//! Code objects in memory: the function that a frame runs, and the line that it is at.

use crate::TextLayout;
use crate::line_table::line_at;
use crate::memory::{Memory, read_bytes, read_words};
use crate::walk::RawFrame;

/// The longest table of lines that is read, in bytes.
const LONGEST_TABLE: u64 = 1 << 22;

/// A count of references that no object reaches; the highest bits of the word may be marks.
const MOST_REFERENCES: u64 = 1 << 40;

/// The index of the word of a text that holds the hash of its characters, once that is known. The
/// names of code are interned, so theirs is.
const TEXT_HASH: usize = 3;

/// The index of the word of a bytes object that holds its length, and the offset of its bytes.
const BYTES_LENGTH: usize = 2;
const BYTES_DATA: u64 = 32;

/// The positions of the parts of a code object. Indices count words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLayout {
    /// The address of the type of code objects.
    pub kind: u64,
    /// The index of the pointer to the name of the function.
    pub name: usize,
    /// The index of the pointer to the name of the file.
    pub file: usize,
    /// The index of the pointer to the table of lines.
    pub table: usize,
    /// The offset of the first line, a number of four bytes.
    pub first_line: u64,
    /// The offset of the first instruction.
    pub instructions: u64,
}

/// A code object: what does not change while it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The file, as the interpreter names it.
    pub file: String,
    /// The name of the function.
    pub function: String,
    /// The line of its definition.
    pub first_line: u32,
    table: Vec<u8>,
}

impl CodeLayout {
    /// Returns words that tell the code object from another one that may get its address later, or
    /// `None` if it is another kind of object or cannot be read.
    #[inline]
    pub fn identity<M: Memory>(&self, memory: &M, code: u64) -> Option<[u64; 4]> {
        // Words zero and one of every object are its count of references and its type. Memory that
        // was freed holds an address in place of the count.
        let fields = [0, 1, self.name, self.file, self.table];
        let [count, kind, name, file, table] = memory.gather(code, fields)?;
        let is_alive = kind == self.kind && (1..MOST_REFERENCES).contains(&count);
        if !is_alive {
            return None;
        }
        // The parts of new code may have the addresses of those of freed code, too.
        let [hash] = memory.gather(name, [TEXT_HASH])?;
        Some([name, file, table, hash])
    }

    /// Returns the code object at an address.
    pub fn read(&self, text: &TextLayout, code: u64) -> Option<Code> {
        let [name, file, table, _] = self.identity(&crate::Checked, code)?;
        let aligned = (code + self.first_line) & !7;
        let [word] = read_words(aligned)?;
        let shift = 8 * (code + self.first_line - aligned);
        let length = read_words::<3>(table)?[BYTES_LENGTH];
        if length > LONGEST_TABLE {
            return None;
        }
        Some(Code {
            file: text.read(file)?,
            function: text.read(name)?,
            first_line: (word >> shift) as u32,
            table: read_bytes(table + BYTES_DATA, length as usize)?,
        })
    }

    /// Returns the line that a frame of a code object is at. Instructions without a line count for
    /// the definition.
    pub fn line(&self, code: &Code, frame: &RawFrame) -> u32 {
        let first = frame.code + self.instructions;
        let offset = frame.instruction.wrapping_sub(first);
        line_at(&code.table, code.first_line as i32, offset).unwrap_or(code.first_line)
    }
}
