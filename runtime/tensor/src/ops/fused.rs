//! Fused operators that add a scaled product or quotient: `addcmul` and `addcdiv`.

use smallvec::smallvec;

use crate::autograd::{Formula, NodeSite, Saved, differentiable, in_place, node_site};
use crate::dispatch::{Site, open};
use crate::element::{Number, by_number};
use crate::error::reject;
use crate::kernels;
use crate::layout::Layout;
use crate::shape::broadcast;
use crate::{DType, Element, Result, Scalar, Tensor};

static ADDCDIV: Site = Site::operator("aten::addcdiv");
static ADDCDIV_IN_PLACE: Site = Site::operator("aten::addcdiv_");
static ADDCMUL: Site = Site::operator("aten::addcmul");
static ADDCMUL_IN_PLACE: Site = Site::operator("aten::addcmul_");

node_site! {
    ADDCDIV_NODE = "AddcdivBackward0";
    ADDCMUL_NODE = "AddcmulBackward0";
}

/// The operation on the two tensors, before the result is scaled and added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combination {
    Product,
    Quotient,
}

impl Tensor {
    /// Adds `value` times the product of two tensors.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast or memory cannot be allocated.
    pub fn addcmul(&self, first: &Self, second: &Self, value: Scalar) -> Result<Self> {
        let _scope = open(&ADDCMUL, (self, first, second, value));
        self.add_combined([first, second], value, Combination::Product)
    }

    /// Adds `value` times the product of two tensors, in place.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast to this tensor's, or the dtypes differ.
    pub fn addcmul_(&self, first: &Self, second: &Self, value: Scalar) -> Result<()> {
        let _scope = open(&ADDCMUL_IN_PLACE, (self, first, second, value));
        self.add_combined_([first, second], value, Combination::Product)
    }

    /// Adds `value` times the quotient of two tensors.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast, neither dtype is floating-point, or memory
    /// cannot be allocated.
    pub fn addcdiv(&self, first: &Self, second: &Self, value: Scalar) -> Result<Self> {
        let _scope = open(&ADDCDIV, (self, first, second, value));
        refuse_integers(first, second)?;
        self.add_combined([first, second], value, Combination::Quotient)
    }

    /// Adds `value` times the quotient of two tensors, in place.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast to this tensor's, or the dtypes differ or
    /// are not floating-point.
    pub fn addcdiv_(&self, first: &Self, second: &Self, value: Scalar) -> Result<()> {
        let _scope = open(&ADDCDIV_IN_PLACE, (self, first, second, value));
        refuse_integers(first, second)?;
        self.add_combined_([first, second], value, Combination::Quotient)
    }

    fn add_combined(&self, pair: [&Self; 2], value: Scalar, how: Combination) -> Result<Self> {
        let [first, second] = pair;
        differentiable(
            how.node(),
            [self, first, second],
            || {
                let dtype = [first, second].map(Self::dtype).into_iter();
                let dtype = dtype.fold(self.dtype(), DType::common);
                let dims = broadcast(&broadcast(self.dims(), first.dims())?, second.dims())?;
                let (own, first, second) = (
                    self.as_type(dtype)?,
                    first.as_type(dtype)?,
                    second.as_type(dtype)?,
                );
                let result = Self::blank(Layout::contiguous(dims)?, dtype)?;
                kernels::copy_into(&result, &own);
                how.add(&result, [&first, &second], value)?;
                Ok(result)
            },
            |_| how.formula(pair.map(Saved::new), value),
        )
    }

    fn add_combined_(&self, pair: [&Self; 2], value: Scalar, how: Combination) -> Result<()> {
        let kept = self.kept_pair(pair)?;
        in_place(
            how.node(),
            self,
            pair,
            || {
                let [first, second] = self.fitted_pair(pair)?;
                how.add(self, [&first, &second], value)
            },
            move || how.formula(kept, value),
        )
    }
}

impl Combination {
    fn node(self) -> &'static NodeSite {
        match self {
            Self::Product => &ADDCMUL_NODE,
            Self::Quotient => &ADDCDIV_NODE,
        }
    }

    fn add(self, destination: &Tensor, pair: [&Tensor; 2], value: Scalar) -> Result<()> {
        by_number!(destination.dtype(), T => {
            let value = T::from_scalar(value);
            match self {
                Self::Product => kernels::update_two(destination, pair, move |x: T, y: T, z: T| {
                    x.plus(value.times(y).times(z))
                }),
                Self::Quotient => kernels::update_two(destination, pair, move |x: T, y: T, z: T| {
                    x.plus(value.times(y).over(z))
                }),
            }
        })
    }

    fn formula(self, kept: [Saved; 2], value: Scalar) -> Formula {
        Formula::saving(move |gradients| {
            let (first, second) = (kept[0].get()?, kept[1].get()?);
            let gradient = gradients.only();
            let [by_first, by_second] = match self {
                Self::Product => [
                    gradients.when(1, || gradient.mul(&second.mul_number(value)?))?,
                    gradients.when(2, || gradient.mul(&first.mul_number(value)?))?,
                ],
                Self::Quotient => [
                    gradients.when(1, || {
                        let slope = second.empty_like()?;
                        slope.fill_(value)?;
                        slope.div_(second)?;
                        gradient.mul(&slope)
                    })?,
                    gradients.when(2, || {
                        let square = second.mul(second)?;
                        let slope = first.mul_number(value)?.div(&square)?;
                        gradient.neg()?.mul(&slope)
                    })?,
                ],
            };
            let own = gradients.needs(0).then(|| gradients.only().clone());
            Ok(smallvec![own, by_first, by_second])
        })
    }
}

fn refuse_integers(first: &Tensor, second: &Tensor) -> Result<()> {
    if first.dtype().is_float() || second.dtype().is_float() {
        return Ok(());
    }
    reject!(
        Runtime,
        "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true \
         division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * \
         torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / \
         tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * \
         tensor1 / tensor2), for all dtypes."
    )
}
