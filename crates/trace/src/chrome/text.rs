//! JSON strings and values, and the line of a stack frame.

use mindprof_model::Place;

/// Formats a text as a JSON string with quotes. Control characters are escaped; letters of all
/// languages are not.
pub(crate) fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("every text is a JSON string")
}

/// The largest number of digits in a number. More are valid JSON, but Python, for one, refuses to
/// parse them.
const MOST_DIGITS: usize = 4_000;

/// Returns whether a text is JSON that every parser accepts.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        && (text.len() <= MOST_DIGITS || !has_endless_number(text))
}

/// Returns whether JSON contains a number with too many digits, outside its strings.
fn has_endless_number(json: &str) -> bool {
    let (mut is_inside, mut is_escaped, mut digits) = (false, false, 0);
    json.bytes().any(|byte| {
        let ends_text = byte == b'"' && !is_escaped;
        is_escaped = is_inside && byte == b'\\' && !is_escaped;
        is_inside ^= ends_text;
        digits = if byte.is_ascii_digit() && !is_inside {
            digits + 1
        } else {
            0
        };
        digits > MOST_DIGITS
    })
}

/// Returns a text unchanged if it is JSON that every parser accepts, else as a JSON string.
pub fn json_value(text: &str) -> String {
    if is_json(text) {
        text.into()
    } else {
        json_string(text)
    }
}

/// Returns the line of a frame: `file.py:12` for `file.py(12): function`. `None` for other texts.
pub(super) fn call_place(frame: &str) -> Option<String> {
    let place = Place::parse(frame)?;
    Some(format!("{}:{}", place.file, place.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_kept_as_it_is() {
        assert_eq!(json_value("{\"a\": 1}"), "{\"a\": 1}");
        assert_eq!(json_value("1"), "1");
        assert_eq!(json_value("say \"hi\"\n"), "\"say \\\"hi\\\"\\n\"");
        assert_eq!(json_value("1 2"), "\"1 2\"");
        assert_eq!(json_value(""), "\"\"");
        let long = "1".repeat(MOST_DIGITS + 1);
        assert_eq!(json_value(&long), format!("\"{long}\""));
        let text = format!("[\"\\\"{long}\"]");
        assert_eq!(json_value(&text), text);
        let number = format!("[\"\\\\\",{long}]");
        assert_ne!(json_value(&number), number);
    }
}
