//! Copies with conversion, and constant fills.

use super::Walk;
use crate::element::{by_dtype, cast};
use crate::storage;
use crate::{Element, Scalar, Tensor};

/// Writes the elements of `source`, broadcast and converted, into `destination`, which must not
/// share its storage.
pub(crate) fn copy_into(destination: &Tensor, source: &Tensor) {
    by_dtype!(destination.dtype(), D => by_dtype!(source.dtype(), S => {
        copy_typed::<D, S>(destination, source);
    }));
}

/// Sets every element to a number.
pub(crate) fn fill(destination: &Tensor, value: Scalar) {
    let walk = Walk::over(destination.dims(), [destination.layout()]);
    by_dtype!(destination.dtype(), T => {
        let value = T::from_scalar(value);
        storage::write(destination.storage(), [], |own: &mut [T], []: [&[T]; 0]| {
            walk.runs(|[start], [stride], count| match stride {
                1 => own[start..start + count].fill(value),
                0 => own[start] = value,
                _ => own[start..].iter_mut().step_by(stride).take(count).for_each(|x| *x = value),
            });
        });
    });
}

/// Fills a vector with an arithmetic sequence.
pub(crate) fn fill_range(destination: &Tensor, start: Scalar, step: Scalar) {
    let value = |index: i64| match (start, step) {
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => {
            Scalar::Float(start.to_f64() + index as f64 * step.to_f64())
        }
        _ => Scalar::Int(
            (start.to_f64() as i64).wrapping_add(index.wrapping_mul(step.to_f64() as i64)),
        ),
    };
    by_dtype!(destination.dtype(), T => {
        storage::write(destination.storage(), [], |own: &mut [T], []: [&[T]; 0]| {
            for (index, place) in own.iter_mut().enumerate() {
                *place = T::from_scalar(value(index as i64));
            }
        });
    });
}

fn copy_typed<D: Element, S: Element>(destination: &Tensor, source: &Tensor) {
    let walk = Walk::over(destination.dims(), [destination.layout(), source.layout()]);
    storage::write(
        destination.storage(),
        [source.storage()],
        |own: &mut [D], [other]: [&[S]; 1]| {
            walk.runs(|[x, y], strides, count| match strides {
                [1, 1] => {
                    let pairs = own[x..x + count].iter_mut().zip(&other[y..y + count]);
                    pairs.for_each(|(x, &y)| *x = cast(y));
                }
                [1, 0] => own[x..x + count].fill(cast(other[y])),
                [x_stride, y_stride] => {
                    for i in 0..count {
                        own[x + i * x_stride] = cast(other[y + i * y_stride]);
                    }
                }
            });
        },
    );
}
