//! The tensor: a layout over a shared storage, and access to its elements.
//!
//! Operators are methods added in `ops`. What is here records nothing: it is for bindings, which
//! copy values in and out, and for operators, which build their results with it.

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

/// An array of numbers. Cloning is cheap and gives another handle to the same elements.
#[derive(Clone, Debug)]
pub struct Tensor {
    storage: Arc<Storage>,
    layout: Layout,
    /// What autograd knows of it; most tensors never need any.
    meta: OnceLock<Arc<Meta>>,
    role: Role,
}

/// How a tensor stands to its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The operator that made it made the storage.
    Owner,
    /// It shows elements of another tensor.
    View,
    /// As a view, but what is written through it does not count as a new version.
    Silent,
}

impl Tensor {
    /// Copies elements, given with the last dimension innermost, into a new tensor.
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

    /// Copies elements from bytes in the machine's order, the last dimension innermost, into a new
    /// tensor.
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

    /// Shows memory of another owner, which lives as long as a tensor over it does.
    ///
    /// Strides are in elements.
    ///
    /// # Errors
    /// Returns an error if a size or a stride is negative, or together they reach beyond what can
    /// be addressed.
    ///
    /// # Panics
    /// When the address is not aligned for the type.
    ///
    /// # Safety
    /// From `address` on lie elements of `dtype`, as many as sizes and strides reach, while `owner` is not dropped; and nobody writes to them while an
    /// operator works on them.
    #[expect(
        unsafe_code,
        reason = "the promise is passed on to where the memory is reached"
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
            assert!(first.is_aligned(), "the address is aligned for the type");
            // SAFETY: the caller promises just this.
            let foreign = unsafe { Foreign::new(first, count, owner) };
            Ok(Self {
                storage: Storage::of_foreign(foreign),
                layout,
                meta: OnceLock::new(),
                role: Role::Owner,
            })
        })
    }

    /// Returns the type of the elements.
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

    /// Returns the place of the first element in the storage, in elements.
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

    /// Returns whether the elements lie one after the other, the last dimension innermost.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Returns how often the elements were written to, by any view.
    pub fn version(&self) -> u32 {
        self.storage.version()
    }

    /// Returns whether this tensor was made to show elements of another one.
    pub fn is_view(&self) -> bool {
        self.role != Role::Owner
    }

    /// Returns the address of the first element, by which storages can be told apart.
    #[inline]
    pub fn address(&self) -> usize {
        self.storage.address() + self.offset() * self.dtype().bytes()
    }

    /// Returns where the storage lies, by which the recorder knows it.
    pub fn storage_address(&self) -> usize {
        self.storage.address()
    }

    /// Returns the bytes of the storage.
    pub fn storage_bytes(&self) -> usize {
        self.storage.bytes()
    }

    /// Returns the same elements, cut from the graph; writing to them does not count as a new
    /// version.
    #[must_use]
    pub fn data(&self) -> Self {
        Self {
            role: Role::Silent,
            ..self.untracked()
        }
    }

    /// Returns another handle to the elements that autograd knows nothing of.
    #[must_use]
    pub fn detached(&self) -> Self {
        self.untracked()
    }

    /// Tells a fresh view of an untracked tensor whose elements it shows, because tracked ones are
    /// about to be written through it.
    pub fn link_to(&self, base: &Self) {
        if self.meta().is_none() && is_tracking() && self.is_view() {
            link_view(self, base);
        }
    }

    /// Returns whether two tensors are views of one storage.
    pub fn shares_storage(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Returns whether two tensors are known to have elements in one place: those of both lie
    /// densely, in pieces that overlap.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        if !self.shares_storage(other) || !self.layout.is_dense() || !other.layout.is_dense() {
            return false;
        }
        let piece = |tensor: &Self| tensor.offset()..tensor.offset() + tensor.count();
        let (own, other) = (piece(self), piece(other));
        own.start.max(other.start) < own.end.min(other.end)
    }

    /// Copies the elements out, the last dimension innermost, converting them as C does.
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

    /// Copies the elements out as bytes in the machine's order, the last dimension innermost.
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

    /// Copies the elements out as truths, the last dimension innermost.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to_bools(&self) -> Result<Vec<bool>> {
        let mut elements = storage::reserve(self.count())?;
        elements.extend(self.to_vec::<Logical>()?.into_iter().map(Logical::is_true));
        Ok(elements)
    }

    /// Copies the elements out as floats, the last dimension innermost.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        self.to_vec()
    }

    /// Copies the elements out as numbers of their own kind, the last dimension innermost.
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

    /// Makes a tensor of what a kernel produced.
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

    /// Makes a tensor without dimensions.
    pub(crate) fn from_scalar(value: Scalar) -> Self {
        let layout = Layout::contiguous(crate::shape::Dims::new())
            .expect("a shape without dimensions has one element");
        by_dtype!(value.dtype(), T => Self::from_elements(vec![T::from_scalar(value)], layout))
    }

    /// Makes a tensor of zeros.
    pub(crate) fn blank(layout: Layout, dtype: DType) -> Result<Self> {
        let count = storage_bytes(layout.end(), layout.dims(), dtype)? / dtype.bytes();
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
            meta: OnceLock::new(),
            role: self.role.of_view(),
        })
    }

    /// Takes the place of the tensor that it is a view of, which nobody else holds.
    pub(crate) fn into_owner(self) -> Self {
        Self {
            role: Role::Owner,
            ..self
        }
    }

    /// Uses only the first elements of its storage from here on, or of an empty one none.
    pub(crate) fn shrunk(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Returns another handle to the elements that autograd knows nothing of.
    pub(crate) fn untracked(&self) -> Self {
        Self {
            storage: Arc::clone(&self.storage),
            layout: self.layout.clone(),
            meta: OnceLock::new(),
            role: self.role,
        }
    }

    /// Returns a view of all elements that autograd knows nothing of.
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

    /// Sets what autograd knows of a tensor that it knew nothing of.
    pub(crate) fn set_meta(&self, meta: Arc<Meta>) {
        // Another handle of the program may have been first only if the program shares the tensor
        // before it has it.
        drop(self.meta.set(meta));
    }

    /// Counts a write.
    pub(crate) fn bump_version(&self) {
        if self.role != Role::Silent {
            self.storage.bump_version();
        }
    }

    /// Returns whether no other tensor shares the storage.
    pub(crate) fn is_alone(&self) -> bool {
        self.handles() == 1
    }

    /// Returns whether both show the same elements in the same layout.
    pub(crate) fn shows_the_same_as(&self, other: &Self) -> bool {
        self.shares_storage(other)
            && self.offset() == other.offset()
            && self.dims() == other.dims()
            && self.strides() == other.strides()
    }

    /// Returns how many tensors share the storage, this one included.
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
