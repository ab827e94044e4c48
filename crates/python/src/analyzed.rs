//! A profile with its analysis and the averages that were asked for, shared by everything Python
//! holds of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mindprof_analyze::{Analysis, Averages, GroupBy, averages};
use mindprof_model::Profile;

/// An analysis, and its averages by what they are grouped by.
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

    /// Returns the averages, worked out by the first call for a grouping.
    pub(crate) fn averages(&self, group_by: GroupBy) -> Arc<Averages> {
        let mut known = self.averages.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(averages(&self.analysis, group_by));
        Arc::clone(known.entry(group_by).or_insert_with(make))
    }
}
