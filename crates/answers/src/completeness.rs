//! The completeness of a profile: what is missing from it, and how much of the program it covers.
//!
//! A comparison collects it for both sides, and [`crate::Verdict`] decides what it means.

use mindprof_analyze::SLIM_KEY;
use mindprof_model::{Category, Damage, DeviceKind, Flags, LossCause, Nanos, Profile};
use rustc_hash::FxHashSet;
use serde::Deserialize;

use crate::steps::Steps;

/// The facts by which a comparison is fair or not: missing events, and how much of the program the
/// profile covers. Times alone do not show them, because missing work looks like fast work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completeness {
    /// The number of events and memory records of the profile.
    pub recorded: u64,
    /// The number of events and memory records that are known to be missing or to have wrong times.
    pub lost: u64,
    /// Whether a file was damaged or cut off, so that an unknown number of events is missing.
    pub is_damaged: bool,
    /// Whether the recording of a worker or of torch's collector was lost as a whole.
    pub lacks_recordings: bool,
    /// The numbers of events that `mindprof slim` kept and found, if it removed or shortened any.
    pub cut: Option<(u64, u64)>,
    /// The number of complete steps.
    pub steps: u64,
    /// The number of merged ranks; one for the profile of a single process.
    pub ranks: u64,
    /// The number of processes with CPU events.
    pub processes: u64,
    /// The number of events that are neither instants nor waits for a device.
    pub intervals: u64,
    /// The number of Python calls.
    pub python_calls: u64,
    /// The kinds of devices that worked.
    pub devices: Vec<DeviceKind>,
    /// The optional data that was recorded.
    pub extras: Vec<Extra>,
}

/// Data that is recorded on request. Recording it takes time, which a comparison shows if only one
/// side has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extra {
    /// Shapes of inputs.
    Shapes,
    /// Python stacks or calls.
    Stacks,
    /// Memory records.
    Memory,
}

impl Extra {
    /// Every kind of optional data.
    pub const ALL: [Self; 3] = [Self::Shapes, Self::Stacks, Self::Memory];
}

impl Completeness {
    /// Collects the facts of a profile. Python calls count only if they are compared.
    pub(crate) fn of(profile: &Profile, python_functions: bool) -> Self {
        let damage = Damage::read(profile.metadata());
        let loss = |cause| profile.loss().count(cause);
        let memory = profile.memory().len() as u64;
        let mut facts = Self {
            recorded: profile.events().len() as u64 + memory,
            lost: lost(profile, python_functions) + damage.altered,
            is_damaged: damage.cuts > 0 || loss(LossCause::Damaged) > 0,
            lacks_recordings: loss(LossCause::Workers) + loss(LossCause::Collections) > 0,
            cut: cut_of(profile),
            steps: Steps::build(profile).complete().len() as u64,
            extras: extras(profile),
            ..Self::default()
        };
        let mut processes = FxHashSet::default();
        let mut ranks = FxHashSet::default();
        for event in profile.events() {
            let thread = &profile.threads()[event.thread.index()];
            ranks.insert(profile.rank(event.thread));
            if thread.device == DeviceKind::Cpu {
                processes.insert(thread.process);
            }
            let is_call = event.category == Category::PythonFunction;
            facts.python_calls += u64::from(is_call);
            let is_compared = python_functions || !is_call;
            let is_wait = event.category == Category::Other && thread.device != DeviceKind::Cpu;
            let is_interval = !event.flags.contains(Flags::INSTANT) && !is_wait;
            facts.intervals += u64::from(is_compared && is_interval);
            let is_work = event.category == Category::Kernel && event.duration > Nanos::ZERO;
            if is_work && !facts.devices.contains(&thread.device) {
                facts.devices.push(thread.device);
            }
        }
        facts.devices.sort_unstable();
        (facts.ranks, facts.processes) = (ranks.len() as u64, processes.len() as u64);
        facts
    }

    /// Returns the lost events as a share of all events.
    pub fn lost_share(&self) -> f64 {
        if self.lost == 0 {
            return 0.0;
        }
        self.lost as f64 / (self.recorded + self.lost) as f64
    }
}

/// Returns the number of events that were lost one by one. The other causes count places.
fn lost(profile: &Profile, python_functions: bool) -> u64 {
    let is_counted = |cause: &LossCause| match cause {
        LossCause::Budget | LossCause::Names | LossCause::Depth | LossCause::Unreported => true,
        LossCause::Unseen => python_functions,
        LossCause::Damaged | LossCause::Workers | LossCause::Collections => false,
    };
    let causes = LossCause::ALL.into_iter().filter(is_counted);
    causes.map(|cause| profile.loss().count(cause)).sum()
}

fn extras(profile: &Profile) -> Vec<Extra> {
    let has = |extra: &Extra| match extra {
        Extra::Shapes => !profile.inputs().is_empty(),
        Extra::Stacks => !profile.stacks().is_empty(),
        Extra::Memory => !profile.memory().is_empty(),
    };
    Extra::ALL.into_iter().filter(has).collect()
}

/// The record of a cut that `mindprof slim` writes, as far as it matters here.
#[derive(Deserialize)]
struct CutDocument {
    events: u64,
    kept: u64,
    clipped: u64,
    earlier: Option<Box<Self>>,
}

/// Returns the numbers of events that were kept and found by all cuts of a profile, or `None` if
/// nothing was removed.
fn cut_of(profile: &Profile) -> Option<(u64, u64)> {
    let text = profile.metadata().get(SLIM_KEY)?;
    let last: CutDocument = serde_json::from_str(text).ok()?;
    let (mut found, mut clipped) = (last.events, last.clipped);
    let mut earlier = &last.earlier;
    while let Some(cut) = earlier {
        (found, clipped) = (cut.events, clipped + cut.clipped);
        earlier = &cut.earlier;
    }
    (last.kept < found || clipped > 0).then_some((last.kept, found))
}
