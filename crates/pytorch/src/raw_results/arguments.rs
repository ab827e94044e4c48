//! The arguments of device work that a profile does not model: grid, block, registers, bandwidth.
//!
//! Kineto describes them as the inside of a JSON object. A profile keeps them as text, as a reader of
//! trace files does, so that written traces have them and analyses find them in one place.

/// The arguments that a profile models itself.
const MODELLED: [&str; 2] = ["\"correlation\"", "\"External id\""];

/// Returns Kineto's description without spaces and without what a profile models. Returns `None` if
/// it is no list of members.
pub(super) fn arguments(metadata: &str) -> Option<String> {
    let mut kept = String::with_capacity(metadata.len());
    let mut member = String::new();
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for letter in metadata.chars() {
        let is_between = !in_text && depth == 0 && letter == ',';
        if is_between {
            keep(&mut kept, &member)?;
            member.clear();
            continue;
        }
        if !in_text {
            match letter {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        match letter {
            '"' if !is_escaped => in_text = !in_text,
            _ if !in_text && letter.is_whitespace() => continue,
            _ => {}
        }
        is_escaped = in_text && letter == '\\' && !is_escaped;
        member.push(letter);
    }
    if in_text || depth > 0 {
        return None;
    }
    keep(&mut kept, &member)?;
    (!kept.is_empty()).then_some(kept)
}

/// Adds a member to a list, unless a profile models it. Returns `None` if it is no member.
fn keep(kept: &mut String, member: &str) -> Option<()> {
    if member.is_empty() {
        return Some(());
    }
    let name = member.split_inclusive('"').take(2).map(str::len).sum();
    let (name, value) = member.split_at(name);
    let value = value.strip_prefix(':')?;
    if !name.starts_with('"') || value.is_empty() {
        return None;
    }
    if !MODELLED.contains(&name) {
        if !kept.is_empty() {
            kept.push(',');
        }
        kept.push_str(member);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_profile_models_is_left_out() {
        let metadata = "\n      \"queued\": 0, \"device\": 0, \"stream\": 7, \"correlation\": 12,\n      \
                        \"grid\": [4, 1, 1],\n      \"est. achieved occupancy %\": 0";
        let expected =
            r#""queued":0,"device":0,"stream":7,"grid":[4,1,1],"est. achieved occupancy %":0"#;
        assert_eq!(arguments(metadata).unwrap(), expected);
        assert_eq!(arguments(r#""correlation": 3, "External id": 4"#), None);
        assert_eq!(arguments(""), None);
    }

    #[test]
    fn texts_keep_commas_quotes_and_spaces() {
        let metadata = r#""kernel": "a, \"b\" [c", "x": {"y": [1, 2]}"#;
        let expected = r#""kernel":"a, \"b\" [c","x":{"y":[1,2]}"#;
        assert_eq!(arguments(metadata).unwrap(), expected);
    }

    #[test]
    fn what_is_no_list_of_members_is_refused() {
        for metadata in [
            "x",
            "\"a\"",
            "\"a\":",
            "1:2",
            "\"a\":\"b",
            "\"a\":[1",
            "\"a\":1]",
            "\"a",
        ] {
            assert_eq!(arguments(metadata), None, "{metadata}");
        }
    }
}
