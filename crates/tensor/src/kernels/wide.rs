//! Elements that are stored narrower than they are computed with: `bfloat16`, which kernels see as
//! `f32`.
//!
//! A kernel that was chosen by `by_number!` or `by_float!` finds the type of its operands to be
//! another than its own; it then works on wide copies, and its result is rounded, once, when it is
//! stored.

use std::borrow::Cow;

use half::bf16;

use super::{copy_into, map, result_layout};
use crate::{DType, Element, Result, Tensor};

/// Returns the operand as a kernel over `T` reads it.
#[inline]
pub(crate) fn widened<T: Element>(operand: &Tensor) -> Result<Cow<'_, Tensor>> {
    if operand.dtype() == T::DTYPE {
        return Ok(Cow::Borrowed(operand));
    }
    let (layout, _) = result_layout(operand.dims(), [operand.layout()])?;
    let wide = Tensor::blank(layout, T::DTYPE)?;
    copy_into(&wide, operand);
    Ok(Cow::Owned(wide))
}

/// Stores what a kernel has computed as the type that its operands have; truth values and places
/// stay as they are.
#[inline]
pub(crate) fn narrowed(result: Tensor, dtype: DType) -> Result<Tensor> {
    if dtype == DType::BF16 && result.dtype() == DType::F32 {
        return map(&result, bf16::from_f32);
    }
    Ok(result)
}

/// Lets a kernel over `T` change a tensor, through a wide copy where its elements are stored
/// narrower.
pub(crate) fn rewrite<T: Element>(
    destination: &Tensor,
    change: &dyn Fn(&Tensor) -> Result<()>,
) -> Result<()> {
    match widened::<T>(destination)? {
        Cow::Borrowed(own) => change(own),
        Cow::Owned(wide) => {
            change(&wide)?;
            copy_into(destination, &wide);
            Ok(())
        }
    }
}
