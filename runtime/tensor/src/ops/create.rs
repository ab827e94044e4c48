//! Operators that create tensors from sizes and values.

use crate::autograd::Below;
use crate::dispatch::{Absent, Device, Site, open, returns};
use crate::error::reject;
use crate::kernels;
use crate::layout::Layout;
use crate::shape::{Dims, Strides, checked_sizes, signed, storage_bytes};
use crate::storage::reserve;
use crate::{DType, Element, Error, Result, Scalar, Tensor};

static DETACH: Site = Site::operator("aten::detach_");
static DETACH_NODE: Site = Site::operator("detach_");
static EMPTY: Site = Site::operator("aten::empty");
static EMPTY_LIKE: Site = Site::operator("aten::empty_like");
static EMPTY_STRIDED: Site = Site::operator("aten::empty_strided");
static FULL: Site = Site::operator("aten::full");
static LIFT_FRESH: Site = Site::operator("aten::lift_fresh");
static NEW_EMPTY: Site = Site::operator("aten::new_empty");
static NEW_EMPTY_STRIDED: Site = Site::operator("aten::new_empty_strided");
static NEW_ZEROS: Site = Site::operator("aten::new_zeros");
static ONES: Site = Site::operator("aten::ones");
static TO: Site = Site::operator("aten::to");
static ZEROS: Site = Site::operator("aten::zeros");

static ARANGE: Site = Site::operator("aten::arange");
static FULL_LIKE: Site = Site::operator("aten::full_like");
static ONES_LIKE: Site = Site::operator("aten::ones_like");
static RESIZE: Site = Site::operator("aten::resize_");
static ZEROS_LIKE: Site = Site::operator("aten::zeros_like");

/// Torch's number for the strided layout.
const STRIDED: i64 = 0;

