//! Text as HTML. Every name of a profile passes through [`escaped`] on its way into a page.

use std::borrow::Cow;
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use crate::visible::visible;

/// The number of bytes of a text from which on a page has only its beginning.
const LONGEST: usize = 4096;

/// Returns a text on one line in which nothing is markup, in elements and in quoted attributes.
pub(crate) fn escaped(text: &str) -> String {
    escaped_lines(&shown(text))
}

/// Returns a text as pages have it: on one line, and cut if it is many kilobytes long. The end of a
/// cut text tells it from others with the same beginning.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return visible(text);
    }
    let mut ends = (0..=LONGEST).rev();
    let end = ends.find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let rest = text.len() - end;
    let number = FxBuildHasher.hash_one(text) as u32;
    let head = visible(&text[..end]);
    format!("{head}\u{2026} ({rest} more bytes, {number:08x})").into()
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

/// Returns a text of ours as HTML, with what stands between backticks as code.
pub(super) fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(place, part)| match (place % 2, escaped(part)) {
        (0, part) => part,
        (_, part) => format!("<code>{part}</code>"),
    });
    parts.collect()
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

/// Returns a text in which numbers stay with their units at the end of a line.
pub(super) fn with_units(text: &str) -> String {
    const UNITS: [&str; 9] = ["%", "ns", "us", "ms", "s", "B", "KB", "MB", "GB"];
    let mut joined = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(' ') {
        joined.push_str(before);
        let end = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '%');
        let word = &after[..end.unwrap_or(after.len())];
        let is_number = before.ends_with(|last: char| last.is_ascii_digit());
        joined.push(if is_number && UNITS.contains(&word) {
            '\u{a0}'
        } else {
            ' '
        });
        rest = after;
    }
    joined + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let long = "\u{e9}".repeat(1 << 20);
        let texts = ["", "a", "b"].map(|end| shown(&format!("{long}{end}")).into_owned());
        assert!(texts.iter().all(|text| text.len() < LONGEST + 64));
        assert!(texts[1] != texts[2] && texts[0] != texts[1]);
        assert!(texts[0].contains("\u{2026} (2093056 more bytes, "));
        assert!(escaped(&long).len() < LONGEST + 64);
        assert_eq!(shown(&long[..LONGEST]), long[..LONGEST]);
    }

    #[test]
    fn numbers_stay_with_their_units_and_words_do_not() {
        let text = with_units("takes 39.1 ms (5 %), 2 s; 3 of us use 4 users");
        assert_eq!(
            text,
            "takes 39.1\u{a0}ms (5\u{a0}%), 2\u{a0}s; 3 of us use 4 users"
        );
    }

    #[test]
    fn names_hold_no_markup() {
        assert_eq!(
            escaped("<script>'&\"\n\u{202e}x"),
            "&lt;script&gt;&#39;&amp;&quot;\\n\\u202ex"
        );
        assert_eq!(
            with_code("use `a < b`, not c"),
            "use <code>a &lt; b</code>, not c"
        );
        assert_eq!(encoded("aten::mm <é>"), "aten::mm%20%3C%C3%A9%3E");
    }
}
