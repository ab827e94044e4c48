//! Comparing and choosing: `eq`, `lt`, `where`, `clamp` and logic on truth values.

use smallvec::smallvec;

use crate::autograd::{Formula, Saved, differentiable, in_place, node_site};
use crate::dispatch::{Site, open};
use crate::dtype::promote;
use crate::element::{Number, by_dtype, by_number};
use crate::error::reject;
use crate::kernels;
use crate::shape::broadcast;
use crate::{DType, Element, Logical, Operand, Result, Scalar, Tensor};

static BITWISE_NOT: Site = Site::operator("aten::bitwise_not");
static CLAMP: Site = Site::operator("aten::clamp");
static CLAMP_IN_PLACE: Site = Site::operator("aten::clamp_");
static MASKED_FILL: Site = Site::operator("aten::masked_fill");
static MASKED_FILL_IN_PLACE: Site = Site::operator("aten::masked_fill_");
static WHERE: Site = Site::operator("aten::where");

node_site! {
    CLAMP_NODE = "ClampBackward1";
    MASKED_FILL_NODE = "MaskedFillBackward0";
    WHERE_NODE = "WhereBackward0";
}

/// How two elements are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Comparison {
    fn site(self) -> &'static Site {
        static SITES: [Site; 6] = [
            Site::operator("aten::eq"),
            Site::operator("aten::ne"),
            Site::operator("aten::lt"),
            Site::operator("aten::le"),
            Site::operator("aten::gt"),
            Site::operator("aten::ge"),
        ];
        &SITES[self as usize]
    }

    pub(super) fn holds<T: Element>(self, x: T, y: T) -> bool {
        match self {
            Self::Eq => x == y,
            Self::Ne => x != y,
            Self::Lt => x < y,
            Self::Le => x <= y,
            Self::Gt => x > y,
            Self::Ge => x >= y,
        }
    }
}

/// How two truth values, or the bits of two integers, are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    /// Both.
    And,
    /// At least one.
    Or,
    /// Exactly one.
    Xor,
}

impl Logic {
    fn site(self) -> &'static Site {
        static SITES: [Site; 3] = [
            Site::operator("aten::bitwise_and"),
            Site::operator("aten::bitwise_or"),
            Site::operator("aten::bitwise_xor"),
        ];
        &SITES[self as usize]
    }
}

