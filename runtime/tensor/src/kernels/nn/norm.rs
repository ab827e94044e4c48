//! Normalization of rows, and of the channels of a batch.

use crate::Result;
use crate::element::Real;
use crate::storage::{reserve, zeroed};

/// The mean and the inverse deviation of each row or channel.
pub(crate) struct Statistics<T> {
    pub(crate) mean: Vec<T>,
    /// The reciprocal of the standard deviation.
    pub(crate) inverse_deviation: Vec<T>,
}

/// The gradients of a normalization: of its operand, its weight and its bias.
pub(crate) struct NormGradient<T> {
    pub(crate) input: Vec<T>,
    pub(crate) scale: Vec<T>,
    pub(crate) shift: Vec<T>,
}

/// Normalizes rows to mean zero and variance one, applies the element-wise weight and bias, and
/// returns the result with the statistics.
pub(crate) fn normalise_rows<T: Real>(
    own: &[T],
    width: usize,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
    epsilon: f64,
) -> Result<(Vec<T>, Statistics<T>)> {
    let mut values = reserve(own.len())?;
    let mut statistics = Statistics {
        mean: reserve(own.len() / width.max(1))?,
        inverse_deviation: reserve(own.len() / width.max(1))?,
    };
    for row in own.chunks(width.max(1)) {
        let (mean, variance) = moments(row.iter().copied(), width);
        let inverse = 1.0 / (variance + epsilon).sqrt();
        statistics.mean.push(T::of(mean));
        statistics.inverse_deviation.push(T::of(inverse));
        let (mean, inverse) = (T::of(mean), T::of(inverse));
        values.extend(row.iter().enumerate().map(|(index, &x)| {
            let normal = (x - mean) * inverse;
            let scaled = scale.map_or(normal, |scale| normal * scale[index]);
            shift.map_or(scaled, |shift| scaled + shift[index])
        }));
    }
    Ok((values, statistics))
}

/// Returns the gradients of [`normalise_rows`].
pub(crate) fn normalise_rows_gradient<T: Real>(
    own: &[T],
    gradient: &[T],
    statistics: &Statistics<T>,
    scale: Option<&[T]>,
    width: usize,
) -> Result<NormGradient<T>> {
    let mut input = reserve(own.len())?;
    let (mut scale_gradient, mut shift_gradient) = (zeroed::<f64>(width)?, zeroed::<f64>(width)?);
    let rows = own.chunks(width.max(1)).zip(gradient.chunks(width.max(1)));
    for (index, (row, arriving)) in rows.enumerate() {
        let (mean, inverse) = (statistics.mean[index], statistics.inverse_deviation[index]);
        let weigh = |column: usize| scale.map_or(T::ONE, |scale| scale[column]);
        let (mut sum, mut product) = (0.0_f64, 0.0_f64);
        for (column, (&x, &g)) in row.iter().zip(arriving).enumerate() {
            let normal = (x - mean) * inverse;
            let weighed = (g * weigh(column)).wide();
            sum += weighed;
            product += weighed * normal.wide();
            scale_gradient[column] += (g * normal).wide();
            shift_gradient[column] += g.wide();
        }
        let count = width as f64;
        let (sum, product) = (T::of(sum / count), T::of(product / count));
        input.extend(
            row.iter()
                .zip(arriving)
                .enumerate()
                .map(|(column, (&x, &g))| {
                    let normal = (x - mean) * inverse;
                    (g * weigh(column) - sum - normal * product) * inverse
                }),
        );
    }
    Ok(NormGradient {
        input,
        scale: scale_gradient.into_iter().map(T::of).collect(),
        shift: shift_gradient.into_iter().map(T::of).collect(),
    })
}

