//! The tensor: a layout over a shared storage, with access to its elements.
//!
//! Operators are methods defined in `ops`. Nothing in this module is recorded: bindings use it to
//! copy values in and out, and operators use it to build their results.

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use crate::autograd::{Meta, is_tracking, link_view};
use crate::dtype::Weight;
use crate::element::by_dtype;
use crate::elements::{Foreign, Owner};
use crate::error::reject;
use crate::kernels::Walk;
use crate::layout::Layout;
use crate::shape::{Strides, checked_sizes, storage_bytes};
use crate::storage::{self, Storage};
use crate::{DType, Element, Error, Logical, Result, Scalar};

/// A multi-dimensional array of numbers.
///
/// A tensor pairs a layout with a shared storage and, if autograd tracks it, with its metadata.
/// Cloning is cheap and creates another handle to the same elements; views share the storage under
/// a different layout.
#[derive(Clone, Debug)]
pub struct Tensor {
    storage: Arc<Storage>,
    layout: Layout,
    /// The autograd metadata, created on demand: most tensors never need it.
    meta: OnceLock<Arc<Meta>>,
    role: Role,
}

/// The relation of a tensor to its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The tensor was created together with its storage.
    Owner,
    /// The tensor is a view of another tensor's elements.
    View,
    /// As a view, but writing through it does not increment the version.
    Silent,
}

impl Tensor {
    /// Copies elements in row-major order into a new tensor.
    ///
    /// # Errors
    /// Returns an error if a size is negative, or the sizes require a different number of elements,
    /// or memory cannot be allocated.
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

    /// Copies elements from bytes, in native byte order and row-major order, into a new tensor.
    ///
    /// # Errors
    /// Returns an error if the sizes require a different number of bytes, or memory cannot be
    /// allocated.
    pub fn from_bytes(bytes: &[u8], sizes: &[i64], dtype: DType) -> Result<Self> {
        let count = bytes.len() / dtype.bytes();
        if !bytes.len().is_multiple_of(dtype.bytes()) {
            return reject!(
                Value,
                "buffer length ({} bytes) must be a multiple of element size ({})",
                bytes.len(),
                dtype.bytes()
            );
        }
        match dtype {
            DType::Bool => Self::from_slice(
                &decode(bytes, count, |[byte]| Logical::from_byte(byte)),
                sizes,
            ),
            DType::I32 => Self::from_slice(&decode(bytes, count, i32::from_ne_bytes), sizes),
            DType::I64 => Self::from_slice(&decode(bytes, count, i64::from_ne_bytes), sizes),
            DType::BF16 => {
                Self::from_slice(&decode(bytes, count, half::bf16::from_ne_bytes), sizes)
            }
            DType::F32 => Self::from_slice(&decode(bytes, count, f32::from_ne_bytes), sizes),
            DType::F64 => Self::from_slice(&decode(bytes, count, f64::from_ne_bytes), sizes),
        }
    }

