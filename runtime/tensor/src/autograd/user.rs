//! The entry points of programs: `backward`, and `gradients` of chosen tensors.

use super::engine::{RetainGraph, run};
use super::mode::NoGrad;
use super::node::Edge;
use crate::{Error, Result, Tensor};

/// How to treat an input that the results do not depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unused {
    /// Return an error.
    #[default]
    Refuse,
    /// Return `None` as its gradient.
    Allow,
}

/// Accumulates the gradients of `results` into all leaves that they depend on.
///
/// # Errors
/// Returns an error if a result is not tracked, lacks a gradient that it needs, or its graph was
/// freed, and passes on the errors of operators and hooks.
pub fn backward(
    results: &[Tensor],
    gradients: &[Option<Tensor>],
    retain: RetainGraph,
) -> Result<()> {
    run(roots(results, gradients)?, None, retain)?;
    Ok(())
}

/// Returns the gradients of `results` with respect to `inputs`, without touching the leaves.
///
/// # Errors
/// Fails in the same cases as [`backward`], and if an input is not tracked, or is unused and
/// [`Unused::Refuse`] is given.
pub fn gradients(
    results: &[Tensor],
    inputs: &[Tensor],
    gradients: &[Option<Tensor>],
    retain: RetainGraph,
    unused: Unused,
) -> Result<Vec<Option<Tensor>>> {
    let roots = roots(results, gradients)?;
    let wanted = inputs
        .iter()
        .map(|input| input.gradient_edge().ok_or(Error::InputWithoutGrad))
        .collect::<Result<Vec<_>>>()?;
    let captured = run(roots, Some(&wanted), retain)?;
    if unused == Unused::Refuse && captured.iter().any(Option::is_none) {
        return Err(Error::UnusedInput);
    }
    Ok(captured)
}

fn roots(results: &[Tensor], gradients: &[Option<Tensor>]) -> Result<Vec<(Edge, Tensor)>> {
    let mut roots = Vec::with_capacity(results.len());
    for (index, result) in results.iter().enumerate() {
        let gradient = match gradients.get(index).and_then(Option::as_ref) {
            Some(gradient) => {
                if gradient.dims() != result.dims() {
                    return Err(Error::OutputGradientShape {
                        index,
                        found: gradient.dims().to_vec(),
                        expected: result.dims().to_vec(),
                    });
                }
                gradient.untracked()
            }
            None if !result.requires_grad() => return Err(Error::BackwardWithoutGrad { index }),
            None if result.count() != 1 => return Err(Error::BackwardOfMany),
            None => {
                let _no_grad = NoGrad::enter();
                result.ones_like_for_gradient()?
            }
        };
        let edge = result
            .gradient_edge()
            .ok_or(Error::BackwardWithoutGrad { index })?;
        roots.push((edge, gradient));
    }
    Ok(roots)
}
