//! Tensor attributes, view operators, conversions, and operators that join tensors.

use mindtorch_tensor as host;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::arguments::{Dims, Operand, sizes, tensors};
use super::dtype::{DeviceArgument, host_dtype};
use super::{DType, Device, Tensor, wrap, wrap_all};

#[pymethods]
impl Tensor {
    /// The sizes.
    #[getter]
    pub(super) fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        super::scalar::size(py, self.0.dims())
    }

    /// Returns all sizes, or one of them.
    #[pyo3(signature = (dim = None))]
    fn size<'py>(&self, dim: Option<i64>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.shape(py)?;
        match dim {
            None => Ok(shape),
            Some(dim) => match shape.get_item(dim) {
                Ok(size) => Ok(size),
                Err(_) => Err(crate::error::Error::from(host::Error::DimensionOutOfRange {
                    lowest: -(self.0.rank() as i64).max(1),
                    highest: (self.0.rank() as i64 - 1).max(0),
                    dimension: dim,
                })
                .into()),
            },
        }
    }

    /// Returns the strides, in elements.
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.strides())
    }

    /// Returns the offset of the first element in the storage, in elements.
    fn storage_offset(&self) -> usize {
        self.0.offset()
    }

    /// Returns the address of the first element.
    fn data_ptr(&self) -> usize {
        self.0.address()
    }

    /// Returns whether the elements are contiguous in row-major order.
    fn is_contiguous(&self) -> bool {
        self.0.is_contiguous()
    }

    /// Returns the number of elements.
    fn numel(&self) -> usize {
        self.0.count()
    }

    /// Returns the size of an element in bytes.
    fn element_size(&self) -> usize {
        self.0.dtype().bytes()
    }

    /// Returns the number of dimensions.
    fn dim(&self) -> usize {
        self.0.rank()
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    /// The dtype of the elements.
    #[getter]
    pub(super) fn dtype(&self) -> DType {
        DType(self.0.dtype())
    }

    /// The device of the tensor.
    #[classattr]
    #[pyo3(name = "device")]
    const DEVICE: Device = Device::CPU;

    /// Returns whether the elements are floating-point numbers.
    fn is_floating_point(&self) -> bool {
        self.0.dtype().is_float()
    }

    /// Returns the transpose of a matrix, as a view.
    fn t(&self) -> PyResult<Self> {
        wrap(self.0.t())
    }

    /// The transpose of a matrix.
    #[getter(T)]
    fn transposed(&self) -> PyResult<Self> {
        wrap(self.0.numpy_t())
    }

    /// Returns a view with two dimensions swapped.
    fn transpose(&self, dim0: i64, dim1: i64) -> PyResult<Self> {
        wrap(self.0.transpose(dim0, dim1))
    }

    /// Returns a view with the dimensions reordered.
    #[pyo3(signature = (*dims))]
    fn permute(&self, dims: &Bound<'_, PyTuple>) -> PyResult<Self> {
        wrap(self.0.permute(&sizes(dims)?))
    }

    /// Returns a view with another shape.
    #[pyo3(signature = (*shape))]
    fn view(&self, shape: &Bound<'_, PyTuple>) -> PyResult<Self> {
        wrap(self.0.view(&sizes(shape)?))
    }

    /// Returns a view with the shape of another tensor.
    fn view_as(&self, other: &Self) -> PyResult<Self> {
        wrap(self.0.view_as(&other.0))
    }

    /// Returns the elements in another shape, copying only if no view exists.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>) -> PyResult<Self> {
        wrap(self.0.reshape(&sizes(shape)?))
    }

    /// Returns a view in which dimensions of size one are expanded.
    #[pyo3(signature = (*sizes))]
    fn expand(&self, sizes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        wrap(self.0.expand(&super::arguments::sizes(sizes)?))
    }

    /// Returns a view expanded to the shape of another tensor.
    fn expand_as(&self, other: &Self) -> PyResult<Self> {
        wrap(self.0.expand_as(&other.0))
    }

    /// Returns the tensor with some dimensions merged.
    #[pyo3(signature = (start_dim = 0, end_dim = -1))]
    fn flatten(&self, start_dim: i64, end_dim: i64) -> PyResult<Self> {
        wrap(self.0.flatten(start_dim, end_dim))
    }

    /// Returns a view without dimensions of size one, or without a given one.
    #[pyo3(signature = (dim = None))]
    fn squeeze(&self, dim: Option<i64>) -> PyResult<Self> {
        wrap(match dim {
            Some(dim) => self.0.squeeze(dim),
            None => self.0.squeeze_all(),
        })
    }

    /// Returns a view with a new dimension of size one.
    fn unsqueeze(&self, dim: i64) -> PyResult<Self> {
        wrap(self.0.unsqueeze(dim))
    }

    /// Returns a view of one index of a dimension.
    fn select(&self, dim: i64, index: i64) -> PyResult<Self> {
        wrap(self.0.select(dim, index))
    }

    /// Returns a view of a range of a dimension.
    fn narrow(&self, dim: i64, start: i64, length: i64) -> PyResult<Self> {
        wrap(self.0.narrow(dim, start, length))
    }

    /// Splits a dimension into a number of views.
    #[pyo3(signature = (chunks, dim = 0))]
    fn chunk<'py>(&self, chunks: i64, dim: i64, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, wrap_all(self.0.chunk(chunks, dim))?)
    }

    /// Splits a dimension into views of the given size or sizes.
    #[pyo3(signature = (split_size, dim = 0))]
    fn split<'py>(
        &self,
        split_size: Dims,
        dim: i64,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let pieces = match &split_size {
            Dims::One(size) => self.0.split(*size, dim),
            Dims::Many(sizes) => self.0.split_sizes(sizes, dim),
        };
        PyTuple::new(py, wrap_all(pieces)?)
    }

    /// Returns a view of each index of a dimension.
    #[pyo3(signature = (dim = 0))]
    fn unbind<'py>(&self, dim: i64, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, wrap_all(self.0.unbind(dim))?)
    }

    /// Returns a view with the given sizes and strides.
    #[pyo3(signature = (size, stride, storage_offset = None))]
    fn as_strided(
        &self,
        size: Vec<i64>,
        stride: Vec<i64>,
        storage_offset: Option<i64>,
    ) -> PyResult<Self> {
        wrap(self.0.as_strided_at(&size, &stride, storage_offset))
    }

    /// Returns a copy, in the same memory layout or contiguous.
    #[pyo3(signature = (*, memory_format = None))]
    fn clone(&self, memory_format: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(format) = memory_format else {
            return wrap(self.0.duplicate());
        };
        let name = format.str()?;
        match name.to_str()? {
            "torch.preserve_format" => wrap(self.0.duplicate()),
            "torch.contiguous_format" => wrap(self.0.duplicate_contiguous()),
            other => Err(PyRuntimeError::new_err(format!(
                "unsupported memory format option {other}"
            ))),
        }
    }

    /// Returns the elements in contiguous order, copying only if necessary.
    fn contiguous(&self) -> PyResult<Self> {
        wrap(self.0.contiguous())
    }

    /// Converts to another dtype. The device, if given, must be the CPU.
    #[pyo3(signature = (*args, dtype = None, device = None, non_blocking = false, copy = false))]
    fn to<'py>(
        slf: Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        dtype: Option<DType>,
        device: Option<DeviceArgument>,
        non_blocking: bool,
        copy: bool,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = non_blocking;
        let mut device = device.is_some();
        let mut dtype = host_dtype(dtype);
        for argument in args {
            if let Ok(other) = argument.extract::<DType>() {
                dtype = Some(other.0);
            } else if let Ok(other) = argument.cast::<Self>() {
                dtype = Some(other.get().0.dtype());
            } else if argument.is_instance_of::<PyString>() || argument.is_instance_of::<Device>() {
                argument.extract::<DeviceArgument>()?;
                device = true;
            } else if !argument.is_none() && argument.extract::<bool>().is_err() {
                return Err(pyo3::exceptions::PyTypeError::new_err(format!(
                    "to() received an invalid combination of arguments - got ({})",
                    argument.get_type().name()?
                )));
            }
        }
        let tensor = &slf.get().0;
        let py = slf.py();
        match dtype {
            Some(dtype) if dtype != tensor.dtype() => Bound::new(py, wrap(tensor.to(dtype))?),
            _ if copy => Bound::new(py, wrap(tensor.duplicate())?),
            Some(dtype) => same(&slf, dtype),
            None if device => {
                tensor.to_device();
                Ok(slf)
            }
            None => Ok(slf),
        }
    }

    /// Returns the tensor itself, which is on the CPU already.
    fn cpu(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf.get().0.to_device();
        slf
    }

    /// Converts the elements to 32-bit floats.
    fn float(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        converted(slf, host::DType::F32)
    }

    /// Converts the elements to brain floats, the upper half of a 32-bit float.
    fn bfloat16(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        converted(slf, host::DType::BF16)
    }

    /// Converts the elements to 64-bit floats.
    fn double(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        converted(slf, host::DType::F64)
    }

    /// Converts the elements to 64-bit integers.
    fn long(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        converted(slf, host::DType::I64)
    }

    /// Converts the elements to 32-bit integers.
    fn int(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        converted(slf, host::DType::I32)
    }

    /// Converts the elements to booleans.
    fn bool(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        converted(slf, host::DType::Bool)
    }

    /// Returns the lower triangle of each matrix.
    #[pyo3(signature = (diagonal = 0))]
    fn tril(&self, diagonal: i64) -> PyResult<Self> {
        wrap(self.0.triangle(host::Triangle::Lower, diagonal))
    }

    /// Returns the upper triangle of each matrix.
    #[pyo3(signature = (diagonal = 0))]
    fn triu(&self, diagonal: i64) -> PyResult<Self> {
        wrap(self.0.triangle(host::Triangle::Upper, diagonal))
    }
}

