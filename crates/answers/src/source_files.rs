//! The user's own source files, as far as a launcher could read them: functions and lines.

use rustc_hash::FxHashMap;

/// A function of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFunction {
    /// Its first line, decorators included.
    pub first: u32,
    /// Its last line.
    pub last: u32,
    /// Its name, with the classes and functions around it.
    pub name: String,
}

/// A source file. The launcher of a run reads it, because conclusions are drawn without files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// The name by which frames refer to it.
    pub file: String,
    /// Its functions.
    pub functions: Vec<SourceFunction>,
    /// Its lines.
    pub lines: Vec<String>,
}

/// Source files by name. A profile has the line of a frame, and these have its function and text.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles {
    files: FxHashMap<String, SourceFile>,
}

impl SourceFiles {
    /// Collects source files.
    pub fn new(files: Vec<SourceFile>) -> Self {
        let mut files = files;
        for file in &mut files {
            file.functions.sort_by_key(|function| function.first);
        }
        let files = files.into_iter();
        Self {
            files: files.map(|file| (file.file.clone(), file)).collect(),
        }
    }

    /// Returns the innermost function that a line is in.
    pub fn function(&self, file: &str, line: u32) -> Option<&SourceFunction> {
        let functions = &self.files.get(file)?.functions;
        let after = functions.partition_point(|function| function.first <= line);
        let mut before = functions[..after].iter().rev();
        before.find(|function| line <= function.last)
    }

    /// Returns the text of a line without the blanks around it.
    pub fn line(&self, file: &str, line: u32) -> Option<&str> {
        let index = (line as usize).checked_sub(1)?;
        let text = self.files.get(file)?.lines.get(index)?.trim();
        (!text.is_empty()).then_some(text)
    }
}
