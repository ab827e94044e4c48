//! Normalization: `layer_norm` and `batch_norm`.

use smallvec::smallvec;

use crate::autograd::{Formula, Saved, differentiable_first, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::element::{Real, by_float};
use crate::error::reject;
use crate::kernels::{self, NormGradient, Statistics};
use crate::ops::create::{Options, empty, empty_like_contiguous};
use crate::shape::signed;
use crate::{DType, Error, Result, Tensor};

static BATCH_NORM: Site = Site::operator("aten::batch_norm");
static BATCH_NORM_IMPL: Site = Site::operator("aten::_batch_norm_impl_index");
static LAYER_NORM: Site = Site::operator("aten::layer_norm");
static NATIVE_BATCH_NORM: Site = Site::operator("aten::native_batch_norm");
static NATIVE_BATCH_NORM_BACKWARD: Site = Site::operator("aten::native_batch_norm_backward");
static NATIVE_LAYER_NORM: Site = Site::operator("aten::native_layer_norm");
static NATIVE_LAYER_NORM_BACKWARD: Site = Site::operator("aten::native_layer_norm_backward");
static RESIZE: Site = Site::operator("aten::resize_");

node_site! {
    BATCH_NORM_NODE = "NativeBatchNormBackward0";
    LAYER_NORM_NODE = "NativeLayerNormBackward0";
}

/// The options of [`Tensor::batch_norm`].
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// The weight of each channel.
    pub weight: Option<&'a Tensor>,
    /// The bias of each channel.
    pub bias: Option<&'a Tensor>,
    /// The running means, updated from batch to batch.
    pub running_mean: Option<&'a Tensor>,
    /// The running variances, updated from batch to batch.
    pub running_var: Option<&'a Tensor>,
    /// Whether to use the statistics of this batch and update the running ones.
    pub training: bool,
    /// The weight of a batch in the running statistics.
    pub momentum: f64,
    /// The number added to variances for numerical stability.
    pub epsilon: f64,
}