fn converted(slf: Bound<'_, Tensor>, dtype: host::DType) -> PyResult<Bound<'_, Tensor>> {
    let tensor = &slf.get().0;
    if tensor.dtype() == dtype {
        return same(&slf, dtype);
    }
    Bound::new(slf.py(), wrap(tensor.to(dtype))?)
}

/// Returns a tensor that already has the dtype, and records the conversion nevertheless.
fn same<'py>(slf: &Bound<'py, Tensor>, dtype: host::DType) -> PyResult<Bound<'py, Tensor>> {
    wrap(slf.get().0.to(dtype))?;
    Ok(slf.clone())
}

/// Concatenates tensors along a dimension.
#[pyfunction]
#[pyo3(signature = (tensors, dim = 0))]
pub(crate) fn cat(tensors: &Bound<'_, PyAny>, dim: i64) -> PyResult<Tensor> {
    wrap(host::Tensor::cat(&self::tensors(tensors)?, dim))
}

/// Concatenates tensors along a new dimension.
#[pyfunction]
#[pyo3(signature = (tensors, dim = 0))]
pub(crate) fn stack(tensors: &Bound<'_, PyAny>, dim: i64) -> PyResult<Tensor> {
    wrap(host::Tensor::stack(&self::tensors(tensors)?, dim))
}

/// Selects elements from `input` or `other`, depending on a condition.
#[pyfunction]
#[pyo3(name = "where")]
pub(crate) fn r#where(
    condition: &Tensor,
    input: Operand<'_, '_>,
    other: Operand<'_, '_>,
) -> PyResult<Tensor> {
    wrap(host::Tensor::choose(
        &condition.0,
        input.as_host(),
        other.as_host(),
    ))
}

/// Expands tensors to their common shape.
#[pyfunction]
#[pyo3(signature = (*tensors))]
pub(crate) fn broadcast_tensors(tensors: &Bound<'_, PyTuple>) -> PyResult<Vec<Tensor>> {
    wrap_all(host::Tensor::broadcast_tensors(&self::tensors(tensors)?))
}