    /// Creates a tensor over foreign memory, which `owner` keeps alive.
    ///
    /// Strides are counted in elements.
    ///
    /// # Errors
    /// Returns an error if a size or a stride is negative, or if together they exceed the address
    /// space.
    ///
    /// # Panics
    /// Panics if the address is not aligned for the dtype.
    ///
    /// # Safety
    /// `address` must point to valid, initialized elements of `dtype`, as many as the sizes and
    /// strides reach, and they must stay in place until `owner` is dropped. Nobody else may write
    /// to them while an operator works on them.
    #[expect(
        unsafe_code,
        reason = "the safety contract is passed on to `Foreign::new`"
    )]
    pub unsafe fn from_foreign(
        address: usize,
        dtype: DType,
        sizes: &[i64],
        strides: &[isize],
        owner: Owner,
    ) -> Result<Self> {
        let dims = checked_sizes(sizes)?;
        if strides.len() != sizes.len() || strides.iter().any(|&stride| stride < 0) {
            return Err(Error::StrideOverflow);
        }
        let layout = Layout::strided(dims, Strides::from_slice(strides), 0)?;
        let count = layout.end().ok_or(Error::StrideOverflow)?;
        by_dtype!(dtype, T => {
            let first = NonNull::new(std::ptr::with_exposed_provenance_mut::<T>(address));
            let first = first.filter(|_| count > 0).unwrap_or(NonNull::dangling());
            assert!(first.is_aligned(), "the address is not aligned for the dtype");
            // SAFETY: `first` is aligned (asserted above). This function's contract requires
            // `count` valid elements there until `owner` is dropped, and no concurrent writers.
            let foreign = unsafe { Foreign::new(first, count, owner) };
            Ok(Self {
                storage: Storage::of_foreign(foreign),
                layout,
                meta: OnceLock::new(),
                role: Role::Owner,
            })
        })
    }

    /// Returns the dtype of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.storage.dtype()
    }

    /// Returns the sizes.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        self.layout.dims()
    }

    /// Returns the strides in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// Returns the offset of the first element in the storage, in elements.
    #[inline]
    pub fn offset(&self) -> usize {
        self.layout.offset()
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Returns the number of elements.
    #[inline]
    pub fn count(&self) -> usize {
        self.layout.count()
    }

    /// Returns whether the elements are contiguous in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Returns the version of the storage: how often its elements were written to, through any
    /// view.
    pub fn version(&self) -> u32 {
        self.storage.version()
    }

    /// Returns whether this tensor was created as a view of another one.
    pub fn is_view(&self) -> bool {
        self.role != Role::Owner
    }

    /// Returns the address of the first element.
    #[inline]
    pub fn address(&self) -> usize {
        self.storage.address() + self.offset() * self.dtype().bytes()
    }

    /// Returns the address of the storage, by which the recorder identifies it.
    pub fn storage_address(&self) -> usize {
        self.storage.address()
    }

    /// Returns the size of the storage in bytes.
    pub fn storage_bytes(&self) -> usize {
        self.storage.bytes()
    }

    /// Returns a view of all elements, detached from the graph. Writing through it does not
    /// increment the version.
    #[must_use]
    pub fn data(&self) -> Self {
        Self {
            role: Role::Silent,
            ..self.untracked()
        }
    }

    /// Returns another handle to the same elements, unknown to autograd.
    #[must_use]
    pub fn detached(&self) -> Self {
        self.untracked()
    }

    /// Links a fresh view to the untracked tensor that it shows, because tracked elements are about
    /// to be written through it.
    pub fn link_to(&self, base: &Self) {
        if self.meta().is_none() && is_tracking() && self.is_view() {
            link_view(self, base);
        }
    }

    /// Returns whether both tensors share a storage.
    pub fn shares_storage(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Returns whether two tensors are known to overlap: both are dense, and their ranges
    /// intersect.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        if !self.shares_storage(other) || !self.layout.is_dense() || !other.layout.is_dense() {
            return false;
        }
        let piece = |tensor: &Self| tensor.offset()..tensor.offset() + tensor.count();
        let (own, other) = (piece(self), piece(other));
        own.start.max(other.start) < own.end.min(other.end)
    }

    /// Copies the elements out in row-major order, converted with the rules of a C cast.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let mut elements = storage::reserve(self.count())?;
        let walk = Walk::over(self.dims(), [&self.layout]);
        by_dtype!(self.dtype(), S => storage::read_one(&self.storage, |own: &[S]| {
            walk.each(|[at]| elements.push(crate::element::cast(own[at])));
        }));
        Ok(elements)
    }

    /// Copies the elements out as bytes, in native byte order and row-major order.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = storage::reserve(self.count() * self.dtype().bytes())?;
        match self.dtype() {
            DType::Bool => bytes.extend(self.to_bools()?.into_iter().map(u8::from)),
            DType::I32 => bytes.extend(self.to_vec()?.into_iter().flat_map(i32::to_ne_bytes)),
            DType::I64 => bytes.extend(self.to_vec()?.into_iter().flat_map(i64::to_ne_bytes)),
            DType::BF16 => {
                bytes.extend(self.to_vec()?.into_iter().flat_map(half::bf16::to_ne_bytes));
            }
            DType::F32 => bytes.extend(self.to_vec()?.into_iter().flat_map(f32::to_ne_bytes)),
            DType::F64 => bytes.extend(self.to_vec()?.into_iter().flat_map(f64::to_ne_bytes)),
        }
        Ok(bytes)
    }

    /// Copies the elements out as booleans, in row-major order.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to_bools(&self) -> Result<Vec<bool>> {
        let mut elements = storage::reserve(self.count())?;
        elements.extend(self.to_vec::<Logical>()?.into_iter().map(Logical::is_true));
        Ok(elements)
    }

    /// Copies the elements out as floats, in row-major order.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        self.to_vec()
    }

    /// Copies the elements out as numbers of their own kind, in row-major order.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to_scalars(&self) -> Result<Vec<Scalar>> {
        let mut elements = storage::reserve(self.count())?;
        let walk = Walk::over(self.dims(), [&self.layout]);
        by_dtype!(self.dtype(), S => storage::read_one(&self.storage, |own: &[S]| {
            walk.each(|[at]| elements.push(own[at].to_scalar()));
        }));
        Ok(elements)
    }

    /// Creates a tensor from the elements that a kernel produced.
    #[inline]
    pub(crate) fn from_elements<T: Element>(elements: Vec<T>, layout: Layout) -> Self {
        debug_assert_eq!(layout.end(), Some(elements.len()), "{layout:?}");
        Self {
            storage: Storage::new(elements),
            layout,
            meta: OnceLock::new(),
            role: Role::Owner,
        }
    }

    /// Creates a zero-dimensional tensor.
    pub(crate) fn from_scalar(value: Scalar) -> Self {
        let layout = Layout::contiguous(crate::shape::Dims::new())
            .expect("a shape without dimensions has one element");
        by_dtype!(value.dtype(), T => Self::from_elements(vec![T::from_scalar(value)], layout))
    }

    /// Creates a tensor of zeros.
    pub(crate) fn blank(layout: Layout, dtype: DType) -> Result<Self> {
        let count = storage_bytes(layout.end(), layout.dims(), dtype)? / dtype.bytes();
        by_dtype!(dtype, T => Ok(Self::from_elements(storage::zeroed::<T>(count)?, layout)))
    }

    /// Returns the same elements under another layout.
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
            meta: OnceLock::new(),
            role: self.role.of_view(),
        })
    }

    /// Turns a view into the owner of its storage; nobody else may hold the tensor that it is a
    /// view of.
    pub(crate) fn into_owner(self) -> Self {
        Self {
            role: Role::Owner,
            ..self
        }
    }

    /// Replaces the layout with one that covers only the first elements of the storage, possibly
    /// none.
    pub(crate) fn shrunk(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Returns another handle to the same elements, unknown to autograd.
    pub(crate) fn untracked(&self) -> Self {
        Self {
            storage: Arc::clone(&self.storage),
            layout: self.layout.clone(),
            meta: OnceLock::new(),
            role: self.role,
        }
    }

    /// Returns a view of all elements, unknown to autograd.
    pub(crate) fn alias(&self) -> Self {
        Self {
            role: self.role.of_view(),
            ..self.untracked()
        }
    }

    #[inline]
    pub(crate) fn meta(&self) -> Option<&Arc<Meta>> {
        self.meta.get()
    }

    pub(crate) fn meta_or_new(&self) -> Arc<Meta> {
        Arc::clone(self.meta.get_or_init(Meta::untracked))
    }

    /// Sets the autograd metadata of a tensor that has none.
    pub(crate) fn set_meta(&self, meta: Arc<Meta>) {
        // The slot can be taken only if the program shares a tensor with another thread before it
        // is complete.
        drop(self.meta.set(meta));
    }

    /// Increments the version.
    pub(crate) fn bump_version(&self) {
        if self.role != Role::Silent {
            self.storage.bump_version();
        }
    }

    /// Returns whether no other tensor shares the storage.
    pub(crate) fn is_alone(&self) -> bool {
        self.handles() == 1
    }

    /// Returns whether both tensors have the same storage and layout.
    pub(crate) fn shows_the_same_as(&self, other: &Self) -> bool {
        self.shares_storage(other)
            && self.offset() == other.offset()
            && self.dims() == other.dims()
            && self.strides() == other.strides()
    }

    /// Returns how many tensors share the storage, including this one.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.storage)
    }

    #[inline]
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    #[inline]
    pub(crate) fn weight(&self) -> Weight {
        if self.rank() == 0 {
            Weight::ZeroDim
        } else {
            Weight::Dimensioned
        }
    }
}

fn decode<T, const N: usize>(bytes: &[u8], count: usize, read: fn([u8; N]) -> T) -> Vec<T> {
    let (words, _) = bytes.as_chunks::<N>();
    words.iter().take(count).map(|&word| read(word)).collect()
}

impl Role {
    fn of_view(self) -> Self {
        match self {
            Self::Owner | Self::View => Self::View,
            Self::Silent => Self::Silent,
        }
    }
}
