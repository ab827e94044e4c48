//! Sums and folds over dimensions of a tensor.
//!
//! Elements are added in short blocks in their own type, which vectorizes, and the blocks in a
//! wider one, so that a long sum is as precise as torch's cascade summation.

use super::pieces::{Pieces, pieces};
use super::{PARALLEL_CHUNK, PARALLEL_COUNT, Walk, rewrite, share, widened};
use crate::element::Number;
use crate::layout::Layout;
use crate::shape::{Dims, Strides};
use crate::storage::{self, zeroed};
use crate::{Element, Result, Tensor};

/// The number of elements that are added before the sum goes into the wide total.
const BLOCK: usize = 512;

/// The number of independent sums within a block: two of the widest vector registers.
const LANES: usize = 32;

/// Writes the sums over the dimensions marked in `reduced` into `destination`, which is contiguous
/// and has one element per position of the remaining dimensions.
pub(crate) fn sum<T: Number>(
    destination: &Tensor,
    operand: &Tensor,
    reduced: &[bool],
) -> Result<()> {
    let operand = &*widened::<T>(operand)?;
    rewrite::<T>(destination, &|destination| {
        sum_typed::<T>(destination, operand, reduced)
    })
}

/// Folds the elements along the dimensions marked in `reduced`, at least one, with `combine`, and
/// writes the results into `destination`, which is as for `sum`.
pub(crate) fn fold<T: Element>(
    destination: &Tensor,
    operand: &Tensor,
    reduced: &[bool],
    combine: impl Fn(T, T) -> T + Copy,
) -> Result<()> {
    fold_pieces(destination, operand, reduced, &|first: T, own: &[T]| {
        own.iter().fold(first, |total, &x| combine(total, x))
    })
}

fn fold_pieces<T: Element>(
    destination: &Tensor,
    operand: &Tensor,
    reduced: &[bool],
    combine: &dyn Fn(T, &[T]) -> T,
) -> Result<()> {
    let operand = &*widened::<T>(operand)?;
    let kept = sub_layout(operand.layout(), reduced, false)?;
    let folded = sub_layout(operand.layout(), reduced, true)?;
    rewrite::<T>(destination, &|destination| {
        storage::write(
            destination.storage(),
            [operand.storage()],
            |results: &mut [T], [own]: [&[T]; 1]| {
                let inner = Walk::over(folded.dims(), [&folded]);
                let (mut results, mut reader) = (results.iter_mut(), Pieces::new());
                Walk::over(kept.dims(), [&kept]).each(|[place]| {
                    let mut total: Option<T> = None;
                    inner.runs(|[start], [stride], count| {
                        for piece in pieces(&[stride], count) {
                            let own = reader.read(own, (place + start, stride), piece);
                            total = match (total, own) {
                                (Some(total), own) => Some(combine(total, own)),
                                (None, [first, rest @ ..]) => Some(combine(*first, rest)),
                                (None, []) => None,
                            };
                        }
                    });
                    if let (Some(result), Some(total)) = (results.next(), total) {
                        *result = total;
                    }
                });
            },
        );
        Ok(())
    })
}

fn sum_typed<T: Number>(destination: &Tensor, operand: &Tensor, reduced: &[bool]) -> Result<()> {
    let kept = sub_layout(operand.layout(), reduced, false)?;
    let summed = sub_layout(operand.layout(), reduced, true)?;
    storage::write(
        destination.storage(),
        [operand.storage()],
        |results: &mut [T], [own]: [&[T]; 1]| {
            if along_rows(&kept, &summed) {
                return sum_rows(own, &kept, &summed, results);
            }
            let inner = Walk::over(summed.dims(), [&summed]);
            let mut results = results.iter_mut();
            Walk::over(kept.dims(), [&kept]).each(|[place]| {
                let result = results.next().expect("one result per kept position");
                *result = T::from_total(sum_place(own, place, &inner));
            });
            Ok(())
        },
    )
}

