//! A cache of sizes and strides by the identity of their tuples. A tensor usually returns the same
//! two tuples in each operator, so that `tensor_argument` converts their numbers once.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

/// How many pairs of tuples are cached.
const REMEMBERED: usize = 8;

/// Recent pairs of integer tuples, which are immutable. The cache owns them, so that no other
/// object can get their address.
#[derive(Default)]
pub(crate) struct KnownLayouts {
    layouts: [Option<Layout>; REMEMBERED],
    next: usize,
}

/// A pair of tuples and its numbers.
struct Layout {
    shape: Py<PyTuple>,
    stride: Py<PyTuple>,
    dims: Vec<usize>,
    strides: Vec<isize>,
}

impl KnownLayouts {
    /// Returns the place of what a pair of objects tells, if it is known.
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

    /// Returns the sizes and strides at a place.
    pub(crate) fn at(&self, place: usize) -> (&[usize], &[isize]) {
        let layout = self.layouts.get(place).and_then(Option::as_ref);
        layout.map_or((&[], &[]), |known| (&known.dims, &known.strides))
    }

    /// Remembers what a pair of objects told, if it cannot change.
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
        // Its lists are filled anew, so that tensors whose tuples are made for each answer do not
        // allocate.
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

/// Returns a tuple whose items are plain whole numbers: an object that only counts as one may count
/// as another one later.
fn fixed(value: &Bound<'_, PyAny>) -> Option<Py<PyTuple>> {
    let tuple = value.cast::<PyTuple>().ok()?;
    let mut items = tuple.iter_borrowed();
    let is_fixed = items.all(|item| item.is_exact_instance_of::<PyInt>());
    is_fixed.then(|| tuple.clone().unbind())
}
