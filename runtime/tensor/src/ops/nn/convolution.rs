//! Two-dimensional convolution as a matrix product: `conv2d`.

use smallvec::smallvec;

use super::norm::fill_slice;
use crate::autocast::Casting;
use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::element::by_float;
use crate::error::reject;
use crate::kernels::{self, Window};
use crate::layout::Layout;
use crate::ops::create::{Options, empty};
use crate::shape::{Dims, signed};
use crate::{Result, Tensor};

static CONV2D: Site = Site::operator("aten::conv2d");
static CONVOLUTION: Site = Site::operator("aten::convolution");
static CONVOLUTION_BACKWARD: Site = Site::operator("aten::convolution_backward");
static CONVOLUTION_INNER: Site = Site::operator("aten::_convolution");
static MKLDNN_CONVOLUTION: Site = Site::operator("aten::mkldnn_convolution");
static RESIZE: Site = Site::operator("aten::resize_");

node_site! {
    CONVOLUTION_NODE = "ConvolutionBackward0";
}

/// The options of a convolution; pairs are rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// The step of the window.
    pub stride: [i64; 2],
    /// The number of zeros around the image.
    pub padding: [i64; 2],
    /// The spacing between elements of the window.
    pub dilation: [i64; 2],
    /// The number of independent groups into which channels are split.
    pub groups: i64,
}

impl Default for Convolution {
    fn default() -> Self {
        Self {
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
            groups: 1,
        }
    }
}

impl Tensor {
    /// Convolves images with a weight and adds a bias.
    ///
    /// # Errors
    /// Returns an error if the sizes or the dtypes do not match.
    pub fn conv2d(&self, weight: &Self, bias: Option<&Self>, options: Convolution) -> Result<Self> {
        let Convolution {
            stride,
            padding,
            dilation,
            groups,
        } = options;
        let lists = [stride, padding, dilation];
        let [stride_list, padding_list, dilation_list] = lists.each_ref().map(<[i64; 2]>::as_slice);
        let _scope = open(
            &CONV2D,
            (
                self,
                weight,
                bias,
                stride_list,
                padding_list,
                dilation_list,
                groups,
            ),
        );
        if let Some(casting) = Casting::begin() {
            let bias = casting.lower_optional(bias)?;
            let weight = casting.lower(weight)?;
            return casting.lower(self)?.conv2d(&weight, bias.as_ref(), options);
        }
        if self.rank() == 3 {
            let result = self.unsqueeze(0)?.conv2d(weight, bias, options)?;
            return result.squeeze(0);
        }
        let output_padding = [0_i64, 0];
        let _scope = open(
            &CONVOLUTION,
            (
                self,
                weight,
                bias,
                stride_list,
                padding_list,
                dilation_list,
                false,
                output_padding.as_slice(),
                groups,
            ),
        );
        let window = check(self, weight, bias, options)?;
        let bias_operand = match bias {
            Some(bias) => bias.clone(),
            None => Self::from_slice::<f32>(&[], &[0])?,
        };
        differentiable(
            &CONVOLUTION_NODE,
            [self, weight, &bias_operand],
            || forward(self, weight, bias, options, window),
            |_| {
                let (kept, kept_weight) = (Saved::new(self), Saved::new(weight));
                let has_bias = bias.is_some();
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    let (own, weight) = (kept.get()?, kept_weight.get()?);
                    let _scope = open(
                        &CONVOLUTION_BACKWARD,
                        (
                            gradient,
                            own,
                            weight,
                            [weight.dims()[0] as i64].as_slice(),
                            options.stride.as_slice(),
                            options.padding.as_slice(),
                            options.dilation.as_slice(),
                            false,
                            output_padding.as_slice(),
                            options.groups,
                            Absent,
                        ),
                    );
                    let gradient = kernels::pack(gradient)?;
                    let input =
                        gradients.when(0, || input_gradient(&gradient, own, weight, window))?;
                    let shift = gradients
                        .needs(2)
                        .then(|| bias_gradient(&gradient, has_bias))
                        .transpose()?;
                    let scale =
                        gradients.when(1, || weight_gradient(&gradient, own, weight, window))?;
                    Ok(smallvec![input, scale, shift])
                })
            },
        )
    }
}