impl Tensor {
    /// Normalizes the last dimensions to mean zero and variance one.
    ///
    /// # Errors
    /// Returns an error if the sizes or the dtypes do not match.
    pub fn layer_norm(
        &self,
        shape: &[i64],
        weight: Option<&Self>,
        bias: Option<&Self>,
        epsilon: f64,
    ) -> Result<Self> {
        let _scope = open(&LAYER_NORM, (self, shape, weight, bias, epsilon, true));
        let _scope = open(&NATIVE_LAYER_NORM, (self, shape, weight, bias, epsilon));
        let leading = check_layer(self, shape, [weight, bias])?;
        let rows: usize = self.dims()[..leading].iter().product();
        let width: usize = self.dims()[leading..].iter().product();
        let (weight_operand, bias_operand) = (or_empty(weight)?, or_empty(bias)?);
        let mut statistic_sizes = signed(&self.dims()[..leading]);
        statistic_sizes.extend(shape.iter().map(|_| 1));
        let [result, _, _] = differentiable_first(
            &LAYER_NORM_NODE,
            [self, &weight_operand, &bias_operand],
            || {
                let options = Options::like(self);
                let result = empty(&signed(self.dims()), self.dtype(), &options)?;
                let statistics = statistics_dtype(self, [weight, bias]);
                let mean = empty(&[rows as i64], statistics, &options)?;
                let deviation = empty(&[rows as i64], statistics, &options)?;
                if self.count() == 0 {
                    let (mean, deviation) = (
                        mean.view(&statistic_sizes)?,
                        deviation.view(&statistic_sizes)?,
                    );
                    return Ok([result, mean, deviation]);
                }
                let packed = kernels::pack(self)?;
                by_float!(self.dtype(), "LayerNormKernelImpl", T => {
                    let (values, statistics) = kernels::with_slice(&packed, |own: &[T]| {
                        let scale = weight.map(Tensor::to_vec::<T>).transpose()?;
                        let shift = bias.map(Tensor::to_vec::<T>).transpose()?;
                        kernels::normalise_rows(own, width, scale.as_deref(), shift.as_deref(), epsilon)
                    })?;
                    fill_slice(&result, values);
                    fill_slice(&mean, statistics.mean);
                    fill_slice(&deviation, statistics.inverse_deviation);
                    Ok(())
                })?;
                let (mean, deviation) = (
                    mean.view(&statistic_sizes)?,
                    deviation.view(&statistic_sizes)?,
                );
                Ok([result, mean, deviation])
            },
            |[_, mean, deviation]| {
                let kept = [Saved::new(self), Saved::new(mean), Saved::new(deviation)];
                let weight = weight.map(Saved::new);
                let (shape, bias) = (shape.to_vec(), bias.map(Saved::new));
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    let [own, mean, deviation] = [kept[0].get()?, kept[1].get()?, kept[2].get()?];
                    let weight = weight.as_ref().map(Saved::get).transpose()?;
                    let bias = bias.as_ref().map(Saved::get).transpose()?;
                    let _scope = open(
                        &NATIVE_LAYER_NORM_BACKWARD,
                        (
                            gradient,
                            own,
                            shape.as_slice(),
                            mean,
                            deviation,
                            weight,
                            bias,
                            Absent,
                        ),
                    );
                    let parts = layer_gradient(gradient, own, [mean, deviation], weight, width)?;
                    let [input, scale, shift] = parts;
                    Ok(smallvec![
                        Some(input),
                        weight.map(|_| scale),
                        bias.map(|_| shift)
                    ])
                })
            },
        )?;
        Ok(result)
    }

    /// Normalizes each channel of a batch to mean zero and variance one.
    ///
    /// # Errors
    /// Returns an error if the sizes or the dtypes do not match.
    pub fn batch_norm(&self, options: BatchNorm<'_>) -> Result<Self> {
        let BatchNorm {
            weight,
            bias,
            running_mean,
            running_var,
            training,
            momentum,
            epsilon,
        } = options;
        let _scope = open(
            &BATCH_NORM,
            (
                self,
                weight,
                bias,
                running_mean,
                running_var,
                training,
                momentum,
                epsilon,
                true,
            ),
        );
        check_channels(self, options)?;
        let _scope = open(
            &BATCH_NORM_IMPL,
            (
                self,
                weight,
                bias,
                running_mean,
                running_var,
                training,
                momentum,
                epsilon,
                true,
            ),
        );
        drop(empty(&[0], DType::Bool, &Options::of(Some(DType::Bool)))?);
        let _scope = open(
            &NATIVE_BATCH_NORM,
            (
                self,
                weight,
                bias,
                running_mean,
                running_var,
                training,
                momentum,
                epsilon,
            ),
        );
        let (weight_operand, bias_operand) = (or_empty(weight)?, or_empty(bias)?);
        let [result, _, _] = differentiable_first(
            &BATCH_NORM_NODE,
            [self, &weight_operand, &bias_operand],
            || batch_forward(self, options),
            |[_, mean, deviation]| {
                let kept = [Saved::new(self), Saved::new(mean), Saved::new(deviation)];
                let (weight, has_bias) = (weight.map(Saved::new), bias.is_some());
                // Only recorded: the gradient does not need their values.
                let running = [running_mean, running_var].map(|kept| kept.map(Tensor::untracked));
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    let [own, mean, deviation] = [kept[0].get()?, kept[1].get()?, kept[2].get()?];
                    let weight = weight.as_ref().map(Saved::get).transpose()?;
                    let _scope = open(
                        &NATIVE_BATCH_NORM_BACKWARD,
                        (
                            gradient,
                            own,
                            weight,
                            running[0].as_ref(),
                            running[1].as_ref(),
                            mean,
                            deviation,
                            training,
                            epsilon,
                            Absent,
                        ),
                    );
                    let parts = batch_gradient(gradient, own, [mean, deviation], weight, training)?;
                    let [input, scale, shift] = parts;
                    Ok(smallvec![
                        Some(input),
                        weight.map(|_| scale),
                        has_bias.then_some(shift)
                    ])
                })
            },
        )?;
        Ok(result)
    }
}

/// Returns the dtype of the statistics: that of the parameters, which may be wider.
fn statistics_dtype(own: &Tensor, parameters: [Option<&Tensor>; 2]) -> DType {
    let mut parameters = parameters.into_iter().flatten();
    parameters.next().map_or(own.dtype(), Tensor::dtype)
}

/// Substitutes an empty tensor for an absent operand, so that nodes always have three edges.
fn or_empty(operand: Option<&Tensor>) -> Result<Tensor> {
    match operand {
        Some(operand) => Ok(operand.clone()),
        None => Tensor::from_slice::<f32>(&[], &[0]),
    }
}