impl Tensor {
    /// Creates a tensor of ones.
    ///
    /// # Errors
    /// Returns an error if a size is negative or memory cannot be allocated.
    pub fn ones(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&ONES, (sizes, dtype, Absent, Device, false));
        let _below = Below::enter();
        let actual = dtype.unwrap_or(DType::DEFAULT);
        let tensor = empty(sizes, actual, &Options::of(Some(actual)).pinned(false))?;
        tensor.fill_(Scalar::Float(1.0))?;
        Ok(tensor)
    }

    /// Creates a tensor of this tensor's dtype with the given strides.
    pub(crate) fn new_empty_strided(&self, dims: &[usize], strides: &[isize]) -> Result<Self> {
        let dtype = self.dtype();
        let _scope = open(
            &NEW_EMPTY_STRIDED,
            (self, dims, strides, dtype, STRIDED, Absent, Absent),
        );
        empty_strided(dims, strides, dtype, None)
    }

    /// Creates a tensor of zeros, with this tensor's dtype unless another is given.
    ///
    /// # Errors
    /// Returns an error if a size is negative or memory cannot be allocated.
    pub fn new_zeros(&self, sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let arguments = (self, sizes, dtype, Absent, Absent, Absent);
        let _scope = open(&NEW_ZEROS, arguments);
        let zeros = {
            let arguments = (self, sizes, dtype, Absent, Absent, Absent);
            let _scope = open(&NEW_EMPTY, arguments);
            let dtype = dtype.unwrap_or(self.dtype());
            empty(sizes, dtype, &Options::strided(dtype))?
        };
        zeros.zero_()?;
        Ok(zeros)
    }

    /// Creates a tensor of zeros.
    ///
    /// # Errors
    /// Returns an error if a size is negative or memory cannot be allocated.
    pub fn zeros(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&ZEROS, (sizes, dtype, Absent, Device, false));
        let _below = Below::enter();
        if sizes.iter().any(|&size| size < 0) {
            return Err(Error::NegativeZeros);
        }
        let actual = dtype.unwrap_or(DType::DEFAULT);
        let tensor = empty(sizes, actual, &Options::of(dtype).pinned(false))?;
        tensor.zero_()?;
        Ok(tensor)
    }

    /// Creates a tensor filled with a value, whose dtype it has unless another is given.
    ///
    /// # Errors
    /// Returns an error if a size is negative, the dtype cannot hold the value, or memory cannot be
    /// allocated.
    pub fn full(sizes: &[i64], value: Scalar, dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&FULL, (sizes, value, dtype, Absent, Device, false));
        let _below = Below::enter();
        let actual = dtype.unwrap_or(match value {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::DEFAULT,
        });
        let tensor = empty(sizes, actual, &Options::of(Some(actual)).pinned(false))?;
        tensor.fill_(value)?;
        Ok(tensor)
    }

    /// Creates a tensor of zeros with the sizes and the dtype of this one.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn zeros_like(&self) -> Result<Self> {
        let _scope = open(&ZEROS_LIKE, (self, Absent, Absent, Absent, Absent, Absent));
        let zeros = empty_like(self)?;
        zeros.zero_()?;
        Ok(zeros)
    }

    /// Creates a contiguous tensor of zeros with the sizes and the dtype of this one.
    pub(in crate::ops) fn zeros_like_contiguous(&self) -> Result<Self> {
        let _scope = open(&ZEROS_LIKE, (self, Absent, Absent, Absent, Absent, 0_i64));
        let zeros = empty_like_contiguous(self)?;
        zeros.zero_()?;
        Ok(zeros)
    }

    /// Creates a tensor of ones with the sizes and the dtype of this one.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn ones_like(&self) -> Result<Self> {
        let _scope = open(&ONES_LIKE, (self, Absent, Absent, Absent, Absent, Absent));
        let ones = empty_like(self)?;
        ones.fill_(Scalar::Float(1.0))?;
        Ok(ones)
    }

    /// Creates a tensor filled with `value`, with the sizes and the dtype of this one.
    ///
    /// # Errors
    /// Returns an error if the dtype cannot hold the value, or memory cannot be allocated.
    pub fn full_like(&self, value: Scalar) -> Result<Self> {
        let _scope = open(
            &FULL_LIKE,
            (self, value, Absent, Absent, Absent, Absent, Absent),
        );
        let full = empty_like(self)?;
        full.fill_(value)?;
        Ok(full)
    }

    /// Creates the initial gradient of a backward pass: ones in the layout of the result.
    pub(crate) fn ones_like_for_gradient(&self) -> Result<Self> {
        const PRESERVE: i64 = 1;
        let arguments = (self, Absent, Absent, Absent, false, PRESERVE);
        let _scope = open(&ONES_LIKE, arguments);
        let ones = {
            let arguments = (self, Absent, Absent, Absent, false, PRESERVE);
            let _scope = open(&EMPTY_LIKE, arguments);
            let (layout, _) = kernels::result_layout(self.dims(), [self.layout()])?;
            empty_strided(layout.dims(), layout.strides(), self.dtype(), Some(false))?
        };
        ones.fill_(Scalar::Float(1.0))?;
        Ok(ones)
    }

    /// Creates a tensor like this one without initializing it; its elements are zero.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn empty_like(&self) -> Result<Self> {
        empty_like(self)
    }

    /// Creates a vector of numbers from `start` up to but excluding `end`, `step` apart.
    ///
    /// # Errors
    /// Returns an error if the step is zero or points away from `end`, or memory cannot be
    /// allocated.
    pub fn arange(start: Scalar, end: Scalar, step: Scalar, dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&ARANGE, (start, end, step, dtype, Absent, Device, false));
        let _below = Below::enter();
        let integers = [start, end, step]
            .iter()
            .all(|number| matches!(number, Scalar::Int(_) | Scalar::Bool(_)));
        let actual = dtype.unwrap_or(if integers { DType::I64 } else { DType::DEFAULT });
        let (from, to, by) = (start.to_f64(), end.to_f64(), step.to_f64());
        if by == 0.0 || by.is_nan() {
            return reject!(Runtime, "step must be nonzero");
        }
        if !from.is_finite() || !to.is_finite() {
            return reject!(Runtime, "unsupported range: {from} -> {to}");
        }
        if (by > 0.0 && to < from) || (by < 0.0 && to > from) {
            return reject!(
                Runtime,
                "upper bound and lower bound inconsistent with step sign"
            );
        }
        let count = ((to - from) / by).ceil();
        if count > 1e15 {
            return Err(Error::StorageOverflow {
                sizes: vec![i64::MAX],
            });
        }
        let options = Options::of(Some(actual)).pinned(false);
        let tensor = empty(&[0], actual, &options)?;
        let _scope = open(&ARANGE, (start, end, step, &tensor));
        drop(open(&RESIZE, (&tensor, [count as i64].as_slice(), Absent)));
        let layout = Layout::contiguous(checked_sizes(&[count as i64])?)?;
        let result = Self::blank(layout, actual)?;
        kernels::fill_range(&result, start, step);
        Ok(result)
    }

    /// Creates a vector of `steps` evenly spaced numbers from `start` to `end`.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn linspace(start: f64, end: f64, steps: usize, dtype: DType) -> Result<Self> {
        storage_bytes(Some(steps), &[steps], dtype)?;
        let gap = (end - start) / steps.saturating_sub(1).max(1) as f64;
        let mut values = reserve(steps)?;
        // Counted from the nearer end, so that both ends are exact.
        values.extend((0..steps).map(|index| {
            if index < steps.div_ceil(2) {
                start + gap * index as f64
            } else {
                end - gap * (steps - 1 - index) as f64
            }
        }));
        Self::from_values::<f64>(&values, &[steps as i64], dtype)
    }

    /// Creates a tensor without initializing it; its elements are zero.
    ///
    /// # Errors
    /// Returns an error if a size is negative or memory cannot be allocated.
    pub fn empty(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let actual = dtype.unwrap_or(DType::DEFAULT);
        empty(sizes, actual, &Options::of(dtype).pinned(false))
    }

    /// Copies elements in row-major order into a new tensor of the given dtype.
    ///
    /// # Errors
    /// Returns an error if the sizes require a different number of elements, an element does not
    /// fit the dtype, or memory cannot be allocated.
    pub fn from_values<T: Element>(elements: &[T], sizes: &[i64], dtype: DType) -> Result<Self> {
        let tensor = Self::lifted(elements, sizes, dtype)?;
        let _scope = open(&DETACH, (&tensor,));
        let _below = Below::enter();
        drop(open(&DETACH_NODE, (&tensor,)));
        Ok(tensor)
    }

    /// Copies elements as `from_values` does, with the operators that torch records for
    /// `as_tensor`.
    ///
    /// # Errors
    /// Fails in the same cases as `from_values`.
    pub fn lifted<T: Element>(elements: &[T], sizes: &[i64], dtype: DType) -> Result<Self> {
        let _below = Below::enter();
        let source = Self::from_slice(elements, sizes)?;
        if !dtype.is_float() {
            let name = if dtype == DType::I32 {
                "int32"
            } else {
                "int64"
            };
            for &element in elements {
                super::copy::check_range(element.to_scalar(), dtype, name)?;
            }
        }
        let tensor = empty(sizes, dtype, &Options::strided(dtype).pinned(false))?;
        kernels::copy_into(&tensor, &source);
        drop(open(&TO, (&tensor, Device, dtype, false, false, Absent)));
        drop(open(&LIFT_FRESH, (&tensor,)));
        Ok(tensor)
    }
}

