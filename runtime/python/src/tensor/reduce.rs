//! Reductions along dimensions.

use mindtorch_tensor as host;
use mindtorch_tensor::{End, Spread, Truth};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::arguments::{Dims, Operand, given_dims, keep};
use super::dtype::host_dtype;
use super::sorting::pair;
use super::{DType, Tensor, wrap};
use crate::error::Error;

#[pymethods]
impl Tensor {
    /// Returns the sum of all elements, or of those along some dimensions.
    #[pyo3(signature = (dim = None, keepdim = false, *, dtype = None))]
    fn sum(
        &self,
        #[pyo3(from_py_with = given_dims)] dim: Option<Dims>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> PyResult<Self> {
        let dimensions = dim.as_ref().map(Dims::list);
        wrap(self.0.sum(dimensions, keep(keepdim), host_dtype(dtype)))
    }

    /// Returns the mean of all elements, or of those along some dimensions.
    #[pyo3(signature = (dim = None, keepdim = false, *, dtype = None))]
    fn mean(
        &self,
        #[pyo3(from_py_with = given_dims)] dim: Option<Dims>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> PyResult<Self> {
        let dimensions = dim.as_ref().map(Dims::list);
        wrap(self.0.mean(dimensions, keep(keepdim), host_dtype(dtype)))
    }

    /// Returns the variance of all elements, or of those along some dimensions.
    #[pyo3(signature = (dim = None, unbiased = None, keepdim = false, *, correction = None))]
    fn var(
        &self,
        dim: Option<Dims>,
        unbiased: Option<bool>,
        keepdim: bool,
        correction: Option<f64>,
    ) -> PyResult<Self> {
        let measure = Measure {
            unbiased,
            keepdim,
            correction,
        };
        self.spread(Spread::Variance, dim.as_ref(), &measure)
    }

    /// Returns the standard deviation of all elements, or of those along some dimensions.
    #[pyo3(signature = (dim = None, unbiased = None, keepdim = false, *, correction = None))]
    fn std(
        &self,
        dim: Option<Dims>,
        unbiased: Option<bool>,
        keepdim: bool,
        correction: Option<f64>,
    ) -> PyResult<Self> {
        let measure = Measure {
            unbiased,
            keepdim,
            correction,
        };
        self.spread(Spread::Deviation, dim.as_ref(), &measure)
    }

    /// Returns the `p`-norm of all elements, or of those along some dimensions.
    #[pyo3(signature = (p = None, dim = None, keepdim = false))]
    fn norm(&self, p: Option<Order>, dim: Option<Dims>, keepdim: bool) -> PyResult<Self> {
        let dimensions = dim.as_ref().map(Dims::list);
        let order = p.map_or(Ok(2.0), |order| order.number())?;
        wrap(self.0.vector_norm(order, dimensions, keep(keepdim)))
    }

    /// Returns the product of all elements, or of those along a dimension.
    #[pyo3(signature = (dim = None, keepdim = false, *, dtype = None))]
    fn prod(&self, dim: Option<i64>, keepdim: bool, dtype: Option<DType>) -> PyResult<Self> {
        wrap(self.0.prod(dim, keep(keepdim), host_dtype(dtype)))
    }

