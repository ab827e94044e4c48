//! Element-wise loops: one or two operands in, as many elements out as the broadcast shape has.
//!
//! Contiguous operands are plain slices, which the compiler turns into vector code; large ones are split among
//! threads. Anything else goes run by run.

use rayon::prelude::*;

use super::{PARALLEL_CHUNK, PARALLEL_COUNT, Walk};
use crate::layout::Layout;
use crate::storage::{self, reserve, zeroed};
use crate::{Element, Result, Tensor};

use super::result_layout;

/// Applies a function to every element.
pub(crate) fn map<T: Element, U: Element>(
    operand: &Tensor,
    function: impl Fn(T) -> U + Copy + Sync,
) -> Result<Tensor> {
    let (layout, order) = result_layout(operand.dims(), [operand.layout()])?;
    let elements = storage::read_one(operand.storage(), |own: &[T]| {
        if let Some(own) = whole(operand.layout(), own) {
            return map_slice(own, function);
        }
        let mut elements = reserve(layout.count())?;
        Walk::ordered(operand.dims(), &order, [operand.layout()]).runs(
            |[start], [stride], count| match stride {
                1 => elements.extend(own[start..start + count].iter().map(|&x| function(x))),
                0 => elements.extend(std::iter::repeat_n(function(own[start]), count)),
                _ => elements.extend(
                    own[start..]
                        .iter()
                        .step_by(stride)
                        .take(count)
                        .map(|&x| function(x)),
                ),
            },
        );
        Ok(elements)
    })?;
    Ok(Tensor::from_elements(elements, layout))
}

/// Applies a function to every pair of elements of two operands that broadcast to `dims`.
pub(crate) fn zip<T: Element, U: Element>(
    dims: &[usize],
    [left, right]: [&Tensor; 2],
    function: impl Fn(T, T) -> U + Copy + Sync,
) -> Result<Tensor> {
    let storages = [left.storage(), right.storage()];
    if left.is_contiguous() && right.is_contiguous() && left.dims() == right.dims() {
        let elements = storage::read_two(storages, |a: &[T], b: &[T]| {
            zip_slices(piece(left.layout(), a), piece(right.layout(), b), function)
        })?;
        return Ok(Tensor::from_elements(elements, left.layout().at_start()));
    }
    let (layout, order) = result_layout(dims, [left.layout(), right.layout()])?;
    let walk = Walk::ordered(dims, &order, [left.layout(), right.layout()]);
    let elements = storage::read_two(storages, |a: &[T], b: &[T]| {
        let mut elements = reserve(layout.count())?;
        walk.runs(|[x, y], strides, count| match strides {
            [1, 1] => {
                let pairs = a[x..x + count].iter().zip(&b[y..y + count]);
                elements.extend(pairs.map(|(&x, &y)| function(x, y)));
            }
            [1, 0] => {
                let y = b[y];
                elements.extend(a[x..x + count].iter().map(|&x| function(x, y)));
            }
            [0, 1] => {
                let x = a[x];
                elements.extend(b[y..y + count].iter().map(|&y| function(x, y)));
            }
            [x_stride, y_stride] => elements
                .extend((0..count).map(|i| function(a[x + i * x_stride], b[y + i * y_stride]))),
        });
        Ok(elements)
    })?;
    Ok(Tensor::from_elements(elements, layout))
}

/// Changes every element of the destination by the element of an operand that broadcasts to it.
pub(crate) fn update<T: Element>(
    destination: &Tensor,
    operand: &Tensor,
    function: impl Fn(T, T) -> T + Copy,
) {
    let walk = Walk::over(destination.dims(), [destination.layout(), operand.layout()]);
    storage::write(
        destination.storage(),
        [operand.storage()],
        |own: &mut [T], [other]: [&[T]; 1]| {
            walk.runs(|[x, y], strides, count| match strides {
                [1, 1] => {
                    let pairs = own[x..x + count].iter_mut().zip(&other[y..y + count]);
                    pairs.for_each(|(x, &y)| *x = function(*x, y));
                }
                [1, 0] => {
                    let y = other[y];
                    own[x..x + count]
                        .iter_mut()
                        .for_each(|x| *x = function(*x, y));
                }
                [x_stride, y_stride] => {
                    for i in 0..count {
                        let place = x + i * x_stride;
                        own[place] = function(own[place], other[y + i * y_stride]);
                    }
                }
            });
        },
    );
}

/// Returns the elements of a contiguous layout.
fn whole<'a, T>(layout: &Layout, elements: &'a [T]) -> Option<&'a [T]> {
    layout.is_contiguous().then(|| piece(layout, elements))
}

fn piece<'a, T>(layout: &Layout, elements: &'a [T]) -> &'a [T] {
    if layout.count() == 0 {
        return &[];
    }
    &elements[layout.offset()..layout.offset() + layout.count()]
}

fn map_slice<T: Element, U: Element>(
    operand: &[T],
    function: impl Fn(T) -> U + Copy + Sync,
) -> Result<Vec<U>> {
    if operand.len() < PARALLEL_COUNT {
        let mut elements = reserve(operand.len())?;
        elements.extend(operand.iter().map(|&x| function(x)));
        return Ok(elements);
    }
    let mut elements = zeroed(operand.len())?;
    elements
        .par_chunks_mut(PARALLEL_CHUNK)
        .zip(operand.par_chunks(PARALLEL_CHUNK))
        .for_each(|(results, operand)| {
            for (result, &x) in results.iter_mut().zip(operand) {
                *result = function(x);
            }
        });
    Ok(elements)
}

fn zip_slices<T: Element, U: Element>(
    left: &[T],
    right: &[T],
    function: impl Fn(T, T) -> U + Copy + Sync,
) -> Result<Vec<U>> {
    if left.len() < PARALLEL_COUNT {
        let mut elements = reserve(left.len())?;
        elements.extend(left.iter().zip(right).map(|(&x, &y)| function(x, y)));
        return Ok(elements);
    }
    let mut elements = zeroed(left.len())?;
    elements
        .par_chunks_mut(PARALLEL_CHUNK)
        .zip(left.par_chunks(PARALLEL_CHUNK))
        .zip(right.par_chunks(PARALLEL_CHUNK))
        .for_each(|((results, left), right)| {
            for ((result, &x), &y) in results.iter_mut().zip(left).zip(right) {
                *result = function(x, y);
            }
        });
    Ok(elements)
}
