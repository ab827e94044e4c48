//! The tensor: a layout over a shared storage, and access to its elements.
//!
//! Operators are methods added in `ops`. What is here records nothing: it is for bindings, which copy values in and
//! out, and for operators, which build their results with it.

use std::sync::Arc;

use crate::dtype::Weight;
use crate::element::by_dtype;
use crate::kernels::Walk;
use crate::layout::Layout;
use crate::shape::{checked_sizes, signed};
use crate::storage::{self, Storage};
use crate::{DType, Element, Error, Result, Scalar};

/// An array of numbers. Cloning is cheap and gives another handle to the same elements.
#[derive(Clone, Debug)]
pub struct Tensor {
    storage: Arc<Storage>,
    layout: Layout,
}

impl Tensor {
    /// Copies elements, given with the last dimension innermost, into a new tensor.
    ///
    /// # Errors
    /// When a size is negative, or the sizes call for another number of elements, or there is no memory.
    pub fn from_slice<T: Element>(elements: &[T], sizes: &[i64]) -> Result<Self> {
        let layout = Layout::contiguous(checked_sizes(sizes)?)?;
        if layout.count() != elements.len() {
            return Err(Error::WrongCount {
                expected: layout.count(),
                found: elements.len(),
                sizes: sizes.to_vec(),
            });
        }
        let mut copy = storage::reserve(elements.len())?;
        copy.extend_from_slice(elements);
        Ok(Self::from_elements(copy, layout))
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.storage.dtype()
    }

    /// Returns the sizes.
    pub fn dims(&self) -> &[usize] {
        self.layout.dims()
    }

    /// Returns the strides in elements.
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// Returns the place of the first element in the storage, in elements.
    pub fn offset(&self) -> usize {
        self.layout.offset()
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        self.layout.count()
    }

    /// Returns whether the elements lie one after the other, the last dimension innermost.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Returns whether two tensors are views of one storage.
    pub fn shares_storage(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Copies the elements out, the last dimension innermost, converting them as C does.
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        let mut elements = Vec::with_capacity(self.count());
        let walk = Walk::over(self.dims(), [&self.layout]);
        by_dtype!(self.dtype(), S => storage::read_one(&self.storage, |own: &[S]| {
            walk.each(|[at]| elements.push(crate::element::cast(own[at])));
        }));
        elements
    }

    /// Copies the elements out as floats, the last dimension innermost.
    pub fn to_f64_vec(&self) -> Vec<f64> {
        self.to_vec()
    }

    /// Copies the elements out as numbers of their own kind, the last dimension innermost.
    pub fn to_scalars(&self) -> Vec<Scalar> {
        let mut elements = Vec::with_capacity(self.count());
        let walk = Walk::over(self.dims(), [&self.layout]);
        by_dtype!(self.dtype(), S => storage::read_one(&self.storage, |own: &[S]| {
            walk.each(|[at]| elements.push(own[at].to_scalar()));
        }));
        elements
    }

    /// Makes a tensor of what a kernel produced.
    #[inline]
    pub(crate) fn from_elements<T: Element>(elements: Vec<T>, layout: Layout) -> Self {
        debug_assert_eq!(layout.end(), Some(elements.len()), "{layout:?}");
        Self {
            storage: Storage::new(elements),
            layout,
        }
    }

    /// Makes a tensor without dimensions.
    pub(crate) fn from_scalar(value: Scalar) -> Self {
        let layout = Layout::contiguous(crate::shape::Dims::new())
            .expect("a shape without dimensions has one element");
        by_dtype!(value.dtype(), T => Self::from_elements(vec![T::from_scalar(value)], layout))
    }

    /// Makes a tensor of zeros.
    pub(crate) fn blank(layout: Layout, dtype: DType) -> Result<Self> {
        let overflow = || Error::StorageOverflow {
            sizes: signed(layout.dims()).to_vec(),
        };
        let count = layout.end().ok_or_else(overflow)?;
        count
            .checked_mul(dtype.bytes())
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(overflow)?;
        by_dtype!(dtype, T => Ok(Self::from_elements(storage::zeroed::<T>(count)?, layout)))
    }

    /// Looks at the same elements in another layout.
    pub(crate) fn with_layout(&self, layout: Layout) -> Result<Self> {
        let available = self.storage.bytes() / self.dtype().bytes();
        let end = layout.end().unwrap_or(usize::MAX);
        if end > available {
            return Err(Error::OutOfBounds {
                sizes: layout.dims().to_vec(),
                strides: layout.strides().to_vec(),
                offset: layout.offset(),
                item_bytes: self.dtype().bytes(),
                needed: end.saturating_mul(self.dtype().bytes()),
                available: self.storage.bytes(),
            });
        }
        Ok(Self {
            storage: Arc::clone(&self.storage),
            layout,
        })
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    pub(crate) fn weight(&self) -> Weight {
        if self.rank() == 0 {
            Weight::ZeroDim
        } else {
            Weight::Dimensioned
        }
    }
}