    /// Returns the median, or the medians along a dimension and their indices.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn median<'py>(
        &self,
        dim: Option<i64>,
        keepdim: bool,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match dim {
            None => Ok(Bound::new(py, wrap(self.0.median())?)?.into_any()),
            Some(dim) => pair(py, "median", self.0.median_along(dim, keep(keepdim))),
        }
    }

    /// Returns the largest element, the largest ones along a dimension with their indices, or the
    /// larger of each pair of elements of two tensors.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn max<'py>(
        &self,
        dim: Option<Operand<'_, 'py>>,
        keepdim: bool,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.extreme(End::Highest, dim, keepdim, py)
    }

    /// Returns the smallest element, the smallest ones along a dimension with their indices, or the
    /// smaller of each pair of elements of two tensors.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn min<'py>(
        &self,
        dim: Option<Operand<'_, 'py>>,
        keepdim: bool,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.extreme(End::Lowest, dim, keepdim, py)
    }

    /// Returns the indices of the largest elements.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn argmax(&self, dim: Option<i64>, keepdim: bool) -> PyResult<Self> {
        wrap(self.0.arg_extreme(End::Highest, dim, keep(keepdim)))
    }

    /// Returns the indices of the smallest elements.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn argmin(&self, dim: Option<i64>, keepdim: bool) -> PyResult<Self> {
        wrap(self.0.arg_extreme(End::Lowest, dim, keep(keepdim)))
    }

    /// Returns whether all elements are true.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn all(&self, dim: Option<i64>, keepdim: bool) -> PyResult<Self> {
        wrap(self.0.truth(Truth::All, dim, keep(keepdim)))
    }

    /// Returns whether any element is true.
    #[pyo3(signature = (dim = None, keepdim = false))]
    fn any(&self, dim: Option<i64>, keepdim: bool) -> PyResult<Self> {
        wrap(self.0.truth(Truth::Any, dim, keep(keepdim)))
    }

    /// Returns whether another tensor has the same shape and elements.
    fn equal(&self, other: &Self) -> PyResult<bool> {
        if self.0.dims() != other.0.dims() {
            return Ok(false);
        }
        let same = self.0.compare(host::Comparison::Eq, &other.0);
        let all = same.and_then(|same| same.truth(Truth::All, None, keep(false)));
        let all = all.and_then(|all| all.to_bools());
        Ok(all.map_err(Error::from)? == [true])
    }

    /// Returns whether all elements are equal to those of another tensor, within a tolerance.
    #[pyo3(signature = (other, rtol = 1e-5, atol = 1e-8, equal_nan = false))]
    fn allclose(&self, other: &Self, rtol: f64, atol: f64, equal_nan: bool) -> PyResult<bool> {
        let sizes = |tensor: &host::Tensor| -> Vec<i64> {
            tensor.dims().iter().map(|&dim| dim as i64).collect()
        };
        // The operand of higher rank determines the shape; the other one broadcasts.
        let wider = if self.0.rank() >= other.0.rank() {
            self
        } else {
            other
        };
        let (left, right) = (
            self.0.detached().expand(&sizes(&wider.0)),
            other.0.detached().expand(&sizes(&wider.0)),
        );
        let (left, right) = (left.map_err(Error::from)?, right.map_err(Error::from)?);
        let (left, right) = (left.to_f64_vec(), right.to_f64_vec());
        let (left, right) = (left.map_err(Error::from)?, right.map_err(Error::from)?);
        let pairs = left.into_iter().zip(right);
        Ok(pairs.into_iter().all(|(x, y)| {
            let near = (x - y).abs() <= atol + rtol * y.abs();
            near || x.total_cmp(&y).is_eq() && !x.is_nan() || equal_nan && x.is_nan() && y.is_nan()
        }))
    }
}

/// The options of a variance or a standard deviation.
struct Measure {
    unbiased: Option<bool>,
    keepdim: bool,
    correction: Option<f64>,
}

/// The order of a norm: a number or a name.
#[derive(FromPyObject)]
enum Order {
    Number(f64),
    Name(String),
}

impl Order {
    fn number(&self) -> PyResult<f64> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) if name == "fro" => Ok(2.0),
            Self::Name(name) => Err(PyRuntimeError::new_err(format!(
                "norm(): unsupported norm {name:?}: pass a number or \"fro\""
            ))),
        }
    }
}

impl Tensor {
    fn spread(&self, spread: Spread, dim: Option<&Dims>, measure: &Measure) -> PyResult<Self> {
        let (dimensions, keep) = (dim.map(Dims::list), keep(measure.keepdim));
        wrap(match (measure.correction, measure.unbiased, dimensions) {
            (Some(correction), ..) => self.0.spread(spread, dimensions, correction, keep),
            (None, None, None) => self.0.spread(spread, None, 1.0, keep),
            (None, unbiased, _) => {
                let unbiased = unbiased.unwrap_or(true);
                self.0.spread_unbiased(spread, dimensions, unbiased, keep)
            }
        })
    }

    fn extreme<'py>(
        &self,
        end: End,
        dim: Option<Operand<'_, 'py>>,
        keepdim: bool,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let one = |tensor: Self| Ok(Bound::new(py, tensor)?.into_any());
        match dim {
            None => one(wrap(self.0.extreme(end))?),
            Some(Operand::Tensor(other)) => one(wrap(self.0.extreme_beside(end, &other.get().0))?),
            Some(Operand::Number(dim)) => {
                let dimension = match dim {
                    host::Scalar::Int(dimension) => dimension,
                    host::Scalar::Bool(_) | host::Scalar::Float(_) => {
                        return Err(pyo3::exceptions::PyTypeError::new_err(
                            "max(): argument 'dim' must be int",
                        ));
                    }
                };
                let class = match end {
                    End::Highest => "max",
                    End::Lowest => "min",
                };
                pair(
                    py,
                    class,
                    self.0.extreme_along(end, dimension, keep(keepdim)),
                )
            }
        }
    }
}
