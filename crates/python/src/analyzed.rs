//! A profile with its analysis and cached averages, shared by all Python objects of the profile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mindprof_analyze::{Analysis, Averages, GroupBy, averages};
use mindprof_model::{LossCause, Profile};

use crate::names::device_name;

/// Facts that hold for all events and rows: the device's name, whether memory was recorded, and
/// whether FLOPs are counted.
pub(crate) type Facts = (Option<&'static str>, bool, bool);

/// An analysis and its averages, cached by grouping.
#[derive(Debug)]
pub(crate) struct Analyzed {
    pub(crate) analysis: Analysis,
    averages: Mutex<HashMap<GroupBy, Arc<Averages>>>,
}

impl Analyzed {
    pub(crate) fn new(profile: Profile) -> Arc<Self> {
        Arc::new(Self {
            analysis: Analysis::build(profile),
            averages: Mutex::default(),
        })
    }

    /// Returns the averages of a grouping, which the first call computes.
    pub(crate) fn averages(&self, group_by: GroupBy) -> Arc<Averages> {
        let mut known = self.averages.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(averages(&self.analysis, group_by));
        Arc::clone(known.entry(group_by).or_insert_with(make))
    }

    pub(crate) fn facts(&self) -> Facts {
        let device = self.analysis.accelerator().map(device_name);
        let (memory, flops) = (self.analysis.has_memory(), self.analysis.counts_flops());
        (device, memory, flops)
    }

    /// Returns the number of lost events by cause.
    pub(crate) fn loss(&self) -> Vec<u64> {
        let loss = self.analysis.profile().loss();
        LossCause::ALL.map(|cause| loss.count(cause)).to_vec()
    }
}
