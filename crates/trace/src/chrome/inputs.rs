//! The inputs of an operator in a trace: four parallel lists.
//!
//! ```text
//! "Input Dims": [[3,4],[]]  "Input type": ["float","Scalar"]  "Input Strides": [[4,1],[]]  "Concrete Inputs": ["","1"]
//! ```

use mindprof_model::{DType, Input, InputsEncoder, InputsIter, KeywordValue};
use serde::Deserialize;
use serde_json::Value;

use super::keys::ArgumentKey;
use super::numbers::{Number, complex_text, encode_numbers, float_text, truth_text};
use super::text::json_string;
use crate::integers::integers_text;

#[cfg(test)]
mod tests;

/// The length above which a list of numbers is not shown.
const LONGEST_LIST: usize = 30;

/// The text of the lists, before it is interpreted. Missing lists are empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawInputs<'a> {
    pub(super) dims: &'a [u8],
    pub(super) types: &'a [u8],
    pub(super) strides: &'a [u8],
    pub(super) values: &'a [u8],
    /// The types of the tensors in lists, which only our own traces contain.
    pub(super) list_types: &'a [u8],
}

impl RawInputs<'_> {
    /// Encodes the inputs, as far as the lists are present and valid.
    pub(super) fn encode(&self, encoder: &mut InputsEncoder) {
        let dims: Vec<Sizes> = parse(self.dims);
        let types: Vec<String> = parse(self.types);
        let strides: Vec<Sizes> = parse(self.strides);
        let values: Vec<String> = parse(self.values);
        let list_types: Vec<Vec<String>> = parse(self.list_types);
        let mut list_types = list_types.iter().map(Vec::as_slice);
        let none = Sizes::Flat(Vec::new());
        for (index, dims) in dims.iter().enumerate() {
            let kind = types.get(index).map_or("", String::as_str);
            let strides = strides.get(index).unwrap_or(&none);
            let value = values.get(index).map_or("", String::as_str);
            match dims {
                Sizes::Nested(dims) => {
                    let types = list_types.next().unwrap_or_default();
                    encode_tensor_list(encoder, types, dims, strides);
                }
                Sizes::Flat(dims) => encode_input(encoder, kind, dims, strides, value),
            }
        }
    }

    /// Returns, for each list, whether `inputs` reproduce it: dims, types, strides, values, and
    /// types in lists.
    pub(super) fn are_told(&self, inputs: InputsIter<'_>) -> [bool; 5] {
        let [values, types, strides, dims] = inputs_lists(inputs.clone()).map(|(_, list)| list);
        let list_types = list_types_argument(inputs);
        let list_types = list_types.as_deref().and_then(|text| text.split_once(':'));
        [
            is_same(self.dims, &dims),
            is_same(self.types, &types),
            is_same(self.strides, &strides),
            is_same(self.values, &values),
            list_types.is_some_and(|(_, list)| is_same(self.list_types, list)),
        ]
    }
}

/// Returns whether two JSON texts are equivalent.
fn is_same(raw: &[u8], shown: &str) -> bool {
    let without_spaces = raw.iter().filter(|byte| !byte.is_ascii_whitespace());
    let shown_bytes = shown.bytes().filter(|byte| !byte.is_ascii_whitespace());
    without_spaces.copied().eq(shown_bytes)
        || serde_json::from_slice::<Value>(raw).ok() == serde_json::from_str(shown).ok()
}

/// Returns the four lists as arguments of an event.
pub(super) fn inputs_arguments(inputs: InputsIter<'_>) -> String {
    inputs_lists(inputs)
        .map(|(key, list)| format!("\"{key}\":{list}"))
        .join(",")
}

/// Returns the keyword arguments of an operator as arguments of an event: texts, numbers, booleans
/// and lists of texts, in torch's notation. A name that the format reserves gets a prefix.
pub(crate) fn keyword_arguments(inputs: InputsIter<'_>) -> Vec<(String, String)> {
    let shown = inputs.keywords().into_iter().filter_map(|(name, value)| {
        // A number identifies the stream; torch drops everything else under this key.
        if name == "stream" && !matches!(value, KeywordValue::Int(_)) {
            return None;
        }
        let is_taken = ArgumentKey::of(name.as_bytes()) != ArgumentKey::Other;
        let name = if is_taken {
            format!("user_{name}")
        } else {
            name
        };
        Some((name, keyword_json(&value)?))
    });
    shown.collect()
}

