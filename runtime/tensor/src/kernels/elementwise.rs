//! Element-wise loops over one or more operands that broadcast to a common shape.
//!
//! An operator is one loop over slices, which the compiler vectorizes. The code around it, for
//! layouts, locks and threads, is compiled once per element type and calls the loop for each piece.
#![expect(unsafe_code, reason = "results are written to uninitialized memory")]

use std::mem::MaybeUninit;

use super::pieces::{Pieces, pieces, written_pieces};
use super::{
    PARALLEL_CHUNK, PARALLEL_COUNT, Walk, narrowed, result_layout, rewrite, share, widened,
};
use crate::element::by_dtype;
use crate::layout::Layout;
use crate::shape::Dims;
use crate::storage::{self, reserve};
use crate::{Element, Logical, Result, Tensor};

/// Uninitialized memory for the results of a loop, which must write every element.
type Room<U> = [MaybeUninit<U>];

/// Loops over operands of equal length that write results or update the first operand.
type MapLoop<'a, T, U> = &'a (dyn Fn(&[T], &mut Room<U>) + Sync);
type ZipLoop<'a, T, U> = &'a (dyn Fn(&[T], &[T], &mut Room<U>) + Sync);
type UpdateLoop<'a, T> = &'a dyn Fn(&mut [T], &[T]);
type UpdateTwoLoop<'a, T> = &'a dyn Fn(&mut [T], &[T], &[T]);

/// Applies a function to every element.
#[inline]
pub(crate) fn map<T: Element, U: Element>(
    operand: &Tensor,
    function: impl Fn(T) -> U + Copy + Sync,
) -> Result<Tensor> {
    map_pieces(operand, &|own: &[T], results: &mut Room<U>| {
        assert_eq!(own.len(), results.len());
        for (result, &x) in results.iter_mut().zip(own) {
            result.write(function(x));
        }
    })
}

/// Returns a copy of the elements in a new storage.
pub(crate) fn duplicate(operand: &Tensor) -> Result<Tensor> {
    by_dtype!(operand.dtype(), T => map(operand, |x: T| x))
}

fn map_pieces<T: Element, U: Element>(
    operand: &Tensor,
    function: MapLoop<'_, T, U>,
) -> Result<Tensor> {
    if operand.dtype() != T::DTYPE {
        let result = map_pieces(&*widened::<T>(operand)?, function)?;
        return narrowed(result, operand.dtype());
    }
    let (layout, order) = result_layout(operand.dims(), [operand.layout()])?;
    let elements = storage::read_one(operand.storage(), |own: &[T]| {
        written(layout.count(), |results: &mut Room<U>| {
            if operand.is_contiguous() {
                let own = piece(operand.layout(), own);
                if own.len() < PARALLEL_COUNT {
                    return function(own, results);
                }
                let pairs = results
                    .chunks_mut(PARALLEL_CHUNK)
                    .zip(own.chunks(PARALLEL_CHUNK));
                return share(pairs, |(results, own)| function(own, results));
            }
            let (mut results, mut reader) = (results, Pieces::new());
            let walk = Walk::ordered(operand.dims(), &order, [operand.layout()]);
            walk.runs(|[start], [stride], count| {
                for piece in pieces(&[stride], count) {
                    let room = results.split_off_mut(..piece.len());
                    let own = reader.read(own, (start, stride), piece);
                    function(own, room.expect("as many positions as results"));
                }
            });
            assert!(results.is_empty());
        })
    })?;
    Ok(Tensor::from_elements(elements, layout))
}

/// Applies a function to every pair of elements of two operands that broadcast to `dims`.
#[inline]
pub(crate) fn zip<T: Element, U: Element>(
    dims: &[usize],
    operands: [&Tensor; 2],
    function: impl Fn(T, T) -> U + Copy + Sync,
) -> Result<Tensor> {
    zip_pieces(
        dims,
        operands,
        &|a: &[T], b: &[T], results: &mut Room<U>| {
            assert!(a.len() == results.len() && b.len() == results.len());
            for ((result, &x), &y) in results.iter_mut().zip(a).zip(b) {
                result.write(function(x, y));
            }
        },
    )
}

