//! Correlation: the CPU scope that each kernel and runtime call belongs to.
//!
//! It is found by the external ids and correlation ids that collectors give their events
//! ([`mindprof_model::Links`]). A profile without such ids has no correlation.

use mindprof_model::{Category, DeviceKind, Event, EventId, Flags, Profile, ThreadId};
use rustc_hash::FxHashMap;

use crate::links::launchers::Unnumbered;

const NONE: u32 = u32::MAX;

/// The operator or range that each kernel and runtime call belongs to.
///
/// A device reports its work on its own streams, without saying which operator caused it. This map
/// restores the connection, so that [`crate::Analysis`] can charge device times to operators and
/// show runtime calls and kernels on the right thread. It is empty if the profile has no device
/// work.
#[derive(Clone, Debug, Default)]
pub struct Correlation {
    owners: Vec<u32>,
    /// The runtime calls by correlation id. Empty if every kernel belongs to a scope.
    calls: FxHashMap<u32, EventId>,
}

impl Correlation {
    /// Builds the map in time linear in the number of events.
    ///
    /// ```text
    /// aten::mm           |------------------|   external id 7
    /// cudaLaunchKernel        |---|             external id 7: belongs to aten::mm, runs on its thread
    /// gemm kernel                   |-------|   external id 7: belongs to aten::mm
    /// ```
    ///
    /// Some traces repeat the correlation id as the external id. There a runtime call and its
    /// kernels belong to the operator that was running when the call was made.
    pub fn build(profile: &Profile) -> Self {
        let of_devices =
            |event: &Event| matches!(event.category, Category::Kernel | Category::Runtime);
        if !profile.has_links() || !profile.events().iter().any(of_devices) {
            return Self::default();
        }
        let ids = || (0..profile.events().len()).map(EventId::from_index);
        let external = |id: EventId| profile.links(id).map_or(0, |links| links.external);
        let scopes: FxHashMap<u32, EventId> = ids()
            .filter(|&id| is_owner(profile, profile.event(id)))
            .map(|id| (external(id), id))
            .filter(|&(external, _)| external != 0)
            .collect();
        let unnumbered = Unnumbered::find(profile);
        let by_time = if unnumbered.is_empty() {
            FxHashMap::default()
        } else {
            unnumbered.owners(profile)
        };
        let owner = |id: EventId| {
            if unnumbered.has(profile, profile.event(id)) {
                by_time.get(&id)
            } else {
                scopes.get(&external(id))
            }
        };
        let owners: Vec<u32> = ids()
            .map(|id| match profile.event(id).category {
                Category::Kernel | Category::Runtime => {
                    owner(id).map_or(NONE, |owner| owner.to_raw())
                }
                Category::Operator
                | Category::Annotation
                | Category::PythonFunction
                | Category::DeviceAnnotation
                | Category::Other => NONE,
            })
            .collect();
        let is = |id: EventId, category| profile.event(id).category == category;
        let is_lone = |id: EventId| is(id, Category::Kernel) && owners[id.index()] == NONE;
        let calls = if ids().any(is_lone) {
            ids()
                .filter(|&id| is(id, Category::Runtime))
                .filter_map(|id| Some((profile.links(id)?.correlation, id)))
                .collect()
        } else {
            FxHashMap::default()
        };
        Self { owners, calls }
    }

    /// Returns whether the profile has no device work, or no ids to correlate it by.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Returns the scope that a kernel or runtime call belongs to, or `None` if it is not known.
    pub fn owner(&self, id: EventId) -> Option<EventId> {
        let owner = self.owners.get(id.index()).copied().unwrap_or(NONE);
        (owner != NONE).then(|| EventId::from_raw(owner))
    }

    /// Returns the runtime call that launched a kernel which belongs to no scope.
    ///
    /// ```text
    /// f (Python)         |------------------|
    /// cuLaunchKernel        |---|               correlation 9, no external id
    /// triton kernel                |-------|    correlation 9: launched there
    /// ```
    pub fn launch(&self, profile: &Profile, id: EventId) -> Option<EventId> {
        let correlation = profile.links(id)?.correlation;
        let call = self.calls.get(&correlation).copied();
        call.filter(|_| correlation != 0)
    }

    /// Returns the thread that an event is shown on. Runtime calls and kernels are shown on their
    /// owner's thread.
    pub fn thread(&self, profile: &Profile, id: EventId) -> ThreadId {
        let shown = self.owner(id).unwrap_or(id);
        profile.event(shown).thread
    }
}

fn is_owner(profile: &Profile, event: &Event) -> bool {
    let scope = matches!(event.category, Category::Operator | Category::Annotation);
    scope
        && !event.flags.contains(Flags::ASYNC)
        && !event.flags.contains(Flags::HIDDEN)
        && profile.threads()[event.thread.index()].device == DeviceKind::Cpu
}
