//! The Python types `dtype` and `device`.

use mindtorch_tensor as host;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The type of a tensor's elements.
#[pyclass(
    frozen,
    eq,
    hash,
    from_py_object,
    name = "dtype",
    module = "mindtorch_v2"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DType(pub(super) host::DType);

#[pymethods]
impl DType {
    #[classattr]
    #[pyo3(name = "float32")]
    const FLOAT32: Self = Self(host::DType::F32);
    #[classattr]
    #[pyo3(name = "float64")]
    const FLOAT64: Self = Self(host::DType::F64);
    #[classattr]
    #[pyo3(name = "bfloat16")]
    const BFLOAT16: Self = Self(host::DType::BF16);
    #[classattr]
    #[pyo3(name = "int32")]
    const INT32: Self = Self(host::DType::I32);
    #[classattr]
    #[pyo3(name = "int64")]
    const INT64: Self = Self(host::DType::I64);
    #[classattr]
    #[pyo3(name = "bool")]
    const BOOL: Self = Self(host::DType::Bool);

    /// Whether the elements are floating-point numbers.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    /// The size of an element in bytes.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.bytes()
    }

    pub(super) fn __repr__(&self) -> &'static str {
        match self.0 {
            host::DType::F32 => "torch.float32",
            host::DType::F64 => "torch.float64",
            host::DType::BF16 => "torch.bfloat16",
            host::DType::I32 => "torch.int32",
            host::DType::I64 => "torch.int64",
            host::DType::Bool => "torch.bool",
        }
    }
}

/// Returns the runtime's dtype of an optional argument.
pub(super) fn host_dtype(dtype: Option<DType>) -> Option<host::DType> {
    dtype.map(|dtype| dtype.0)
}

/// The device of a tensor, which is always the CPU.
#[pyclass(frozen, eq, hash, name = "device", module = "mindtorch_v2")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Device {
    index: Option<i64>,
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (r#type, index = None))]
    fn new(r#type: &Bound<'_, PyAny>, index: Option<i64>) -> PyResult<Self> {
        let parsed = DeviceArgument::extract(r#type.as_borrowed())?;
        Ok(Self {
            index: index.or(parsed.index),
        })
    }

    /// The kind of device.
    #[classattr]
    #[pyo3(name = "type")]
    const TYPE: &'static str = "cpu";

    /// The index of the device, if one was given.
    #[getter]
    fn index(&self) -> Option<i64> {
        self.index
    }

    fn __str__(&self) -> String {
        match self.index {
            Some(index) => format!("cpu:{index}"),
            None => "cpu".to_owned(),
        }
    }

    fn __repr__(&self) -> String {
        match self.index {
            Some(index) => format!("device(type='cpu', index={index})"),
            None => "device(type='cpu')".to_owned(),
        }
    }
}

impl Device {
    pub(super) const CPU: Self = Self { index: None };
}

/// A device argument. The CPU is the only device, so the argument is only validated.
pub(crate) struct DeviceArgument {
    index: Option<i64>,
}

impl<'py> FromPyObject<'_, 'py> for DeviceArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(device) = object.cast::<Device>() {
            return Ok(Self {
                index: device.get().index,
            });
        }
        let text: String = object.extract()?;
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index)),
            None => (text.as_str(), None),
        };
        match kind {
            "cpu" => {}
            "cuda" | "xpu" | "mps" | "meta" | "hpu" | "xla" | "mtia" => {
                return Err(PyRuntimeError::new_err(format!(
                    "device '{text}' is not available: use 'cpu', the only device of this runtime"
                )));
            }
            _ => {
                return Err(PyRuntimeError::new_err(format!(
                    "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, \
                     lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {text}"
                )));
            }
        }
        let index = index.map(str::parse::<i64>).transpose();
        let index = index
            .map_err(|_| PyRuntimeError::new_err(format!("Invalid device string: '{text}'")))?;
        Ok(Self { index })
    }
}
