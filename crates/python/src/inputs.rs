//! Converts the recorded inputs of operators to Python values.

use mindprof_analyze::dims;
use mindprof_model::{Input, InputsIter, KeywordValue};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyList};

use crate::arguments::LONGEST_LIST;
use crate::runtime;

/// Sets whether the embedded runtime records the values of number lists along with shapes.
#[pyfunction]
pub(crate) fn set_list_values_recorded(recorded: bool) {
    runtime::set_list_values_recorded(recorded);
}

/// Returns the shape of each input: the dims of a tensor, an empty list for anything else.
pub(crate) fn shapes<'py>(py: Python<'py>, inputs: InputsIter<'_>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for input in inputs {
        list.append(integers(py, dims(&input))?)?;
    }
    Ok(list)
}

/// The property of tensors that [`structured`] returns.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Dims,
    Strides,
}

/// Returns the dims or strides of each input, with one list per tensor for a list of tensors.
pub(crate) fn structured<'py>(
    py: Python<'py>,
    inputs: InputsIter<'_>,
    part: Part,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for input in inputs {
        let item = match (input, part) {
            (Input::Tensor { dims, .. }, Part::Dims) => integers(py, dims)?,
            (Input::Tensor { strides, .. }, Part::Strides) => integers(py, strides)?,
            (Input::TensorList(tensors), part) => structured(py, tensors, part)?,
            (
                Input::Other
                | Input::Device
                | Input::Int(_)
                | Input::Float(_)
                | Input::Bool(_)
                | Input::IntList(_)
                | Input::FloatList(_)
                | Input::BoolList(_)
                | Input::Complex { .. }
                | Input::NumberList(_),
                Part::Dims | Part::Strides,
            ) => PyList::empty(py),
        };
        list.append(item)?;
    }
    Ok(list)
}

/// Returns the values of numbers and lists of numbers, and `None` for all other inputs.
pub(crate) fn values<'py>(py: Python<'py>, inputs: InputsIter<'_>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for input in inputs {
        match input {
            Input::Int(value) => list.append(value)?,
            Input::Float(value) => list.append(value)?,
            Input::Bool(value) => list.append(value)?,
            Input::Complex { real, imaginary } => {
                list.append(PyComplex::from_doubles(py, real, imaginary))?;
            }
            Input::NumberList(numbers) if numbers.clone().count() <= LONGEST_LIST => {
                list.append(values(py, numbers)?)?;
            }
            Input::IntList(words) if words.len() <= LONGEST_LIST => {
                list.append(integers(py, words)?)?;
            }
            Input::FloatList(words) if words.len() <= LONGEST_LIST => {
                let floats = words.iter().map(|&word| f64::from_bits(word));
                list.append(floats.collect::<Vec<_>>())?;
            }
            Input::BoolList(words) if words.len() <= LONGEST_LIST => {
                let values = words.iter().map(|&word| word != 0);
                list.append(values.collect::<Vec<_>>())?;
            }
            Input::Other
            | Input::Device
            | Input::Tensor { .. }
            | Input::TensorList(_)
            | Input::IntList(_)
            | Input::FloatList(_)
            | Input::BoolList(_)
            | Input::NumberList(_) => list.append(py.None())?,
        }
    }
    Ok(list)
}

/// Returns the keyword arguments.
pub(crate) fn keywords<'py>(
    py: Python<'py>,
    inputs: InputsIter<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in inputs.keywords() {
        match value {
            KeywordValue::None => dict.set_item(name, py.None())?,
            KeywordValue::Int(value) => dict.set_item(name, value)?,
            KeywordValue::Float(value) => dict.set_item(name, value)?,
            KeywordValue::Bool(value) => dict.set_item(name, value)?,
            KeywordValue::Text(text) => dict.set_item(name, text)?,
            KeywordValue::Ints(values) => dict.set_item(name, values)?,
            KeywordValue::Floats(values) => dict.set_item(name, values)?,
            KeywordValue::Bools(values) => dict.set_item(name, values)?,
            KeywordValue::Texts(texts) => dict.set_item(name, texts)?,
        }
    }
    Ok(dict)
}

fn integers<'py>(py: Python<'py>, words: &[u64]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, words.iter().map(|&word| word as i64))
}
