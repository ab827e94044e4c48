//! Operators that make tensors out of sizes and values.

use crate::dispatch::{Absent, Site, open};
use crate::kernels;
use crate::layout::Layout;
use crate::shape::{Dims, Strides, checked_sizes, signed};
use crate::{DType, Element, Error, Result, Scalar, Tensor};

static DETACH: Site = Site::operator("aten::detach_");
static DETACH_NODE: Site = Site::operator("detach_");
static EMPTY: Site = Site::operator("aten::empty");
static EMPTY_LIKE: Site = Site::operator("aten::empty_like");
static EMPTY_STRIDED: Site = Site::operator("aten::empty_strided");
static FULL: Site = Site::operator("aten::full");
static LIFT_FRESH: Site = Site::operator("aten::lift_fresh");
static NORMAL: Site = Site::operator("aten::normal_");
static ONES: Site = Site::operator("aten::ones");
static RANDN: Site = Site::operator("aten::randn");
static TO: Site = Site::operator("aten::to");
static ZEROS: Site = Site::operator("aten::zeros");

/// The number by which torch knows the strided layout.
const STRIDED: i64 = 0;

/// Restarts the generator that `randn` draws from.
pub fn manual_seed(seed: u64) {
    kernels::manual_seed(seed);
}

impl Tensor {
    /// Makes a tensor of ones.
    ///
    /// # Errors
    /// When a size is negative or there is no memory.
    pub fn ones(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&ONES, (sizes, dtype, Absent, Absent, false));
        let actual = dtype.unwrap_or(DType::DEFAULT);
        let tensor = empty(sizes, actual, &Options::of(Some(actual)).pinned(false))?;
        tensor.fill_(Scalar::Float(1.0))?;
        Ok(tensor)
    }

    /// Makes a tensor of zeros.
    ///
    /// # Errors
    /// When a size is negative or there is no memory.
    pub fn zeros(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&ZEROS, (sizes, dtype, Absent, Absent, false));
        if sizes.iter().any(|&size| size < 0) {
            return Err(Error::NegativeZeros);
        }
        let actual = dtype.unwrap_or(DType::DEFAULT);
        let tensor = empty(sizes, actual, &Options::of(dtype).pinned(false))?;
        tensor.zero_()?;
        Ok(tensor)
    }

    /// Makes a tensor whose elements are all the same; without a type it has the value's.
    ///
    /// # Errors
    /// When a size is negative, the type cannot hold the value, or there is no memory.
    pub fn full(sizes: &[i64], value: Scalar, dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&FULL, (sizes, value, dtype, Absent, Absent, false));
        let actual = dtype.unwrap_or(match value {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::DEFAULT,
        });
        let tensor = empty(sizes, actual, &Options::of(Some(actual)).pinned(false))?;
        tensor.fill_(value)?;
        Ok(tensor)
    }

    /// Makes a tensor whose elements nobody has set; they are zero.
    ///
    /// # Errors
    /// When a size is negative or there is no memory.
    pub fn empty(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let actual = dtype.unwrap_or(DType::DEFAULT);
        empty(sizes, actual, &Options::of(dtype).pinned(false))
    }

    /// Copies elements, given with the last dimension innermost, into a new tensor of another or the same type.
    ///
    /// # Errors
    /// When the sizes call for another number of elements, an element does not fit the type, or there is no memory.
    pub fn from_values<T: Element>(elements: &[T], sizes: &[i64], dtype: DType) -> Result<Self> {
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
        let options = Options {
            layout: Some(STRIDED),
            ..Options::of(Some(dtype)).pinned(false)
        };
        let tensor = empty(sizes, dtype, &options)?;
        kernels::copy_into(&tensor, &source);
        drop(open(&TO, (&tensor, Absent, dtype, false, false, Absent)));
        drop(open(&LIFT_FRESH, (&tensor,)));
        let _scope = open(&DETACH, (&tensor,));
        drop(open(&DETACH_NODE, (&tensor,)));
        Ok(tensor)
    }

    /// Makes a tensor of draws from the standard normal distribution.
    ///
    /// # Errors
    /// When a size is negative, the type is not floating-point, or there is no memory.
    pub fn randn(sizes: &[i64], dtype: Option<DType>) -> Result<Self> {
        let _scope = open(&RANDN, (sizes, dtype, Absent, Absent, false));
        let actual = dtype.unwrap_or(DType::DEFAULT);
        let tensor = empty(sizes, actual, &Options::of(dtype).pinned(false))?;
        tensor.normal_(0.0, 1.0)?;
        Ok(tensor)
    }

    /// Sets every element to a draw from a normal distribution.
    ///
    /// # Errors
    /// When the type is not floating-point.
    pub fn normal_(&self, mean: f64, deviation: f64) -> Result<()> {
        let _scope = open(&NORMAL, (self, mean, deviation, Absent));
        if !self.dtype().is_float() {
            return Err(Error::NotImplemented {
                kernel: "normal_kernel_cpu",
                dtype: self.dtype(),
            });
        }
        kernels::fill_normal(self, mean, deviation);
        Ok(())
    }
}

