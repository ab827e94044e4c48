//! Functions that the user wants called with a gradient, before it goes on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Result, Tensor};

type Call = dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync;

/// A function of a gradient; what it returns replaces the gradient.
#[derive(Clone)]
pub struct Hook(Arc<Call>);

impl Hook {
    /// Makes a hook of a function.
    pub fn new(call: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(call))
    }

    pub(super) fn call(&self, gradient: &Tensor) -> Result<Option<Tensor>> {
        (self.0)(gradient)
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hook")
    }
}

/// By which a hook is found again to be removed.
pub(super) type HookId = u64;

pub(super) fn new_id() -> HookId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: numbers have to differ, and order nothing.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
