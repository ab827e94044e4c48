//! Source lines in a page: those of the user's files that cost something, and those around them.

use std::collections::BTreeMap;

use mindprof_answers::{LineCost, SourceFile};
use serde_json::{Value, json};

use super::contents::Contents;

/// The number of lines around a costly one that are shown with it.
const CONTEXT: u32 = 4;

/// Returns the lines of each file by number. Other lines of the files stay out of the page.
pub(super) fn source_json(contents: &Contents<'_>, sources: &[SourceFile]) -> Value {
    let functions = &contents.explanation.functions;
    let lines = functions.lines.iter().chain(&functions.lines_elsewhere);
    let findings = contents.explanation.advice.findings.iter();
    let places = findings.filter_map(|finding| finding.place.as_ref());
    let costly = lines.map(|LineCost { file, line, .. }| (file.as_str(), *line));
    let costly = costly.chain(places.map(|place| (place.file.as_str(), place.line)));
    let mut files: BTreeMap<&str, BTreeMap<u32, String>> = BTreeMap::new();
    for (file, line) in costly {
        let Some(source) = sources.iter().find(|source| source.file == file) else {
            continue;
        };
        let kept = files.entry(file).or_default();
        for number in line.saturating_sub(CONTEXT).max(1)..=line.saturating_add(CONTEXT) {
            if let Some(text) = source.lines.get(number as usize - 1) {
                kept.insert(number, crate::visible::visible_lines(text).into_owned());
            }
        }
    }
    json!(files)
}