/// Returns the layout of the dimensions whose mark equals `wanted`.
fn sub_layout(layout: &Layout, reduced: &[bool], wanted: bool) -> Result<Layout> {
    let chosen = |index: &usize| reduced[*index] == wanted;
    let dims: Dims = (0..layout.rank())
        .filter(chosen)
        .map(|index| layout.dims()[index])
        .collect();
    let strides: Strides = (0..layout.rank())
        .filter(chosen)
        .map(|index| layout.strides()[index])
        .collect();
    // The offset belongs to the kept dimensions; the summed ones are relative to it.
    let offset = if wanted { 0 } else { layout.offset() };
    Layout::strided(dims, strides, offset)
}

/// Returns whether a kept dimension is innermost in memory, so that whole rows are added to each
/// other.
fn along_rows(kept: &Layout, summed: &Layout) -> bool {
    kept.strides().last() == Some(&1)
        && kept.dims().last().is_some_and(|&dim| dim > 1)
        && !summed
            .strides()
            .iter()
            .zip(summed.dims())
            .any(|(&stride, &dim)| stride == 1 && dim > 1)
}

fn sum_place<T: Number>(own: &[T], place: usize, inner: &Walk<1>) -> T::Total {
    let mut total = T::Total::default();
    inner.runs(|[start], [stride], count| {
        let start = place + start;
        let part = if stride == 1 {
            sum_slice(&own[start..start + count])
        } else {
            (0..count).fold(T::Total::default(), |total, i| {
                T::add_totals(total, own[start + i * stride].to_total())
            })
        };
        total = T::add_totals(total, part);
    });
    total
}

fn sum_slice<T: Number>(elements: &[T]) -> T::Total {
    if elements.len() < PARALLEL_COUNT {
        return sum_blocks(elements);
    }
    // Added in the order of the pieces, so that sums are reproducible.
    let mut totals = vec![T::Total::default(); elements.len().div_ceil(PARALLEL_CHUNK)];
    let pieces = totals.iter_mut().zip(elements.chunks(PARALLEL_CHUNK));
    share(pieces, |(total, piece)| *total = sum_blocks(piece));
    totals.into_iter().fold(T::Total::default(), T::add_totals)
}

fn sum_blocks<T: Number>(elements: &[T]) -> T::Total {
    elements
        .chunks(BLOCK)
        .fold(T::Total::default(), |total, block| {
            let (lanes, rest) = block.as_chunks::<LANES>();
            let mut sums = [T::ZERO; LANES];
            for lane in lanes {
                for (sum, &x) in sums.iter_mut().zip(lane) {
                    *sum = T::plus(*sum, x);
                }
            }
            sums.iter()
                .chain(rest)
                .fold(total, |total, &x| T::add_totals(total, x.to_total()))
        })
}

/// Adds rows to each other: the last kept dimension is contiguous, and the summed ones have larger
/// strides.
fn sum_rows<T: Number>(
    own: &[T],
    kept: &Layout,
    summed: &Layout,
    elements: &mut [T],
) -> Result<()> {
    let width = kept.dims().last().copied().unwrap_or(1);
    let mut outer_dims = Dims::from_slice(kept.dims());
    let mut outer_strides = Strides::from_slice(kept.strides());
    outer_dims.pop();
    outer_strides.pop();
    let outer = Layout::strided(outer_dims, outer_strides, kept.offset())
        .expect("fewer dimensions than the kept ones, which were counted");
    let places = Walk::over(summed.dims(), [summed]);
    let mut rows = elements.chunks_mut(width);
    let mut totals = zeroed::<T::Total>(width)?;
    let mut block = zeroed::<T>(width)?;
    Walk::over(outer.dims(), [&outer]).each(|[place]| {
        let mut in_block = 0;
        places.each(|[at]| {
            let row = &own[place + at..place + at + width];
            for (sum, &x) in block.iter_mut().zip(row) {
                *sum = T::plus(*sum, x);
            }
            in_block += 1;
            if in_block == BLOCK / LANES {
                in_block = 0;
                flush(&mut block, &mut totals);
            }
        });
        flush(&mut block, &mut totals);
        let results = rows.next().expect("one row per outer position");
        for (result, total) in results.iter_mut().zip(&mut totals) {
            *result = T::from_total(std::mem::take(total));
        }
    });
    Ok(())
}

fn flush<T: Number>(block: &mut [T], totals: &mut [T::Total]) {
    for (total, sum) in totals.iter_mut().zip(block) {
        *total = T::add_totals(*total, sum.to_total());
        *sum = T::ZERO;
    }
}
