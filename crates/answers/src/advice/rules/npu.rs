//! Facts about kernels of NPUs, beside their times.

use mindprof_model::{DeviceKind, EventId, InputsId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::Facts;

/// The cores of an NPU that a kernel runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cores {
    /// Those that multiply matrices, alone or with the others.
    Cube,
    /// Those for everything else.
    Vector,
}

/// Returns whether the device of a profile is an NPU.
pub(super) fn is_npu(facts: &Facts<'_>) -> bool {
    facts.analysis.accelerator() == Some(DeviceKind::PrivateUse1)
}

/// Returns the cores of a kernel. `None` if the profile does not tell, or if it runs elsewhere.
pub(super) fn cores(facts: &Facts<'_>, id: EventId) -> Option<Cores> {
    let told = facts.argument_text(id, "Accelerator Core");
    let told = told.or_else(|| facts.argument_text(id, "Task Type"))?;
    match told.as_str() {
        "AI_CORE" | "AIC" | "MIX_AIC" => Some(Cores::Cube),
        "AI_VECTOR_CORE" | "AIV" | "MIX_AIV" => Some(Cores::Vector),
        _ => None,
    }
}

/// Returns the number of blocks that a kernel is divided into. Its name has changed once.
pub(super) fn blocks(facts: &Facts<'_>, id: EventId) -> Option<f64> {
    let told = facts.argument(id, "Block Num");
    let blocks = told.or_else(|| facts.argument(id, "Block Dim"))?;
    (blocks >= 1.0).then_some(blocks)
}

/// Returns the kernels that meet a condition, which is evaluated once for each name and inputs.
pub(super) fn alike(
    facts: &Facts<'_>,
    kernels: &[EventId],
    condition: impl Fn(EventId) -> bool,
) -> Vec<EventId> {
    let mut known: FxHashMap<(StringId, InputsId), bool> = FxHashMap::default();
    let mut meets = |id: &EventId| {
        let event = facts.profile.event(*id);
        *known
            .entry((event.name, event.inputs))
            .or_insert_with(|| condition(*id))
    };
    kernels.iter().filter(|id| meets(id)).copied().collect()
}