/// The arguments of `empty` after the sizes, as traces record them.
#[derive(Debug, Default)]
pub(in crate::ops) struct Options {
    dtype: Option<DType>,
    layout: Option<i64>,
    pinned: Option<bool>,
    format: Option<i64>,
}

impl Options {
    pub(in crate::ops) fn strided(dtype: DType) -> Self {
        Self {
            layout: Some(STRIDED),
            ..Self::of(Some(dtype))
        }
    }

    pub(in crate::ops) fn of(dtype: Option<DType>) -> Self {
        Self {
            dtype,
            ..Self::default()
        }
    }

    /// Returns the options of a tensor that is created like another one.
    pub(in crate::ops) fn like(tensor: &Tensor) -> Self {
        Self::strided(tensor.dtype())
    }

    pub(in crate::ops) fn with_format(self, format: i64) -> Self {
        Self {
            format: Some(format),
            ..self
        }
    }

    pub(in crate::ops) fn pinned(self, pinned: bool) -> Self {
        Self {
            pinned: Some(pinned),
            ..self
        }
    }
}

pub(in crate::ops) fn empty(sizes: &[i64], dtype: DType, options: &Options) -> Result<Tensor> {
    let _scope = open(
        &EMPTY,
        (
            sizes,
            options.dtype,
            options.layout,
            Device,
            options.pinned,
            options.format,
        ),
    );
    let layout = match Layout::contiguous(checked_sizes(sizes)?) {
        Err(Error::CountOverflow) => Err(Error::StorageOverflow {
            sizes: sizes.to_vec(),
        }),
        other => other,
    }?;
    let tensor = Tensor::blank(layout, dtype)?;
    returns(&tensor);
    Ok(tensor)
}

/// Creates a tensor with the sizes, the dtype and the memory order of another one.
pub(in crate::ops) fn empty_like(tensor: &Tensor) -> Result<Tensor> {
    let _scope = open(
        &EMPTY_LIKE,
        (tensor, Absent, Absent, Absent, Absent, Absent),
    );
    let (layout, _) = kernels::result_layout(tensor.dims(), [tensor.layout()])?;
    empty_strided(layout.dims(), layout.strides(), tensor.dtype(), None)
}

/// Creates a contiguous tensor with the sizes and the dtype of another one.
pub(in crate::ops) fn empty_like_contiguous(tensor: &Tensor) -> Result<Tensor> {
    /// Torch's number for the contiguous memory format.
    const CONTIGUOUS: i64 = 0;
    let dtype = tensor.dtype();
    let _scope = open(
        &EMPTY_LIKE,
        (tensor, dtype, STRIDED, Device, Absent, CONTIGUOUS),
    );
    let options = Options {
        format: Some(CONTIGUOUS),
        ..Options::like(tensor)
    };
    empty(&signed(tensor.dims()), dtype, &options)
}

pub(in crate::ops) fn empty_strided(
    dims: &[usize],
    strides: &[isize],
    dtype: DType,
    pinned: Option<bool>,
) -> Result<Tensor> {
    let _scope = open(
        &EMPTY_STRIDED,
        (dims, strides, dtype, STRIDED, Device, pinned),
    );
    let layout = Layout::strided(Dims::from_slice(dims), Strides::from_slice(strides), 0)?;
    let tensor = Tensor::blank(layout, dtype)?;
    returns(&tensor);
    Ok(tensor)
}

/// Creates a tensor of zeros for an operator's result, without opening a scope.
pub(in crate::ops) fn result_space(dims: &[usize], dtype: DType) -> Result<Tensor> {
    let layout = Layout::contiguous(Dims::from_slice(dims))?;
    Tensor::blank(layout, dtype)
}
