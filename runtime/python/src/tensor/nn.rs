//! The functions of layers and losses.

use mindtorch_tensor as host;
use mindtorch_tensor::{
    Approximation, BatchNorm, Bend, Convolution, CrossEntropy, Divisor, Pool, Reduction,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::arguments::Dims;
use super::dtype::host_dtype;
use super::{DType, Tensor, wrap};
use crate::error::Error;

/// Reads one number for both rows and columns, or one for each.
fn pair(dims: &Dims, name: &str) -> PyResult<[i64; 2]> {
    match dims.list() {
        &[both] => Ok([both, both]),
        &[rows, columns] => Ok([rows, columns]),
        other => Err(PyRuntimeError::new_err(format!(
            "{name} must be a single int or a tuple of two ints, found {} of them",
            other.len()
        ))),
    }
}

pub(super) fn reduction(name: &str) -> PyResult<Reduction> {
    match name {
        "mean" => Ok(Reduction::Mean),
        "sum" => Ok(Reduction::Sum),
        "none" => Ok(Reduction::None),
        other => Err(PyValueError::new_err(format!(
            "{other} is not a valid value for reduction"
        ))),
    }
}

/// Returns the input times the transposed weight, plus the bias.
#[pyfunction]
#[pyo3(signature = (input, weight, bias = None))]
pub(crate) fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> PyResult<Tensor> {
    wrap(input.0.linear(&weight.0, bias.map(|bias| &bias.0)))
}

/// Convolves images with a weight and adds a bias.
#[pyfunction]
#[pyo3(signature = (input, weight, bias = None, stride = Dims::One(1), padding = Padding::Sizes(Dims::One(0)), dilation = Dims::One(1), groups = 1))]
pub(crate) fn conv2d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: Dims,
    padding: Padding,
    dilation: Dims,
    groups: i64,
) -> PyResult<Tensor> {
    let (stride, dilation) = (pair(&stride, "stride")?, pair(&dilation, "dilation")?);
    let padding = padding.resolve(&weight.0, stride, dilation)?;
    let options = Convolution {
        stride,
        padding,
        dilation,
        groups,
    };
    wrap(input.0.conv2d(&weight.0, bias.map(|bias| &bias.0), options))
}

/// The padding of a convolution: sizes, or `"same"` or `"valid"`.
#[derive(FromPyObject)]
pub(crate) enum Padding {
    Word(String),
    Sizes(Dims),
}

impl Padding {
    fn resolve(
        &self,
        weight: &host::Tensor,
        stride: [i64; 2],
        dilation: [i64; 2],
    ) -> PyResult<[i64; 2]> {
        match self {
            Self::Sizes(sizes) => pair(sizes, "padding"),
            Self::Word(word) if word == "valid" => Ok([0, 0]),
            Self::Word(word) if word == "same" => {
                let kernel = match *weight.dims() {
                    [.., rows, columns] => [rows as i64, columns as i64],
                    _ => [1, 1],
                };
                if stride != [1, 1] || kernel.iter().any(|size| size % 2 == 0) {
                    return Err(PyRuntimeError::new_err(
                        "padding='same' is not supported for strided convolutions or even kernel sizes: pass numbers instead",
                    ));
                }
                Ok([0, 1].map(|axis: usize| dilation[axis] * (kernel[axis] - 1) / 2))
            }
            Self::Word(word) => Err(PyRuntimeError::new_err(format!(
                "Unsupported padding: {word}"
            ))),
        }
    }
}

/// Returns the largest element under each position of a window, and their indices.
#[pyfunction]
#[pyo3(signature = (input, kernel_size, stride = None, padding = Dims::One(0), dilation = Dims::One(1), ceil_mode = false))]
pub(crate) fn max_pool2d(
    input: &Tensor,
    kernel_size: Dims,
    stride: Option<Dims>,
    padding: Dims,
    dilation: Dims,
    ceil_mode: bool,
) -> PyResult<(Tensor, Tensor)> {
    let kernel = pair(&kernel_size, "kernel_size")?;
    let pool = Pool {
        kernel,
        stride: stride_or(stride.as_ref(), kernel)?,
        padding: pair(&padding, "padding")?,
        dilation: pair(&dilation, "dilation")?,
        ceil: ceil_mode,
    };
    let [values, places] = input.0.max_pool2d(pool).map_err(Error::from)?;
    Ok((Tensor(values), Tensor(places)))
}

