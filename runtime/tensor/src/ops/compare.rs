//! Comparison and selection: `eq`, `lt`, `where`, `clamp`, and logic on booleans.

use smallvec::smallvec;

use super::create::{Options, empty};
use crate::autograd::{Formula, Saved, differentiable, in_place, is_tracking, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::dtype::promote;
use crate::element::{Number, by_dtype, by_number};
use crate::error::reject;
use crate::kernels;
use crate::layout::Layout;
use crate::shape::{Dims, broadcast};
use crate::{DType, Element, Logical, Operand, Result, Scalar, Tensor};

static BITWISE_NOT: Site = Site::operator("aten::bitwise_not");
static CLAMP: Site = Site::operator("aten::clamp");
static CLAMP_IN_PLACE: Site = Site::operator("aten::clamp_");
static LOGICAL_AND: Site = Site::operator("aten::logical_and");
static LOGICAL_AND_IN_PLACE: Site = Site::operator("aten::logical_and_");
static MASKED_FILL: Site = Site::operator("aten::masked_fill");
static MASKED_FILL_IN_PLACE: Site = Site::operator("aten::masked_fill_");
static SCALAR_TENSOR: Site = Site::operator("aten::scalar_tensor");
static WHERE: Site = Site::operator("aten::where");

node_site! {
    CLAMP_NODE = "ClampBackward1";
    MASKED_FILL_NODE = "MaskedFillBackward0";
    WHERE_NODE = "WhereBackward0";
}

/// A comparison of two elements.
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

/// A logical operation on booleans, or a bitwise one on integers.
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
    /// Returns an error if the shapes do not broadcast or memory cannot be allocated.
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

    /// Combines booleans logically, or integers bit by bit.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, or an operand is floating-point.
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

    /// Negates booleans logically, or integers bit by bit.
    ///
    /// # Errors
    /// Returns an error if the elements are floating-point.
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

    /// Takes each element from `yes` or `no`, depending on `condition`; known as `where` in torch.
    ///
    /// # Errors
    /// Returns an error if the condition is not boolean, or the shapes do not broadcast.
    pub fn choose<'a, 'b>(
        condition: &Self,
        yes: impl Into<Operand<'a>>,
        no: impl Into<Operand<'b>>,
    ) -> Result<Self> {
        let (yes, no) = (yes.into(), no.into());
        let number = [yes, no]
            .into_iter()
            .any(|operand| matches!(operand, Operand::Scalar(_)));
        let ((yes, yes_weight), (no, no_weight)) = (yes.weigh(), no.weigh());
        let _number_scope = number.then(|| {
            let scope = open(&WHERE, (condition, &*yes, &*no));
            // A number is converted to a tensor first; the other operand has its dtype already.
            let (scalar, operand) = if yes.rank() == 0 {
                (&yes, &no)
            } else {
                (&no, &yes)
            };
            tell_scalar_tensor(scalar.dtype());
            operand.tell_to(operand.dtype());
            scope
        });
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
                let fits = |operand: &Self| operand.dtype() == dtype || number;
                let convert = |operand: &Self| {
                    if fits(operand) {
                        operand.quietly_as(dtype)
                    } else {
                        operand.to(dtype)
                    }
                };
                let (yes, no) = (convert(&yes)?, convert(&no)?);
                drop(empty(&[0], dtype, &Options::strided(dtype))?);
                by_dtype!(dtype, T => kernels::choose::<T>(&dims, condition, [&yes, &no]))
            },
            |_| {
                let kept = Saved::new(condition);
                Formula::saving(move |gradients| {
                    let (gradient, condition) = (gradients.only(), kept.get()?);
                    let zero = Scalar::Int(0);
                    // The second operand comes first, as in torch; traces show the order.
                    let by_no = gradients.when(1, || Self::choose(condition, zero, gradient))?;
                    let by_yes = gradients.when(0, || Self::choose(condition, gradient, zero))?;
                    Ok(smallvec![by_yes, by_no])
                })
            },
        )
    }

    /// Returns a copy in which the elements selected by a mask are set to a number.
    ///
    /// # Errors
    /// Returns an error if the mask is not boolean or does not broadcast to this tensor.
    pub fn masked_fill(&self, mask: &Self, value: Scalar) -> Result<Self> {
        let _scope = open(&MASKED_FILL, (self, mask, value));
        let dims = broadcast(self.dims(), mask.dims())?;
        differentiable(
            &MASKED_FILL_NODE,
            [self],
            || {
                let copy = self.expand_to(&dims)?.duplicate_contiguous()?;
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

    /// Sets the elements selected by a mask to a number, in place.
    ///
    /// # Errors
    /// Returns an error if the mask is not boolean or does not broadcast to this tensor.
    pub fn masked_fill_(&self, mask: &Self, value: Scalar) -> Result<()> {
        let _scope = open(&MASKED_FILL_IN_PLACE, (self, mask, value));
        self.fill_marked(mask, value)
    }

    /// Sets the elements selected by a mask to that of a one-element tensor, in place; used by
    /// gradients.
    pub(in crate::ops) fn masked_fill_by_(&self, mask: &Self, value: &Self) -> Result<()> {
        let _scope = open(&MASKED_FILL_IN_PLACE, (self, mask, value));
        self.fill_marked(mask, value.item()?)
    }

    fn fill_marked(&self, mask: &Self, value: Scalar) -> Result<()> {
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
                let filled = by_dtype!(self.dtype(), T => {
                    let number = Self::from_slice(&[T::from_scalar(value)], &[])?;
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

    /// Combines with another boolean tensor by `and`, in place.
    fn both_in_place(self, other: &Self) -> Result<Self> {
        let _scope = open(&LOGICAL_AND_IN_PLACE, (&self, other));
        let _scope = open(&LOGICAL_AND, (&self, other, &self));
        let both = |x: Logical, y: Logical| x & y;
        kernels::update(&self, other, both)?;
        Ok(self)
    }

    /// Limits the elements to the range from `lowest` to `highest`.
    ///
    /// # Errors
    /// Returns an error if neither bound is given, or memory cannot be allocated.
    pub fn clamp(&self, lowest: Option<Scalar>, highest: Option<Scalar>) -> Result<Self> {
        let _scope = open(&CLAMP, (self, lowest, highest));
        differentiable(
            &CLAMP_NODE,
            [self],
            || {
                let bounds = check_bounds(lowest, highest)?;
                let dtype = bounded_type(self, bounds);
                let operand = self.to(dtype)?;
                by_number!(dtype, T => kernels::map(&operand, bounded::<T>(lowest, highest)))
            },
            |_| clamp_formula(self, lowest, highest),
        )
    }

    /// Limits the elements to the range from `lowest` to `highest`, in place.
    ///
    /// # Errors
    /// Returns an error if neither bound is given.
    pub fn clamp_(&self, lowest: Option<Scalar>, highest: Option<Scalar>) -> Result<()> {
        let _scope = open(&CLAMP_IN_PLACE, (self, lowest, highest));
        let before = if self.requires_grad() && is_tracking() {
            self.duplicate_below()?
        } else {
            self.clone()
        };
        in_place(
            &CLAMP_NODE,
            self,
            [],
            || {
                check_bounds(lowest, highest)?;
                drop(self.to(self.dtype())?);
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
        tell_scalar_tensor(gradient.dtype());
        let zero = Tensor::blank(Layout::contiguous(Dims::new())?, gradient.dtype())?;
        // Elements at a bound do not depend on the operand.
        let above = lowest.map(|bound| operand.compare(Comparison::Gt, bound));
        let below = highest.map(|bound| operand.compare(Comparison::Lt, bound));
        let inside = match (above.transpose()?, below.transpose()?) {
            (Some(above), Some(below)) => above.both_in_place(&below)?,
            (Some(inside), None) | (None, Some(inside)) => inside,
            (None, None) => return Ok(gradient.clone()),
        };
        Tensor::choose(&inside, gradient, &zero)
    })
}

/// Records the conversion of a number to a tensor.
pub(super) fn tell_scalar_tensor(dtype: DType) {
    drop(open(
        &SCALAR_TENSOR,
        (Scalar::Int(0), dtype, Absent, Absent, Absent),
    ));
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
