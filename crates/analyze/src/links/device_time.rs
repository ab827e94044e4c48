//! The time that devices spent on behalf of each CPU event.

use mindprof_model::{Category, EventId, Nanos, Profile};

use crate::links::correlate::Correlation;
use crate::rows::micros::elapsed_micros;
use crate::tree::children::Children;
use crate::tree::event_tree::Tree;

/// The device time of each CPU event: that of the kernels it launched, with and without those of
/// its children.
///
/// It is computed once per [`crate::Analysis`], because every row needs it. The totals are kept as
/// floating-point microseconds too, summed in torch's order, so that tables round as torch's do. It
/// is empty if no kernel belongs to any event.
#[derive(Clone, Debug, Default)]
pub struct DeviceTimes {
    own: Vec<Nanos>,
    total: Vec<Nanos>,
    /// The total as a sum of floating-point microseconds, in torch's order.
    total_micros: Vec<f64>,
}

impl DeviceTimes {
    /// Sums the kernels of each event, then adds the totals of its children.
    ///
    /// The kernels of a merged duplicate replace those of the event that it was merged into, as in
    /// torch. `children` is called only if there are kernels.
    pub fn build(
        profile: &Profile,
        tree: &Tree,
        children: impl FnOnce() -> Children,
        correlation: &Correlation,
    ) -> Self {
        let kernels = || {
            (0..profile.events().len())
                .map(EventId::from_index)
                .filter(|&id| profile.event(id).category == Category::Kernel)
                .filter_map(|id| Some((id, correlation.owner(id)?)))
        };
        if correlation.is_empty() || kernels().next().is_none() {
            return Self::default();
        }
        let mut own = vec![Nanos::ZERO; profile.events().len()];
        let mut total_micros = vec![0.0; own.len()];
        for (kernel, owner) in kernels() {
            own[owner.index()] = own[owner.index()] + profile.event(kernel).duration;
            total_micros[owner.index()] += elapsed_micros(profile.event(kernel));
        }
        for index in 0..own.len() {
            let id = EventId::from_index(index);
            if let Some(parent) = tree.parent(id).filter(|_| tree.is_merged(id)) {
                own[parent.index()] = std::mem::take(&mut own[index]);
                total_micros[parent.index()] = std::mem::take(&mut total_micros[index]);
            }
        }
        let mut total = own.clone();
        let children = children();
        for index in (0..own.len()).rev() {
            let mut micros = 0.0;
            for child in children.of(EventId::from_index(index)) {
                total[index] = total[index] + total[child.index()];
                micros += total_micros[child.index()];
            }
            total_micros[index] += micros;
        }
        Self {
            own,
            total,
            total_micros,
        }
    }

    /// Returns [`Self::total`] in microseconds, with the rounding error of torch's sum.
    pub fn total_micros(&self, id: EventId) -> f64 {
        self.total_micros.get(id.index()).copied().unwrap_or(0.0)
    }

    /// Returns whether no kernel belongs to any event.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Returns the time of the kernels that an event itself launched.
    pub fn own(&self, id: EventId) -> Nanos {
        self.own.get(id.index()).copied().unwrap_or_default()
    }

    /// Returns the time of the kernels that an event and its children launched.
    pub fn total(&self, id: EventId) -> Nanos {
        self.total.get(id.index()).copied().unwrap_or_default()
    }
}
