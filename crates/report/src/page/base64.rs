//! Base64 with padding, for the hashes and the data block of a page.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns bytes as base64.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    let mut groups = bytes.chunks_exact(3);
    for group in &mut groups {
        let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        text.extend([18, 12, 6, 0].map(|shift| LETTERS[(bits >> shift & 63) as usize]));
    }
    let rest = groups.remainder();
    if !rest.is_empty() {
        let second = rest.get(1).copied().unwrap_or(0);
        let bits = u32::from(rest[0]) << 16 | u32::from(second) << 8;
        let letters = [18, 12, 6].map(|shift| LETTERS[(bits >> shift & 63) as usize]);
        text.extend(&letters[..=rest.len()]);
        text.resize(text.len() + 3 - rest.len(), b'=');
    }
    String::from_utf8(text).expect("the letters are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        let examples = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in examples {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