fn keyword_json(value: &KeywordValue) -> Option<String> {
    match value {
        KeywordValue::Int(value) => Some(value.to_string()),
        KeywordValue::Float(value) if value.is_finite() => Some(format!("{value:?}")),
        KeywordValue::Float(value) => Some(json_string(&float_text(*value))),
        KeywordValue::Bool(value) => Some(value.to_string()),
        KeywordValue::Text(text) => Some(json_string(text)),
        KeywordValue::Texts(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| json_string(text)).collect();
            Some(format!("[{}]", texts.join(",")))
        }
        KeywordValue::None
        | KeywordValue::Ints(_)
        | KeywordValue::Floats(_)
        | KeywordValue::Bools(_) => None,
    }
}

/// Returns the types of the tensors in lists as an extra argument, because torch's four lists do
/// not contain them. `None` if there are no such tensors.
pub(super) fn list_types_argument(inputs: InputsIter<'_>) -> Option<String> {
    let lists: Vec<String> = inputs
        .filter_map(|input| match input {
            Input::TensorList(tensors) => Some(tensors),
            _ => None,
        })
        .map(|tensors| {
            tensors
                .map(|tensor| json_string(show(&tensor).kind))
                .collect::<Vec<_>>()
        })
        .filter(|types| !types.is_empty())
        .map(|types| format!("[{}]", types.join(",")))
        .collect();
    (!lists.is_empty()).then(|| format!("\"Input List type\":[{}]", lists.join(",")))
}

/// Returns the four lists as JSON, each with its name.
pub(crate) fn inputs_lists(inputs: InputsIter<'_>) -> [(&'static str, String); 4] {
    let shown: Vec<Shown> = inputs.map(|input| show(&input)).collect();
    let list = |part: fn(&Shown) -> String| shown.iter().map(part).collect::<Vec<_>>().join(",");
    [
        ("Concrete Inputs", list(|input| json_string(&input.value))),
        ("Input type", list(|input| json_string(input.kind))),
        ("Input Strides", list(|input| input.strides.clone())),
        ("Input Dims", list(|input| input.dims.clone())),
    ]
    .map(|(key, items)| (key, format!("[{items}]")))
}

/// Returns the type names of inputs in a trace. The name is empty for types that a trace does not
/// distinguish.
pub fn input_types(inputs: InputsIter<'_>) -> Vec<&'static str> {
    inputs.map(|input| show(&input).kind).collect()
}

/// The dims or strides of a tensor, or of each tensor in a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Sizes {
    Flat(Vec<i64>),
    Nested(Vec<Vec<i64>>),
}

fn parse<'a, T: Deserialize<'a>>(list: &'a [u8]) -> Vec<T> {
    serde_json::from_slice(list).unwrap_or_default()
}

fn encode_tensor_list(
    encoder: &mut InputsEncoder,
    types: &[String],
    dims: &[Vec<i64>],
    strides: &Sizes,
) {
    let strides = match strides {
        Sizes::Nested(strides) => strides.as_slice(),
        Sizes::Flat(_) => &[],
    };
    encoder.tensor_list(dims.len());
    for (index, dims) in dims.iter().enumerate() {
        let dtype = types
            .get(index)
            .map_or(DType::Unknown, |name| DType::from_cpp_name(name));
        encode_tensor(encoder, dtype, dims, strides.get(index));
    }
}

fn encode_input(
    encoder: &mut InputsEncoder,
    kind: &str,
    dims: &[i64],
    strides: &Sizes,
    value: &str,
) {
    let dtype = DType::from_cpp_name(kind);
    if is_tensor(dtype, dims) {
        let strides = match strides {
            Sizes::Flat(strides) => Some(strides),
            Sizes::Nested(_) => None,
        };
        encode_tensor(encoder, dtype, dims, strides);
        return;
    }
    match kind {
        "TensorList" => encoder.tensor_list(0),
        "Scalar" => encode_scalar(encoder, value),
        "ScalarList" => encode_scalar_list(encoder, value),
        _ => encoder.other(),
    }
}

