//! The signatures of operators, which give the names and types of arguments.
//!
//! `schemas.txt` lists those of the embedded runtime's operators, one per line in the notation of
//! torch's operator registry; `tools/operator_schemas.py` generates it.

use std::sync::LazyLock;

use mindprof_model::Input;
use rustc_hash::FxHashMap;

/// The signature of one overload of an operator.
#[derive(Debug)]
pub(super) struct Schema {
    /// The text of the signature.
    pub(super) text: &'static str,
    arguments: Vec<&'static str>,
    results: &'static str,
}

/// The result of an operator, as far as its signature states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returns {
    /// The tensor at this position of the inputs, modified in place.
    Written(usize),
    /// A tensor that may be a view of the input at this position.
    ViewOf(usize),
    /// One or more tensors.
    Tensors,
    /// A list of tensors.
    TensorList,
    /// Something else, or nothing.
    Other,
}

static SCHEMAS: LazyLock<FxHashMap<&'static str, Vec<Schema>>> = LazyLock::new(|| {
    let mut schemas: FxHashMap<&'static str, Vec<Schema>> = FxHashMap::default();
    for schema in include_str!("schemas.txt")
        .lines()
        .filter_map(Schema::parse)
    {
        let (full_name, _) = schema.text.split_once('(').unwrap_or((schema.text, ""));
        let (name, _) = full_name.split_once('.').unwrap_or((full_name, ""));
        schemas.entry(name).or_default().push(schema);
    }
    schemas
});

impl Schema {
    /// Returns the signature of the overload that accepts these inputs.
    pub(super) fn find(name: &str, inputs: &[Input<'_>]) -> Option<&'static Self> {
        let overloads = SCHEMAS.get(name)?;
        overloads.iter().find(|schema| schema.takes(inputs))
    }

    fn parse(text: &'static str) -> Option<Self> {
        let begin = text.find('(')?;
        let (signature, results) = text.rsplit_once(" -> ")?;
        let arguments = signature.get(begin + 1..signature.len() - 1)?;
        let arguments = split(arguments).into_iter();
        Some(Self {
            text,
            arguments: arguments.filter(|argument| *argument != "*").collect(),
            results,
        })
    }

    fn takes(&self, inputs: &[Input<'_>]) -> bool {
        self.arguments.len() == inputs.len()
            && (self.arguments.iter().zip(inputs)).all(|(argument, input)| fits(argument, input))
    }

    /// Returns the kind of result.
    pub(super) fn returns(&self) -> Returns {
        let results = self.results;
        if let Some(alias) = alias_of(results) {
            let place = (self.arguments.iter()).position(|given| alias_of(given) == Some(alias));
            return match place {
                Some(place) if alias.ends_with('!') => Returns::Written(place),
                Some(_) if results.ends_with("[]") => Returns::TensorList,
                Some(place) => Returns::ViewOf(place),
                None => Returns::Tensors,
            };
        }
        match results {
            list if list.starts_with("Tensor") && list.ends_with("[]") => Returns::TensorList,
            one if one.starts_with("Tensor") || one.starts_with("(Tensor") => Returns::Tensors,
            _ => Returns::Other,
        }
    }
}

/// Returns the alias annotation of a type: `a!` of `Tensor(a!) self`.
fn alias_of(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Tensor(")?;
    let (alias, _) = rest.split_once(')')?;
    let (alias, _) = alias.split_once(" ->").unwrap_or((alias, ""));
    Some(alias)
}

/// Splits arguments at the commas outside brackets.
fn split(arguments: &'static str) -> Vec<&'static str> {
    let mut parts = Vec::new();
    let (mut begin, mut depth) = (0, 0);
    for (at, letter) in arguments.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(arguments[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(arguments[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns whether an input can be the argument of a declaration such as `SymInt[2]? size=None`.
fn fits(argument: &str, input: &Input<'_>) -> bool {
    let kind = argument.split(' ').next().unwrap_or_default();
    let (kind, is_optional) = match kind.strip_suffix('?') {
        Some(kind) => (kind, true),
        None => (kind, false),
    };
    let is_list = kind.ends_with(']');
    let base = kind.split(['(', '[', '?']).next().unwrap_or_default();
    match input {
        // Lists that are too long are recorded this way, too.
        Input::Other => is_optional || is_list,
        Input::Device => base == "Device",
        Input::Tensor { .. } => base == "Tensor" && !is_list,
        Input::TensorList(_) => base == "Tensor" && is_list,
        Input::Int(_) => {
            !is_list
                && matches!(
                    base,
                    "int" | "SymInt" | "Scalar" | "ScalarType" | "Layout" | "MemoryFormat"
                )
        }
        Input::Float(_) => !is_list && matches!(base, "float" | "Scalar"),
        Input::Bool(_) => !is_list && matches!(base, "bool" | "Scalar"),
        Input::IntList(_) => is_list && matches!(base, "int" | "SymInt" | "Scalar"),
        Input::FloatList(_) => is_list && matches!(base, "float" | "Scalar"),
        Input::BoolList(_) => is_list && base == "bool",
        Input::Complex { .. } => !is_list && matches!(base, "complex" | "Scalar"),
        Input::NumberList(_) => is_list && matches!(base, "complex" | "Scalar"),
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DType, InputsEncoder, InputsIter};

    use super::*;

    fn find(name: &str, write: impl FnOnce(&mut InputsEncoder)) -> Option<&'static Schema> {
        let mut encoder = InputsEncoder::default();
        write(&mut encoder);
        let inputs: Vec<_> = InputsIter::new(encoder.words()).collect();
        Schema::find(name, &inputs)
    }

    #[test]
    fn the_inputs_choose_the_overload() {
        let tensor = find("aten::add_", |encoder| {
            encoder.tensor(DType::F32, &[2], &[1]);
            encoder.tensor(DType::F32, &[2], &[1]);
            encoder.int(1);
        });
        let tensor = tensor.expect("it has two tensors and a number");
        assert!(tensor.text.starts_with("aten::add_.Tensor("), "{tensor:?}");
        assert_eq!(tensor.returns(), Returns::Written(0));
        let sum = find("aten::sum", |encoder| {
            encoder.tensor(DType::F32, &[2], &[1]);
            encoder.int_list(&[0]);
            encoder.bool(true);
            encoder.other();
        });
        let sum = sum.expect("it has a list of dimensions");
        assert!(sum.text.starts_with("aten::sum.dim_IntList("), "{sum:?}");
        assert_eq!(sum.returns(), Returns::Tensors);
        assert!(find("aten::no_such_operator", |_| ()).is_none());
    }

    #[test]
    fn every_line_is_a_signature() {
        for line in include_str!("schemas.txt").lines() {
            assert!(Schema::parse(line).is_some(), "{line}");
        }
    }
}
