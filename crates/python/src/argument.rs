//! Python values as the inputs of a range.

use mindprof_model::DType;
use mindprof_record::InputsRewriter;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};

/// A value that a range is given, taken out of Python before the recorder is asked.
pub(crate) enum Argument {
    Tensor {
        dtype: DType,
        dims: Vec<usize>,
        strides: Vec<isize>,
    },
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Other,
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
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            return value
                .extract()
                .map(Self::Ints)
                .or_else(|_| value.extract().map(Self::Floats))
                .unwrap_or(Self::Other);
        }
        tensor(value).unwrap_or(Self::Other)
    }

    /// Adds the value to a list of inputs.
    pub(crate) fn encode(&self, encoder: &mut InputsRewriter<'_>) {
        match self {
            Self::Tensor {
                dtype,
                dims,
                strides,
            } => encoder.tensor(*dtype, dims, strides),
            Self::Int(value) => encoder.int(*value),
            Self::Float(value) => encoder.float(*value),
            Self::Bool(value) => encoder.bool(*value),
            Self::Ints(values) => encoder.int_list(values),
            Self::Floats(values) => encoder.float_list(values),
            Self::Other => encoder.other(),
        }
    }
}

/// Takes whatever has a shape and a type of elements for a tensor; one that does not tell its
/// strides is dense.
fn tensor(value: &Bound<'_, PyAny>) -> Option<Argument> {
    let dims: Vec<usize> = value.getattr("shape").ok()?.extract().ok()?;
    let dtype = value.getattr("dtype").ok()?.str().ok()?;
    let strides = value.call_method0("stride").and_then(|told| told.extract());
    Some(Argument::Tensor {
        dtype: dtype_named(dtype.to_string_lossy().trim_start_matches("torch.")),
        strides: strides.unwrap_or_else(|_| dense_strides(&dims)),
        dims,
    })
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
