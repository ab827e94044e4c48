//! Pooling: the maximum or the average of neighboring elements.

use crate::autograd::{Formula, Saved, differentiable, differentiable_first, node_site};
use crate::dispatch::{Site, open};
use crate::element::by_float;
use crate::error::reject;
use crate::kernels;
use crate::ops::create::result_space;
use crate::{DType, KeepDims, Result, Tensor};

static ADAPTIVE: Site = Site::operator("aten::adaptive_avg_pool2d");
static ADAPTIVE_BACKWARD: Site = Site::operator("aten::_adaptive_avg_pool2d_backward");
static ADAPTIVE_INNER: Site = Site::operator("aten::_adaptive_avg_pool2d");
static MAX_POOL: Site = Site::operator("aten::max_pool2d");
static MAX_POOL_BACKWARD: Site = Site::operator("aten::max_pool2d_with_indices_backward");
static MAX_POOL_INNER: Site = Site::operator("aten::max_pool2d_with_indices");

node_site! {
    ADAPTIVE_NODE = "AdaptiveAvgPool2DBackward0";
    MAX_POOL_NODE = "MaxPool2DWithIndicesBackward0";
}

/// The options of a pooling window; pairs are rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The size of the window.
    pub kernel: [i64; 2],
    /// The step of the window.
    pub stride: [i64; 2],
    /// The padding around the image.
    pub padding: [i64; 2],
    /// The spacing between elements of the window.
    pub dilation: [i64; 2],
    /// Whether a window that extends beyond the edge counts.
    pub ceil: bool,
}

impl Tensor {
    /// Returns the largest element under each position of a window, and its index.
    ///
    /// # Errors
    /// Returns an error if the sizes do not match or the dtype is not floating-point.
    pub fn max_pool2d(&self, pool: Pool) -> Result<[Self; 2]> {
        let lists = [pool.kernel, pool.stride, pool.padding, pool.dilation];
        let [kernel, stride, padding, dilation] = lists.each_ref().map(<[i64; 2]>::as_slice);
        let _scope = open(
            &MAX_POOL,
            (self, kernel, stride, padding, dilation, pool.ceil),
        );
        let _scope = open(
            &MAX_POOL_INNER,
            (self, kernel, stride, padding, dilation, pool.ceil),
        );
        let output = check(self, pool)?;
        let rank = self.rank();
        let image = [self.dims()[rank - 2], self.dims()[rank - 1]];
        let mut dims = self.dims().to_vec();
        dims[rank - 2] = output[0];
        dims[rank - 1] = output[1];
        differentiable_first(
            &MAX_POOL_NODE,
            [self],
            || {
                let packed = kernels::pack(self)?;
                let places = result_space(&dims, DType::I64)?;
                by_float!(self.dtype(), "max_pool2d", T => {
                    let (values, found) = kernels::with_slice(&packed, |own: &[T]| {
                        kernels::largest(own, image, output, pool)
                    })?;
                    let layout = places.layout().clone();
                    Ok([
                        kernels::narrowed(Tensor::from_elements(values, layout.clone()), self.dtype())?,
                        Tensor::from_elements(found, layout),
                    ])
                })
            },
            |[_, places]| {
                let (kept, places) = (Saved::new(self), Saved::new(places));
                Formula::unary_saving(move |gradient| {
                    let (own, places) = (kept.get()?, places.get()?);
                    let lists = [pool.kernel, pool.stride, pool.padding, pool.dilation];
                    let [kernel, stride, padding, dilation] =
                        lists.each_ref().map(<[i64; 2]>::as_slice);
                    let _scope = open(
                        &MAX_POOL_BACKWARD,
                        (
                            gradient, own, kernel, stride, padding, dilation, pool.ceil, places,
                        ),
                    );
                    let result = result_space(own.dims(), own.dtype())?;
                    result.zero_()?;
                    let arriving = kernels::pack(gradient)?;
                    let found = places.to_vec::<i64>()?;
                    by_float!(own.dtype(), "max_pool2d_backward", T => {
                        let values = kernels::with_slice(&arriving, |g: &[T]| {
                            kernels::largest_gradient(g, &found, image, output)
                        })?;
                        super::norm::fill_slice(&result, values);
                        Ok(())
                    })?;
                    Ok(result)
                })
            },
        )
    }