/// Returns the statistics of each channel of a batch, and the unbiased variances.
pub(crate) fn channel_statistics<T: Real>(
    own: &[T],
    [batch, channels, inner]: [usize; 3],
    epsilon: f64,
) -> Result<(Statistics<T>, Vec<T>)> {
    let mut statistics = Statistics {
        mean: reserve(channels)?,
        inverse_deviation: reserve(channels)?,
    };
    let mut variances = reserve(channels)?;
    let count = batch * inner;
    for channel in 0..channels {
        let elements = || {
            places(batch, channels, inner, channel)
                .flat_map(|range| &own[range])
                .copied()
        };
        let mean = elements().map(T::wide).sum::<f64>() / count as f64;
        let squares: f64 = elements().map(|x| (x.wide() - mean).powi(2)).sum();
        statistics.mean.push(T::of(mean));
        let variance = squares / count as f64;
        statistics
            .inverse_deviation
            .push(T::of(1.0 / (variance + epsilon).sqrt()));
        variances.push(T::of(squares / (count as f64 - 1.0)));
    }
    Ok((statistics, variances))
}

/// Normalizes channels with the given statistics and applies the weight and bias of each channel.
pub(crate) fn normalise_channels<T: Real>(
    own: &[T],
    [_, channels, inner]: [usize; 3],
    statistics: &Statistics<T>,
    scale: Option<&[T]>,
    shift: Option<&[T]>,
) -> Result<Vec<T>> {
    let mut values = reserve(own.len())?;
    for (index, block) in own.chunks(inner.max(1)).enumerate() {
        let channel = index % channels;
        let factor =
            statistics.inverse_deviation[channel] * scale.map_or(T::ONE, |scale| scale[channel]);
        let summand =
            shift.map_or(T::ZERO, |shift| shift[channel]) - statistics.mean[channel] * factor;
        values.extend(block.iter().map(|&x| x * factor + summand));
    }
    Ok(values)
}

/// Returns the gradients of [`normalise_channels`]. In training, the statistics depend on the
/// elements too.
pub(crate) fn normalise_channels_gradient<T: Real>(
    [own, gradient]: [&[T]; 2],
    [batch, channels, inner]: [usize; 3],
    statistics: &Statistics<T>,
    scale: Option<&[T]>,
    training: bool,
) -> Result<NormGradient<T>> {
    let mut result = NormGradient {
        input: zeroed(own.len())?,
        scale: reserve(channels)?,
        shift: reserve(channels)?,
    };
    let count = (batch * inner) as f64;
    for channel in 0..channels {
        let (mean, inverse) = (
            statistics.mean[channel],
            statistics.inverse_deviation[channel],
        );
        let (mut sum, mut product) = (0.0_f64, 0.0_f64);
        for range in places(batch, channels, inner, channel) {
            for (&x, &g) in own[range.clone()].iter().zip(&gradient[range]) {
                sum += g.wide();
                product += (g * (x - mean)).wide();
            }
        }
        let factor = inverse * scale.map_or(T::ONE, |scale| scale[channel]);
        let (mean_gradient, slope) = if training {
            (
                T::of(sum / count),
                T::of(product / count) * inverse * inverse,
            )
        } else {
            (T::ZERO, T::ZERO)
        };
        for range in places(batch, channels, inner, channel) {
            let known = own[range.clone()].iter().zip(&gradient[range.clone()]);
            for (place, (&x, &g)) in result.input[range].iter_mut().zip(known) {
                *place = (g - mean_gradient - (x - mean) * slope) * factor;
            }
        }
        result.scale.push(T::of(product) * inverse);
        result.shift.push(T::of(sum));
    }
    Ok(result)
}

/// Returns the ranges in which the elements of a channel lie.
fn places(
    batch: usize,
    channels: usize,
    inner: usize,
    channel: usize,
) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..batch).map(move |image| {
        let start = (image * channels + channel) * inner;
        start..start + inner
    })
}

fn moments<T: Real>(elements: impl Iterator<Item = T> + Clone, count: usize) -> (f64, f64) {
    let mean = elements.clone().map(T::wide).sum::<f64>() / count as f64;
    let squares: f64 = elements.map(|x| (x.wide() - mean).powi(2)).sum();
    (mean, squares / count as f64)
}
