//! Lists of integers as text, as torch writes dimensions and strides.

/// Formats two's-complement words as a list of integers: `[3, -8]`.
pub fn integers_text(words: &[u64]) -> String {
    let texts: Vec<String> = words
        .iter()
        .map(|&word| (word as i64).to_string())
        .collect();
    format!("[{}]", texts.join(", "))
}
