//! What one raw event was given, as torch's accessors tell it: lists of one length, side by side.

use mindprof_model::{DType, InputsEncoder, KeywordValue};
use mindprof_trace::dtype_of_name;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::accessors::optional;
use crate::arguments::Arguments;
use crate::keyword_arguments;
use crate::py_cache::accessor_names;

/// The lists. Those that a torch does not tell are empty.
pub(super) struct RawInputs<'py> {
    types: Vec<String>,
    dims: Vec<Bound<'py, PyAny>>,
    /// As `dims`, with those of each tensor where a list of them was given.
    nested_dims: Vec<Bound<'py, PyAny>>,
    nested_strides: Vec<Bound<'py, PyAny>>,
    values: Vec<Bound<'py, PyAny>>,
    keywords: Vec<(String, KeywordValue)>,
}

impl<'py> RawInputs<'py> {
    /// Asks a raw event.
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

    /// Walks the numbers and lists of them, with their positions.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (usize, &Bound<'py, PyAny>)> {
        let kinds = self.types.iter().zip(&self.values).enumerate();
        kinds.filter_map(|(position, (kind, value))| {
            matches!(kind.as_str(), "Scalar" | "ScalarList").then_some((position, value))
        })
    }

    /// Writes them.
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
                    let dtype = dtype_of_name(kind);
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

    /// Writes a list of tensors, whose types are not told.
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

/// Of some strides, those that are missing are zero, so that no dim is lost for them.
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

/// Returns what was given by keyword.
fn keywords(raw: &Bound<'_, PyAny>) -> PyResult<Vec<(String, KeywordValue)>> {
    match optional(raw, accessor_names(raw.py()).kwinputs.bind(raw.py()))? {
        Some(given) => keyword_arguments::keywords(given.cast::<PyDict>()?),
        None => Ok(Vec::new()),
    }
}