/// Moves the elements that a kernel produced into a tensor created for them.
pub(super) fn fill_slice<T: crate::Element>(room: &Tensor, elements: Vec<T>) {
    let source = Tensor::from_elements(elements, room.layout().at_start());
    kernels::copy_into(room, &source);
}

fn check_layer(own: &Tensor, shape: &[i64], parameters: [Option<&Tensor>; 2]) -> Result<usize> {
    let dims = signed(own.dims());
    let leading = dims.len().checked_sub(shape.len());
    let Some(leading) = leading.filter(|&leading| dims[leading..] == *shape && !shape.is_empty())
    else {
        return reject!(
            Runtime,
            "Given normalized_shape={shape:?}, expected input with shape [*, {}], but got input of size{:?}",
            shape
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            own.dims()
        );
    };
    if !own.dtype().is_float() {
        return Err(Error::NotImplemented {
            kernel: "LayerNormKernelImpl",
            dtype: own.dtype(),
        });
    }
    for parameter in parameters.into_iter().flatten() {
        if signed(parameter.dims()).as_slice() != shape {
            return reject!(
                Runtime,
                "Expected weight to be of same shape as normalized_shape, but got weight of shape {:?} and \
                 normalized_shape = {shape:?}",
                parameter.dims()
            );
        }
    }
    Ok(leading)
}

fn layer_gradient(
    gradient: &Tensor,
    own: &Tensor,
    [mean, deviation]: [&Tensor; 2],
    weight: Option<&Tensor>,
    width: usize,
) -> Result<[Tensor; 3]> {
    let options = Options::like(own);
    let input = empty(&signed(own.dims()), own.dtype(), &options)?;
    let parameter_sizes: Vec<i64> = match weight {
        Some(weight) => signed(weight.dims()).to_vec(),
        None => vec![width as i64],
    };
    let parameter_dtype = statistics_dtype(own, [weight, None]);
    let scale = empty(&parameter_sizes, parameter_dtype, &options)?;
    let shift = empty(&parameter_sizes, parameter_dtype, &options)?;
    let buffer = empty(&[0], own.dtype(), &options)?;
    drop(open(
        &RESIZE,
        (&buffer, [2, 1, width as i64].as_slice(), Absent),
    ));
    let buffer = crate::ops::create::result_space(&[2, 1, width], own.dtype())?;
    buffer.zero_()?;
    let (packed, arriving) = (kernels::pack(own)?, kernels::pack(gradient)?);
    by_float!(own.dtype(), "LayerNormBackwardKernelImpl", T => {
        let statistics = Statistics {
            mean: mean.to_vec::<T>()?,
            inverse_deviation: deviation.to_vec::<T>()?,
        };
        let weight = weight.map(Tensor::to_vec::<T>).transpose()?;
        let parts: NormGradient<T> = kernels::with_slices([&packed, &arriving], |x: &[T], g: &[T]| {
            kernels::normalise_rows_gradient(x, g, &statistics, weight.as_deref(), width)
        })?;
        fill_slice(&input, parts.input);
        fill_slice(&scale, parts.scale);
        fill_slice(&shift, parts.shift);
        Ok(())
    })?;
    Ok([input, scale, shift])
}

fn check_channels(own: &Tensor, options: BatchNorm<'_>) -> Result<()> {
    if own.rank() < 2 {
        return reject!(
            Value,
            "expected at least 2D input (got {}D input)",
            own.rank()
        );
    }
    let channels = own.dims()[1];
    for (name, parameter) in [
        ("running_mean", options.running_mean),
        ("running_var", options.running_var),
        ("weight", options.weight),
        ("bias", options.bias),
    ] {
        if let Some(parameter) = parameter
            && parameter.dims() != [channels]
        {
            return reject!(
                Runtime,
                "{name} should contain {channels} elements not {}",
                parameter.count()
            );
        }
    }
    if options.training && own.count() == channels {
        return reject!(
            Value,
            "Expected more than 1 value per channel when training, got input size torch.Size({:?})",
            own.dims()
        );
    }
    if !options.training && (options.running_mean.is_none() || options.running_var.is_none()) {
        return reject!(
            Runtime,
            "Expected running_mean and running_var to be defined when training=False"
        );
    }
    Ok(())
}

