//! Automatic mixed precision: casts of operands inside an autocast region.
//!
//! Products run in a narrow float, losses in `float32`, and joins in the widest dtype of their
//! parts. As in torch, such an operator is recorded twice: around the casts, and on their results.
//! Casts of parameters are cached until the outermost region ends, so that a weight is cast once
//! per step.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::{Arc, Weak};

use crate::autograd::Meta;
use crate::{DType, Result, Tensor};

/// The autocast settings of a thread.
///
/// The Python context manager swaps them with [`enter_autocast`] and [`leave_autocast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Autocast {
    /// Whether operators cast their operands.
    pub enabled: bool,
    /// The dtype of matrix products.
    pub dtype: DType,
    /// Whether casts of parameters are cached.
    pub caches: bool,
}

impl Autocast {
    const OFF: Self = Self {
        enabled: false,
        dtype: DType::BF16,
        caches: true,
    };
}

/// A parameter and its cached cast.
///
/// The parameter is held weakly, which is enough to keep its address from being reused.
struct Kept {
    parameter: Weak<Meta>,
    cast: Tensor,
}

thread_local! {
    static SETTING: Cell<Autocast> = const { Cell::new(Autocast::OFF) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Whether an operator on this thread is already working on cast operands.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    static CACHE: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// Returns the autocast settings of this thread.
pub fn autocast() -> Autocast {
    SETTING.get()
}

/// Enters a region with new settings and returns the previous ones.
pub fn enter_autocast(setting: Autocast) -> Autocast {
    DEPTH.set(DEPTH.get() + 1);
    SETTING.replace(setting)
}

/// Leaves a region and restores the previous settings. Leaving the outermost region clears the
/// cache.
pub fn leave_autocast(previous: Autocast) {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    SETTING.set(previous);
    if depth == 0 {
        clear_autocast_cache();
    }
}

/// Clears the cached casts of parameters.
pub fn clear_autocast_cache() {
    // Taken out before it is dropped: freeing a graph may run user code.
    drop(CACHE.take());
}

/// Guard of an operator that casts its operands; nested operators do not cast while it lives.
pub(crate) struct Casting(Autocast);

impl Casting {
    /// Returns a guard if autocast is enabled and no enclosing operator is casting.
    #[inline]
    pub(crate) fn begin() -> Option<Self> {
        let setting = SETTING.get();
        if !setting.enabled || WITHIN.get() {
            return None;
        }
        WITHIN.set(true);
        Some(Self(setting))
    }

    /// Casts an operand of a matrix product to the narrow dtype.
    pub(crate) fn lower(&self, operand: &Tensor) -> Result<Tensor> {
        self.cast(operand, self.0.dtype)
    }

    /// Casts an optional operand of a matrix product to the narrow dtype.
    pub(crate) fn lower_optional(&self, operand: Option<&Tensor>) -> Result<Option<Tensor>> {
        operand.map(|operand| self.lower(operand)).transpose()
    }

    /// Casts an operand of a loss to `float32`.
    pub(crate) fn raise(&self, operand: &Tensor) -> Result<Tensor> {
        self.cast(operand, DType::F32)
    }

    /// Casts operands to the widest of their dtypes.
    pub(crate) fn promote(&self, operands: &[Tensor]) -> Result<Vec<Tensor>> {
        let wide = |operand: &Tensor| operand.dtype() == DType::F32;
        let widest = if operands.iter().any(wide) {
            DType::F32
        } else {
            self.0.dtype
        };
        let operands = operands.iter();
        operands.map(|operand| self.cast(operand, widest)).collect()
    }

    fn cast(&self, operand: &Tensor, dtype: DType) -> Result<Tensor> {
        let eligible = matches!(operand.dtype(), DType::BF16 | DType::F32);
        if !eligible || operand.dtype() == dtype {
            return Ok(operand.clone());
        }
        let is_parameter = dtype == self.0.dtype
            && operand.requires_grad()
            && operand.is_leaf()
            && !operand.is_view();
        let Some(meta) = operand.meta().filter(|_| is_parameter && self.0.caches) else {
            return operand.to(dtype);
        };
        let known = |kept: &Kept| ptr::eq(kept.parameter.as_ptr(), Arc::as_ptr(meta));
        let found = CACHE.with_borrow(|cache| {
            let kept = cache.iter().find(|kept| known(kept))?;
            (kept.cast.dtype() == dtype).then(|| kept.cast.clone())
        });
        if let Some(cast) = found {
            return Ok(cast);
        }
        let cast = operand.to(dtype)?;
        CACHE.with_borrow_mut(|cache| {
            cache.push(Kept {
                parameter: Arc::downgrade(meta),
                cast: cast.clone(),
            });
        });
        Ok(cast)
    }
}

impl Drop for Casting {
    fn drop(&mut self) {
        WITHIN.set(false);
    }
}