/// Returns the average under each position of a window.
#[pyfunction]
#[pyo3(signature = (input, kernel_size, stride = None, padding = Dims::One(0), ceil_mode = false, count_include_pad = true, divisor_override = None))]
pub(crate) fn avg_pool2d(
    input: &Tensor,
    kernel_size: Dims,
    stride: Option<Dims>,
    padding: Dims,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Option<i64>,
) -> PyResult<Tensor> {
    let kernel = pair(&kernel_size, "kernel_size")?;
    let pool = Pool {
        kernel,
        stride: stride_or(stride.as_ref(), kernel)?,
        padding: pair(&padding, "padding")?,
        dilation: [1, 1],
        ceil: ceil_mode,
    };
    let divisor = match (divisor_override, count_include_pad) {
        (Some(count), _) => Divisor::Fixed(count),
        (None, true) => Divisor::Window,
        (None, false) => Divisor::Image,
    };
    wrap(input.0.avg_pool2d(pool, divisor))
}

/// Returns the stride of a window, which defaults to its size.
fn stride_or(stride: Option<&Dims>, kernel: [i64; 2]) -> PyResult<[i64; 2]> {
    match stride {
        Some(stride) if !stride.list().is_empty() => pair(stride, "stride"),
        _ => Ok(kernel),
    }
}

/// Averages images over a grid of `output_size` regions. A `None` keeps the size of the input.
#[pyfunction]
pub(crate) fn adaptive_avg_pool2d(
    input: &Tensor,
    output_size: (Option<i64>, Option<i64>),
) -> PyResult<Tensor> {
    let dims = input.0.dims();
    let own = |from_end: usize| {
        dims.len()
            .checked_sub(from_end)
            .map_or(0, |at| dims[at] as i64)
    };
    let output = [
        output_size.0.unwrap_or_else(|| own(2)),
        output_size.1.unwrap_or_else(|| own(1)),
    ];
    wrap(input.0.adaptive_avg_pool2d(output))
}

/// Normalizes each channel of a batch to mean zero and variance one.
#[pyfunction]
#[pyo3(signature = (input, running_mean, running_var, weight = None, bias = None, training = false, momentum = 0.1, eps = 1e-5))]
#[expect(clippy::too_many_arguments, reason = "torch's signature")]
pub(crate) fn batch_norm(
    input: &Tensor,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
) -> PyResult<Tensor> {
    wrap(input.0.batch_norm(BatchNorm {
        weight: weight.map(|weight| &weight.0),
        bias: bias.map(|bias| &bias.0),
        running_mean: running_mean.map(|mean| &mean.0),
        running_var: running_var.map(|variance| &variance.0),
        training,
        momentum,
        epsilon: eps,
    }))
}

/// Normalizes the last dimensions to mean zero and variance one.
#[pyfunction]
#[pyo3(signature = (input, normalized_shape, weight = None, bias = None, eps = 1e-5))]
pub(crate) fn layer_norm(
    input: &Tensor,
    normalized_shape: Vec<i64>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> PyResult<Tensor> {
    let (weight, bias) = (weight.map(|weight| &weight.0), bias.map(|bias| &bias.0));
    wrap(input.0.layer_norm(&normalized_shape, weight, bias, eps))
}

/// Looks up rows of an embedding table by index.
#[pyfunction]
#[pyo3(signature = (input, weight, padding_idx = None))]
pub(crate) fn embedding(
    input: &Tensor,
    weight: &Tensor,
    padding_idx: Option<i64>,
) -> PyResult<Tensor> {
    let rows = weight.0.dims().first().copied().unwrap_or(0) as i64;
    let padding = padding_idx.map(|row| if row < 0 { row + rows } else { row });
    wrap(weight.0.embedding(&input.0, padding))
}

/// Returns the Gaussian error linear unit of each element.
#[pyfunction]
#[pyo3(signature = (input, *, approximate = "none"))]
pub(crate) fn gelu(input: &Tensor, approximate: &str) -> PyResult<Tensor> {
    let approximation = match approximate {
        "none" => Approximation::None,
        "tanh" => Approximation::Tanh,
        _ => {
            return Err(PyRuntimeError::new_err(
                "approximate argument must be either none or tanh.",
            ));
        }
    };
    wrap(input.0.gelu(approximation))
}

/// In training, sets random elements to zero and scales up the others.
#[pyfunction]
#[pyo3(signature = (input, p = 0.5, training = true))]
pub(crate) fn dropout(input: &Tensor, p: f64, training: bool) -> PyResult<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        return Err(PyValueError::new_err(format!(
            "dropout probability has to be between 0 and 1, but got {p}"
        )));
    }
    wrap(input.0.dropout(p, training))
}

