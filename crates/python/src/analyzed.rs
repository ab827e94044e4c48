//! A profile with its analysis and cached rows, shared by all Python objects of the profile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mindprof_analyze::{Analysis, Averages, GroupBy, averages};
use mindprof_answers::{Steps, Work, WorkRows, ask};
use mindprof_model::{LossCause, OperatorLimit, Profile};

use crate::names::device_name;

/// Facts that hold for all events and rows: the device's name, whether memory was recorded, and
/// whether FLOPs are counted.
pub(crate) type Facts = (Option<&'static str>, bool, bool);

/// An analysis with its rows, cached by grouping. All Python objects of a profile share one.
#[derive(Debug)]
pub(crate) struct Analyzed {
    pub(crate) analysis: Arc<Analysis>,
    pub(crate) work: Work,
    steps: OnceLock<Steps>,
    rows: Mutex<HashMap<GroupBy, Arc<WorkRows>>>,
    all_rows: OnceLock<Arc<Averages>>,
    /// For a profile of `mindprof run`, the views that rows are computed from: without and with
    /// stacks.
    views: [OnceLock<Arc<Self>>; 2],
}

impl Analyzed {
    pub(crate) fn new(profile: Profile) -> Arc<Self> {
        let analysis = Analysis::build(profile);
        let work = Work::of(&analysis);
        Self::with_work(Arc::new(analysis), work)
    }

    /// Wraps an analysis in which `work` defines the events that count as work.
    pub(crate) fn with_work(analysis: Arc<Analysis>, work: Work) -> Arc<Self> {
        Arc::new(Self {
            analysis,
            work,
            steps: OnceLock::new(),
            rows: Mutex::default(),
            all_rows: OnceLock::new(),
            views: [OnceLock::new(), OnceLock::new()],
        })
    }

    /// Returns the grouping that is shown for a requested one. A run without operators and ranges
    /// shows its Python functions, as `mindprof table` does.
    pub(crate) fn grouping(&self, group_by: GroupBy) -> GroupBy {
        if self.work.side_ranges().is_none() || group_by.python_functions {
            return group_by;
        }
        GroupBy {
            python_functions: self.work.is_python_alone(self.analysis.profile()),
            ..group_by
        }
    }

    /// Returns the analysis that rows of a grouping are computed from: this one, except for a
    /// profile of `mindprof run`, whose side ranges are removed.
    pub(crate) fn view(self: &Arc<Self>, group_by: GroupBy) -> Arc<Self> {
        if self.work.side_ranges().is_none() || group_by.python_functions {
            return Arc::clone(self);
        }
        let view = &self.views[usize::from(group_by.stack_frames > 0)];
        let make = || match self.work.view(&self.analysis, group_by) {
            Some(analysis) => Self::with_work(Arc::new(analysis), self.work.clone()),
            None => Arc::clone(self),
        };
        Arc::clone(view.get_or_init(make))
    }

    /// Returns the rows of a grouping, which the first call computes.
    pub(crate) fn rows(&self, group_by: GroupBy) -> Arc<WorkRows> {
        let mut known = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(self.work.averages(&self.analysis, group_by));
        Arc::clone(known.entry(group_by).or_insert_with(make))
    }

    /// Returns the rows of all events, work or not, including Python functions.
    pub(crate) fn all_rows(&self) -> Arc<Averages> {
        let group_by = GroupBy {
            python_functions: true,
            ..GroupBy::default()
        };
        let make = || Arc::new(averages(&self.analysis, group_by));
        Arc::clone(self.all_rows.get_or_init(make))
    }

    /// Answers a question as JSON, or returns `None` if there is no such question.
    pub(crate) fn ask(&self, question: &str) -> Option<String> {
        ask(&self.analysis, &self.work, question)
    }

    /// Returns the steps of the profile.
    pub(crate) fn steps(&self) -> &Steps {
        self.steps
            .get_or_init(|| Steps::build(self.analysis.profile()))
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

    /// Returns the words that limit the recorded operators; empty if all were recorded.
    pub(crate) fn only(&self) -> Vec<String> {
        let limit = OperatorLimit::read(self.analysis.profile().metadata());
        limit.map_or_else(Vec::new, |limit| limit.words())
    }
}
