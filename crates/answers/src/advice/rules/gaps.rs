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

/// The part of the device work whose launch may be missing.
const MISSING: f64 = 0.1;

/// Returns the missing data if the launches of device work were not recorded. The profile does not
/// show then why the device is idle.
pub(super) fn missing_launches(facts: &Facts<'_>) -> Option<&'static str> {
    let is_launched = |id: &&EventId| facts.analysis.correlation().owner(**id).is_some();
    let launched = facts.kernels.iter().filter(is_launched).count();
    let missing = facts.kernels.len() - launched;
    (missing as f64 > MISSING * facts.kernels.len() as f64).then_some(
        "launches of device work are missing: \
         activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    )
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