/// What a trace shows of the arguments of `empty` that follow the sizes.
#[derive(Debug, Default)]
pub(super) struct Options {
    dtype: Option<DType>,
    layout: Option<i64>,
    pinned: Option<bool>,
    format: Option<i64>,
}

impl Options {
    pub(super) fn of(dtype: Option<DType>) -> Self {
        Self {
            dtype,
            ..Self::default()
        }
    }

    /// The options of a tensor that is made to be like another one.
    pub(super) fn like(tensor: &Tensor) -> Self {
        Self {
            dtype: Some(tensor.dtype()),
            layout: Some(STRIDED),
            ..Self::default()
        }
    }

    fn pinned(self, pinned: bool) -> Self {
        Self {
            pinned: Some(pinned),
            ..self
        }
    }
}

pub(super) fn empty(sizes: &[i64], dtype: DType, options: &Options) -> Result<Tensor> {
    let _scope = open(
        &EMPTY,
        (
            sizes,
            options.dtype,
            options.layout,
            Absent,
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
    Tensor::blank(layout, dtype)
}

/// Makes a tensor of the sizes and the type of another one, its dimensions in the same order in memory.
pub(super) fn empty_like(tensor: &Tensor) -> Result<Tensor> {
    let _scope = open(
        &EMPTY_LIKE,
        (tensor, Absent, Absent, Absent, Absent, Absent),
    );
    let (layout, _) = kernels::result_layout(tensor.dims(), [tensor.layout()])?;
    empty_strided(layout.dims(), layout.strides(), tensor.dtype(), None)
}

/// Makes a contiguous tensor of the sizes and the type of another one.
pub(super) fn empty_like_contiguous(tensor: &Tensor) -> Result<Tensor> {
    /// The number by which torch knows the contiguous memory format.
    const CONTIGUOUS: i64 = 0;
    let dtype = tensor.dtype();
    let _scope = open(
        &EMPTY_LIKE,
        (tensor, dtype, STRIDED, Absent, Absent, CONTIGUOUS),
    );
    let options = Options {
        format: Some(CONTIGUOUS),
        ..Options::like(tensor)
    };
    empty(&signed(tensor.dims()), dtype, &options)
}

pub(super) fn empty_strided(
    dims: &[usize],
    strides: &[isize],
    dtype: DType,
    pinned: Option<bool>,
) -> Result<Tensor> {
    let _scope = open(
        &EMPTY_STRIDED,
        (dims, strides, dtype, STRIDED, Absent, pinned),
    );
    let layout = Layout::strided(Dims::from_slice(dims), Strides::from_slice(strides), 0)?;
    Tensor::blank(layout, dtype)
}

/// Makes a tensor of zeros without a scope of its own, as operators make room for their results.
pub(super) fn result_space(dims: &[usize], dtype: DType) -> Result<Tensor> {
    let layout = Layout::contiguous(Dims::from_slice(dims))?;
    Tensor::blank(layout, dtype)
}
