//! `softmax` and `log_softmax` along a dimension.

use std::borrow::Cow;

use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::element::by_float;
use crate::kernels::{self, Softmax};
use crate::shape::dimension_index;
use crate::{DType, Result, Tensor};

static LOG_SOFTMAX: Site = Site::operator("aten::log_softmax");
static LOG_SOFTMAX_BACKWARD: Site = Site::operator("aten::_log_softmax_backward_data");
static LOG_SOFTMAX_INNER: Site = Site::operator("aten::_log_softmax");
static SOFTMAX: Site = Site::operator("aten::softmax");
static SOFTMAX_BACKWARD: Site = Site::operator("aten::_softmax_backward_data");
static SOFTMAX_INNER: Site = Site::operator("aten::_softmax");

node_site! {
    LOG_SOFTMAX_NODE = "LogSoftmaxBackward0";
    SOFTMAX_NODE = "SoftmaxBackward0";
}

impl Tensor {
    /// Returns the softmax along a dimension.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or the dtype is not floating-point.
    pub fn softmax(&self, dimension: i64, dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&SOFTMAX, (self, dimension, dtype));
        let operand = self.raised(dtype)?;
        let _scope = open(&SOFTMAX_INNER, (&*operand, dimension, false));
        let at = dimension_index(dimension, self.rank())?;
        differentiable(
            &SOFTMAX_NODE,
            [&operand],
            || along(&operand, at, Softmax::Plain, "softmax_lastdim_kernel_impl"),
            |result| {
                let kept = Saved::result(result, &SOFTMAX_NODE);
                Formula::unary_saving(move |gradient| {
                    let result = kept.get()?;
                    let arguments = (gradient, result, at as i64, result.dtype());
                    let _scope = open(&SOFTMAX_BACKWARD, arguments);
                    along_pair([gradient, result], at, Softmax::Plain)
                })
            },
        )
    }

    /// Returns the elements in the requested dtype.
    fn raised(&self, dtype: Option<DType>) -> Result<Cow<'_, Self>> {
        match dtype {
            Some(dtype) if dtype != self.dtype() => Ok(Cow::Owned(self.to_like(dtype)?)),
            Some(_) | None => Ok(Cow::Borrowed(self)),
        }
    }

    /// Returns the logarithm of the softmax along a dimension.
    ///
    /// # Errors
    /// Returns an error if the dimension does not exist or the dtype is not floating-point.
    pub fn log_softmax(&self, dimension: i64, dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&LOG_SOFTMAX, (self, dimension, dtype));
        if dtype == Some(self.dtype()) {
            self.to_device();
        }
        let operand = self.raised(dtype)?;
        let _scope = open(&LOG_SOFTMAX_INNER, (&*operand, dimension, false));
        let at = dimension_index(dimension, self.rank())?;
        differentiable(
            &LOG_SOFTMAX_NODE,
            [&operand],
            || {
                along(
                    &operand,
                    at,
                    Softmax::Log,
                    "log_softmax_lastdim_kernel_impl",
                )
            },
            |result| {
                let kept = Saved::result(result, &LOG_SOFTMAX_NODE);
                Formula::unary_saving(move |gradient| {
                    let result = kept.get()?;
                    let arguments = (gradient, result, at as i64, result.dtype());
                    let _scope = open(&LOG_SOFTMAX_BACKWARD, arguments);
                    along_pair([gradient, result], at, Softmax::Log)
                })
            },
        )
    }
}

/// Splits sizes at a dimension into the number of elements outside, its size, and the number
/// inside.
pub(super) fn around(dims: &[usize], at: usize) -> [usize; 3] {
    [
        dims[..at.min(dims.len())].iter().product(),
        dims.get(at).copied().unwrap_or(1),
        dims.get(at + 1..).unwrap_or(&[]).iter().product(),
    ]
}

fn along(operand: &Tensor, at: usize, kind: Softmax, kernel: &'static str) -> Result<Tensor> {
    let packed = kernels::pack(operand)?;
    let dims = around(operand.dims(), at);
    by_float!(operand.dtype(), kernel, T => {
        let elements = kernels::with_slice(&packed, |own: &[T]| kernels::softmax(own, dims, kind))?;
        kernels::narrowed(Tensor::from_elements(elements, packed.layout().at_start()), operand.dtype())
    })
}

fn along_pair(pair: [&Tensor; 2], at: usize, kind: Softmax) -> Result<Tensor> {
    let [gradient, result] = [kernels::pack(pair[0])?, kernels::pack(pair[1])?];
    let dims = around(result.dims(), at);
    by_float!(result.dtype(), "softmax_backward", T => {
        let elements = kernels::with_slices([&gradient, &result], |g: &[T], y: &[T]| {
            kernels::softmax_gradient(g, y, dims, kind)
        })?;
        kernels::narrowed(Tensor::from_elements(elements, result.layout().at_start()), result.dtype())
    })
}
