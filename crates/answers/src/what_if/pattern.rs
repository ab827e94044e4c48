//! Patterns that name operators, kernels, ranges, modules and functions.
//!
//! A pattern is a whole name or a word of it, in upper or lower case: `optimizer` matches
//! `Optimizer.step#AdamW.step`. With `*` it is compared with the whole name.

use mindprof_analyze::Keys;
use mindprof_model::Place;

use crate::called::{MODULE_PREFIX, module_class};

/// A pattern that names are compared with.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// The parts between the asterisks, in lower case.
    parts: Vec<String>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        let text = text.to_lowercase();
        Self {
            parts: text.split('*').map(Into::into).collect(),
        }
    }

    /// Returns whether a user may mean an event of this name.
    pub(super) fn matches(&self, name: &str) -> bool {
        // An asterisk stands for no part of a path, unless the pattern names a file.
        let is_path = Place::parse(name).is_some() && !self.names_a_file() && self.parts.len() > 1;
        let names = [
            Some(name).filter(|_| !is_path),
            Some(Keys::text(name)).filter(|_| !is_path),
            short_name(name),
            name.strip_prefix(MODULE_PREFIX),
        ];
        let mut names = names.into_iter().flatten().map(str::to_lowercase);
        match self.parts.as_slice() {
            [word] => {
                // The words of a path are not names of what runs.
                let has_words = Place::parse(name).is_none();
                names.any(|name| name == *word || (has_words && has_word(&name, word)))
            }
            parts => names.any(|name| is_like(&name, parts)),
        }
    }

    /// Returns whether it contains what only the names of frames with their files do.
    fn names_a_file(&self) -> bool {
        let marks = [".py", "/", "(", ": "];
        let has_mark = |part: &String| marks.iter().any(|mark| part.contains(mark));
        self.parts.iter().any(has_mark)
    }
}

/// Returns the name that a user has for a frame: that of the function or of the module's class.
pub(super) fn short_name(name: &str) -> Option<&str> {
    module_class(name).or_else(|| Place::parse(name).map(|place| place.function))
}

/// Returns whether a text contains a word, with nothing that belongs to a word beside it.
fn has_word(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let starts = word.starts_with(|letter| !is_part(letter));
        let ends = word.ends_with(|letter| !is_part(letter));
        (starts || !before.is_some_and(is_part)) && (ends || !after.is_some_and(is_part))
    })
}

/// Returns whether a text consists of the parts, with anything between them.
fn is_like(text: &str, parts: &[String]) -> bool {
    let [first, middle @ .., last] = parts else {
        return false;
    };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in middle {
        let Some(at) = rest.find(part.as_str()) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_whole_names_match() {
        for (pattern, name) in [
            ("aten::mm", "aten::mm"),
            ("mm", "aten::mm"),
            ("optimizer", "Optimizer.step#AdamW.step"),
            ("Optimizer.step", "Optimizer.step#AdamW.step"),
            ("AdamW.step", "Optimizer.step#AdamW.step"),
            ("augment", "data/sets.py(12): augment"),
            ("Linear", "nn.Module: Linear_3"),
            ("linear_3", "nn.Module: Linear_3"),
            ("cudaMalloc", "cudaMalloc"),
            ("sleep", "<built-in function sleep>"),
            ("*gemm*", "sm90_xmma_gemm_bf16_tn"),
            ("aten::*mm", "aten::addmm"),
            ("*aug*", "data/sets.py(12): augment"),
            ("*sets.py*", "data/sets.py(12): augment"),
            ("*: augment", "data/sets.py(12): augment"),
            ("*", "anything"),
        ] {
            assert!(Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
    }

    #[test]
    fn parts_of_words_do_not_match() {
        for (pattern, name) in [
            ("mm", "aten::addmm"),
            ("gemm", "sm90_xmma_gemm_bf16_tn"),
            ("aten::add", "aten::addmm"),
            ("aten::add", "aten::add_"),
            ("sets", "data/sets.py(12): augment"),
            ("*sets*", "data/sets.py(12): augment"),
            ("Linear", "nn.Module: LinearNorm_3"),
            ("aten::*mm", "my::aten::mm_out"),
            ("", "aten::mm"),
            ("a*b*c", "acb"),
        ] {
            assert!(!Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
    }
}
