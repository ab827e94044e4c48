//! Loops along one dimension of contiguous elements: sorting and running sums.

use std::cmp::Ordering;

use super::with_slice;
use crate::element::{Number, by_dtype, by_number};
use crate::layout::Layout;
use crate::shape::Dims;
use crate::storage::{reserve, zeroed};
use crate::{Element, Result, Tensor};

/// Returns the sorted order of the elements along the middle dimension, for each outer and inner
/// position, as `outer * middle * inner` positions.
///
/// The sort is stable, and NaN counts as the largest value.
pub(crate) fn sorted_places(
    tensor: &Tensor,
    dims: [usize; 3],
    is_descending: bool,
) -> Result<Vec<i64>> {
    by_dtype!(tensor.dtype(), T => with_slice(tensor, |own: &[T]| places(own, dims, is_descending)))
}

#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
fn compare<T: Element>(left: T, right: T) -> Ordering {
    let order = left.partial_cmp(&right);
    order.unwrap_or_else(|| (left != left).cmp(&(right != right)))
}

fn places<T: Element>(
    own: &[T],
    [outer, middle, inner]: [usize; 3],
    is_descending: bool,
) -> Result<Vec<i64>> {
    let mut found = zeroed::<i64>(outer * middle * inner)?;
    let mut order: Vec<usize> = reserve(middle)?;
    for block in 0..outer {
        for lane in 0..inner {
            let at = |place: usize| (block * middle + place) * inner + lane;
            order.clear();
            order.extend(0..middle);
            order.sort_by(|&left, &right| {
                let order = compare(own[at(left)], own[at(right)]);
                if is_descending {
                    order.reverse()
                } else {
                    order
                }
            });
            for (place, &from) in order.iter().enumerate() {
                found[at(place)] = from as i64;
            }
        }
    }
    Ok(found)
}

/// Returns running sums along the middle dimension.
pub(crate) fn running_sums(tensor: &Tensor, dims: [usize; 3]) -> Result<Tensor> {
    let layout = Layout::contiguous(Dims::from_slice(tensor.dims()))?;
    by_number!(tensor.dtype(), T => with_slice(tensor, |own: &[T]| {
        Ok(Tensor::from_elements(sums(own, dims)?, layout))
    }))
}

fn sums<T: Number>(own: &[T], [outer, middle, inner]: [usize; 3]) -> Result<Vec<T>> {
    let mut results = zeroed::<T>(own.len())?;
    for block in 0..outer {
        for lane in 0..inner {
            let mut total = T::ZERO.to_total();
            for place in 0..middle {
                let at = (block * middle + place) * inner + lane;
                total = T::add_totals(total, own[at].to_total());
                results[at] = T::from_total(total);
            }
        }
    }
    Ok(results)
}
