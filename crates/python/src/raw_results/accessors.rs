//! What one raw event says by torch's accessors, in the terms of a profile.

use mindprof_formats::category_of_name;
use mindprof_model::{Category, DeviceKind, ScopeKind};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

/// Returns what kind of thing an event is. `link` is the number of the scope that asked for it;
/// `is_scope` says whether it is one itself.
pub(super) fn category(
    raw: &Bound<'_, PyAny>,
    device: DeviceKind,
    link: i128,
    is_scope: bool,
) -> PyResult<Category> {
    let py = raw.py();
    // Whatever a scope asked for is work, on the host a call into the runtime.
    if link > 0 && device == DeviceKind::Cpu {
        return Ok(Category::Runtime);
    }
    let is_annotation = truth(raw, intern!(py, "is_user_annotation"))?;
    if device != DeviceKind::Cpu {
        return Ok(if is_annotation && link == 0 {
            Category::DeviceAnnotation
        } else {
            Category::Kernel
        });
    }
    if truth(raw, intern!(py, "is_python_function"))? {
        return Ok(Category::PythonFunction);
    }
    if is_annotation {
        return Ok(Category::Annotation);
    }
    let activity = raw.call_method0(intern!(py, "activity_type"))?.str()?;
    Ok(match category_of_name(&activity.to_string_lossy()) {
        Category::Runtime if !is_scope => Category::Runtime,
        Category::Other if !is_scope => Category::Other,
        Category::Operator
        | Category::Annotation
        | Category::PythonFunction
        | Category::Runtime
        | Category::Kernel
        | Category::DeviceAnnotation
        | Category::Other => Category::Operator,
    })
}

/// Returns the scope that a number of the recorder's stands for.
pub(super) const fn scope(number: i128) -> ScopeKind {
    match number {
        1 => ScopeKind::Backward,
        7 => ScopeKind::User,
        _ => ScopeKind::Function,
    }
}

pub(super) fn is_async(raw: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = raw.py();
    let start = whole(raw, intern!(py, "start_thread_id"))?;
    Ok(truth(raw, intern!(py, "is_async"))? || start != whole(raw, intern!(py, "end_thread_id"))?)
}

/// Not every recorder knows hidden events.
pub(super) fn is_hidden(raw: &Bound<'_, PyAny>) -> PyResult<bool> {
    match raw.getattr_opt(intern!(raw.py(), "is_hidden_event"))? {
        Some(is_hidden) => is_hidden.call0()?.is_truthy(),
        None => Ok(false),
    }
}

/// By number, because a real torch has a type of its own.
pub(super) fn device(raw: &Bound<'_, PyAny>) -> PyResult<DeviceKind> {
    let py = raw.py();
    let device = raw.call_method0(intern!(py, "device_type"))?;
    let number = py.get_type::<PyInt>().call1((device,))?;
    let kind = number.extract().ok().and_then(DeviceKind::from_number);
    kind.ok_or_else(|| PyValueError::new_err(format!("{number} is not a valid DeviceType")))
}

fn truth(raw: &Bound<'_, PyAny>, accessor: &Bound<'_, PyString>) -> PyResult<bool> {
    raw.call_method0(accessor)?.is_truthy()
}

/// Returns a whole number, which may need 64 bits with or without a sign.
pub(super) fn whole(raw: &Bound<'_, PyAny>, accessor: &Bound<'_, PyString>) -> PyResult<i128> {
    let value = raw.call_method0(accessor)?;
    value
        .extract::<i64>()
        .map(i128::from)
        .or_else(|_| value.extract::<u64>().map(i128::from))
}
