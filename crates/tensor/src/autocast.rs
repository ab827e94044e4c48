//! Casts that operators make by themselves while a program asks for them: products go to a narrow
//! float, losses to `float32`, and what is joined to the widest type among its parts.
//!
//! An operator that is on one of these lists shows twice, as in torch: around the casts, and as
//! what works on their results. Casts of parameters are kept until the outermost region ends, so
//! that a weight is cast once per step.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::{Arc, Weak};

use crate::autograd::Meta;
use crate::{DType, Result, Tensor};

/// What a region of a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Autocast {
    /// Whether operators cast.
    pub enabled: bool,
    /// The type that products are computed in.
    pub dtype: DType,
    /// Whether casts of parameters are kept.
    pub caches: bool,
}

impl Autocast {
    const OFF: Self = Self {
        enabled: false,
        dtype: DType::BF16,
        caches: true,
    };
}

/// A parameter and its cast. The parameter is held weakly: enough for its address to stay its own.
struct Kept {
    parameter: Weak<Meta>,
    cast: Tensor,
}

thread_local! {
    static SETTING: Cell<Autocast> = const { Cell::new(Autocast::OFF) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Set while an operator works on what it has cast.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    static CACHE: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// Returns what this thread's operators do at present.
pub fn autocast() -> Autocast {
    SETTING.get()
}

/// Begins a region and returns what was asked for before.
pub fn enter_autocast(setting: Autocast) -> Autocast {
    DEPTH.set(DEPTH.get() + 1);
    SETTING.replace(setting)
}

/// Ends a region. With the outermost one, the casts of parameters are freed.
pub fn leave_autocast(previous: Autocast) {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    SETTING.set(previous);
    if depth == 0 {
        clear_autocast_cache();
    }
}

/// Frees the casts of parameters.
pub fn clear_autocast_cache() {
    // Taken out before it is dropped: a graph that is freed may run code of the user.
    drop(CACHE.take());
}

/// An operator that casts its operands; what it calls while this lives casts nothing.
pub(crate) struct Casting(Autocast);

impl Casting {
    /// Returns a casting if the program asks for it and no operator around is casting.
    #[inline]
    pub(crate) fn begin() -> Option<Self> {
        let setting = SETTING.get();
        if !setting.enabled || WITHIN.get() {
            return None;
        }
        WITHIN.set(true);
        Some(Self(setting))
    }

    /// Casts an operand of a product.
    pub(crate) fn lower(&self, operand: &Tensor) -> Result<Tensor> {
        self.cast(operand, self.0.dtype)
    }

    /// Casts an operand that may be absent.
    pub(crate) fn lower_optional(&self, operand: Option<&Tensor>) -> Result<Option<Tensor>> {
        operand.map(|operand| self.lower(operand)).transpose()
    }

    /// Casts an operand of a loss.
    pub(crate) fn raise(&self, operand: &Tensor) -> Result<Tensor> {
        self.cast(operand, DType::F32)
    }

    /// Casts operands to the widest of their types.
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
