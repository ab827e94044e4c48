//! Iterates over several layouts, broadcast to one shape, in lockstep.
//!
//! Adjacent dimensions that form one evenly strided run in every operand are merged, so that most
//! walks are one long run.
//! Fast kernels iterate over runs (start, stride, count), and others over single positions.

use std::array;

use smallvec::SmallVec;

use crate::layout::Layout;

/// The storage positions of `N` operands, visited together.
///
/// Kernels create one from the layouts of their operands. It performs the broadcasting: along a
/// dimension that an operand lacks or has with size 1, its stride is zero.
#[derive(Debug)]
pub(crate) struct Walk<const N: usize> {
    /// The sizes, innermost first.
    dims: SmallVec<[usize; 6]>,
    /// The strides of every operand, innermost first.
    strides: SmallVec<[[usize; N]; 6]>,
    offsets: [usize; N],
}

impl<const N: usize> Walk<N> {
    /// Creates a walk with the last dimension innermost. Every layout must broadcast to `dims`.
    pub(crate) fn over(dims: &[usize], layouts: [&Layout; N]) -> Self {
        Self::build(dims, (0..dims.len()).rev(), layouts)
    }

    /// Creates a walk with the first dimension of `order` innermost. Every layout must broadcast to
    /// `dims`.
    pub(crate) fn ordered(dims: &[usize], order: &[usize], layouts: [&Layout; N]) -> Self {
        Self::build(dims, order.iter().copied(), layouts)
    }

    fn build(dims: &[usize], order: impl Iterator<Item = usize>, layouts: [&Layout; N]) -> Self {
        let mut walk = Self {
            dims: SmallVec::new(),
            strides: SmallVec::new(),
            offsets: layouts.map(Layout::offset),
        };
        for dimension in order {
            let dim = dims[dimension];
            if dim == 1 {
                continue;
            }
            // Views and foreign tensors with negative strides are rejected when they are created.
            let strides = layouts.map(|layout| broadcast_stride(layout, dimension, dims) as usize);
            match (walk.dims.last_mut(), walk.strides.last()) {
                (Some(inner), Some(inner_strides))
                    if (0..N).all(|operand| {
                        // The product can overflow only if there are no elements: the strides of
                        // empty tensors are not checked against a storage.
                        strides[operand] == inner_strides[operand].wrapping_mul(*inner)
                    }) =>
                {
                    *inner *= dim;
                }
                _ => {
                    walk.dims.push(dim);
                    walk.strides.push(strides);
                }
            }
        }
        walk
    }

    /// Calls `visit` with the starts and strides of all operands and the length of each run.
    pub(crate) fn runs(&self, mut visit: impl FnMut([usize; N], [usize; N], usize)) {
        self.visit_runs(&mut visit);
    }

    /// Visits as `runs` does; not generic over the closure, so that it is compiled once per `N`.
    fn visit_runs(&self, visit: &mut dyn FnMut([usize; N], [usize; N], usize)) {
        if self.dims.contains(&0) {
            return;
        }
        let (Some(&count), Some(&strides)) = (self.dims.first(), self.strides.first()) else {
            visit(self.offsets, [1; N], 1);
            return;
        };
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.dims.len());
        let mut offsets = self.offsets;
        loop {
            visit(offsets, strides, count);
            let mut dimension = 1;
            loop {
                let Some(&dim) = self.dims.get(dimension) else {
                    return;
                };
                let step = self.strides[dimension];
                index[dimension] += 1;
                if index[dimension] < dim {
                    offsets = array::from_fn(|operand| offsets[operand] + step[operand]);
                    break;
                }
                index[dimension] = 0;
                offsets = array::from_fn(|operand| offsets[operand] - step[operand] * (dim - 1));
                dimension += 1;
            }
        }
    }

    /// Calls `visit` with every position.
    pub(crate) fn each(&self, mut visit: impl FnMut([usize; N])) {
        self.runs(|starts, strides, count| {
            for index in 0..count {
                visit(array::from_fn(|operand| {
                    starts[operand] + strides[operand] * index
                }));
            }
        });
    }
}

/// Returns the stride of a layout along a dimension of the shape that it is broadcast to.
pub(super) fn broadcast_stride(layout: &Layout, dimension: usize, dims: &[usize]) -> isize {
    match (dimension + layout.rank()).checked_sub(dims.len()) {
        Some(own) if layout.dims()[own] == dims[dimension] => layout.strides()[own],
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Dims, Strides};

    fn layout(dims: &[usize], strides: &[isize], offset: usize) -> Layout {
        Layout::strided(Dims::from_slice(dims), Strides::from_slice(strides), offset).unwrap()
    }

    #[test]
    fn a_contiguous_layout_is_one_run() {
        let contiguous = layout(&[2, 3, 4], &[12, 4, 1], 5);
        let mut runs = Vec::new();
        Walk::over(&[2, 3, 4], [&contiguous]).runs(|start, stride, count| {
            runs.push((start, stride, count));
        });
        assert_eq!(runs, [([5], [1], 24)]);
    }

    #[test]
    fn operands_broadcast_in_step() {
        let (column, row) = (layout(&[2, 1], &[1, 1], 0), layout(&[3], &[1], 0));
        let mut places = Vec::new();
        Walk::over(&[2, 3], [&column, &row]).each(|place| places.push(place));
        assert_eq!(places, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
    }

    #[test]
    fn nothing_is_visited_where_a_dimension_is_empty() {
        let empty = layout(&[2, 0], &[1, 1], 0);
        Walk::over(&[2, 0], [&empty]).each(|_| panic!("there is no position"));
    }

    #[test]
    fn a_shape_without_dimensions_has_one_place() {
        let mut places = Vec::new();
        Walk::over(&[], [&layout(&[], &[], 7)]).each(|place| places.push(place));
        assert_eq!(places, [[7]]);
    }
}