fn zip_pieces<T: Element, U: Element>(
    dims: &[usize],
    [left, right]: [&Tensor; 2],
    function: ZipLoop<'_, T, U>,
) -> Result<Tensor> {
    if left.dtype() != T::DTYPE || right.dtype() != T::DTYPE {
        let wide = [&*widened::<T>(left)?, &*widened::<T>(right)?];
        return narrowed(zip_pieces(dims, wide, function)?, left.dtype());
    }
    let storages = [left.storage(), right.storage()];
    if left.is_contiguous() && right.is_contiguous() && left.dims() == right.dims() {
        let elements = storage::read_two(storages, |a: &[T], b: &[T]| {
            let (a, b) = (piece(left.layout(), a), piece(right.layout(), b));
            written(a.len(), |results| zip_slices([a, b], results, function))
        })?;
        return Ok(Tensor::from_elements(elements, left.layout().at_start()));
    }
    let (layout, order) = result_layout(dims, [left.layout(), right.layout()])?;
    let walk = Walk::ordered(dims, &order, [left.layout(), right.layout()]);
    let elements = storage::read_two(storages, |a: &[T], b: &[T]| {
        written(layout.count(), |mut results: &mut Room<U>| {
            let (mut left, mut right) = (Pieces::new(), Pieces::new());
            walk.runs(|[x, y], strides, count| {
                for piece in pieces(&strides, count) {
                    let room = results.split_off_mut(..piece.len());
                    function(
                        left.read(a, (x, strides[0]), piece.clone()),
                        right.read(b, (y, strides[1]), piece),
                        room.expect("as many positions as results"),
                    );
                }
            });
            assert!(results.is_empty());
        })
    })?;
    Ok(Tensor::from_elements(elements, layout))
}

#[inline]
fn zip_slices<T: Element, U: Element>(
    [a, b]: [&[T]; 2],
    results: &mut Room<U>,
    function: ZipLoop<'_, T, U>,
) {
    if a.len() < PARALLEL_COUNT {
        return function(a, b, results);
    }
    let operands = a.chunks(PARALLEL_CHUNK).zip(b.chunks(PARALLEL_CHUNK));
    let pieces = results.chunks_mut(PARALLEL_CHUNK).zip(operands);
    share(pieces, |(results, (a, b))| function(a, b, results));
}

/// Returns `count` elements, every one of which `write` has initialized.
#[inline]
fn written<U: Element>(count: usize, write: impl FnOnce(&mut Room<U>)) -> Result<Vec<U>> {
    let mut elements: Vec<U> = reserve(count)?;
    write(&mut elements.spare_capacity_mut()[..count]);
    // SAFETY: the vector has capacity for `count` elements. `written` is private, and its callers
    // in this module hand all of the memory to a loop of `map` or `zip`, which initializes every
    // element of the slice that it gets or panics.
    unsafe { elements.set_len(count) };
    Ok(elements)
}

/// Updates every element of the destination with that of an operand that broadcasts to it.
pub(crate) fn update<T: Element>(
    destination: &Tensor,
    operand: &Tensor,
    function: impl Fn(T, T) -> T + Copy,
) -> Result<()> {
    update_pieces(destination, operand, &|own: &mut [T], other: &[T]| {
        for (x, &y) in own.iter_mut().zip(other) {
            *x = function(*x, y);
        }
    })
}

