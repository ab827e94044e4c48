//! Softmax along the middle of three dimensions.

use crate::Result;
use crate::element::Real;
use crate::kernels::{PARALLEL_COUNT, share_rows};
use crate::storage::{reserve, zeroed};

/// Whether to compute probabilities or their logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Softmax {
    Plain,
    Log,
}

/// Returns the softmax, or its logarithm, along the middle dimension.
pub(crate) fn softmax<T: Real>(own: &[T], dims: [usize; 3], kind: Softmax) -> Result<Vec<T>> {
    let [_, middle, inner] = dims;
    let mut result = copy_of(own)?;
    if middle * inner == 0 {
        return Ok(result);
    }
    if inner == 1 {
        each_row(&mut result, middle, |row, _| row_softmax(row, kind));
        return Ok(result);
    }
    let mut row = zeroed::<T>(middle)?;
    for block in result.chunks_mut(middle * inner) {
        for lane in 0..inner {
            for (index, x) in row.iter_mut().enumerate() {
                *x = block[index * inner + lane];
            }
            row_softmax(&mut row, kind);
            for (index, &x) in row.iter().enumerate() {
                block[index * inner + lane] = x;
            }
        }
    }
    Ok(result)
}

/// Returns the gradient of the operand from the gradient of the result and the result.
pub(crate) fn softmax_gradient<T: Real>(
    gradient: &[T],
    result: &[T],
    dims: [usize; 3],
    kind: Softmax,
) -> Result<Vec<T>> {
    let [_, middle, inner] = dims;
    let mut output = copy_of(gradient)?;
    if middle * inner == 0 {
        return Ok(output);
    }
    if inner == 1 {
        each_row(&mut output, middle, |row, index| {
            row_gradient(row, &result[index * middle..(index + 1) * middle], kind);
        });
        return Ok(output);
    }
    let (mut row, mut known) = (zeroed::<T>(middle)?, zeroed::<T>(middle)?);
    for (block, results) in output
        .chunks_mut(middle * inner)
        .zip(result.chunks(middle * inner))
    {
        for lane in 0..inner {
            for index in 0..middle {
                row[index] = block[index * inner + lane];
                known[index] = results[index * inner + lane];
            }
            row_gradient(&mut row, &known, kind);
            for (index, &x) in row.iter().enumerate() {
                block[index * inner + lane] = x;
            }
        }
    }
    Ok(output)
}

fn copy_of<T: Real>(elements: &[T]) -> Result<Vec<T>> {
    let mut copy = reserve(elements.len())?;
    copy.extend_from_slice(elements);
    Ok(copy)
}

fn each_row<T: Real>(elements: &mut [T], width: usize, work: impl Fn(&mut [T], usize) + Sync) {
    // An exponential costs as much as many additions, so rows are split earlier.
    if elements.len() * 8 < PARALLEL_COUNT {
        for (index, row) in elements.chunks_mut(width).enumerate() {
            work(row, index);
        }
        return;
    }
    share_rows(elements, width, |index, row| work(row, index));
}

fn row_softmax<T: Real>(row: &mut [T], kind: Softmax) {
    let highest = row.iter().copied().fold(T::neg_infinity(), T::max);
    match kind {
        Softmax::Plain => {
            let mut sum = T::ZERO;
            for x in row.iter_mut() {
                *x = (*x - highest).exp();
                sum = sum + *x;
            }
            let scale = T::ONE / sum;
            for x in row.iter_mut() {
                *x = *x * scale;
            }
        }
        Softmax::Log => {
            let sum: T = row.iter().map(|&x| (x - highest).exp()).sum();
            let shift = highest + sum.ln();
            for x in row.iter_mut() {
                *x = *x - shift;
            }
        }
    }
}

fn row_gradient<T: Real>(gradient: &mut [T], result: &[T], kind: Softmax) {
    match kind {
        Softmax::Plain => {
            let dot: T = gradient.iter().zip(result).map(|(&g, &y)| g * y).sum();
            for (g, &y) in gradient.iter_mut().zip(result) {
                *g = (*g - dot) * y;
            }
        }
        Softmax::Log => {
            let sum: T = gradient.iter().copied().sum();
            for (g, &y) in gradient.iter_mut().zip(result) {
                *g = *g - y.exp() * sum;
            }
        }
    }
}