fn check(
    own: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: Convolution,
) -> Result<Window> {
    let (&[batch, channels, height, width], &[outputs, per_group, rows, columns]) =
        (own.dims(), weight.dims())
    else {
        return reject!(
            Runtime,
            "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: {:?} and weight of size \
             {:?}",
            own.dims(),
            weight.dims()
        );
    };
    if options.groups <= 0 {
        return reject!(Runtime, "non-positive groups is not supported");
    }
    if options.stride.iter().any(|&stride| stride <= 0) {
        return reject!(Runtime, "non-positive stride is not supported");
    }
    if options.padding.iter().any(|&padding| padding < 0) {
        return reject!(Runtime, "negative padding is not supported");
    }
    let most = i64::MAX / 2;
    if let Some(axis) = options.padding.iter().position(|&padding| padding > most) {
        return reject!(
            Runtime,
            "Given padding={} at dimension {axis} , expected padding to be at most {most}",
            options.padding[axis]
        );
    }
    if options.dilation.iter().any(|&dilation| dilation <= 0) {
        return reject!(Runtime, "dilation should be greater than zero");
    }
    let groups = options.groups as usize;
    if channels != per_group * groups || !outputs.is_multiple_of(groups) {
        return reject!(
            Runtime,
            "Given groups={groups}, weight of size {:?}, expected input{:?} to have {} channels, but got {channels} \
             channels instead",
            weight.dims(),
            own.dims(),
            per_group * groups
        );
    }
    if let Some(bias) = bias
        && bias.dims() != [outputs]
    {
        return reject!(
            Runtime,
            "Given weight of size {:?}, expected bias to be 1-dimensional with {outputs} elements, but got bias of \
             size {:?} instead",
            weight.dims(),
            bias.dims()
        );
    }
    if own.dtype() != weight.dtype() || bias.is_some_and(|bias| bias.dtype() != own.dtype()) {
        return reject!(
            Runtime,
            "Input type ({}) and bias type ({}) should be the same",
            own.dtype().native_name(),
            bias.unwrap_or(weight).dtype().native_name()
        );
    }
    let window = Window {
        batch,
        channels,
        image: [height, width],
        outputs,
        kernel: [rows, columns],
        stride: options.stride.map(|x| x as usize),
        padding: options.padding.map(|x| x as usize),
        dilation: options.dilation.map(|x| x as usize),
        groups,
    };
    for axis in 0..2 {
        let reach = window.dilation[axis] * window.kernel[axis].saturating_sub(1) + 1;
        let padded = window.image[axis] + 2 * window.padding[axis];
        if reach > padded || window.kernel[axis] == 0 {
            return reject!(
                Runtime,
                "Calculated padded input size per channel: ({} x {}). Kernel size: ({} x {}). Kernel size can't be \
                 greater than actual input size",
                height + 2 * window.padding[0],
                width + 2 * window.padding[1],
                rows,
                columns
            );
        }
    }
    Ok(window)
}

fn forward(
    own: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: Convolution,
    window: Window,
) -> Result<Tensor> {
    let Convolution {
        stride,
        padding,
        dilation,
        groups,
    } = options;
    let _scope = open(
        &CONVOLUTION_INNER,
        (
            own,
            weight,
            bias,
            stride.as_slice(),
            padding.as_slice(),
            dilation.as_slice(),
            false,
            [0_i64, 0].as_slice(),
            groups,
            false,
            false,
            true,
            true,
        ),
    );
    let _scope = open(
        &MKLDNN_CONVOLUTION,
        (
            own,
            weight,
            bias,
            padding.as_slice(),
            stride.as_slice(),
            dilation.as_slice(),
            groups,
        ),
    );
    drop(empty(&[0], own.dtype(), &Options::like(own))?);
    let [rows, columns] = window.output();
    let sizes = [window.batch, window.outputs, rows, columns].map(|size| size as i64);
    let result = room(&sizes, own)?;
    let (packed, weights) = (kernels::pack(own)?, kernels::pack(weight)?);
    by_float!(own.dtype(), "convolution", T => {
        let bias = bias.map(Tensor::to_vec::<T>).transpose()?;
        let values = kernels::with_slices([&packed, &weights], |x: &[T], w: &[T]| {
            kernels::convolve(x, w, bias.as_deref(), window)
        })?;
        fill_slice(&result, values);
        Ok(())
    })?;
    let result = if own.dtype() == own.dtype().computed() {
        result
    } else {
        channels_innermost(&result)?.contiguous()?
    };
    tell_resize(&result);
    Ok(result)
}

