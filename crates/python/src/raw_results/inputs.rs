//! The inputs of one raw event, as torch's accessors return them: parallel lists.

use mindprof_model::{DType, InputsEncoder, KeywordValue};
use mindprof_pytorch::KnownValue;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyComplexMethods, PyDict, PyList};

use super::accessors::optional;
use crate::arguments::{Arguments, Number};
use crate::keyword_arguments;
use crate::py_cache::accessor_names;

/// The parallel lists. Lists that this torch has no accessor for are empty.
pub(super) struct RawInputs<'py> {
    types: Vec<String>,
    dims: Vec<Bound<'py, PyAny>>,
    /// As `dims`, but for a list of tensors with the dims of each.
    nested_dims: Vec<Bound<'py, PyAny>>,
    nested_strides: Vec<Bound<'py, PyAny>>,
    values: Vec<Bound<'py, PyAny>>,
    keywords: Vec<(String, KeywordValue)>,
}

impl<'py> RawInputs<'py> {
    /// Calls the accessors of a raw event.
    pub(super) fn of(raw: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = raw.py();
        let list = |accessor| match optional(raw, accessor)? {
            Some(list) => list.extract(),
            None => Ok(Vec::new()),
        };
        Ok(Self {
            types: raw
                .call_method0(accessor_names(py).dtypes.bind(py))?
                .extract()?,
            dims: list(accessor_names(py).shapes.bind(py))?,
            nested_dims: list(accessor_names(py).structured_input_shapes.bind(py))?,
            nested_strides: list(accessor_names(py).structured_input_strides.bind(py))?,
            values: list(accessor_names(py).concrete_inputs.bind(py))?,
            keywords: keywords(raw)?,
        })
    }

    /// Returns the scalars and lists of integers by value, with their indices.
    pub(super) fn known_values(&self) -> impl Iterator<Item = (usize, KnownValue)> {
        let kinds = self.types.iter().zip(&self.values).enumerate();
        kinds.filter_map(|(position, (kind, value))| {
            let is_number = matches!(kind.as_str(), "Scalar" | "ScalarList");
            let value = is_number.then(|| known_value(value)).flatten()?;
            Some((position, value))
        })
    }

    /// Encodes the inputs for a part.
    pub(super) fn encode(&self, inputs: &mut InputsEncoder) -> PyResult<()> {
        for (index, dims) in self.dims.iter().enumerate() {
            let kind = self.types.get(index).map_or("", String::as_str);
            let value = self.values.get(index);
            let strides = self.nested_strides.get(index);
            match (kind, value) {
                ("TensorList", _) => self.encode_list(index, inputs)?,
                ("Scalar" | "ScalarList", Some(value)) => {
                    let mut arguments = Arguments::default();
                    arguments.add(value)?;
                    arguments.encode(inputs);
                }
                _ => {
                    let dims = dims.extract::<Vec<i64>>()?;
                    let dtype = DType::from_cpp_name(kind);
                    if dtype == DType::Unknown && dims.is_empty() {
                        inputs.other();
                    } else {
                        encode_tensor(dtype, &dims, strides, inputs)?;
                    }
                }
            }
        }
        if !self.keywords.is_empty() {
            inputs.keywords(&self.keywords);
        }
        Ok(())
    }

    /// Encodes a list of tensors. torch does not report their dtypes.
    fn encode_list(&self, index: usize, inputs: &mut InputsEncoder) -> PyResult<()> {
        let items = |lists: &[Bound<'py, PyAny>]| match lists.get(index) {
            Some(list) => list.extract::<Vec<Bound<'py, PyAny>>>(),
            None => Ok(Vec::new()),
        };
        let (dims, strides) = (items(&self.nested_dims)?, items(&self.nested_strides)?);
        inputs.tensor_list(dims.len());
        for (index, dims) in dims.iter().enumerate() {
            encode_tensor(
                DType::Unknown,
                &dims.extract::<Vec<i64>>()?,
                strides.get(index),
                inputs,
            )?;
        }
        Ok(())
    }
}

fn known_value(value: &Bound<'_, PyAny>) -> Option<KnownValue> {
    match Number::from_python(value) {
        Some(Number::Int(number)) => Some(KnownValue::Int(number)),
        Some(Number::Float(number)) => Some(KnownValue::Float(number)),
        Some(Number::Bool(truth)) => Some(KnownValue::Bool(truth)),
        None => ints(value).map(KnownValue::Ints).or_else(|| {
            let number = value.cast::<PyComplex>().ok()?;
            Some(KnownValue::Complex(number.real(), number.imag()))
        }),
    }
}

/// Returns a list of integers, or `None` if the value is not one or is empty.
fn ints(value: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
    let items = value
        .cast::<PyList>()
        .ok()
        .filter(|list| !list.is_empty())?;
    let int = |item: Bound<'_, PyAny>| match Number::from_python(&item) {
        Some(Number::Int(number)) => Some(number),
        _ => None,
    };
    items.iter().map(int).collect()
}

/// Encodes a tensor. If there are fewer strides than dims, the missing ones are zero, so that no
/// dim is lost.
fn encode_tensor(
    dtype: DType,
    dims: &[i64],
    strides: Option<&Bound<'_, PyAny>>,
    inputs: &mut InputsEncoder,
) -> PyResult<()> {
    let dims: Vec<usize> = dims.iter().map(|&dim| dim as usize).collect();
    let mut strides: Vec<isize> = match strides {
        Some(strides) => strides.extract()?,
        None => Vec::new(),
    };
    if !strides.is_empty() {
        strides.resize(dims.len(), 0);
    }
    inputs.tensor(dtype, &dims, &strides);
    Ok(())
}

/// Returns the keyword arguments.
fn keywords(raw: &Bound<'_, PyAny>) -> PyResult<Vec<(String, KeywordValue)>> {
    match optional(raw, accessor_names(raw.py()).kwinputs.bind(raw.py()))? {
        Some(given) => keyword_arguments::keywords(given.cast::<PyDict>()?),
        None => Ok(Vec::new()),
    }
}
