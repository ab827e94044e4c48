//! Text as HTML. Every name of a profile passes through [`escaped`] on its way into a page.

use crate::visible::visible;

/// Returns a text on one line in which nothing is markup, in elements and in quoted attributes.
pub(crate) fn escaped(text: &str) -> String {
    escaped_lines(&visible(text))
}

/// Returns a text of several lines in which nothing is markup.
pub(super) fn escaped_lines(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Returns a text as a value in the address of a view.
pub(super) fn encoded(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for &byte in text.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte) {
            address.push(char::from(byte));
        } else {
            use std::fmt::Write as _;
            write!(address, "%{byte:02X}").expect("a String takes every text");
        }
    }
    address
}

/// Returns a text with a capital first letter.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Returns a text in which numbers stay with their units at the end of a line.
pub(super) fn with_units(text: &str) -> String {
    let units = [" %", " us", " ms", " s ", " s,", " s."];
    units.iter().fold(text.into(), |text: String, unit| {
        text.replace(unit, &unit.replacen(' ', "\u{a0}", 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_no_markup() {
        assert_eq!(
            escaped("<script>'&\"\n\u{202e}x"),
            "&lt;script&gt;&#39;&amp;&quot;\\n\\u202ex"
        );
        assert_eq!(encoded("aten::mm <é>"), "aten::mm%20%3C%C3%A9%3E");
    }
}
