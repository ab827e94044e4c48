//! The user's own source files, as far as a launcher could read them: functions and lines.

use std::collections::BTreeMap;

use mindprof_model::Metadata;
use rustc_hash::FxHashMap;

/// The metadata key under which a trace of `mindprof run` lists the functions of the user's files.
/// Sampled frames have the line that ran, so that only this tells methods of one name apart.
pub const FUNCTIONS_KEY: &str = "mindprof_functions";

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

    /// Reads the functions that the metadata of a profile lists. Lines are not in it.
    pub fn read(metadata: &Metadata) -> Self {
        type Functions = Vec<(u32, u32, String)>;
        let listed = metadata.get(FUNCTIONS_KEY);
        let listed = listed.and_then(|text| serde_json::from_str(text).ok());
        let listed: BTreeMap<String, Functions> = listed.unwrap_or_default();
        let function = |(first, last, name)| SourceFunction { first, last, name };
        let files = listed.into_iter().map(|(file, functions)| SourceFile {
            file,
            functions: functions.into_iter().map(function).collect(),
            lines: Vec::new(),
        });
        Self::new(files.collect())
    }

    /// Returns the JSON that [`Self::read`] expects in the metadata.
    ///
    /// # Panics
    /// Never: lists of numbers and strings are JSON.
    pub fn functions_json(&self) -> String {
        let files = self.files.values().map(|file| {
            let functions = file.functions.iter();
            let functions = functions.map(|one| (one.first, one.last, one.name.as_str()));
            (file.file.as_str(), functions.collect::<Vec<_>>())
        });
        let files: BTreeMap<&str, Vec<(u32, u32, &str)>> = files.collect();
        serde_json::to_string(&files).expect("lists of numbers and strings are JSON")
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
