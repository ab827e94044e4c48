//! Escapes characters that would control a terminal, break a line or be invalid in XML.
//!
//! Names come from traces, which are untrusted input. Every text that this crate lays out or the
//! command line prints passes through one of these two functions.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns a text on a single line, with control characters escaped as in `\n` or `\u001b`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Returns a text of several lines, with all control characters except tabs escaped. The escapes are
/// those of JSON, so that a JSON document keeps its meaning.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| {
        !matches!(letter, '\n' | '\t') && is_hidden(letter)
    })
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            letter if !is_escaped(letter) => shown.push(letter),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            letter => {
                write!(shown, "\\u{:04x}", u32::from(letter)).expect("a String takes every text");
            }
        }
    }
    Cow::Owned(shown)
}

/// Returns whether a character has an effect instead of a glyph: control characters, changes of the
/// writing direction, line separators and noncharacters.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(letter, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_escapes() {
        let name = "a\u{1b}[31mred\n\r\t\u{9b}2J\u{7f}\0\u{202e}\u{ffff}b";
        let shown = r"a\u001b[31mred\n\r\t\u009b2J\u007f\u0000\u202e\uffffb";
        assert_eq!(visible(name), shown);
        assert_eq!(visible_lines("a\nb\u{1b}\n"), "a\nb\\u001b\n");
    }

    #[test]
    fn ordinary_texts_stay_as_they_are() {
        for text in [
            "",
            "aten::mm",
            r"C:\new\train.py(3): f",
            "schön 模型 \u{1f525}",
        ] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn a_document_stays_the_same_document() {
        let value = serde_json::json!({ "name": "a\u{9b}\u{1b}\u{7f}\n\u{202e}" });
        let printed = serde_json::to_string_pretty(&value).unwrap();
        let shown = visible_lines(&printed);
        assert!(!shown.contains(|letter: char| letter != '\n' && letter.is_control()));
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, value);
    }
}
