//! The times at which no stream of the device works.

use mindprof_model::{EventId, Nanos};

use crate::advice::facts::Facts;

/// A time at which no stream of the device works.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    /// The kernel that ends it.
    pub(super) next: EventId,
}

impl Gap {
    pub(super) fn duration(&self) -> Nanos {
        self.end.saturating_sub(self.begin)
    }
}

/// Returns the gaps of at least some length between the kernels of steps, in time order.
///
/// ```text
/// stream 7    |-----|         |---|
/// stream 20      |-----|               |---|
/// gaps                 |------|   |----|
/// ```
pub(super) fn gaps(facts: &Facts<'_>, least: Nanos) -> Vec<Gap> {
    let mut found = Vec::new();
    let mut busy_until: Option<Nanos> = None;
    for &next in &facts.kernels {
        let event = facts.profile.event(next);
        if let Some(begin) = busy_until
            && event.start.saturating_sub(begin) >= least.max(Nanos(1))
        {
            let end = event.start;
            found.push(Gap { begin, end, next });
        }
        busy_until = Some(busy_until.unwrap_or_default().max(event.end()));
    }
    found
}