/// Returns the squared differences to a target, reduced to their mean by default.
#[pyfunction]
#[pyo3(signature = (input, target, reduction = "mean"))]
pub(crate) fn mse_loss(input: &Tensor, target: &Tensor, reduction: &str) -> PyResult<Tensor> {
    wrap(input.0.mse_loss(&target.0, self::reduction(reduction)?))
}

/// Returns the loss that is quadratic for differences below `beta` and linear above.
#[pyfunction]
#[pyo3(signature = (input, target, reduction = "mean", beta = 1.0))]
pub(crate) fn smooth_l1_loss(
    input: &Tensor,
    target: &Tensor,
    reduction: &str,
    beta: f64,
) -> PyResult<Tensor> {
    let reduction = self::reduction(reduction)?;
    wrap(input.0.bent_loss(&target.0, reduction, Bend::Smooth(beta)))
}

/// Returns the loss that is quadratic for differences below `delta` and linear above.
#[pyfunction]
#[pyo3(signature = (input, target, reduction = "mean", delta = 1.0))]
pub(crate) fn huber_loss(
    input: &Tensor,
    target: &Tensor,
    reduction: &str,
    delta: f64,
) -> PyResult<Tensor> {
    let reduction = self::reduction(reduction)?;
    wrap(input.0.bent_loss(&target.0, reduction, Bend::Huber(delta)))
}

fn cross_entropy_options(
    weight: Option<&Tensor>,
    ignore_index: i64,
    reduction: &str,
    label_smoothing: f64,
) -> PyResult<CrossEntropy> {
    if label_smoothing > 1.0 {
        return Err(PyRuntimeError::new_err(format!(
            "label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
        )));
    }
    if weight.is_some_and(|weight| weight.0.requires_grad()) && host::is_grad_enabled() {
        return Err(PyRuntimeError::new_err(
            "The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'. This input \
             cannot have requires_grad True.",
        ));
    }
    Ok(CrossEntropy {
        weight: weight.map(|weight| weight.0.detached()),
        ignore_index,
        reduction: self::reduction(reduction)?,
        // As in torch, a negative value has no effect.
        label_smoothing: label_smoothing.max(0.0),
    })
}

/// Returns the negative log-likelihood of a target of classes.
#[pyfunction]
#[pyo3(signature = (input, target, weight = None, ignore_index = -100, reduction = "mean"))]
pub(crate) fn nll_loss(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore_index: i64,
    reduction: &str,
) -> PyResult<Tensor> {
    let options = cross_entropy_options(weight, ignore_index, reduction, 0.0)?;
    wrap(input.0.nll_loss(&target.0, &options))
}

/// Returns the cross-entropy between logits and a target.
#[pyfunction]
#[pyo3(signature = (input, target, weight = None, ignore_index = -100, reduction = "mean", label_smoothing = 0.0))]
pub(crate) fn cross_entropy(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore_index: i64,
    reduction: &str,
    label_smoothing: f64,
) -> PyResult<Tensor> {
    let options = cross_entropy_options(weight, ignore_index, reduction, label_smoothing)?;
    wrap(input.0.cross_entropy(&target.0, &options))
}

/// Returns the attention: the values, weighted by how well the keys match the queries.
#[pyfunction]
#[pyo3(signature = (query, key, value, attn_mask = None, dropout_p = 0.0, is_causal = false, scale = None))]
pub(crate) fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    attn_mask: Option<&Tensor>,
    dropout_p: f64,
    is_causal: bool,
    scale: Option<f64>,
) -> PyResult<Tensor> {
    let mask = attn_mask.map(|mask| &mask.0);
    wrap(
        query
            .0
            .attention(&key.0, &value.0, mask, dropout_p, is_causal, scale),
    )
}

#[pymethods]
impl Tensor {
    /// Returns the softmax along a dimension.
    #[pyo3(signature = (dim, dtype = None))]
    fn softmax(&self, dim: i64, dtype: Option<DType>) -> PyResult<Self> {
        wrap(self.0.softmax(dim, host_dtype(dtype)))
    }

    /// Returns the logarithm of the softmax along a dimension.
    #[pyo3(signature = (dim, dtype = None))]
    fn log_softmax(&self, dim: i64, dtype: Option<DType>) -> PyResult<Self> {
        wrap(self.0.log_softmax(dim, host_dtype(dtype)))
    }
}