/// Returns images in channels-last order, the form in which torch's library returns them before
/// they are copied back.
fn channels_innermost(images: &Tensor) -> Result<Tensor> {
    let &[batch, channels, height, width] = images.dims() else {
        unreachable!("sizes were checked")
    };
    let dims: Dims = [batch, height, width, channels].into_iter().collect();
    let room = Tensor::blank(Layout::contiguous(dims)?, images.dtype())?;
    let room = room.with_layout(room.layout().permuted(&[0, 3, 1, 2])?)?;
    kernels::copy_into(&room, images);
    Ok(room)
}

/// Creates a tensor for a result of an external library, recorded as `empty` and `as_strided_` as
/// in torch.
fn room(sizes: &[i64], like: &Tensor) -> Result<Tensor> {
    let result = empty(sizes, like.dtype(), &Options::like(like))?;
    result.tell_as_strided();
    Ok(result)
}

fn tell_resize(tensor: &Tensor) {
    drop(open(&RESIZE, (tensor, tensor.dims(), 0_i64)));
}

fn input_gradient(
    gradient: &Tensor,
    own: &Tensor,
    weight: &Tensor,
    window: Window,
) -> Result<Tensor> {
    drop(empty(&[0], own.dtype(), &Options::like(own))?);
    let sizes = signed(own.dims());
    let made = room(&sizes, own)?;
    let weights = kernels::pack(weight)?;
    // The gradient comes out in channels-last order: the channels of each position are computed
    // together.
    let elements = by_float!(own.dtype(), "convolution_backward", T => {
        let values = kernels::with_slices([gradient, &weights], |g: &[T], w: &[T]| {
            kernels::convolve_input_gradient(g, w, window)
        })?;
        let dims: Dims = [window.batch, window.image[0], window.image[1], window.channels].into_iter().collect();
        kernels::narrowed(Tensor::from_elements(values, Layout::contiguous(dims)?), own.dtype())
    })?;
    drop(made);
    let result = elements.with_layout(elements.layout().permuted(&[0, 3, 1, 2])?)?;
    let result = result.contiguous()?;
    tell_resize(&result);
    Ok(result)
}

fn bias_gradient(gradient: &Tensor, has_bias: bool) -> Result<Tensor> {
    let outputs = gradient.dims()[1];
    let result = room(&[if has_bias { outputs as i64 } else { 0 }], gradient)?;
    if has_bias {
        let reduced = [true, false, true, true];
        crate::element::by_number!(gradient.dtype(), T => kernels::sum::<T>(&result, gradient, &reduced))?;
    }
    tell_resize(&result);
    Ok(result)
}

fn weight_gradient(
    gradient: &Tensor,
    own: &Tensor,
    weight: &Tensor,
    window: Window,
) -> Result<Tensor> {
    let result = room(&signed(weight.dims()), weight)?;
    let packed = kernels::pack(own)?;
    by_float!(own.dtype(), "convolution_backward", T => {
        let values = kernels::with_slices([gradient, &packed], |g: &[T], x: &[T]| {
            kernels::convolve_weight_gradient(g, x, window)
        })?;
        fill_slice(&result, values);
        Ok(())
    })?;
    tell_resize(&result);
    Ok(result)
}
