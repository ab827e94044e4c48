//! Decodes JSON strings.

use std::borrow::Cow;

/// Returns the text between the quotes of a JSON string. `None` for other JSON.
pub(crate) fn inside_quotes(raw: &[u8]) -> Option<&[u8]> {
    raw.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// Decodes the text between quotes, and returns whether it was valid JSON.
///
/// Invalid escapes stay as they are; invalid Unicode becomes the replacement character.
pub(crate) fn decode(inside: &[u8]) -> (Cow<'_, str>, bool) {
    let plain = String::from_utf8_lossy(inside);
    let is_sound = matches!(plain, Cow::Borrowed(_)) && !inside.iter().any(|&byte| byte < 0x20);
    if !inside.contains(&b'\\') {
        return (plain, is_sound);
    }
    let quoted = format!("\"{plain}\"");
    match serde_json::from_str(&quoted) {
        Ok(text) => (Cow::Owned(text), is_sound),
        Err(_) => (Cow::Owned(decode_leniently(&plain)), false),
    }
}

fn decode_leniently(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        let length = decode_escape(&rest[at..], &mut decoded);
        rest = &rest[at + length..];
    }
    decoded + rest
}

/// Appends the character of the escape at the start of `text`, and returns the length of the
/// escape.
fn decode_escape(text: &str, decoded: &mut String) -> usize {
    let simple = match text.as_bytes().get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return decode_unicode(text, decoded),
        _ => {
            decoded.push('\\');
            return 1;
        }
    };
    decoded.push(simple);
    2
}

/// Does the same as [`decode_escape`] for `\u` escapes, including surrogate pairs.
fn decode_unicode(text: &str, decoded: &mut String) -> usize {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hexadecimal.then(|| u16::from_str_radix(digits, 16).ok())?
    };
    let Some(first) = unit(0) else {
        decoded.push('\\');
        return 1;
    };
    let units = [first, unit(6).unwrap_or(0)];
    let mut characters = char::decode_utf16(units);
    let Some(Ok(character)) = characters.next() else {
        decoded.push(char::REPLACEMENT_CHARACTER);
        return 6;
    };
    decoded.push(character);
    6 * character.len_utf16()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_wrongly_written_is_kept_as_far_as_it_goes() {
        for (inside, text, is_sound) in [
            (&b"a b"[..], "a b", true),
            (b"a\\n\\u00e9", "a\n\u{e9}", true),
            (b"C:\\Users\\t", "C:\\Users\t", false),
            (b"\\ud800x", "\u{fffd}x", false),
            (b"\\ud83d\\ude00\\x", "\u{1f600}\\x", false),
            (b"\\u12", "\\u12", false),
            (b"a\xffb", "a\u{fffd}b", false),
            (b"a\nb", "a\nb", false),
            (b"\\", "\\", false),
        ] {
            assert_eq!(decode(inside), (Cow::Borrowed(text), is_sound));
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text: String) {
            let string = serde_json::to_string(&text).unwrap();
            let inside = inside_quotes(string.as_bytes()).unwrap();
            prop_assert_eq!(decode(inside), (Cow::Borrowed(text.as_str()), true));
            // An invalid escape switches to the lenient decoder for the rest.
            let spoilt = format!("{}\\x", std::str::from_utf8(inside).unwrap());
            prop_assert_eq!(decode(spoilt.as_bytes()), (Cow::Owned(format!("{text}\\x")), false));
        }
    }
}
