//! Maximum and average pooling of images.

use std::ops::Range;

use crate::Result;
use crate::element::Real;
use crate::ops::Pool;
use crate::storage::{reserve, zeroed};

/// Returns the largest element under each position of a window, and its position in the image.
pub(crate) fn largest<T: Real>(
    images: &[T],
    image: [usize; 2],
    output: [usize; 2],
    pool: Pool,
) -> Result<(Vec<T>, Vec<i64>)> {
    let size = image[0] * image[1];
    let count = images.len().checked_div(size).unwrap_or(0) * output[0] * output[1];
    let (mut values, mut places) = (reserve(count)?, reserve(count)?);
    for pixels in images.chunks(size.max(1)) {
        for y in 0..output[0] {
            for x in 0..output[1] {
                let mut best: Option<(T, usize)> = None;
                for row in covered(y, 0, image, pool) {
                    for column in covered(x, 1, image, pool) {
                        let place = row * image[1] + column;
                        let value = pixels[place];
                        if best.is_none_or(|(known, _)| value > known || value.is_nan()) {
                            best = Some((value, place));
                        }
                    }
                }
                let (value, place) = best.unwrap_or((T::neg_infinity(), 0));
                values.push(value);
                places.push(place as i64);
            }
        }
    }
    Ok((values, places))
}

/// Returns the rows or columns of the image under one position of the window.
fn covered(
    at: usize,
    axis: usize,
    image: [usize; 2],
    pool: Pool,
) -> impl Iterator<Item = usize> + Clone {
    let start = at as i64 * pool.stride[axis] - pool.padding[axis];
    let size = image[axis] as i64;
    (0..pool.kernel[axis])
        .map(move |step| start + step * pool.dilation[axis])
        .filter(move |place| (0..size).contains(place))
        .map(|place| place as usize)
}

/// Adds each gradient at the position of the largest element.
pub(crate) fn largest_gradient<T: Real>(
    gradient: &[T],
    places: &[i64],
    image: [usize; 2],
    output: [usize; 2],
) -> Result<Vec<T>> {
    let (size, window) = (image[0] * image[1], (output[0] * output[1]).max(1));
    let mut results = zeroed::<T>(gradient.len() / window * size)?;
    let blocks = gradient.chunks(window).zip(places.chunks(window));
    for (pixels, (arriving, places)) in results.chunks_mut(size.max(1)).zip(blocks) {
        for (&g, &place) in arriving.iter().zip(places) {
            pixels[place as usize] = pixels[place as usize] + g;
        }
    }
    Ok(results)
}

/// Returns the averages of regions that together cover the image.
pub(crate) fn average_regions<T: Real>(
    images: &[T],
    image: [usize; 2],
    output: [usize; 2],
) -> Result<Vec<T>> {
    let size = (image[0] * image[1]).max(1);
    let mut values = reserve((images.len() / size).saturating_mul(output[0] * output[1]))?;
    for pixels in images.chunks(size) {
        for y in 0..output[0] {
            for x in 0..output[1] {
                let (rows, columns) = (
                    region(y, image[0], output[0]),
                    region(x, image[1], output[1]),
                );
                let count = rows.len() * columns.len();
                let sum: f64 = rows
                    .map(|row| {
                        let line = &pixels[row * image[1]..];
                        line[columns.clone()].iter().map(|x| x.wide()).sum::<f64>()
                    })
                    .sum();
                values.push(T::of(sum / count as f64));
            }
        }
    }
    Ok(values)
}

/// Distributes each gradient evenly over its region.
pub(crate) fn average_regions_gradient<T: Real>(
    gradient: &[T],
    image: [usize; 2],
    output: [usize; 2],
) -> Result<Vec<T>> {
    let (size, window) = (image[0] * image[1], (output[0] * output[1]).max(1));
    let mut results = zeroed::<T>(gradient.len() / window * size)?;
    for (pixels, arriving) in results.chunks_mut(size.max(1)).zip(gradient.chunks(window)) {
        for (index, &g) in arriving.iter().enumerate() {
            let rows = region(index / output[1], image[0], output[0]);
            let columns = region(index % output[1], image[1], output[1]);
            let share = g / T::of((rows.len() * columns.len()) as f64);
            for row in rows {
                for column in columns.clone() {
                    let place = &mut pixels[row * image[1] + column];
                    *place = *place + share;
                }
            }
        }
    }
    Ok(results)
}

fn region(at: usize, size: usize, count: usize) -> Range<usize> {
    at * size / count..((at + 1) * size).div_ceil(count)
}
