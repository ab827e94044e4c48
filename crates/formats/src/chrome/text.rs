//! Pieces of JSON text.

/// Returns a text as a JSON string, with its quotes. Control characters are escaped, letters of any
/// language stay as they are.
pub(super) fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("every text is a JSON string")
}

/// Numbers of more digits are valid JSON, but Python, for one, refuses to read them.
const MOST_DIGITS: usize = 4_000;

/// Returns a text as it is if it is JSON that every reader takes, else as a JSON string.
pub(crate) fn json_value(text: &str) -> String {
    let mut numbers = text.as_bytes().split(|byte| !byte.is_ascii_digit());
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) if numbers.all(|digits| digits.len() <= MOST_DIGITS) => text.into(),
        Ok(_) | Err(_) => json_string(text),
    }
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
    }
}