fn is_tensor(dtype: DType, dims: &[i64]) -> bool {
    dtype != DType::Unknown || !dims.is_empty()
}

/// Missing strides become zero, so that no dim is lost.
fn encode_tensor(
    encoder: &mut InputsEncoder,
    dtype: DType,
    dims: &[i64],
    strides: Option<&Vec<i64>>,
) {
    let dims: Vec<usize> = dims.iter().map(|&dim| dim as usize).collect();
    let strides = strides.map_or(&[][..], Vec::as_slice).iter();
    let mut strides: Vec<isize> = strides.map(|&stride| stride as isize).collect();
    if !strides.is_empty() {
        strides.resize(dims.len(), 0);
    }
    encoder.tensor(dtype, &dims, &strides);
}

fn encode_scalar(encoder: &mut InputsEncoder, value: &str) {
    match Number::parse(value) {
        Some(number) => number.encode(encoder),
        None => encoder.other(),
    }
}

fn encode_scalar_list(encoder: &mut InputsEncoder, value: &str) {
    let inside = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let Some(inside) = inside else {
        encoder.other();
        return;
    };
    let items = inside.split(',').map(str::trim);
    let numbers: Option<Vec<Number>> = items
        .filter(|item| !item.is_empty())
        .map(Number::parse)
        .collect();
    match numbers {
        Some(numbers) => encode_numbers(encoder, &numbers),
        None => encoder.other(),
    }
}

/// One input as a trace shows it.
struct Shown {
    value: String,
    kind: &'static str,
    strides: String,
    dims: String,
}

impl Shown {
    fn scalar(kind: &'static str, value: String) -> Self {
        Self {
            value,
            kind,
            strides: "[]".into(),
            dims: "[]".into(),
        }
    }
}

fn show(input: &Input<'_>) -> Shown {
    match input {
        Input::Tensor {
            dtype,
            dims,
            strides,
            ..
        } => Shown {
            value: String::new(),
            kind: dtype.cpp_name(),
            strides: integers_text(strides),
            dims: integers_text(dims),
        },
        Input::TensorList(tensors) => show_tensor_list(tensors.clone()),
        Input::Int(value) => Shown::scalar("Scalar", value.to_string()),
        Input::Float(value) => Shown::scalar("Scalar", float_text(*value)),
        Input::Bool(value) => Shown::scalar("Scalar", truth_text(*value).into()),
        Input::Complex { real, imaginary } => {
            Shown::scalar("Scalar", complex_text(*real, *imaginary))
        }
        Input::NumberList(numbers) if numbers.clone().count() <= LONGEST_LIST => {
            let items = numbers.clone().map(|number| match number {
                Input::Other => "None".to_owned(),
                number => show(&number).value,
            });
            let items: Vec<String> = items.collect();
            Shown::scalar("ScalarList", format!("[{}]", items.join(", ")))
        }
        Input::IntList(words) if words.len() <= LONGEST_LIST => {
            Shown::scalar("ScalarList", integers_text(words))
        }
        Input::FloatList(words) if words.len() <= LONGEST_LIST => {
            let items = words.iter().map(|&word| float_text(f64::from_bits(word)));
            Shown::scalar(
                "ScalarList",
                format!("[{}]", items.collect::<Vec<_>>().join(", ")),
            )
        }
        Input::BoolList(words) if words.len() <= LONGEST_LIST => {
            let items = words.iter().map(|&word| truth_text(word != 0));
            Shown::scalar(
                "ScalarList",
                format!("[{}]", items.collect::<Vec<_>>().join(", ")),
            )
        }
        Input::Other
        | Input::Device
        | Input::IntList(_)
        | Input::FloatList(_)
        | Input::BoolList(_)
        | Input::NumberList(_) => Shown::scalar("", String::new()),
    }
}

fn show_tensor_list(tensors: InputsIter<'_>) -> Shown {
    let shown: Vec<Shown> = tensors.map(|tensor| show(&tensor)).collect();
    let list = |part: fn(&Shown) -> &str| shown.iter().map(part).collect::<Vec<_>>().join(",");
    Shown {
        value: String::new(),
        kind: "TensorList",
        strides: format!("[{}]", list(|tensor| &tensor.strides)),
        dims: format!("[{}]", list(|tensor| &tensor.dims)),
    }
}
