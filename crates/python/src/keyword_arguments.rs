//! Converts the keyword arguments of a range from Python values.

use std::ffi::CString;

use mindprof_model::KeywordValue;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::arguments::Number;

/// Converts keyword arguments. Warns about values of unsupported types, as torch does.
pub(crate) fn keywords(values: &Bound<'_, PyDict>) -> PyResult<Vec<(String, KeywordValue)>> {
    let mut keywords = Vec::with_capacity(values.len());
    for (name, value) in values {
        let name = name.str()?.to_string_lossy().into_owned();
        let value = keyword_value(&name, &value)?;
        keywords.push((name, value));
    }
    Ok(keywords)
}

fn keyword_value(name: &str, value: &Bound<'_, PyAny>) -> PyResult<KeywordValue> {
    if value.is_none() {
        return Ok(KeywordValue::None);
    }
    if let Some(value) = plain_value(value) {
        return Ok(value);
    }
    let (found, place) = match list_items(value) {
        Some(items) => (
            list_value(&items).ok_or(KeywordValue::None),
            "value in the List",
        ),
        None => (Err(KeywordValue::Text("NULL".to_owned())), "value"),
    };
    found.or_else(|instead| {
        let message = format!("Unable to infer type of {place} for keyword: {name}");
        // A message with a NUL byte cannot be shown, so the warning is empty then.
        let message = CString::new(message).unwrap_or_default();
        let category = value.py().get_type::<PyUserWarning>();
        PyErr::warn(value.py(), &category, &message, 1).map(|()| instead)
    })
}

/// Returns a number, a boolean or a string, or `None` for other values.
fn plain_value(value: &Bound<'_, PyAny>) -> Option<KeywordValue> {
    match Number::from_python(value) {
        Some(Number::Bool(value)) => return Some(KeywordValue::Bool(value)),
        Some(Number::Int(value)) => return Some(KeywordValue::Int(value)),
        Some(Number::Float(value)) => return Some(KeywordValue::Float(value)),
        None => (),
    }
    let text = value.cast::<PyString>().ok()?;
    Some(KeywordValue::Text(text.to_string_lossy().into_owned()))
}

fn list_items<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = value.cast::<PyList>() {
        return Some(list.iter().collect());
    }
    let tuple = value.cast::<PyTuple>().ok()?;
    Some(tuple.iter().collect())
}

/// Returns a list if all items are plain values of one type.
fn list_value(items: &[Bound<'_, PyAny>]) -> Option<KeywordValue> {
    /// Returns all items converted by `pick`, or `None` if it rejects one.
    fn all<T>(
        values: &[KeywordValue],
        pick: impl Fn(&KeywordValue) -> Option<T>,
    ) -> Option<Vec<T>> {
        values.iter().map(pick).collect()
    }
    let values: Option<Vec<KeywordValue>> = items.iter().map(plain_value).collect();
    let values = values?;
    let text = |value: &KeywordValue| match value {
        KeywordValue::Text(text) => Some(text.clone()),
        _ => None,
    };
    let int = |value: &KeywordValue| match value {
        KeywordValue::Int(value) => Some(*value),
        _ => None,
    };
    let float = |value: &KeywordValue| match value {
        KeywordValue::Float(value) => Some(*value),
        _ => None,
    };
    let truth = |value: &KeywordValue| match value {
        KeywordValue::Bool(value) => Some(*value),
        _ => None,
    };
    None.or_else(|| all(&values, text).map(KeywordValue::Texts))
        .or_else(|| all(&values, int).map(KeywordValue::Ints))
        .or_else(|| all(&values, float).map(KeywordValue::Floats))
        .or_else(|| all(&values, truth).map(KeywordValue::Bools))
}
