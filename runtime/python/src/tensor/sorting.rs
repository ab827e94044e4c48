//! Sorting, cumulative sums, scattering and more element-wise functions.

use mindtorch_tensor as host;
use mindtorch_tensor::{BinaryCrossEntropy, Curve, End, Scalar, UniqueOptions};
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arguments::{Dims, Number, Operand, keep, sizes};
use super::dtype::host_dtype;
use super::nn::reduction;
use super::{DType, Tensor, wrap, written};
use crate::error::Error;

/// Returns values and indices as a named tuple, as torch does.
pub(super) fn pair<'py>(
    py: Python<'py>,
    class: &str,
    result: host::Result<[host::Tensor; 2]>,
) -> PyResult<Bound<'py, PyAny>> {
    let [values, places] = result.map_err(Error::from)?;
    let pair = py.import("mindtorch_v2.return_types")?.getattr(class)?;
    pair.call1((Tensor(values), Tensor(places)))
}

fn end(is_highest: bool) -> End {
    if is_highest {
        End::Highest
    } else {
        End::Lowest
    }
}

#[pymethods]
impl Tensor {
    /// Sorts the elements along a dimension and returns values and indices.
    #[pyo3(signature = (dim = -1, descending = false))]
    fn sort<'py>(
        &self,
        dim: i64,
        descending: bool,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        pair(py, "sort", self.0.sort(dim, end(descending)))
    }

    /// Returns the indices that would sort the elements along a dimension.
    #[pyo3(signature = (dim = -1, descending = false))]
    fn argsort(&self, dim: i64, descending: bool) -> PyResult<Self> {
        wrap(self.0.argsort(dim, end(descending)))
    }

    /// Returns the largest or smallest elements along a dimension and their indices.
    #[pyo3(signature = (k, dim = -1, largest = true, sorted = true))]
    fn topk<'py>(
        &self,
        k: i64,
        dim: i64,
        largest: bool,
        sorted: bool,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        pair(py, "topk", self.0.topk(k, dim, end(largest), sorted))
    }

    /// Returns the cumulative sums along a dimension.
    #[pyo3(signature = (dim, *, dtype = None))]
    fn cumsum(&self, dim: i64, dtype: Option<DType>) -> PyResult<Self> {
        wrap(self.0.cumsum(dim, host_dtype(dtype)))
    }

    /// Returns the sorted distinct elements and, on request, inverse indices and counts.
    #[pyo3(signature = (sorted = true, return_inverse = false, return_counts = false, dim = None))]
    fn unique<'py>(
        &self,
        sorted: bool,
        return_inverse: bool,
        return_counts: bool,
        dim: Option<i64>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The result is always sorted.
        let _ = sorted;
        if dim.is_some() {
            return Err(PyNotImplementedError::new_err(
                "unique(): dim is not supported",
            ));
        }
        if self.0.requires_grad() && host::is_grad_enabled() {
            return Err(PyRuntimeError::new_err(
                "the derivative for '_unique2' is not implemented\nhint: detach() the tensor, or use no_grad()",
            ));
        }
        let options = UniqueOptions {
            inverse: return_inverse,
            counts: return_counts,
        };
        let [uniques, inverse, counts] = self.0.unique(options).map_err(Error::from)?;
        let uniques = Bound::new(py, Self(uniques))?.into_any();
        let mut results = vec![uniques.clone()];
        if return_inverse {
            results.push(Bound::new(py, Self(inverse))?.into_any());
        }
        if return_counts {
            results.push(Bound::new(py, Self(counts))?.into_any());
        }
        match results.len() {
            1 => Ok(uniques),
            _ => Ok(PyTuple::new(py, results)?.into_any()),
        }
    }

    /// Shifts the elements cyclically along dimensions.
    #[pyo3(signature = (shifts, dims = None))]
    fn roll(&self, shifts: Dims, dims: Option<Dims>) -> PyResult<Self> {
        let dimensions = dims.as_ref().map_or(&[][..], Dims::list);
        wrap(self.0.roll(shifts.list(), dimensions))
    }

    /// Returns a diagonal of a matrix, or a matrix with a vector as its diagonal.
    #[pyo3(signature = (diagonal = 0))]
    fn diag(&self, diagonal: i64) -> PyResult<Self> {
        wrap(self.0.diag(diagonal))
    }

    /// Reverses the order of the elements along dimensions.
    #[pyo3(signature = (*places, dims = None))]
    fn flip(&self, places: &Bound<'_, PyTuple>, dims: Option<Dims>) -> PyResult<Self> {
        let places = match &dims {
            Some(dims) => dims.list().to_vec(),
            None => sizes(places)?,
        };
        wrap(self.0.flip(&places))
    }

    /// Returns a copy with elements written to indices along a dimension.
    fn scatter(&self, dim: i64, index: &Self, src: Operand<'_, '_>) -> PyResult<Self> {
        wrap(self.0.scatter(dim, &index.0, src.as_host()))
    }

    /// Writes elements to indices along a dimension, in place.
    fn scatter_<'py>(
        slf: Bound<'py, Self>,
        dim: i64,
        index: &Self,
        src: Operand<'_, 'py>,
    ) -> PyResult<Bound<'py, Self>> {
        written(slf, |own| own.scatter_(dim, &index.0, src.as_host()))
    }

    /// Returns a copy with elements added at indices along a dimension.
    fn scatter_add(&self, dim: i64, index: &Self, src: &Self) -> PyResult<Self> {
        wrap(self.0.scatter_add(dim, &index.0, &src.0))
    }

    /// Adds elements at indices along a dimension, in place.
    fn scatter_add_<'py>(
        slf: Bound<'py, Self>,
        dim: i64,
        index: &Self,
        src: &Self,
    ) -> PyResult<Bound<'py, Self>> {
        written(slf, |own| own.scatter_add_(dim, &index.0, &src.0))
    }

    /// Returns which elements are NaN.
    fn isnan(&self) -> PyResult<Self> {
        wrap(self.0.isnan())
    }

    /// Returns the outer product of two vectors.
    fn outer(&self, vec2: &Self) -> PyResult<Self> {
        wrap(self.0.outer(&vec2.0))
    }

    /// Returns the logarithm of the sum of exponentials along a dimension.
    #[pyo3(signature = (dim, keepdim = false))]
    fn logsumexp(&self, dim: i64, keepdim: bool) -> PyResult<Self> {
        wrap(self.0.logsumexp(dim, keep(keepdim)))
    }

    /// Repeats the tensor along dimensions.
    #[pyo3(signature = (*repeats))]
    fn repeat(&self, repeats: &Bound<'_, PyTuple>) -> PyResult<Self> {
        wrap(self.0.repeat(&sizes(repeats)?))
    }

    /// Returns the exponential of each element, minus one.
    fn expm1(&self) -> PyResult<Self> {
        wrap(self.0.curve(Curve::Expm1))
    }

    /// Returns the natural logarithm of one plus each element.
    fn log1p(&self) -> PyResult<Self> {
        wrap(self.0.curve(Curve::Log1p))
    }

    /// Returns the base-two logarithm of each element.
    fn log2(&self) -> PyResult<Self> {
        wrap(self.0.curve(Curve::Log2))
    }
}

