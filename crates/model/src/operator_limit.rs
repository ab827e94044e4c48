//! `OperatorLimit`: which operators a recording holds, if it does not hold all of them.
//!
//! The recorder leaves the others out, and rows estimate them if a share was drawn at random. In
//! between, the limit is an entry of the profile's metadata, so that it survives a trace file.

use std::fmt;

use crate::Metadata;

const KEY: &str = "mindprof_only";

/// The word that stands for no operators.
const RANGES: &str = "ranges";

/// A choice of operators by name, by depth or at random. An operator is recorded if all parts of the
/// limit admit it; ranges and Python calls are recorded regardless.
///
/// It is written as a list of words, which is also what users write:
///
/// ```
/// use mindprof_model::OperatorLimit;
///
/// let limit = OperatorLimit::parse(["aten::conv*", "depth=2"]).unwrap();
/// assert!(limit.admits_name("aten::conv2d") && !limit.admits_name("aten::add"));
/// assert_eq!(limit.depth, Some(2));
/// assert_eq!(OperatorLimit::parse(["ranges"]).unwrap().names, Some(vec![]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorLimit {
    /// Patterns, one of which a name must match; `None` if every name is admitted.
    pub names: Option<Vec<String>>,
    /// How deep operators may lie inside each other: 1 admits those that no other one encloses.
    pub depth: Option<u32>,
    /// The probability with which an outermost operator is recorded, with all operators inside it.
    pub share: Option<f64>,
}

impl OperatorLimit {
    /// Parses a list of words: `ranges`, `depth=N`, `share=P` (also `share=N%`), or patterns of names
    /// with the wildcards `*`, `?`, `[abc]` and `[!abc]`.
    ///
    /// # Errors
    /// Returns what is wrong with the first wrong word, and how to mend it.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (mut limit, mut is_ranges, mut is_empty) = (Self::nothing(), false, true);
        for word in words {
            is_empty = false;
            if let Some(text) = word.strip_prefix("depth=") {
                let depth = text.parse().ok().filter(|&depth| depth > 0);
                let depth = depth.ok_or_else(|| {
                    format!("{word:?} is not a depth: use depth=1 or a larger integer")
                })?;
                set_once(&mut limit.depth, depth, "depth")?;
            } else if let Some(text) = word.strip_prefix("share=") {
                let share = parse_share(text).ok_or_else(|| {
                    format!("{word:?} is not a share: use a number above 0 and below 1, such as share=0.1")
                })?;
                set_once(&mut limit.share, share, "share")?;
            } else if word == RANGES {
                is_ranges = true;
            } else {
                check_pattern(word)?;
                (limit.names.get_or_insert_default()).push(word.to_owned());
            }
        }
        if is_empty {
            return Err("it is empty: name what to record, or use None for everything".to_owned());
        }
        if is_ranges {
            if limit != Self::nothing() {
                return Err(
                    "\"ranges\" records no operators: use it alone, or leave it out, because \
                            ranges are always recorded"
                        .to_owned(),
                );
            }
            limit.names = Some(Vec::new());
        }
        Ok(limit)
    }

    const fn nothing() -> Self {
        Self {
            names: None,
            depth: None,
            share: None,
        }
    }

    /// Returns whether no operators are recorded at all.
    pub fn is_ranges(&self) -> bool {
        self.names.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns whether an operator of this name may be recorded.
    pub fn admits_name(&self, name: &str) -> bool {
        let matches = |pattern: &String| matches(pattern, name);
        (self.names.as_ref()).is_none_or(|names| names.iter().any(matches))
    }

    /// Returns the words that [`Self::parse`] accepts.
    pub fn words(&self) -> Vec<String> {
        if self.is_ranges() {
            return vec![RANGES.to_owned()];
        }
        let mut words = self.names.clone().unwrap_or_default();
        words.extend(self.depth.map(|depth| format!("depth={depth}")));
        words.extend(self.share.map(|share| format!("share={share}")));
        words
    }

    /// Writes it to the metadata of a profile, as a list of texts.
    pub fn write(&self, metadata: &mut Metadata) {
        // Words contain nothing that JSON escapes.
        let words = self.words();
        let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        metadata.set(KEY, format!("[{}]", words.join(",")));
    }

    /// Reads it from metadata. Returns `None` if everything was recorded or the entry is malformed.
    pub fn read(metadata: &Metadata) -> Option<Self> {
        let list = metadata.get(KEY)?.trim();
        let list = list.strip_prefix('[')?.strip_suffix(']')?;
        // Between the quotes of a word there is no other quote, so every second piece is a word.
        let words = list.split('"').skip(1).step_by(2);
        Self::parse(words).ok()
    }
}

impl fmt::Display for OperatorLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(", "))
    }
}

fn set_once<T>(place: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    match place.replace(value) {
        Some(_) => Err(format!("it has two values of {name}: use one")),
        None => Ok(()),
    }
}

fn parse_share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (share > 0.0 && share < 1.0).then_some(share)
}

