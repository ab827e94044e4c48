//! Hooks: user functions that are called with a gradient before it is passed on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result, Tensor};

type Call = dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync;

/// A user function that receives a gradient and may replace it.
///
/// The replacement must have the same size and dtype.
#[derive(Clone)]
pub struct Hook {
    name: Arc<str>,
    call: Arc<Call>,
}

impl Hook {
    /// Wraps a function; `name` appears in error messages.
    pub fn new(
        name: &str,
        call: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            call: Arc::new(call),
        }
    }

    pub(super) fn call(&self, gradient: &Tensor) -> Result<Option<Tensor>> {
        let changed = (self.call)(gradient)?;
        if let Some(changed) = &changed {
            self.check(gradient, changed)?;
        }
        Ok(changed)
    }

    fn check(&self, gradient: &Tensor, changed: &Tensor) -> Result<()> {
        let hook = || self.name.to_string();
        if changed.dtype() != gradient.dtype() {
            return Err(Error::HookType {
                hook: hook(),
                was: gradient.dtype(),
                found: changed.dtype(),
            });
        }
        if changed.dims() != gradient.dims() {
            return Err(Error::HookSize { hook: hook() });
        }
        Ok(())
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hook")
    }
}

/// Identifies a registered hook for its removal.
pub(super) type HookId = u64;

pub(super) fn new_id() -> HookId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: ids only have to be unique.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
