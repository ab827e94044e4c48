//! Names as pages show them: functions by name and place, and kernels without what most of them have
//! in common, so that tables show what tells them apart. `names.js` has the same rules.

use std::borrow::Cow;

use mindprof_model::Place;

/// The text that stands for an empty name.
pub(super) const NAMELESS: &str = "(no name)";

/// Namespaces that say nothing about a kernel. The longer ones come first.
const NAMESPACES: [&str; 3] = ["at::native::", "at::cuda::", "at::"];

/// Returns a whole name as a page shows it: `forward (train.py:29)` for a Python call.
pub(super) fn shown_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed(NAMELESS);
    }
    Place::parse(name).map_or(Cow::Borrowed(name), |place| {
        Cow::Owned(place_text(place.function, place.file, place.line))
    })
}

/// Returns a function with the place of a line of it.
pub(super) fn place_text(function: &str, file: &str, line: u32) -> String {
    format!("{function} ({file}:{line})")
}

/// Returns a name as tables show it: that of a kernel is without its result, its parameters and the
/// namespaces of `PyTorch`.
pub(super) fn short_name(name: &str) -> Cow<'_, str> {
    let Some(function) = name.strip_prefix("void ") else {
        return shown_name(name);
    };
    let function = without_parameters(function).replace("(anonymous namespace)::", "");
    Cow::Owned(without_namespaces(&function))
}

/// Returns a name without the namespaces, as far as they are not the end of a longer name.
fn without_namespaces(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let is_begin =
            !short.ends_with(|last: char| last.is_ascii_alphanumeric() || "_:".contains(last));
        let namespace = NAMESPACES
            .iter()
            .find(|&&one| is_begin && rest.starts_with(one));
        if let Some(namespace) = namespace {
            rest = &rest[namespace.len()..];
        } else {
            short.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    short
}

/// Returns a declaration without the parentheses at its end and what is in them.
fn without_parameters(function: &str) -> &str {
    if !function.ends_with(')') {
        return function;
    }
    let mut open = 0;
    for (at, letter) in function.char_indices().rev() {
        match letter {
            ')' => open += 1,
            '(' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return match function[..at].trim_end() {
                "" => function,
                head => head,
            };
        }
    }
    function
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_lose_what_they_have_in_common_and_calls_are_named_by_function() {
        // tests/page/texts.test.js has the same names.
        for (name, short) in [
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, \
                 std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
                "vectorized_elementwise_kernel<4, FillFunctor<float>, std::array<char*, 1ul> >",
            ),
            (
                "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*, int)",
                "cunn_SoftMaxForward<8, float>",
            ),
            ("void sgemm<true>(Params)", "sgemm<true>"),
            (
                "void cat::f<float::x, mine::at::y>(int)",
                "cat::f<float::x, mine::at::y>",
            ),
            ("void (*)(int)", "(*)"),
            ("void (int)", "(int)"),
            ("void )", ")"),
            ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
            (
                "Memcpy HtoD (Pageable -> Device)",
                "Memcpy HtoD (Pageable -> Device)",
            ),
            ("at::native::add", "at::native::add"),
            (
                "a (old)/train.py(29): forward",
                "forward (a (old)/train.py:29)",
            ),
            ("", "(no name)"),
        ] {
            assert_eq!(short_name(name), short);
        }
    }
}
