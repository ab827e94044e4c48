//! Losses that are quadratic for small differences and linear for large ones: `smooth_l1_loss` and
//! `huber_loss`.

use smallvec::smallvec;

use super::loss::{Reduction, reduced_losses};
use crate::autocast::Casting;
use crate::autograd::{Formula, NodeSite, Saved, differentiable, node_site};
use crate::dispatch::{Absent, Site, open};
use crate::element::{Real, by_float};
use crate::error::reject;
use crate::kernels;
use crate::ops::create::empty_strided;
use crate::shape::broadcast;
use crate::{KeepDims, Result, Tensor};

static EMPTY_LIKE: Site = Site::operator("aten::empty_like");
static HUBER: Site = Site::operator("aten::huber_loss");
static HUBER_BACKWARD: Site = Site::operator("aten::huber_loss_backward");
static SMOOTH: Site = Site::operator("aten::smooth_l1_loss");
static SMOOTH_BACKWARD: Site = Site::operator("aten::smooth_l1_loss_backward");

node_site! {
    HUBER_NODE = "HuberLossBackward0";
    SMOOTH_NODE = "SmoothL1LossBackward0";
}

/// The difference at which a loss turns from quadratic to linear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bend {
    /// `beta`; beyond it the loss is the absolute difference minus half of `beta`.
    Smooth(f64),
    /// `delta`, which is also the slope beyond it.
    Huber(f64),
}

impl Bend {
    fn sites(self) -> (&'static Site, &'static Site, &'static NodeSite) {
        match self {
            Self::Smooth(_) => (&SMOOTH, &SMOOTH_BACKWARD, &SMOOTH_NODE),
            Self::Huber(_) => (&HUBER, &HUBER_BACKWARD, &HUBER_NODE),
        }
    }

    fn size(self) -> f64 {
        match self {
            Self::Smooth(size) | Self::Huber(size) => size,
        }
    }

    fn check(self) -> Result<()> {
        match self {
            Self::Smooth(beta) if beta < 0.0 => reject!(
                Runtime,
                "smooth_l1_loss does not support negative values for beta."
            ),
            Self::Huber(delta) if delta <= 0.0 => reject!(
                Runtime,
                "huber_loss does not support non-positive values for delta."
            ),
            Self::Smooth(_) | Self::Huber(_) => Ok(()),
        }
    }

    fn loss(self, difference: f64) -> f64 {
        let (z, size) = (difference.abs(), self.size());
        match self {
            Self::Smooth(_) if z < size => 0.5 * z * z / size,
            Self::Smooth(_) => z - 0.5 * size,
            Self::Huber(_) if z <= size => 0.5 * z * z,
            Self::Huber(_) => size * (z - 0.5 * size),
        }
    }

    fn slope(self, difference: f64) -> f64 {
        let size = self.size();
        match self {
            Self::Smooth(_) if difference.abs() < size => difference / size,
            Self::Smooth(_) => difference.signum(),
            Self::Huber(_) => difference.clamp(-size, size),
        }
    }
}

impl Tensor {
    /// Returns the loss between this tensor and a target.
    ///
    /// # Errors
    /// Returns an error if the shapes or the dtypes do not match, or the position of the bend is
    /// invalid.
    pub fn bent_loss(&self, target: &Self, reduction: Reduction, bend: Bend) -> Result<Self> {
        let (site, _, node) = bend.sites();
        let _scope = open(site, (self, target, reduction.code(), bend.size()));
        if let Some(casting) = Casting::begin() {
            let target = casting.raise(target)?;
            return casting.raise(self)?.bent_loss(&target, reduction, bend);
        }
        bend.check()?;
        let dims = broadcast(self.dims(), target.dims())?;
        let dtype = self.dtype().common(target.dtype());
        differentiable(
            node,
            [self, target],
            || {
                let (own, target) = (self.as_type(dtype)?, target.as_type(dtype)?);
                let losses = || {
                    by_float!(dtype, "smooth_l1_cpu", T => {
                        kernels::zip(&dims, [&own, &target], move |x: T, y: T| {
                            T::of(bend.loss(x.wide() - y.wide()))
                        })
                    })
                };
                match bend {
                    Bend::Smooth(_) => reduced_losses(&dims, dtype, reduction, losses),
                    Bend::Huber(_) => {
                        tell_room(&own)?;
                        let losses = losses()?;
                        match reduction {
                            Reduction::None => Ok(losses),
                            Reduction::Mean => losses.mean(None, KeepDims::No, None),
                            Reduction::Sum => losses.sum(None, KeepDims::No, None),
                        }
                    }
                }
            },
            |_| {
                let kept = [Saved::new(self), Saved::new(target)];
                Formula::saving(move |gradients| {
                    let gradient = gradients.only();
                    let (own, target) = (kept[0].get()?, kept[1].get()?);
                    Ok(smallvec![
                        gradients.when(0, || bent_gradient(
                            gradient,
                            [own, target],
                            reduction,
                            bend
                        ))?,
                        gradients.when(1, || bent_gradient(
                            gradient,
                            [target, own],
                            reduction,
                            bend
                        ))?
                    ])
                })
            },
        )
    }
}

/// Records the buffer that the losses are written to.
fn tell_room(own: &Tensor) -> Result<()> {
    let _scope = open(&EMPTY_LIKE, (own, Absent, Absent, Absent, Absent, Absent));
    empty_strided(own.dims(), own.strides(), own.dtype(), None)?;
    Ok(())
}

/// Returns the gradient of a loss with respect to its first operand.
fn bent_gradient(
    gradient: &Tensor,
    [own, other]: [&Tensor; 2],
    reduction: Reduction,
    bend: Bend,
) -> Result<Tensor> {
    let (_, site, _) = bend.sites();
    let code = reduction.code();
    let _scope = open(site, (gradient, own, other, code, bend.size()));
    let result = own.zeros_like_contiguous()?;
    let _scope = open(site, (gradient, own, other, code, bend.size(), &result));
    let share = match reduction {
        Reduction::Mean => 1.0 / result.count() as f64,
        Reduction::None | Reduction::Sum => 1.0,
    };
    by_float!(own.dtype(), "smooth_l1_backward_cpu", T => {
        let slope = kernels::zip(own.dims(), [own, other], move |x: T, y: T| {
            T::of(share * bend.slope(x.wide() - y.wide()))
        })?;
        let scaled = kernels::zip(own.dims(), [&slope, gradient], |s: T, g: T| s * g)?;
        kernels::copy_into(&result, &scaled);
        Ok(())
    })?;
    Ok(result)
}