/// Returns each element times its sigmoid.
#[pyfunction]
pub(crate) fn silu(input: &Tensor) -> PyResult<Tensor> {
    wrap(input.0.curve(Curve::Silu))
}

/// Returns the logarithm of the sigmoid of each element.
#[pyfunction]
pub(crate) fn logsigmoid(input: &Tensor) -> PyResult<Tensor> {
    wrap(input.0.curve(Curve::LogSigmoid))
}

/// Multiplies negative elements by `negative_slope`.
#[pyfunction]
#[pyo3(signature = (input, negative_slope = Number(Scalar::Float(0.01))))]
pub(crate) fn leaky_relu(input: &Tensor, negative_slope: Number) -> PyResult<Tensor> {
    wrap(input.0.curve(Curve::LeakyRelu(negative_slope.0)))
}

/// Applies the exponential linear unit, with scale `alpha` for negative elements.
#[pyfunction]
#[pyo3(signature = (input, alpha = Number(Scalar::Float(1.0))))]
pub(crate) fn elu(input: &Tensor, alpha: Number) -> PyResult<Tensor> {
    wrap(input.0.curve(Curve::Elu(alpha.0)))
}

/// Applies a smooth approximation of `ReLU`, linear above the threshold.
#[pyfunction]
#[pyo3(signature = (input, beta = Number(Scalar::Int(1)), threshold = Number(Scalar::Int(20))))]
pub(crate) fn softplus(input: &Tensor, beta: Number, threshold: Number) -> PyResult<Tensor> {
    wrap(input.0.curve(Curve::Softplus(beta.0, threshold.0)))
}

/// Returns the binary cross-entropy between logits and targets.
#[pyfunction]
#[pyo3(signature = (input, target, weight = None, pos_weight = None, reduction = "mean"))]
pub(crate) fn binary_cross_entropy_with_logits(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: &str,
) -> PyResult<Tensor> {
    let options = BinaryCrossEntropy {
        weight: weight.map(|weight| weight.0.clone()),
        positive_weight: pos_weight.map(|weight| weight.0.clone()),
        reduction: self::reduction(reduction)?,
    };
    wrap(input.0.binary_cross_entropy(&target.0, &options))
}
