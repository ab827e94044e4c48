//! Convolution as a matrix product: the elements under each position of the window become a column
//! (im2col).

use crate::Result;
use crate::element::Real;
use crate::kernels::{Matrix, Previous, multiply, try_share};
use crate::storage::zeroed;

/// The sizes of a convolution; pairs are rows and columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) batch: usize,
    pub(crate) channels: usize,
    pub(crate) image: [usize; 2],
    pub(crate) outputs: usize,
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) groups: usize,
}

impl Window {
    /// Returns the rows and columns of the result.
    pub(crate) fn output(&self) -> [usize; 2] {
        [0, 1].map(|axis| {
            let reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1;
            (self.image[axis] + 2 * self.padding[axis] - reach) / self.stride[axis] + 1
        })
    }

    fn places(&self) -> usize {
        self.output().iter().product()
    }

    fn image_size(&self) -> usize {
        self.image.iter().product()
    }

    /// Returns the length of a column: the elements under the window in the channels of a group.
    fn depth(&self) -> usize {
        self.channels / self.groups * self.kernel[0] * self.kernel[1]
    }

    /// Calls `visit` with the row in the column matrix, the position of the window, and the element
    /// of the image, channel by channel.
    fn each(&self, mut visit: impl FnMut(usize, usize, usize, usize)) {
        let [rows, columns] = self.output();
        let channels = self.channels / self.groups;
        for channel in 0..channels {
            for row in 0..self.kernel[0] {
                for column in 0..self.kernel[1] {
                    let line = (channel * self.kernel[0] + row) * self.kernel[1] + column;
                    for y in 0..rows {
                        let above = y * self.stride[0] + row * self.dilation[0];
                        let Some(image_row) = above.checked_sub(self.padding[0]) else {
                            continue;
                        };
                        if image_row >= self.image[0] {
                            continue;
                        }
                        for x in 0..columns {
                            let before = x * self.stride[1] + column * self.dilation[1];
                            let Some(image_column) = before.checked_sub(self.padding[1]) else {
                                continue;
                            };
                            if image_column < self.image[1] {
                                let pixel = image_row * self.image[1] + image_column;
                                visit(line, y * columns + x, channel, pixel);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns the column matrix of one group of one image.
    fn columns<T: Real>(&self, image: &[T], group: usize) -> Result<Vec<T>> {
        let places = self.places();
        let first = group * self.channels / self.groups;
        let mut columns = zeroed::<T>(self.depth().saturating_mul(places))?;
        self.each(|line, place, channel, pixel| {
            columns[line * places + place] = image[(first + channel) * self.image_size() + pixel];
        });
        Ok(columns)
    }
}

/// Convolves all images.
pub(crate) fn convolve<T: Real>(
    images: &[T],
    weights: &[T],
    bias: Option<&[T]>,
    window: Window,
) -> Result<Vec<T>> {
    let places = window.places();
    let outputs = window.outputs / window.groups;
    let mut results = zeroed::<T>(window.batch * window.outputs * places)?;
    let image_size = window.channels * window.image_size();
    let parts = results.chunks_mut((window.outputs * places).max(1));
    try_share(parts.enumerate(), |(index, result)| {
        let image = &images[index * image_size..(index + 1) * image_size];
        for group in 0..window.groups {
            let columns = window.columns(image, group)?;
            let start = group * outputs;
            let result = &mut result[start * places..(start + outputs) * places];
            if let Some(bias) = bias {
                for (channel, row) in result.chunks_mut(places.max(1)).enumerate() {
                    row.fill(bias[start + channel]);
                }
            }
            let depth = window.depth();
            multiply(
                rows_of(&weights[start * depth..], [outputs, depth]),
                rows_of(&columns, [depth, places]),
                result,
                Previous::Add,
            );
        }
        Ok(())
    })?;
    Ok(results)
}

/// Returns the gradient of the images, in channels-last order.
pub(crate) fn convolve_input_gradient<T: Real>(
    gradient: &[T],
    weights: &[T],
    window: Window,
) -> Result<Vec<T>> {
    let (places, depth) = (window.places(), window.depth());
    let outputs = window.outputs / window.groups;
    let size = window.channels * window.image_size();
    let mut results = zeroed::<T>(window.batch * size)?;
    let parts = results.chunks_mut(size.max(1));
    try_share(parts.enumerate(), |(index, result)| {
        for group in 0..window.groups {
            let start = group * outputs;
            let arriving = &gradient[(index * window.outputs + start) * places..];
            let mut columns = zeroed::<T>(depth.saturating_mul(places))?;
            multiply(
                Matrix {
                    elements: &weights[start * depth..],
                    dims: [depth, outputs],
                    strides: [1, depth],
                },
                rows_of(arriving, [outputs, places]),
                &mut columns,
                Previous::Overwrite,
            );
            let first = group * window.channels / window.groups;
            window.each(|line, place, channel, pixel| {
                let target = &mut result[pixel * window.channels + first + channel];
                *target = *target + columns[line * places + place];
            });
        }
        Ok(())
    })?;
    Ok(results)
}

/// Returns the gradient of the weights.
pub(crate) fn convolve_weight_gradient<T: Real>(
    gradient: &[T],
    images: &[T],
    window: Window,
) -> Result<Vec<T>> {
    let (places, depth) = (window.places(), window.depth());
    let outputs = window.outputs / window.groups;
    let image_size = window.channels * window.image_size();
    let mut results = zeroed::<T>(window.outputs * depth)?;
    for index in 0..window.batch {
        let image = &images[index * image_size..(index + 1) * image_size];
        for group in 0..window.groups {
            let columns = window.columns(image, group)?;
            let start = group * outputs;
            let arriving = &gradient[(index * window.outputs + start) * places..];
            multiply(
                rows_of(arriving, [outputs, places]),
                Matrix {
                    elements: &columns,
                    dims: [places, depth],
                    strides: [1, places],
                },
                &mut results[start * depth..(start + outputs) * depth],
                Previous::Add,
            );
        }
    }
    Ok(results)
}

fn rows_of<T>(elements: &[T], dims: [usize; 2]) -> Matrix<'_, T> {
    Matrix {
        elements,
        dims,
        strides: [dims[1], 1],
    }
}
