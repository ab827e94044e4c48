//! Average pooling: `avg_pool2d`.

use super::pool::{Pool, check};
use crate::autograd::{Formula, Saved, differentiable, node_site};
use crate::dispatch::{Site, open};
use crate::element::by_float;
use crate::error::reject;
use crate::kernels;
use crate::ops::create::result_space;
use crate::{Result, Tensor};

static AVG_POOL: Site = Site::operator("aten::avg_pool2d");
static AVG_POOL_BACKWARD: Site = Site::operator("aten::avg_pool2d_backward");

node_site! {
    AVG_POOL_NODE = "AvgPool2DBackward0";
}

/// The number by which a window's sum is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// The elements of the window, including padding.
    Window,
    /// The elements of the window that lie inside the image.
    Image,
    /// A fixed number.
    Fixed(i64),
}

impl Divisor {
    fn arguments(self) -> (bool, Option<i64>) {
        match self {
            Self::Window => (true, None),
            Self::Image => (false, None),
            Self::Fixed(count) => (true, Some(count)),
        }
    }
}

impl Tensor {
    /// Returns the average under each position of a window; dilation is not supported.
    ///
    /// # Errors
    /// Returns an error if the sizes do not match or the dtype is not floating-point.
    pub fn avg_pool2d(&self, pool: Pool, divisor: Divisor) -> Result<Self> {
        let lists = [pool.kernel, pool.stride, pool.padding];
        let [kernel, stride, padding] = lists.each_ref().map(<[i64; 2]>::as_slice);
        let (counts_padding, fixed) = divisor.arguments();
        let arguments = (
            self,
            kernel,
            stride,
            padding,
            pool.ceil,
            counts_padding,
            fixed,
        );
        let _scope = open(&AVG_POOL, arguments);
        if divisor == Divisor::Fixed(0) {
            return reject!(Runtime, "divisor must be not zero");
        }
        let output = check(self, pool)?;
        let rank = self.rank();
        let image = [self.dims()[rank - 2], self.dims()[rank - 1]];
        let mut dims = self.dims().to_vec();
        dims[rank - 2] = output[0];
        dims[rank - 1] = output[1];
        let windows = Windows {
            pool,
            divisor,
            image,
            output,
        };
        differentiable(
            &AVG_POOL_NODE,
            [self],
            || {
                let packed = kernels::pack(self)?;
                let shape = result_space(&dims, self.dtype())?;
                by_float!(self.dtype(), "avg_pool2d", T => {
                    let values = kernels::with_slice(&packed, |own: &[T]| {
                        Ok(windows.averages(own).into_iter().map(|x| x as T).collect())
                    })?;
                    let averages = Self::from_elements(values, shape.layout().clone());
                    kernels::narrowed(averages, self.dtype())
                })
            },
            |_| {
                let kept = Saved::new(self);
                Formula::unary_saving(move |gradient| {
                    let own = kept.get()?;
                    let lists = [pool.kernel, pool.stride, pool.padding];
                    let [kernel, stride, padding] = lists.each_ref().map(<[i64; 2]>::as_slice);
                    let _scope = open(
                        &AVG_POOL_BACKWARD,
                        (
                            gradient,
                            own,
                            kernel,
                            stride,
                            padding,
                            pool.ceil,
                            counts_padding,
                            fixed,
                        ),
                    );
                    let result = result_space(own.dims(), own.dtype())?;
                    result.zero_()?;
                    let arriving = kernels::pack(gradient)?.to_f64_vec()?;
                    by_float!(own.dtype(), "avg_pool2d_backward", T => {
                        let shares = windows.shares(&arriving, own.count());
                        let shares = shares.into_iter().map(|x| x as T).collect();
                        super::norm::fill_slice::<T>(&result, shares);
                        Ok(())
                    })?;
                    Ok(result)
                })
            },
        )
    }
}

/// The positions of a pooling window.
#[derive(Clone, Copy)]
struct Windows {
    pool: Pool,
    divisor: Divisor,
    image: [usize; 2],
    output: [usize; 2],
}

impl Windows {
    /// Returns the indices of an axis that a window covers, and their number including padding.
    fn span(&self, axis: usize, at: usize) -> (std::ops::Range<usize>, i64) {
        let (size, padding) = (self.image[axis] as i64, self.pool.padding[axis]);
        let start = at as i64 * self.pool.stride[axis] - padding;
        let end = (start + self.pool.kernel[axis]).min(size + padding);
        let inside = start.max(0) as usize..end.min(size).max(0) as usize;
        (inside, end - start)
    }

    /// Calls `visit` with the position of each result, the positions that it averages, and the
    /// divisor.
    fn each(&self, mut visit: impl FnMut(usize, &mut dyn Iterator<Item = usize>, f64)) {
        for y in 0..self.output[0] {
            let (rows, height) = self.span(0, y);
            for x in 0..self.output[1] {
                let (columns, width) = self.span(1, x);
                let count = match self.divisor {
                    Divisor::Window => height * width,
                    Divisor::Image => (rows.len() * columns.len()) as i64,
                    Divisor::Fixed(count) => count,
                };
                let mut places = rows.clone().flat_map(|row| {
                    let line = row * self.image[1];
                    columns.clone().map(move |column| line + column)
                });
                visit(y * self.output[1] + x, &mut places, count as f64);
            }
        }
    }

    fn averages<T: Copy + Into<f64>>(&self, images: &[T]) -> Vec<f64> {
        let (size, window) = (
            self.image[0] * self.image[1],
            self.output[0] * self.output[1],
        );
        let mut results = vec![0.0; images.len() / size.max(1) * window];
        let images = images.chunks(size.max(1));
        for (pixels, averages) in images.zip(results.chunks_mut(window.max(1))) {
            self.each(|at, places, count| {
                averages[at] = places.map(|place| pixels[place].into()).sum::<f64>() / count;
            });
        }
        results
    }

    fn shares(&self, arriving: &[f64], count: usize) -> Vec<f64> {
        let (size, window) = (
            self.image[0] * self.image[1],
            self.output[0] * self.output[1],
        );
        let mut results = vec![0.0; count];
        let arriving = arriving.chunks(window.max(1));
        for (pixels, arriving) in results.chunks_mut(size.max(1)).zip(arriving) {
            self.each(|at, places, count| {
                for place in places {
                    pixels[place] += arriving[at] / count;
                }
            });
        }
        results
    }
}
