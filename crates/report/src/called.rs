//! The names of what is called, as people read them.

/// The prefix of the names of ranges that the autograd engine opens around backward nodes.
const ENGINE_PREFIX: &str = "autograd::engine::evaluate_function: ";

/// Returns the name of something that is called, without addresses and prefixes that say nothing.
pub(crate) fn called_text(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("<built-in ") {
        let words: Vec<&str> = rest.trim_end_matches('>').split(' ').collect();
        return match words.as_slice() {
            ["method", name, "of", "type", "object", ..] => (*name).into(),
            ["method", name, "of", class, ..] => format!("{class}.{name}"),
            ["method" | "function", name, ..] => (*name).into(),
            _ => name.into(),
        };
    }
    name.strip_prefix(ENGINE_PREFIX).unwrap_or(name).into()
}