impl Tensor {
    /// Compares with a tensor or a number, element by element.
    ///
    /// # Errors
    /// When the shapes do not broadcast or there is no memory.
    pub fn compare<'a>(&self, how: Comparison, other: impl Into<Operand<'a>>) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        let _scope = open(how.site(), (self, &*other));
        let dtype = promote([(self.dtype(), self.weight()), (other.dtype(), weight)]);
        let dims = broadcast(self.dims(), other.dims())?;
        let (left, right) = (self.as_type(dtype)?, other.as_type(dtype)?);
        by_dtype!(dtype, T => {
            kernels::zip(&dims, [&left, &right], move |x: T, y: T| Logical::from(how.holds(x, y)))
        })
    }

    /// Combines truth values, or the bits of integers.
    ///
    /// # Errors
    /// When the shapes do not broadcast, or an operand is floating-point.
    pub fn logic<'a>(&self, how: Logic, other: impl Into<Operand<'a>>) -> Result<Self> {
        let (other, weight) = other.into().weigh();
        let _scope = open(how.site(), (self, &*other));
        let dtype = promote([(self.dtype(), self.weight()), (other.dtype(), weight)]);
        let dims = broadcast(self.dims(), other.dims())?;
        let (left, right) = (self.as_type(dtype)?, other.as_type(dtype)?);
        let pair: [&Self; 2] = [&left, &right];
        macro_rules! combine {
            ($type:ty) => {
                kernels::zip(&dims, pair, move |x: $type, y: $type| match how {
                    Logic::And => x & y,
                    Logic::Or => x | y,
                    Logic::Xor => x ^ y,
                })
            };
        }
        match dtype {
            DType::Bool => combine!(Logical),
            DType::I32 => combine!(i32),
            DType::I64 => combine!(i64),
            DType::BF16 | DType::F32 | DType::F64 => reject!(
                NotImplemented,
                "\"bitwise_and_cpu\" not implemented for '{}'",
                dtype.title()
            ),
        }
    }

    /// Turns truth values, or the bits of integers, into their opposites.
    ///
    /// # Errors
    /// When the elements are floating-point.
    pub fn bitwise_not(&self) -> Result<Self> {
        let _scope = open(&BITWISE_NOT, (self,));
        match self.dtype() {
            DType::Bool => kernels::map(self, |x: Logical| !x),
            DType::I32 => kernels::map(self, |x: i32| !x),
            DType::I64 => kernels::map(self, |x: i64| !x),
            dtype @ (DType::BF16 | DType::F32 | DType::F64) => reject!(
                NotImplemented,
                "\"bitwise_not_cpu\" not implemented for '{}'",
                dtype.title()
            ),
        }
    }

    /// Takes each element from the one operand or the other.
    ///
    /// # Errors
    /// When the condition is not of truth values, or the shapes do not broadcast.
    pub fn choose<'a, 'b>(
        condition: &Self,
        yes: impl Into<Operand<'a>>,
        no: impl Into<Operand<'b>>,
    ) -> Result<Self> {
        let ((yes, yes_weight), (no, no_weight)) = (yes.into().weigh(), no.into().weigh());
        let _scope = open(&WHERE, (condition, &*yes, &*no));
        if condition.dtype() != DType::Bool {
            return reject!(
                Runtime,
                "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
                condition.dtype().title()
            );
        }
        let dtype = promote([(yes.dtype(), yes_weight), (no.dtype(), no_weight)]);
        let dims = broadcast(condition.dims(), &broadcast(yes.dims(), no.dims())?)?;
        differentiable(
            &WHERE_NODE,
            [&yes, &no],
            || {
                let (yes, no) = (yes.as_type(dtype)?, no.as_type(dtype)?);
                by_dtype!(dtype, T => kernels::choose::<T>(&dims, condition, [&yes, &no]))
            },
            |_| {
                let kept = Saved::new(condition);
                Formula::saving(move |gradients| {
                    let (gradient, condition) = (gradients.only(), kept.get()?);
                    let zero = Scalar::Int(0);
                    Ok(smallvec![
                        gradients.when(0, || Self::choose(condition, gradient, zero))?,
                        gradients.when(1, || Self::choose(condition, zero, gradient))?
                    ])
                })
            },
        )
    }

    /// Sets elements to a number where a mask says so.
    ///
    /// # Errors
    /// When the mask is not of truth values or does not broadcast to this tensor.
    pub fn masked_fill(&self, mask: &Self, value: Scalar) -> Result<Self> {
        let _scope = open(&MASKED_FILL, (self, mask, value));
        let dims = broadcast(self.dims(), mask.dims())?;
        differentiable(
            &MASKED_FILL_NODE,
            [self],
            || {
                let copy = self.expand_to(&dims)?.duplicate()?;
                copy.masked_fill_(mask, value)?;
                Ok(copy)
            },
            |_| {
                let kept = Saved::new(mask);
                Formula::unary_saving(move |gradient| {
                    gradient.masked_fill(kept.get()?, Scalar::Int(0))
                })
            },
        )
    }

    /// Sets elements to a number where a mask says so, in place.
    ///
    /// # Errors
    /// When the mask is not of truth values or does not broadcast to this tensor.
    pub fn masked_fill_(&self, mask: &Self, value: Scalar) -> Result<()> {
        let _scope = open(&MASKED_FILL_IN_PLACE, (self, mask, value));
        if mask.dtype() != DType::Bool {
            return reject!(
                Runtime,
                "masked_fill_ only supports boolean masks, but got mask with dtype {}",
                mask.dtype().native_name()
            );
        }
        in_place(
            &MASKED_FILL_NODE,
            self,
            [],
            || {
                self.check_shape(mask)?;
                let number = Self::from_scalar(value).as_type(self.dtype())?.into_owned();
                let filled = by_dtype!(self.dtype(), T => {
                    kernels::choose::<T>(self.dims(), mask, [&number, self])
                })?;
                kernels::copy_into(self, &filled);
                Ok(())
            },
            || {
                let kept = Saved::new(mask);
                Formula::unary_saving(move |gradient| {
                    gradient.masked_fill(kept.get()?, Scalar::Int(0))
                })
            },
        )
    }

    /// Replaces what is below `lowest` or above `highest` by these.
    ///
    /// # Errors
    /// When there is neither, or no memory.
    pub fn clamp(&self, lowest: Option<Scalar>, highest: Option<Scalar>) -> Result<Self> {
        let _scope = open(&CLAMP, (self, lowest, highest));
        differentiable(
            &CLAMP_NODE,
            [self],
            || {
                let bounds = check_bounds(lowest, highest)?;
                let dtype = bounded_type(self, bounds);
                let operand = self.as_type(dtype)?;
                by_number!(dtype, T => kernels::map(&operand, bounded::<T>(lowest, highest)))
            },
            |_| clamp_formula(self, lowest, highest),
        )
    }

    /// Replaces what is below `lowest` or above `highest` by these, in place.
    ///
    /// # Errors
    /// When there is neither.
    pub fn clamp_(&self, lowest: Option<Scalar>, highest: Option<Scalar>) -> Result<()> {
        let _scope = open(&CLAMP_IN_PLACE, (self, lowest, highest));
        let before = if self.requires_grad() {
            by_dtype!(self.dtype(), T => kernels::map(self, |x: T| x))?
        } else {
            self.clone()
        };
        in_place(
            &CLAMP_NODE,
            self,
            [],
            || {
                check_bounds(lowest, highest)?;
                by_number!(self.dtype(), T => kernels::update_each(self, bounded::<T>(lowest, highest)))
            },
            || clamp_formula(&before, lowest, highest),
        )
    }
}

