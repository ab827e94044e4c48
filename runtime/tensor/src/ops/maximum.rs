//! Element-wise extremes of two tensors: `maximum` and `minimum`.

use smallvec::smallvec;

use crate::autograd::{Formula, Saved, differentiable, is_tracking, node_site};
use crate::dispatch::{Site, open};
use crate::dtype::promote;
use crate::element::by_dtype;
use crate::error::reject;
use crate::kernels;
use crate::shape::broadcast;
use crate::{Comparison, Element, End, Error, Result, Scalar, Tensor};

static MAXIMUM: Site = Site::operator("aten::maximum");
static MINIMUM: Site = Site::operator("aten::minimum");

node_site! {
    MAXIMUM_NODE = "MaximumBackward0";
    MINIMUM_NODE = "MinimumBackward0";
}

impl Tensor {
    /// Returns the larger of each pair of elements; NaN wins.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast or memory cannot be allocated.
    pub fn maximum(&self, other: &Self) -> Result<Self> {
        self.extreme_with(other, End::Highest)
    }

    /// Returns the smaller of each pair of elements; NaN wins.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast or memory cannot be allocated.
    pub fn minimum(&self, other: &Self) -> Result<Self> {
        self.extreme_with(other, End::Lowest)
    }

    /// Writes the larger or the smaller of each pair of elements into another tensor.
    ///
    /// # Errors
    /// Returns an error if an operand is tracked, or the result has another shape or does not fit
    /// the dtype.
    pub fn extreme_into(&self, other: &Self, end: End, out: &Self) -> Result<()> {
        let (site, name) = match end {
            End::Highest => (&MAXIMUM, "maximum"),
            End::Lowest => (&MINIMUM, "minimum"),
        };
        let _scope = open(site, (self, other, out));
        if is_tracking()
            && [self, other, out]
                .iter()
                .any(|tensor| tensor.requires_grad())
        {
            return reject!(
                Runtime,
                "{name}(): functions with out=... arguments don't support automatic differentiation, but one of the \
                 arguments requires grad."
            );
        }
        let result = self.extreme_of(other, end)?;
        if result.dtype().is_float() && !out.dtype().is_float() {
            return Err(Error::ResultType {
                result: result.dtype(),
                output: out.dtype(),
            });
        }
        if result.dims() != out.dims() {
            return Err(Error::OutputShape {
                shape: out.dims().to_vec(),
                broadcast: result.dims().to_vec(),
            });
        }
        kernels::copy_into(out, &result);
        out.bump_version();
        Ok(())
    }

    fn extreme_with(&self, other: &Self, end: End) -> Result<Self> {
        let (site, node) = match end {
            End::Highest => (&MAXIMUM, &MAXIMUM_NODE),
            End::Lowest => (&MINIMUM, &MINIMUM_NODE),
        };
        let _scope = open(site, (self, other));
        differentiable(
            node,
            [self, other],
            || self.extreme_of(other, end),
            |_| formula(self, other, end),
        )
    }

    fn extreme_of(&self, other: &Self, end: End) -> Result<Self> {
        let operands = [self, other].map(|tensor| (tensor.dtype(), tensor.weight()));
        let dtype = promote(operands);
        let dims = broadcast(self.dims(), other.dims())?;
        let (left, right) = (self.as_type(dtype)?, other.as_type(dtype)?);
        let wins = wins(end);
        by_dtype!(dtype, T => {
            kernels::zip(&dims, [&left, &right], move |x: T, y: T| winner(wins, x, y))
        })
    }
}

fn wins(end: End) -> Comparison {
    match end {
        End::Highest => Comparison::Gt,
        End::Lowest => Comparison::Lt,
    }
}

/// Returns the element that wins the comparison; NaN always does.
#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
fn winner<T: Element>(how: Comparison, x: T, y: T) -> T {
    if how.holds(x, y) || x != x { x } else { y }
}

fn formula(left: &Tensor, right: &Tensor, end: End) -> Formula {
    let (left, right) = (Saved::new(left), Saved::new(right));
    let (wins, loses) = match end {
        End::Highest => (Comparison::Gt, Comparison::Lt),
        End::Lowest => (Comparison::Lt, Comparison::Gt),
    };
    Formula::saving(move |gradients| {
        let (gradient, left, right) = (gradients.only(), left.get()?, right.get()?);
        let part = |hidden: Comparison| {
            let hidden = left.compare(hidden, right)?;
            let half = gradient.div_number(Scalar::Int(2))?;
            let even = left.compare(Comparison::Eq, right)?;
            let share = Tensor::choose(&even, &half, gradient)?;
            share.masked_fill_(&hidden, Scalar::Int(0))?;
            Ok(share)
        };
        // The second operand comes first, as in torch; traces show the order.
        let by_right = gradients.when(1, || part(wins))?;
        let by_left = gradients.when(0, || part(loses))?;
        Ok(smallvec![by_left, by_right])
    })
}
