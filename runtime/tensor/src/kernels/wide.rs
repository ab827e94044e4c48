//! Elements that are stored narrower than they are computed: `bfloat16`, which kernels see as
//! `f32`.
//!
//! A kernel chosen by `by_number!` or `by_float!` may compute in a wider type than that of its
//! operands. It then works on widened copies, and its result is rounded once, when it is stored.

use std::borrow::Cow;

use half::bf16;

use super::{copy_into, map, result_layout};
use crate::{DType, Element, Result, Tensor};

/// Returns the operand in the element type `T` of a kernel.
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

/// Converts the result of a kernel to the dtype of its operands. Booleans and indices stay as they
/// are.
#[inline]
pub(crate) fn narrowed(result: Tensor, dtype: DType) -> Result<Tensor> {
    if dtype == DType::BF16 && result.dtype() == DType::F32 {
        return map(&result, bf16::from_f32);
    }
    Ok(result)
}

/// Calls a kernel over `T` to modify a tensor, through a widened copy if its elements are stored
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
