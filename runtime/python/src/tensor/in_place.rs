//! In-place operators.

use mindtorch_tensor as host;
use mindtorch_tensor::{Elementwise, Scalar};
use pyo3::prelude::*;

use super::arguments::{Number, Operand};
use super::{Tensor, written};
use crate::error::Error;

pub(super) const ONE: Number = Number(Scalar::Int(1));

#[pymethods]
impl Tensor {
    fn __iadd__(&self, other: Operand<'_, '_>) -> PyResult<()> {
        Ok(self.0.add_(other.as_host()).map_err(Error::from)?)
    }

    fn __isub__(&self, other: Operand<'_, '_>) -> PyResult<()> {
        let result = self.0.sub_scaled_(other.as_host(), ONE.0);
        Ok(result.map_err(Error::from)?)
    }

    fn __imul__(&self, other: Operand<'_, '_>) -> PyResult<()> {
        Ok(self.0.mul_(other.as_host()).map_err(Error::from)?)
    }

    fn __itruediv__(&self, other: Operand<'_, '_>) -> PyResult<()> {
        Ok(self.0.div_(other.as_host()).map_err(Error::from)?)
    }

    /// Adds `alpha` times a tensor or a number, in place.
    #[pyo3(signature = (other, *, alpha = ONE))]
    fn add_<'py>(
        slf: Bound<'py, Self>,
        other: Operand<'_, 'py>,
        alpha: Number,
    ) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| tensor.add_scaled_(other.as_host(), alpha.0))
    }

    /// Subtracts `alpha` times a tensor or a number, in place.
    #[pyo3(signature = (other, *, alpha = ONE))]
    fn sub_<'py>(
        slf: Bound<'py, Self>,
        other: Operand<'_, 'py>,
        alpha: Number,
    ) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| tensor.sub_scaled_(other.as_host(), alpha.0))
    }

    /// Multiplies by a tensor or a number, in place.
    fn mul_<'py>(slf: Bound<'py, Self>, other: Operand<'_, 'py>) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| tensor.mul_(other.as_host()))
    }

    /// Divides by a tensor or a number, in place.
    fn div_<'py>(slf: Bound<'py, Self>, other: Operand<'_, 'py>) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| tensor.div_(other.as_host()))
    }

    /// Adds `value` times the product of two tensors, in place.
    #[pyo3(signature = (tensor1, tensor2, *, value = ONE))]
    fn addcmul_<'py>(
        slf: Bound<'py, Self>,
        tensor1: &Self,
        tensor2: &Self,
        value: Number,
    ) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| {
            tensor.addcmul_(&tensor1.0, &tensor2.0, value.0)
        })
    }

    /// Adds `value` times the quotient of two tensors, in place.
    #[pyo3(signature = (tensor1, tensor2, *, value = ONE))]
    fn addcdiv_<'py>(
        slf: Bound<'py, Self>,
        tensor1: &Self,
        tensor2: &Self,
        value: Number,
    ) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| {
            tensor.addcdiv_(&tensor1.0, &tensor2.0, value.0)
        })
    }

    /// Interpolates linearly towards another tensor, in place.
    fn lerp_<'py>(slf: Bound<'py, Self>, end: &Self, weight: Number) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| tensor.lerp_(&end.0, weight.0))
    }

    /// Sets all elements to a number.
    fn fill_<'py>(slf: Bound<'py, Self>, value: Operand<'_, 'py>) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| match &value {
            Operand::Number(value) => tensor.fill_(*value),
            Operand::Tensor(value) => tensor.fill_(value.get().0.item()?),
        })
    }

    /// Sets all elements to zero.
    fn zero_(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        written(slf, host::Tensor::zero_)
    }

    /// Copies the elements of another tensor into this one.
    #[pyo3(signature = (src, non_blocking = false))]
    fn copy_<'py>(
        slf: Bound<'py, Self>,
        src: &Self,
        non_blocking: bool,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = non_blocking;
        written(slf, |tensor| tensor.copy_(&src.0))
    }

    /// Limits the elements to the range from `min` to `max`, in place.
    #[pyo3(signature = (min = None, max = None))]
    fn clamp_(
        slf: Bound<'_, Self>,
        min: Option<Number>,
        max: Option<Number>,
    ) -> PyResult<Bound<'_, Self>> {
        let (min, max) = (min.map(|min| min.0), max.map(|max| max.0));
        written(slf, |tensor| tensor.clamp_(min, max))
    }

    /// Sets the elements selected by `mask` to a number, in place.
    fn masked_fill_<'py>(
        slf: Bound<'py, Self>,
        mask: &Self,
        value: Number,
    ) -> PyResult<Bound<'py, Self>> {
        written(slf, |tensor| tensor.masked_fill_(&mask.0, value.0))
    }

    /// Replaces negative elements with zero, in place.
    fn relu_(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        written(slf, host::Tensor::relu_)
    }

    /// Negates the elements, in place.
    fn neg_(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        written(slf, host::Tensor::neg_)
    }

    /// Fills the tensor with uniform draws from `from` up to but excluding `to`.
    #[pyo3(signature = (from_ = 0.0, to = 1.0, *, generator = None))]
    fn uniform_<'py>(
        slf: Bound<'py, Self>,
        from_: f64,
        to: f64,
        generator: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = generator;
        written(slf, |tensor| tensor.uniform_(from_, to))
    }

    /// Fills the tensor with draws from a normal distribution.
    #[pyo3(signature = (mean = 0.0, std = 1.0, *, generator = None))]
    fn normal_<'py>(
        slf: Bound<'py, Self>,
        mean: f64,
        std: f64,
        generator: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = generator;
        written(slf, |tensor| tensor.normal_(mean, std))
    }

    /// Fills the tensor with uniform integers from `from` up to but excluding `to`; a single
    /// argument is the upper bound.
    #[pyo3(signature = (from_ = None, to = None))]
    fn random_(
        slf: Bound<'_, Self>,
        from_: Option<i64>,
        to: Option<i64>,
    ) -> PyResult<Bound<'_, Self>> {
        let (low, high) = match (from_, to) {
            (Some(low), Some(high)) => (low, high),
            (Some(high), None) | (None, Some(high)) => (0, high),
            (None, None) => (
                0,
                if slf.get().0.dtype().bytes() == 8 {
                    i64::MAX
                } else {
                    1 << 24
                },
            ),
        };
        written(slf, |tensor| tensor.random_(low, high))
    }

    /// Sets each element to one with probability `p`, and to zero otherwise.
    #[pyo3(signature = (p = 0.5))]
    fn bernoulli_(slf: Bound<'_, Self>, p: f64) -> PyResult<Bound<'_, Self>> {
        written(slf, |tensor| tensor.bernoulli_(p))
    }
}

macro_rules! unary_methods {
    ($($name:ident $function:ident;)+) => {
        #[pymethods]
        impl Tensor {
            $(fn $name(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
                written(slf, |tensor| tensor.elementwise_(Elementwise::$function))
            })+
        }
    };
}

unary_methods! {
    abs_ Abs;
    exp_ Exp;
    log_ Log;
    rsqrt_ Rsqrt;
    sigmoid_ Sigmoid;
    sqrt_ Sqrt;
    tanh_ Tanh;
}
