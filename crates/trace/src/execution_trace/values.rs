//! The inputs and results of a node, as four parallel lists: values, shapes, types and strides.

use mindprof_model::{Input, InputsIter};

use super::objects::{Objects, View};
use crate::integers::integers_text;

/// The four lists of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    rows: Vec<Value>,
}

/// One input or result as JSON, except for the type, which has no quotes.
#[derive(Clone, Debug)]
pub(super) struct Value {
    text: String,
    shape: String,
    kind: String,
    strides: String,
}

impl Values {
    /// Formats inputs, whose tensors have storages at these addresses.
    pub(super) fn of(inputs: InputsIter<'_>, addresses: &[u64], objects: &mut Objects) -> Self {
        let mut addresses = addresses.iter().copied();
        let rows = inputs.map(|input| show(&input, &mut addresses, objects));
        Self {
            rows: rows.collect(),
        }
    }

    /// Creates the lists for one value.
    pub(super) fn one(value: Value) -> Self {
        Self { rows: vec![value] }
    }

    /// Turns the values into the items of a single list.
    pub(super) fn into_list(self) -> Self {
        Self::one(list(&self.rows))
    }

    /// Returns the value at a position.
    pub(super) fn at(&self, place: usize) -> Option<&Value> {
        self.rows.get(place)
    }

    /// Returns whether there are no values.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the lists as a JSON object.
    pub(super) fn json(&self) -> String {
        let join = |part: fn(&Value) -> &str| {
            let parts: Vec<&str> = self.rows.iter().map(part).collect();
            parts.join(",")
        };
        let kinds: Vec<String> = self
            .rows
            .iter()
            .map(|row| format!("\"{}\"", row.kind))
            .collect();
        format!(
            "{{\"values\": [{}], \"shapes\": [{}], \"types\": [{}], \"strides\": [{}]}}",
            join(|row| &row.text),
            join(|row| &row.shape),
            kinds.join(","),
            join(|row| &row.strides)
        )
    }
}

fn show(
    input: &Input<'_>,
    addresses: &mut impl Iterator<Item = u64>,
    objects: &mut Objects,
) -> Value {
    match input {
        Input::Tensor {
            dtype,
            dims,
            strides,
            offset,
        } => {
            let view = View {
                dtype: *dtype,
                dims,
                strides,
                offset: *offset,
            };
            let (tensor, storage) = objects.tensor(addresses.next().unwrap_or_default(), view);
            let count: u64 = dims.iter().product();
            let bytes = dtype.bytes();
            Value {
                text: format!("[{tensor},{storage},{offset},{count},{bytes},\"cpu\"]"),
                shape: compact(dims),
                kind: format!("Tensor({})", dtype.cpp_name()),
                strides: compact(strides),
            }
        }
        Input::TensorList(items) | Input::NumberList(items) => {
            let items = items.clone();
            let shown: Vec<Value> = items.map(|item| show(&item, addresses, objects)).collect();
            list(&shown)
        }
        Input::Other => plain("None", "\"<None>\"".to_owned()),
        Input::Device => plain("Device", "\"cpu\"".to_owned()),
        Input::Int(value) => plain("Int", value.to_string()),
        Input::Float(value) => plain("Double", float_text(*value)),
        Input::Bool(value) => plain("Bool", value.to_string()),
        // torch, too, leaves the value out.
        Input::Complex { .. } => plain("ComplexDouble", "\"<ComplexDouble>\"".to_owned()),
        Input::IntList(words) => list(
            &words
                .iter()
                .map(|&word| plain("Int", (word as i64).to_string()))
                .collect::<Vec<_>>(),
        ),
        Input::FloatList(words) => list(
            &words
                .iter()
                .map(|&word| plain("Double", float_text(f64::from_bits(word))))
                .collect::<Vec<_>>(),
        ),
        Input::BoolList(words) => list(
            &words
                .iter()
                .map(|&word| plain("Bool", (word != 0).to_string()))
                .collect::<Vec<_>>(),
        ),
    }
}

fn plain(kind: &str, text: String) -> Value {
    Value {
        text,
        shape: "[]".to_owned(),
        kind: kind.to_owned(),
        strides: "[]".to_owned(),
    }
}

fn list(items: &[Value]) -> Value {
    let join = |part: fn(&Value) -> &str| {
        let parts: Vec<&str> = items.iter().map(part).collect();
        parts.join(",")
    };
    Value {
        text: format!("[{}]", join(|item| &item.text)),
        shape: format!("[{}]", join(|item| &item.shape)),
        kind: format!("GenericList[{}]", join(|item| &item.kind)),
        strides: format!("[{}]", join(|item| &item.strides)),
    }
}

fn compact(words: &[u64]) -> String {
    integers_text(words).replace(' ', "")
}

/// Floats that JSON cannot represent are written as strings.
fn float_text(value: f64) -> String {
    if value.is_finite() {
        format!("{value:?}")
    } else {
        format!("\"{value}\"")
    }
}