fn update_pieces<T: Element>(
    destination: &Tensor,
    operand: &Tensor,
    function: UpdateLoop<'_, T>,
) -> Result<()> {
    let operand = &*widened::<T>(operand)?;
    rewrite::<T>(destination, &|destination| {
        let walk = Walk::over(destination.dims(), [destination.layout(), operand.layout()]);
        storage::write(
            destination.storage(),
            [operand.storage()],
            |own: &mut [T], [other]: [&[T]; 1]| {
                let (mut writer, mut reader) = (Pieces::new(), Pieces::new());
                walk.runs(|[x, y], strides, count| {
                    for piece in written_pieces(&strides, count) {
                        let other = reader.read(other, (y, strides[1]), piece.clone());
                        writer.rewrite(own, (x, strides[0]), piece, |own| function(own, other));
                    }
                });
            },
        );
        Ok(())
    })
}

/// Updates every element of the destination with those of two operands that broadcast to it.
pub(crate) fn update_two<T: Element>(
    destination: &Tensor,
    operands: [&Tensor; 2],
    function: impl Fn(T, T, T) -> T + Copy,
) -> Result<()> {
    update_two_pieces(destination, operands, &|own: &mut [T], a: &[T], b: &[T]| {
        for ((x, &y), &z) in own.iter_mut().zip(a).zip(b) {
            *x = function(*x, y, z);
        }
    })
}

fn update_two_pieces<T: Element>(
    destination: &Tensor,
    [left, right]: [&Tensor; 2],
    function: UpdateTwoLoop<'_, T>,
) -> Result<()> {
    let [left, right] = [&*widened::<T>(left)?, &*widened::<T>(right)?];
    rewrite::<T>(destination, &|destination| {
        let layouts = [destination.layout(), left.layout(), right.layout()];
        let walk = Walk::over(destination.dims(), layouts);
        storage::write(
            destination.storage(),
            [left.storage(), right.storage()],
            |own: &mut [T], [a, b]: [&[T]; 2]| {
                let (mut left, mut right) = (Pieces::new(), Pieces::new());
                let mut writer = Pieces::new();
                walk.runs(|[x, y, z], strides, count| {
                    for piece in written_pieces(&strides, count) {
                        let a = left.read(a, (y, strides[1]), piece.clone());
                        let b = right.read(b, (z, strides[2]), piece.clone());
                        writer.rewrite(own, (x, strides[0]), piece, |own| function(own, a, b));
                    }
                });
            },
        );
        Ok(())
    })
}

/// Updates every element of the destination.
pub(crate) fn update_each<T: Element>(
    destination: &Tensor,
    function: impl Fn(T) -> T + Copy,
) -> Result<()> {
    update_each_piece(destination, &|own: &mut [T]| {
        for x in own {
            *x = function(*x);
        }
    })
}

fn update_each_piece<T: Element>(destination: &Tensor, function: &dyn Fn(&mut [T])) -> Result<()> {
    rewrite::<T>(destination, &|destination| {
        let walk = Walk::over(destination.dims(), [destination.layout()]);
        storage::write(destination.storage(), [], |own: &mut [T], []: [&[T]; 0]| {
            let mut writer = Pieces::new();
            walk.runs(|[start], [stride], count| {
                for piece in written_pieces(&[stride], count) {
                    writer.rewrite(own, (start, stride), piece, function);
                }
            });
        });
        Ok(())
    })
}

/// Takes each element from `yes` or `no`, depending on `condition`. All three broadcast to `dims`.
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

/// Returns the elements in contiguous order, copying only if they are not contiguous already.
pub(crate) fn pack(operand: &Tensor) -> Result<Tensor> {
    if operand.is_contiguous() {
        return Ok(operand.untracked());
    }
    let layout = Layout::contiguous(Dims::from_slice(operand.dims()))?;
    let packed = Tensor::blank(layout, operand.dtype())?;
    super::copy_into(&packed, operand);
    Ok(packed)
}

/// Calls a function with the elements of a contiguous tensor.
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

/// Calls a function with the elements of two contiguous tensors.
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
fn piece<'a, T>(layout: &Layout, elements: &'a [T]) -> &'a [T] {
    if layout.count() == 0 {
        return &[];
    }
    &elements[layout.offset()..layout.offset() + layout.count()]
}