fn batch_forward(own: &Tensor, options: BatchNorm<'_>) -> Result<[Tensor; 3]> {
    let channels = own.dims()[1];
    let inner: usize = own.dims()[2..].iter().product();
    let result = empty_like_contiguous(own)?;
    let statistics = statistics_dtype(own, [options.weight, options.running_mean]);
    let room = || empty(&[channels as i64], statistics, &Options::like(own));
    let (mean, deviation) = (room()?, room()?);
    for _ in 0..4 {
        drop(room()?);
    }
    let packed = kernels::pack(own)?;
    by_float!(own.dtype(), "batch_norm", T => {
        let dims = [own.dims()[0], channels, inner];
        let values = kernels::with_slice(&packed, |x: &[T]| -> Result<Vec<T>> {
            let statistics = if let Some(known) = running_statistics(options)? {
                known
            } else {
                let (statistics, variances) = kernels::channel_statistics(x, dims, options.epsilon)?;
                keep_running(options, &statistics.mean, &variances)?;
                statistics
            };
            let scale = options.weight.map(Tensor::to_vec::<T>).transpose()?;
            let shift = options.bias.map(Tensor::to_vec::<T>).transpose()?;
            let values = kernels::normalise_channels(x, dims, &statistics, scale.as_deref(), shift.as_deref())?;
            fill_slice(&mean, statistics.mean);
            fill_slice(&deviation, statistics.inverse_deviation);
            Ok(values)
        })?;
        fill_slice(&result, values);
        Ok(())
    })?;
    Ok([result, mean, deviation])
}

/// Returns the running statistics, or `None` if those of this batch are to be used.
fn running_statistics<T: Real>(options: BatchNorm<'_>) -> Result<Option<Statistics<T>>> {
    let (Some(mean), Some(variance), false) =
        (options.running_mean, options.running_var, options.training)
    else {
        return Ok(None);
    };
    let inverse = |variance: T| T::of(1.0 / (variance.wide() + options.epsilon).sqrt());
    Ok(Some(Statistics {
        mean: mean.to_vec::<T>()?,
        inverse_deviation: variance.to_vec::<T>()?.into_iter().map(inverse).collect(),
    }))
}

/// Updates the running statistics with those of this batch.
fn keep_running<T: Real>(options: BatchNorm<'_>, means: &[T], variances: &[T]) -> Result<()> {
    for (kept, values) in [
        (options.running_mean, means),
        (options.running_var, variances),
    ] {
        if let Some(kept) = kept {
            let moved: Vec<f64> = (kept.to_f64_vec()?.iter().zip(values))
                .map(|(&old, &new)| old * (1.0 - options.momentum) + options.momentum * new.wide())
                .collect();
            kernels::copy_into(kept, &Tensor::from_slice(&moved, &[moved.len() as i64])?);
            kept.bump_version();
        }
    }
    Ok(())
}

fn batch_gradient(
    gradient: &Tensor,
    own: &Tensor,
    [mean, deviation]: [&Tensor; 2],
    weight: Option<&Tensor>,
    training: bool,
) -> Result<[Tensor; 3]> {
    let channels = own.dims()[1];
    let inner: usize = own.dims()[2..].iter().product();
    let input = empty_like_contiguous(own)?;
    let parameter_dtype = statistics_dtype(own, [weight, None]);
    let scale = empty(&[channels as i64], parameter_dtype, &Options::like(own))?;
    let shift = empty(&[channels as i64], parameter_dtype, &Options::like(own))?;
    drop(empty_like_contiguous(own)?);
    let (packed, arriving) = (kernels::pack(own)?, kernels::pack(gradient)?);
    by_float!(own.dtype(), "batch_norm_backward", T => {
        let statistics = Statistics {
            mean: mean.to_vec::<T>()?,
            inverse_deviation: deviation.to_vec::<T>()?,
        };
        let weight = weight.map(Tensor::to_vec::<T>).transpose()?;
        let dims = [own.dims()[0], channels, inner];
        let parts: NormGradient<T> = kernels::with_slices([&packed, &arriving], |x: &[T], g: &[T]| {
            kernels::normalise_channels_gradient([x, g], dims, &statistics, weight.as_deref(), training)
        })?;
        fill_slice(&input, parts.input);
        fill_slice(&scale, parts.scale);
        fill_slice(&shift, parts.shift);
        Ok(())
    })?;
    Ok([input, scale, shift])
}