fn check_pattern(word: &str) -> Result<(), String> {
    let is_odd = |symbol: char| symbol.is_control() || matches!(symbol, '"' | '\\' | '=');
    if word.is_empty() || word.contains(is_odd) {
        return Err(format!(
            "{word:?} is not a pattern of operator names: use \"ranges\", depth=N, share=P or a \
             pattern such as aten::conv*"
        ));
    }
    Ok(())
}

/// Returns whether a name matches a pattern, as Python's `fnmatch.fnmatchcase` does.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut place) = (0, 0);
    // Where to continue if what follows the last `*` does not match: its place, and the first
    // character that it does not take yet.
    let mut retry = None;
    while place < name.len() {
        if pattern.get(at) == Some(&'*') {
            retry = Some((at, place));
            at += 1;
            continue;
        }
        if let Some(next) = match_one(&pattern, at, name[place]) {
            (at, place) = (next, place + 1);
            continue;
        }
        let Some((star, taken)) = retry else {
            return false;
        };
        retry = Some((star, taken + 1));
        (at, place) = (star + 1, taken + 1);
    }
    pattern[at..].iter().all(|&symbol| symbol == '*')
}

/// Returns the place behind the part of the pattern at `at`, if that matches one character.
fn match_one(pattern: &[char], at: usize, symbol: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => {
            let Some((is_in, next)) = match_set(pattern, at + 1, symbol) else {
                // Without an end it is a plain character.
                return (symbol == '[').then_some(at + 1);
            };
            is_in.then_some(next)
        }
        plain => (plain == symbol).then_some(at + 1),
    }
}

/// Returns whether the set that begins behind a bracket has a character, and the place behind it.
/// Returns `None` if it has no end.
fn match_set(pattern: &[char], begin: usize, symbol: char) -> Option<(bool, usize)> {
    let is_negated = pattern.get(begin) == Some(&'!');
    let first = begin + usize::from(is_negated);
    // A bracket at the start of a set is a member.
    let end = first + 1 + pattern.get(first + 1..)?.iter().position(|&c| c == ']')?;
    let (mut is_in, mut at) = (false, first);
    while at < end {
        if at + 2 < end && pattern[at + 1] == '-' {
            is_in |= (pattern[at]..=pattern[at + 2]).contains(&symbol);
            at += 3;
        } else {
            is_in |= pattern[at] == symbol;
            at += 1;
        }
    }
    Some((is_in != is_negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_from_the_metadata_it_is_written_to() {
        for words in [
            &["ranges"][..],
            &["aten::conv*", "*Backward?"],
            &["depth=1"],
            &["aten::*", "depth=3", "share=0.01"],
        ] {
            let limit = OperatorLimit::parse(words.iter().copied()).unwrap();
            let mut metadata = Metadata::default();
            assert_eq!(OperatorLimit::read(&metadata), None);
            limit.write(&mut metadata);
            assert_eq!(OperatorLimit::read(&metadata), Some(limit.clone()));
            assert_eq!(limit.words(), words);
            assert_eq!(limit.to_string(), words.join(", "));
        }
        let mut metadata = Metadata::default();
        for wrong in ["", "[]", "{}", "[\"share=2\"]", "\"ranges\"x"] {
            metadata.set(KEY, wrong);
            assert_eq!(OperatorLimit::read(&metadata), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_may_be_in_percent() {
        let share = |text| OperatorLimit::parse([text]).map(|limit| limit.share);
        assert_eq!(share("share=10%"), Ok(Some(0.1)));
        for wrong in [
            "share=0",
            "share=1",
            "share=-1",
            "share=nan",
            "share=",
            "share=100%",
        ] {
            let error = share(wrong).unwrap_err();
            assert!(error.contains("is not a share"), "{error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |words: &[&str]| OperatorLimit::parse(words.iter().copied()).unwrap_err();
        assert!(refused(&[]).contains("empty"));
        assert!(refused(&[""]).contains("not a pattern"));
        assert!(refused(&["deep=2"]).contains("not a pattern"));
        assert!(refused(&["a\"b"]).contains("not a pattern"));
        assert!(refused(&["depth=0"]).contains("not a depth"));
        assert!(refused(&["depth=1", "depth=2"]).contains("two values"));
        assert!(refused(&["ranges", "aten::*"]).contains("alone"));
        assert!(refused(&["ranges", "share=0.5"]).contains("alone"));
    }

    #[test]
    fn patterns_match_as_those_of_fnmatch() {
        for (pattern, name, expected) in [
            ("aten::conv*", "aten::conv2d", true),
            ("aten::conv*", "aten::add", false),
            ("*Backward?", "MmBackward0", true),
            ("*Backward?", "MmBackward", false),
            ("*", "", true),
            ("a*b*c", "a_b_b_c", true),
            ("a*b*c", "a_b_b_d", false),
            ("aten::[am]*", "aten::mm", true),
            ("aten::[!am]*", "aten::mm", false),
            ("x[0-3]", "x2", true),
            ("x[0-3]", "x4", false),
            ("x[]]", "x]", true),
            ("x[", "x[", true),
            ("aten::add", "aten::add_", false),
            ("Aten::add", "aten::add", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