fn clamp_formula(operand: &Tensor, lowest: Option<Scalar>, highest: Option<Scalar>) -> Formula {
    let kept = Saved::new(operand);
    Formula::unary_saving(move |gradient| {
        let operand = kept.get()?;
        let mut result = gradient.clone();
        for (bound, inside) in [(lowest, Comparison::Ge), (highest, Comparison::Le)] {
            if let Some(bound) = bound {
                let inside = operand.compare(inside, bound)?;
                result = Tensor::choose(&inside, &result, Scalar::Int(0))?;
            }
        }
        Ok(result)
    })
}

fn check_bounds(lowest: Option<Scalar>, highest: Option<Scalar>) -> Result<[Option<Scalar>; 2]> {
    if lowest.is_none() && highest.is_none() {
        return reject!(
            Runtime,
            "torch.clamp: At least one of 'min' or 'max' must not be None"
        );
    }
    Ok([lowest, highest])
}

fn bounded_type(operand: &Tensor, bounds: [Option<Scalar>; 2]) -> DType {
    let fraction = bounds
        .iter()
        .flatten()
        .any(|bound| matches!(bound, Scalar::Float(_)));
    if fraction {
        operand.dtype().or_float()
    } else {
        operand.dtype()
    }
}

fn bounded<T: Number>(
    lowest: Option<Scalar>,
    highest: Option<Scalar>,
) -> impl Fn(T) -> T + Copy + Sync {
    let (lowest, highest) = (lowest.map(T::from_scalar), highest.map(T::from_scalar));
    move |x: T| {
        let raised = match lowest {
            Some(lowest) if x < lowest => lowest,
            _ => x,
        };
        match highest {
            Some(highest) if raised > highest => highest,
            _ => raised,
        }
    }
}
