//! Attention, computed head by head: scores, their softmax, and the weighted values.

use super::softmax::{Softmax, softmax};
use crate::Result;
use crate::element::Real;
use crate::kernels::{Matrix, Previous, multiply, try_share};
use crate::storage::zeroed;

/// The sizes and options of an attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) width: usize,
    /// Whether a query sees only the keys up to its own position.
    pub(crate) causal: bool,
    pub(crate) scale: f64,
}

impl Attention {
    fn query_size(&self) -> usize {
        self.queries * self.width
    }

    fn key_size(&self) -> usize {
        self.keys * self.width
    }

    /// Returns the scaled scores of all pairs of queries and keys; masked ones are negative
    /// infinity.
    fn scores<T: Real>(&self, query: &[T], key: &[T]) -> Result<Vec<T>> {
        let mut scores = zeroed::<T>(self.queries.saturating_mul(self.keys))?;
        multiply(
            rows(query, [self.queries, self.width]),
            columns(key, [self.width, self.keys]),
            &mut scores,
            Previous::Overwrite,
        );
        let scale = T::of(self.scale);
        for (row, line) in scores.chunks_mut(self.keys.max(1)).enumerate() {
            for (column, score) in line.iter_mut().enumerate() {
                *score = if self.causal && column > row {
                    T::neg_infinity()
                } else {
                    *score * scale
                };
            }
        }
        Ok(scores)
    }
}

/// Returns the weighted values, and the log-sum-exp of the scores of each query.
pub(crate) fn attention_forward<T: Real>(
    [query, key, value]: [&[T]; 3],
    shape: Attention,
) -> Result<(Vec<T>, Vec<T>)> {
    let heads = shape.batch * shape.heads;
    let mut results = zeroed::<T>(heads * shape.query_size())?;
    let mut sums = zeroed::<T>(heads * shape.queries)?;
    let parts = results
        .chunks_mut(shape.query_size().max(1))
        .zip(sums.chunks_mut(shape.queries.max(1)));
    try_share(parts.enumerate(), |(head, (result, sums))| {
        let key = piece(key, head, shape.key_size());
        let scores = shape.scores(piece(query, head, shape.query_size()), key)?;
        for (sum, line) in sums.iter_mut().zip(scores.chunks(shape.keys.max(1))) {
            let highest = line.iter().copied().fold(T::neg_infinity(), T::max);
            let total: T = line.iter().map(|&score| (score - highest).exp()).sum();
            *sum = highest + total.ln();
        }
        let weights = softmax(&scores, [shape.queries, shape.keys, 1], Softmax::Plain)?;
        multiply(
            rows(&weights, [shape.queries, shape.keys]),
            rows(
                piece(value, head, shape.key_size()),
                [shape.keys, shape.width],
            ),
            result,
            Previous::Overwrite,
        );
        Ok(())
    })?;
    Ok((results, sums))
}

/// Returns the gradients of queries, keys and values.
///
/// Takes the gradient of the result, the queries, the keys, the values, the result and the
/// log-sum-exps.
pub(crate) fn attention_gradient<T: Real>(
    known: [&[T]; 6],
    shape: Attention,
) -> Result<[Vec<T>; 3]> {
    let heads = shape.batch * shape.heads;
    let mut queries = zeroed::<T>(heads * shape.query_size())?;
    let mut keys = zeroed::<T>(heads * shape.key_size())?;
    let mut values = zeroed::<T>(heads * shape.key_size())?;
    let parts = queries
        .chunks_mut(shape.query_size().max(1))
        .zip(keys.chunks_mut(shape.key_size().max(1)))
        .zip(values.chunks_mut(shape.key_size().max(1)));
    try_share(parts.enumerate(), |(head, ((query, key), value))| {
        head_gradient(known, shape, head, [query, key, value])
    })?;
    Ok([queries, keys, values])
}

fn head_gradient<T: Real>(
    [gradient, query, key, value, result, sums]: [&[T]; 6],
    shape: Attention,
    head: usize,
    [query_gradient, key_gradient, value_gradient]: [&mut [T]; 3],
) -> Result<()> {
    let (queries, keys, width) = (shape.queries, shape.keys, shape.width);
    let gradient = piece(gradient, head, shape.query_size());
    let query = piece(query, head, shape.query_size());
    let key = piece(key, head, shape.key_size());
    let value = piece(value, head, shape.key_size());
    let result = piece(result, head, shape.query_size());
    let sums = piece(sums, head, queries);
    let mut weights = shape.scores(query, key)?;
    for (line, &sum) in weights.chunks_mut(keys.max(1)).zip(sums) {
        for weight in line {
            *weight = (*weight - sum).exp();
        }
    }
    multiply(
        columns(&weights, [keys, queries]),
        rows(gradient, [queries, width]),
        value_gradient,
        Previous::Overwrite,
    );
    let mut slopes = zeroed::<T>(queries * keys)?;
    multiply(
        rows(gradient, [queries, width]),
        columns(value, [width, keys]),
        &mut slopes,
        Previous::Overwrite,
    );
    let scale = T::of(shape.scale);
    for (row, line) in slopes.chunks_mut(keys.max(1)).enumerate() {
        let place = row * width..(row + 1) * width;
        let dot: T = gradient[place.clone()]
            .iter()
            .zip(&result[place])
            .map(|(&g, &y)| g * y)
            .sum();
        for (column, slope) in line.iter_mut().enumerate() {
            *slope = weights[row * keys + column] * (*slope - dot) * scale;
        }
    }
    multiply(
        rows(&slopes, [queries, keys]),
        rows(key, [keys, width]),
        query_gradient,
        Previous::Overwrite,
    );
    multiply(
        columns(&slopes, [keys, queries]),
        rows(query, [queries, width]),
        key_gradient,
        Previous::Overwrite,
    );
    Ok(())
}

fn piece<T>(elements: &[T], head: usize, size: usize) -> &[T] {
    &elements[head * size..(head + 1) * size]
}

fn rows<T>(elements: &[T], dims: [usize; 2]) -> Matrix<'_, T> {
    Matrix {
        elements,
        dims,
        strides: [dims[1], 1],
    }
}

/// Returns a column-major matrix over a slice.
fn columns<T>(elements: &[T], dims: [usize; 2]) -> Matrix<'_, T> {
    Matrix {
        elements,
        dims,
        strides: [1, dims[0]],
    }
}