    /// Returns the averages of regions, as many rows and columns as requested.
    ///
    /// # Errors
    /// Returns an error if the sizes do not match or the dtype is not floating-point.
    pub fn adaptive_avg_pool2d(&self, output: [i64; 2]) -> Result<Self> {
        let _scope = open(&ADAPTIVE, (self, output.as_slice()));
        if self.rank() != 3 && self.rank() != 4 {
            return reject!(
                Runtime,
                "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {:?}",
                self.dims()
            );
        }
        if output.iter().any(|&size| size < 0) {
            return reject!(
                Runtime,
                "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received \
                 {output:?}"
            );
        }
        let empty = (1..self.rank()).find(|&at| self.rank() - at <= 2 && self.dims()[at] == 0);
        if let Some(at) = empty {
            return reject!(
                Runtime,
                "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has \
                 sizes {:?} with dimension {at} being empty",
                self.dims()
            );
        }
        if output == [1, 1] {
            return self.mean(Some(&[-1, -2]), KeepDims::Yes, None);
        }
        let _scope = open(&ADAPTIVE_INNER, (self, output.as_slice()));
        let rank = self.rank();
        let image = [self.dims()[rank - 2], self.dims()[rank - 1]];
        let output = output.map(|size| size as usize);
        let mut dims = self.dims().to_vec();
        dims[rank - 2] = output[0];
        dims[rank - 1] = output[1];
        differentiable(
            &ADAPTIVE_NODE,
            [self],
            || {
                let packed = kernels::pack(self)?;
                let shape = result_space(&dims, self.dtype())?;
                by_float!(self.dtype(), "adaptive_avg_pool2d", T => {
                    let values = kernels::with_slice(&packed, |own: &[T]| {
                        kernels::average_regions(own, image, output)
                    })?;
                    let averages = Tensor::from_elements(values, shape.layout().clone());
                    kernels::narrowed(averages, self.dtype())
                })
            },
            |_| {
                let own_dims = self.dims().to_vec();
                Formula::unary(move |gradient| {
                    let _scope = open(&ADAPTIVE_BACKWARD, (gradient,));
                    if gradient.count() == 0 {
                        return result_space(&own_dims, gradient.dtype());
                    }
                    let arriving = kernels::pack(gradient)?;
                    let shape = result_space(&own_dims, gradient.dtype())?;
                    by_float!(gradient.dtype(), "adaptive_avg_pool2d_backward", T => {
                        let values = kernels::with_slice(&arriving, |g: &[T]| {
                            kernels::average_regions_gradient(g, image, output)
                        })?;
                        let shares = Tensor::from_elements(values, shape.layout().clone());
                        kernels::narrowed(shares, gradient.dtype())
                    })
                })
            },
        )
    }
}

pub(super) fn check(own: &Tensor, pool: Pool) -> Result<[usize; 2]> {
    if own.rank() != 3 && own.rank() != 4 {
        return reject!(
            Runtime,
            "non-empty 3D or 4D (batch mode) tensor expected for input, got sizes {:?}",
            own.dims()
        );
    }
    let positive = |list: [i64; 2]| list.iter().all(|&size| size > 0);
    if !positive(pool.kernel) || !positive(pool.stride) || !positive(pool.dilation) {
        return reject!(
            Runtime,
            "kernel size, stride and dilation should be greater than zero, but got kernel {:?}, stride {:?}, dilation \
             {:?}",
            pool.kernel,
            pool.stride,
            pool.dilation
        );
    }
    let mut output = [0; 2];
    for (axis, output) in output.iter_mut().enumerate() {
        let (kernel, padding) = (pool.kernel[axis], pool.padding[axis]);
        if padding < 0 || padding > kernel / 2 {
            return reject!(
                Runtime,
                "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and \
                 dilation={}",
                pool.dilation[axis]
            );
        }
        let size = own.dims()[own.rank() - 2 + axis] as i64;
        let free = size + 2 * padding - pool.dilation[axis] * (kernel - 1) - 1;
        let stride = pool.stride[axis];
        let mut count = free.div_euclid(stride) + 1;
        if pool.ceil {
            count = (free + stride - 1).div_euclid(stride) + 1;
            if (count - 1) * stride >= size + padding {
                count -= 1;
            }
        }
        if free < 0 || count <= 0 {
            return reject!(
                Runtime,
                "Given input size: {:?}. Calculated output size is too small",
                own.dims()
            );
        }
        *output = count as usize;
    }
    Ok(output)
}
