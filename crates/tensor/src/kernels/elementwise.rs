//! Element-wise loops: one or two operands in, as many elements out as the broadcast shape has.
//!
//! Contiguous operands are plain slices, which the compiler turns into vector code; large ones are
//! split among threads. Anything else goes run by run.

use rayon::prelude::*;

use super::{PARALLEL_CHUNK, PARALLEL_COUNT, Walk, in_parallel};
use crate::layout::Layout;
use crate::shape::Dims;
use crate::storage::{self, reserve, zeroed};
use crate::{Element, Logical, Result, Tensor};

use super::{narrowed, result_layout, rewrite, widened};

/// Applies a function to every element.
pub(crate) fn map<T: Element, U: Element>(
    operand: &Tensor,
    function: impl Fn(T) -> U + Copy + Sync,
) -> Result<Tensor> {
    if operand.dtype() != T::DTYPE {
        return narrowed(map(&*widened::<T>(operand)?, function)?, operand.dtype());
    }
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
    if left.dtype() != T::DTYPE || right.dtype() != T::DTYPE {
        let wide = [&*widened::<T>(left)?, &*widened::<T>(right)?];
        return narrowed(zip(dims, wide, function)?, left.dtype());
    }
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
) -> Result<()> {
    let operand = &*widened::<T>(operand)?;
    rewrite::<T>(destination, |destination| {
        update_typed(destination, operand, function);
        Ok(())
    })
}

fn update_typed<T: Element>(
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

/// Changes every element of the destination by the elements of two operands that broadcast to it.
pub(crate) fn update_two<T: Element>(
    destination: &Tensor,
    [left, right]: [&Tensor; 2],
    function: impl Fn(T, T, T) -> T + Copy,
) -> Result<()> {
    let operands = [&*widened::<T>(left)?, &*widened::<T>(right)?];
    rewrite::<T>(destination, |destination| {
        update_two_typed(destination, operands, function);
        Ok(())
    })
}

fn update_two_typed<T: Element>(
    destination: &Tensor,
    [left, right]: [&Tensor; 2],
    function: impl Fn(T, T, T) -> T + Copy,
) {
    let layouts = [destination.layout(), left.layout(), right.layout()];
    let walk = Walk::over(destination.dims(), layouts);
    storage::write(
        destination.storage(),
        [left.storage(), right.storage()],
        |own: &mut [T], [a, b]: [&[T]; 2]| {
            walk.runs(|[x, y, z], strides, count| {
                if strides == [1, 1, 1] {
                    let others = a[y..y + count].iter().zip(&b[z..z + count]);
                    for (x, (&y, &z)) in own[x..x + count].iter_mut().zip(others) {
                        *x = function(*x, y, z);
                    }
                    return;
                }
                for i in 0..count {
                    let place = x + i * strides[0];
                    own[place] = function(own[place], a[y + i * strides[1]], b[z + i * strides[2]]);
                }
            });
        },
    );
}

/// Changes every element of the destination.
pub(crate) fn update_each<T: Element>(
    destination: &Tensor,
    function: impl Fn(T) -> T + Copy,
) -> Result<()> {
    rewrite::<T>(destination, |destination| {
        let walk = Walk::over(destination.dims(), [destination.layout()]);
        storage::write(destination.storage(), [], |own: &mut [T], []: [&[T]; 0]| {
            walk.each(|[place]| own[place] = function(own[place]));
        });
        Ok(())
    })
}

/// Takes each element from the one operand or the other, as `condition` says. All three broadcast
/// to `dims`.
pub(crate) fn choose<T: Element>(
    dims: &[usize],
    condition: &Tensor,
    [left, right]: [&Tensor; 2],
) -> Result<Tensor> {
    let layout = Layout::contiguous(Dims::from_slice(dims))?;
    let result = Tensor::blank(layout, T::DTYPE)?;
    let layouts = [
        result.layout(),
        condition.layout(),
        left.layout(),
        right.layout(),
    ];
    let walk = Walk::over(dims, layouts);
    let elements = storage::read_one(condition.storage(), |chosen: &[Logical]| {
        storage::read_two([left.storage(), right.storage()], |a: &[T], b: &[T]| {
            let mut elements = reserve(result.count())?;
            walk.each(|[_, at, x, y]| {
                elements.push(if chosen[at].is_true() { a[x] } else { b[y] });
            });
            Ok(elements)
        })
    })?;
    Ok(Tensor::from_elements(elements, result.layout().clone()))
}

/// Returns the elements one after the other, in a storage of their own unless they lie so already.
pub(crate) fn pack(operand: &Tensor) -> Result<Tensor> {
    if operand.is_contiguous() {
        return Ok(operand.untracked());
    }
    let layout = Layout::contiguous(Dims::from_slice(operand.dims()))?;
    let packed = Tensor::blank(layout, operand.dtype())?;
    super::copy_into(&packed, operand);
    Ok(packed)
}

/// Gives a function the elements of a contiguous tensor.
pub(crate) fn with_slice<T: Element, R>(
    operand: &Tensor,
    function: impl FnOnce(&[T]) -> Result<R>,
) -> Result<R> {
    if operand.dtype() != T::DTYPE {
        return function(&operand.to_vec()?);
    }
    storage::read_one(operand.storage(), |own: &[T]| {
        function(piece(operand.layout(), own))
    })
}

/// Gives a function the elements of two contiguous tensors.
pub(crate) fn with_slices<T: Element, R>(
    [left, right]: [&Tensor; 2],
    function: impl FnOnce(&[T], &[T]) -> Result<R>,
) -> Result<R> {
    if left.dtype() != T::DTYPE || right.dtype() != T::DTYPE {
        return function(&left.to_vec()?, &right.to_vec()?);
    }
    storage::read_two([left.storage(), right.storage()], |a: &[T], b: &[T]| {
        function(piece(left.layout(), a), piece(right.layout(), b))
    })
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
    in_parallel(|| {
        elements
            .par_chunks_mut(PARALLEL_CHUNK)
            .zip(operand.par_chunks(PARALLEL_CHUNK))
            .for_each(|(results, operand)| {
                for (result, &x) in results.iter_mut().zip(operand) {
                    *result = function(x);
                }
            });
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
    in_parallel(|| {
        elements
            .par_chunks_mut(PARALLEL_CHUNK)
            .zip(left.par_chunks(PARALLEL_CHUNK))
            .zip(right.par_chunks(PARALLEL_CHUNK))
            .for_each(|((results, left), right)| {
                for ((result, &x), &y) in results.iter_mut().zip(left).zip(right) {
                    *result = function(x, y);
                }
            });
    });
    Ok(elements)
}
