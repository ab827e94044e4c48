//! A cache of sizes and strides by the identity of their tuples.
//!
//! A tensor usually returns the same two tuple objects to every operator, so that `tensor_argument`
//! converts their numbers once.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

/// The number of cached pairs of tuples.
const REMEMBERED: usize = 8;

/// The last pairs of integer tuples, which are immutable. The cache holds references to them, so
/// that no other object can get the same address.
#[derive(Default)]
pub(crate) struct KnownLayouts {
    layouts: [Option<Layout>; REMEMBERED],
    next: usize,
}

/// A pair of tuples with its converted numbers.
struct Layout {
    shape: Py<PyTuple>,
    stride: Py<PyTuple>,
    dims: Vec<usize>,
    strides: Vec<isize>,
}

impl KnownLayouts {
    /// Returns the index of a pair of objects, if it is cached.
    pub(crate) fn find(
        &self,
        shape: &Bound<'_, PyAny>,
        stride: &Bound<'_, PyAny>,
    ) -> Option<usize> {
        self.layouts.iter().position(|layout| {
            let mut known = layout.iter();
            known.any(|known| known.shape.is(shape) && known.stride.is(stride))
        })
    }

    /// Returns the sizes and strides at an index.
    pub(crate) fn at(&self, place: usize) -> (&[usize], &[isize]) {
        let layout = self.layouts.get(place).and_then(Option::as_ref);
        layout.map_or((&[], &[]), |known| (&known.dims, &known.strides))
    }

    /// Caches the numbers of a pair of objects, if both are immutable.
    pub(crate) fn add(
        &mut self,
        (shape, stride): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
        dims: &[usize],
        strides: &[isize],
    ) {
        let (Some(shape), Some(stride)) = (fixed(shape), fixed(stride)) else {
            return;
        };
        let place = &mut self.layouts[self.next];
        self.next = (self.next + 1) % REMEMBERED;
        // The vectors are reused, so that tensors that create new tuples for every access do not
        // cause allocations.
        let old = place.take();
        let (mut known_dims, mut known_strides) =
            old.map_or_else(Default::default, |old| (old.dims, old.strides));
        known_dims.clear();
        known_dims.extend_from_slice(dims);
        known_strides.clear();
        known_strides.extend_from_slice(strides);
        *place = Some(Layout {
            shape,
            stride,
            dims: known_dims,
            strides: known_strides,
        });
    }
}

/// Returns a tuple if all its items are exact `int` objects. Other objects that convert to integers
/// may convert to different ones later.
fn fixed(value: &Bound<'_, PyAny>) -> Option<Py<PyTuple>> {
    let tuple = value.cast::<PyTuple>().ok()?;
    let mut items = tuple.iter_borrowed();
    let is_fixed = items.all(|item| item.is_exact_instance_of::<PyInt>());
    is_fixed.then(|| tuple.clone().unbind())
}
