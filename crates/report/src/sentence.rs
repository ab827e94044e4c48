//! Capitalizes the first letter of a text, for texts that begin a sentence.
//!
//! Causes, prices and doubts are kept without a capital, because they also stand within sentences.

/// Returns a text with a capital first letter.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_becomes_a_capital_if_it_has_one() {
        for (text, expected) in [
            ("ranks are missing", "Ranks are missing"),
            ("3 ranks", "3 ranks"),
            ("\u{e9}tape", "\u{e9}tape"),
            ("", ""),
        ] {
            assert_eq!(sentence(text), expected);
        }
    }
}
