//! Chooses the memory layout of an element-wise result: that of its operands, as in torch.
//!
//! A transposed operand gives a transposed result, so that the loop follows memory on both sides.
//! The strides are visible in traces and decide whether a later `view` copies.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::walk::broadcast_stride;
use crate::Result;
use crate::layout::Layout;
use crate::shape::{Dims, Strides};

/// The dimensions of a shape, innermost first.
pub(crate) type Order = SmallVec<[usize; 6]>;

/// Returns the layout of a result, and the order in which to produce its elements.
pub(crate) fn result_layout<const N: usize>(
    dims: &[usize],
    operands: [&Layout; N],
) -> Result<(Layout, Order)> {
    let straight: Order = (0..dims.len()).rev().collect();
    let same_dims = operands.iter().all(|operand| operand.dims() == dims);
    if same_dims && operands.iter().all(|operand| operand.is_contiguous()) {
        return Ok((Layout::contiguous(Dims::from_slice(dims))?, straight));
    }
    let order = memory_order(dims, operands, straight);
    let same_strides = operands
        .windows(2)
        .all(|pair| pair[0].strides() == pair[1].strides());
    let layout = match operands.first() {
        Some(first) if same_dims && same_strides && first.is_dense() => Layout::strided(
            Dims::from_slice(dims),
            Strides::from_slice(first.strides()),
            0,
        )?,
        _ => Layout::ordered(dims, &order)?,
    };
    Ok((layout, order))
}

/// Sorts dimensions by the strides of the first operand that distinguishes them.
///
/// With broadcasting the relation is not transitive, so this is an insertion sort that stops at the
/// first neighbor known to come before.
fn memory_order<const N: usize>(dims: &[usize], operands: [&Layout; N], mut order: Order) -> Order {
    for start in 1..order.len() {
        let mut moving = start;
        for other in (0..start).rev() {
            match compare(dims, operands, order[other], order[moving]) {
                Ordering::Greater => {
                    order.swap(other, moving);
                    moving = other;
                }
                Ordering::Less => break,
                Ordering::Equal => {}
            }
        }
    }
    order
}

fn compare<const N: usize>(
    dims: &[usize],
    operands: [&Layout; N],
    inner: usize,
    outer: usize,
) -> Ordering {
    for operand in operands {
        let stride = |dimension| broadcast_stride(operand, dimension, dims);
        let (inner_stride, outer_stride) = (stride(inner), stride(outer));
        if inner_stride == 0 || outer_stride == 0 {
            continue;
        }
        match inner_stride.cmp(&outer_stride) {
            Ordering::Equal if dims[inner] > dims[outer] => return Ordering::Greater,
            Ordering::Equal => {}
            decided => return decided,
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strides(dims: &[usize], operands: [(&[usize], &[isize]); 2]) -> Vec<isize> {
        let [left, right] = operands.map(|(dims, strides)| {
            Layout::strided(Dims::from_slice(dims), Strides::from_slice(strides), 0).unwrap()
        });
        let (layout, _) = result_layout(dims, [&left, &right]).unwrap();
        layout.strides().to_vec()
    }

    #[test]
    fn a_result_is_laid_out_like_its_operands() {
        let permuted: (&[usize], &[isize]) = (&[4, 2, 3], &[1, 12, 4]);
        assert_eq!(strides(&[4, 2, 3], [permuted, (&[3], &[1])]), [1, 12, 4]);
        assert_eq!(
            strides(&[4, 2, 3], [permuted, (&[4, 2, 3], &[6, 3, 1])]),
            [1, 12, 4]
        );
        let number: (&[usize], &[isize]) = (&[], &[]);
        assert_eq!(strides(&[2, 3], [(&[2, 3], &[0, 1]), number]), [3, 1]);
        assert_eq!(strides(&[2, 3], [(&[2, 3], &[1, 0]), number]), [3, 1]);
        assert_eq!(
            strides(&[1, 2, 3], [(&[1, 2, 3], &[3, 3, 1]), number]),
            [3, 3, 1]
        );
        assert_eq!(strides(&[2, 3], [(&[2, 1], &[1, 1]), (&[3], &[1])]), [3, 1]);
        assert_eq!(strides(&[2, 2], [(&[2, 2], &[3, 2]), number]), [2, 1]);
    }
}
