//! Python values as the inputs of a range.

use std::ffi::CString;

use mindprof_model::{DType, Encoder, KeywordValue, WordSink};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::py_cache::{InternedNames, interned_names};

/// A value that a range is given, taken out of Python before the recorder is asked.
pub(crate) enum Argument {
    Tensor(TensorArgument),
    Tensors(Vec<TensorArgument>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Bools(Vec<bool>),
    Other,
}

/// What a range keeps of a tensor.
pub(crate) struct TensorArgument {
    dtype: DType,
    dims: Vec<usize>,
    strides: Vec<isize>,
}

impl TensorArgument {
    fn encode<W: WordSink>(&self, encoder: &mut Encoder<W>) {
        encoder.tensor(self.dtype, &self.dims, &self.strides);
    }
}

impl Argument {
    /// Takes a value for what it is; what cannot be told apart is `Other`.
    pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> Self {
        if let Ok(value) = value.cast::<PyBool>() {
            return Self::Bool(value.is_true());
        }
        if value.is_instance_of::<PyInt>() {
            return value.extract().map_or(Self::Other, Self::Int);
        }
        if let Ok(value) = value.cast::<PyFloat>() {
            return Self::Float(value.value());
        }
        if let Some(items) = list_items(value) {
            return Self::from_items(&items);
        }
        tensor(value).map_or(Self::Other, Self::Tensor)
    }

    fn from_items(items: &[Bound<'_, PyAny>]) -> Self {
        match list_value(items) {
            Some(KeywordValue::Ints(values)) => Self::Ints(values),
            Some(KeywordValue::Floats(values)) => Self::Floats(values),
            Some(KeywordValue::Bools(values)) => Self::Bools(values),
            // Nothing is a list of whole numbers here.
            Some(_) if items.is_empty() => Self::Ints(Vec::new()),
            Some(_) => Self::Other,
            None => items
                .iter()
                .map(tensor)
                .collect::<Option<_>>()
                .map_or(Self::Other, Self::Tensors),
        }
    }

    /// Adds the value to a list of inputs.
    pub(crate) fn encode<W: WordSink>(&self, encoder: &mut Encoder<W>) {
        match self {
            Self::Tensor(tensor) => tensor.encode(encoder),
            Self::Tensors(tensors) => {
                encoder.tensor_list(tensors.len());
                for tensor in tensors {
                    tensor.encode(encoder);
                }
            }
            Self::Int(value) => encoder.int(*value),
            Self::Float(value) => encoder.float(*value),
            Self::Bool(value) => encoder.bool(*value),
            Self::Ints(values) => encoder.int_list(values),
            Self::Floats(values) => encoder.float_list(values),
            Self::Bools(values) => encoder.bool_list(values),
            Self::Other => encoder.other(),
        }
    }
}

/// Takes values that a range is given by keyword. Warns of those that cannot be told, as torch does.
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
        // A name with a zero in it cannot be shown.
        let message = CString::new(message).unwrap_or_default();
        let category = value.py().get_type::<PyUserWarning>();
        PyErr::warn(value.py(), &category, &message, 1).map(|()| instead)
    })
}

/// Returns a number, a truth value or a text.
fn plain_value(value: &Bound<'_, PyAny>) -> Option<KeywordValue> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Some(KeywordValue::Bool(value.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return value.extract().ok().map(KeywordValue::Int);
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Some(KeywordValue::Float(value.value()));
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

/// Returns a list whose items are all plain and of one kind.
fn list_value(items: &[Bound<'_, PyAny>]) -> Option<KeywordValue> {
    /// Returns the list if `pick` takes all of its items.
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

/// Takes whatever has a shape and a type of elements for a tensor; one that does not tell its
/// strides is dense.
fn tensor(value: &Bound<'_, PyAny>) -> Option<TensorArgument> {
    let names = interned_names(value.py());
    let dims: Vec<usize> = value.getattr(&names.tensor_shape).ok()?.extract().ok()?;
    Some(TensorArgument {
        dtype: dtype(&value.getattr(&names.tensor_dtype).ok()?, names)?,
        strides: strides(value, names).unwrap_or_else(|| dense_strides(&dims)),
        dims,
    })
}

/// Takes a type of elements by its name: a text, an attribute, or what it is shown as, whichever is
/// there first, since showing it may run code of the framework's.
fn dtype(value: &Bound<'_, PyAny>, names: &InternedNames) -> Option<DType> {
    let text = match value.cast::<PyString>() {
        Ok(text) => text.clone(),
        Err(_) => match value.getattr_opt(&names.dtype_name).ok()? {
            Some(name) => name.cast_into().ok()?,
            None => value.str().ok()?,
        },
    };
    let text = text.to_string_lossy();
    Some(dtype_named(text.rsplit('.').next().unwrap_or_default()))
}

/// Returns the strides in elements that a tensor tells by a method or an attribute, or those in
/// bytes of an array.
fn strides(value: &Bound<'_, PyAny>, names: &InternedNames) -> Option<Vec<isize>> {
    if let Ok(told) = value.getattr(&names.tensor_stride) {
        if told.is_instance_of::<PyTuple>() {
            return told.extract().ok();
        }
        return told.call0().ok()?.extract().ok();
    }
    let bytes: Vec<isize> = value.getattr("strides").ok()?.extract().ok()?;
    let item: isize = value.getattr("itemsize").ok()?.extract().ok()?;
    (item > 0).then(|| bytes.iter().map(|stride| stride / item).collect())
}

fn dtype_named(name: &str) -> DType {
    match name {
        "uint8" => DType::U8,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "float32" => DType::F32,
        "float64" => DType::F64,
        "complex64" => DType::C64,
        "complex128" => DType::C128,
        "bool" => DType::Bool,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "complex32" => DType::C32,
        "bcomplex32" => DType::BC32,
        "float8_e4m3fn" => DType::F8E4M3FN,
        "float8_e4m3fnuz" => DType::F8E4M3FNUZ,
        "float8_e5m2" => DType::F8E5M2,
        "float8_e5m2fnuz" => DType::F8E5M2FNUZ,
        "float8_e8m0fnu" => DType::F8E8M0FNU,
        "float4_e2m1fn_x2" => DType::F4E2M1FNX2,
        "qint8" => DType::QI8,
        "quint8" => DType::QU8,
        "qint32" => DType::QI32,
        "quint4x2" => DType::QU4X2,
        "quint2x4" => DType::QU2X4,
        _ => DType::Unknown,
    }
}

fn dense_strides(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis].max(1) as isize;
    }
    strides
}
