//! Pieces of JSON text.

/// Returns a text as a JSON string, with its quotes. Control characters are escaped, letters of any
/// language stay as they are.
pub(super) fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("every text is a JSON string")
}

/// Returns a text as it is if it is JSON, else as a JSON string.
pub(crate) fn json_value(text: &str) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => text.into(),
        Err(_) => json_string(text),
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
    }
}
