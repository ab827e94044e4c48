//! Operators that write to a tensor or copy one: `fill_`, `copy_`, `to`, `clone`, `contiguous`.

use std::borrow::Cow;

use smallvec::smallvec;

use super::create::{empty_like, empty_like_contiguous, empty_strided};
use crate::autograd::{Below, Formula, differentiable, in_place, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::kernels::{self, result_layout};
use crate::shape::broadcast;
use crate::{DType, Error, Result, Scalar, Tensor};

static CLONE: Site = Site::operator("aten::clone");
static CONTIGUOUS: Site = Site::operator("aten::contiguous");
static COPY: Site = Site::operator("aten::copy_");
static FILL: Site = Site::operator("aten::fill_");
static IS_NONZERO: Site = Site::operator("aten::is_nonzero");
static ITEM: Site = Site::operator("aten::item");
static LOCAL_SCALAR_DENSE: Site = Site::operator("aten::_local_scalar_dense");
static TO: Site = Site::operator("aten::to");
static TO_COPY: Site = Site::operator("aten::_to_copy");
static ZERO: Site = Site::operator("aten::zero_");

node_site! {
    CLONE_NODE = "CloneBackward0";
    COPY_NODE = "torch::autograd::CopyBackwards";
    FILL_NODE = "FillBackward2";
    TO_COPY_NODE = "ToCopyBackward0";
    ZERO_NODE = "ZeroBackward0";
}

/// The number of elements from which `zero_` calls `fill_`, which can use several threads.
const ZERO_BY_FILL: usize = 32_768;

/// Torch's number for the contiguous memory format.
const CONTIGUOUS_FORMAT: i64 = 0;

impl Tensor {
    /// Sets every element to a number.
    ///
    /// # Errors
    /// Returns an error if the dtype cannot hold the number.
    pub fn fill_(&self, value: Scalar) -> Result<()> {
        let _scope = open(&FILL, (self, value));
        let name = if self.dtype() == DType::I64 {
            "int64_t"
        } else {
            self.dtype().native_name()
        };
        check_range(value, self.dtype(), name)?;
        in_place(
            &FILL_NODE,
            self,
            [],
            || {
                kernels::fill(self, value);
                Ok(())
            },
            || Formula::unary(Tensor::zeros_like),
        )
    }

    /// Sets every element to zero.
    ///
    /// # Errors
    /// Returns an error if the tensor is a tracked leaf.
    pub fn zero_(&self) -> Result<()> {
        let _scope = open(&ZERO, (self,));
        in_place(
            &ZERO_NODE,
            self,
            [],
            || {
                let count = self.count();
                if count == 0 || count >= ZERO_BY_FILL || !self.layout().is_dense() {
                    return self.fill_(Scalar::Int(0));
                }
                kernels::fill(self, Scalar::Int(0));
                Ok(())
            },
            || Formula::unary(Tensor::zeros_like),
        )
    }

    /// Copies the elements of another tensor, broadcast and converted, into this one.
    ///
    /// # Errors
    /// Returns an error if the shapes do not match.
    pub fn copy_(&self, source: &Self) -> Result<()> {
        let _scope = open(&COPY, (self, source, false));
        in_place(
            &COPY_NODE,
            self,
            [source],
            || self.write_elements(source),
            || {
                let dtype = source.dtype();
                Formula::plain(move |gradients| {
                    let gradient = gradients.only();
                    Ok(smallvec![
                        gradients.when(0, || gradient.zeros_like_contiguous())?,
                        gradients.when(1, || gradient.to_like(dtype))?
                    ])
                })
            },
        )
    }

    fn write_elements(&self, source: &Self) -> Result<()> {
        let dims = broadcast(self.dims(), source.dims())?;
        if dims.as_slice() != self.dims() {
            return Err(Error::OutputShape {
                shape: self.dims().to_vec(),
                broadcast: dims.to_vec(),
            });
        }
        if self.layout().repeats() {
            return Err(Error::OverlappingWrite);
        }
        if self.shares_storage(source) {
            let apart = kernels::duplicate(source)?;
            kernels::copy_into(self, &apart);
        } else {
            kernels::copy_into(self, source);
        }
        Ok(())
    }

    /// Converts to a dtype. A tensor that already has it is returned as it is.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn to(&self, dtype: DType) -> Result<Self> {
        let _scope = open(&TO, (self, dtype, false, false, Absent));
        self.converted(dtype)
    }

    /// Converts to a dtype and a device at once, the form in which torch records the conversion of
    /// gradients.
    pub(in crate::ops) fn to_like(&self, dtype: DType) -> Result<Self> {
        let (device, no) = (0_i64, false);
        let _scope = open(&TO, (self, dtype, device, Absent, Absent, no, no, Absent));
        self.converted(dtype)
    }

    fn converted(&self, dtype: DType) -> Result<Self> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        let _scope = open(
            &TO_COPY,
            (self, dtype, Absent, Absent, Absent, false, Absent),
        );
        let own = self.dtype();
        differentiable(
            &TO_COPY_NODE,
            [self],
            || {
                let (layout, _) = result_layout(self.dims(), [self.layout()])?;
                let copy = empty_strided(layout.dims(), layout.strides(), dtype, Some(false))?;
                copy.copy_(self)?;
                Ok(copy)
            },
            |_| Formula::unary(move |gradient| gradient.to_like(own)),
        )
    }

    /// Records a conversion to the dtype that the tensor already has.
    pub(in crate::ops) fn tell_to(&self, dtype: DType) {
        drop(open(&TO, (self, dtype, false, false, Absent)));
    }

    /// Converts to a dtype without recording an operator.
    pub(in crate::ops) fn quietly_as(&self, dtype: DType) -> Result<Self> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        let converted = Self::blank(self.layout().at_start(), dtype)?;
        kernels::copy_into(&converted, self);
        Ok(converted)
    }

    /// Records a conversion to the CPU, which does nothing because the tensor is there already.
    pub fn to_device(&self) {
        let (device, no) = (0_i64, false);
        drop(open(
            &TO,
            (self, self.dtype(), device, Absent, Absent, no, no, Absent),
        ));
    }

    /// Converts to a dtype; records nothing if the tensor already has it.
    pub(in crate::ops) fn as_type(&self, dtype: DType) -> Result<Cow<'_, Self>> {
        if self.dtype() == dtype {
            return Ok(Cow::Borrowed(self));
        }
        Ok(Cow::Owned(self.to(dtype)?))
    }

    /// Converts the second operand of an operator.
    ///
    /// A single number next to a narrower tensor is used unconverted, to keep its precision. As in
    /// torch, the conversion is recorded nevertheless.
    pub(in crate::ops) fn as_second(&self, dtype: DType) -> Result<Cow<'_, Self>> {
        let converted = self.as_type(dtype)?;
        let wide = dtype.computed();
        if wide == dtype || self.dtype() == dtype || self.rank() > 0 {
            return Ok(converted);
        }
        let number = Self::blank(self.layout().at_start(), wide)?;
        kernels::copy_into(&number, self);
        Ok(Cow::Owned(number))
    }

    /// Copies into a new storage with the same memory layout.
    ///
    /// This is torch's `clone`; in Rust, `clone` creates another handle to the same elements.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn duplicate(&self) -> Result<Self> {
        let _scope = open(&CLONE, (self, Absent));
        differentiable(
            &CLONE_NODE,
            [self],
            || {
                let copy = if self.layout().is_dense() {
                    empty_strided(self.dims(), self.strides(), self.dtype(), None)?
                } else {
                    empty_like(self)?
                };
                copy.copy_(self)?;
                Ok(copy)
            },
            |_| Formula::unary(|gradient| Ok(gradient.clone())),
        )
    }

    /// Duplicates a tensor that an operator is about to modify; the copy is untracked.
    pub(in crate::ops) fn duplicate_below(&self) -> Result<Self> {
        let _below = Below::enter();
        self.duplicate()
    }

    /// Returns the elements in contiguous row-major order, copying only if necessary.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn contiguous(&self) -> Result<Self> {
        if self.is_contiguous() {
            return Ok(self.clone());
        }
        let _scope = open(&CONTIGUOUS, (self, CONTIGUOUS_FORMAT));
        self.duplicate_contiguous()
    }

    /// Returns the only element of the tensor.
    ///
    /// # Errors
    /// Returns an error if the tensor does not have exactly one element.
    pub fn item(&self) -> Result<Scalar> {
        let _scope = open(&ITEM, (self,));
        let _scope = open(&LOCAL_SCALAR_DENSE, (self,));
        if self.count() != 1 {
            return Err(Error::NotOneElement {
                count: self.count(),
            });
        }
        Ok(self.to_scalars()?[0])
    }

    /// Returns whether the only element is nonzero.
    ///
    /// # Errors
    /// Returns an error if the tensor does not have exactly one element.
    pub fn is_nonzero(&self) -> Result<bool> {
        let _scope = open(&IS_NONZERO, (self,));
        Ok(match self.item()? {
            Scalar::Bool(value) => value,
            Scalar::Int(value) => value != 0,
            Scalar::Float(value) => value != 0.0,
        })
    }

    /// Copies into a new contiguous storage.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn duplicate_contiguous(&self) -> Result<Self> {
        let _scope = open(&CLONE, (self, CONTIGUOUS_FORMAT));
        differentiable(
            &CLONE_NODE,
            [self],
            || {
                let copy = empty_like_contiguous(self)?;
                copy.copy_(self)?;
                Ok(copy)
            },
            |_| Formula::unary(|gradient| Ok(gradient.clone())),
        )
    }
}

/// Checks that an integer dtype can represent a number.
pub(in crate::ops) fn check_range(value: Scalar, dtype: DType, name: &'static str) -> Result<()> {
    let (lowest, highest) = match dtype {
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::I64 => (i64::MIN as f64, i64::MAX as f64),
        DType::Bool | DType::BF16 | DType::F32 | DType::F64 => return Ok(()),
    };
    let fits = match value {
        Scalar::Bool(_) => true,
        Scalar::Int(value) => dtype == DType::I64 || i32::try_from(value).is_ok(),
        Scalar::Float(value) => value >= lowest && value <= highest,
    };
    if fits {
        Ok(())
    } else {
        Err(Error::ScalarOverflow { name })
    }
}
