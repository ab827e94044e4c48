//! The completeness of a profile: what is missing from it, and how much of the program it covers.
//!
//! A comparison collects it for both sides, and [`crate::Verdict`] decides what it means.

use mindprof_analyze::SLIM_KEY;
use mindprof_model::{Category, Damage, DeviceKind, Flags, LossCause, Nanos, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

use crate::steps::Steps;

/// The facts by which a comparison is fair or not: missing events, and how much of the program the
/// profile covers. Times alone do not show them, because missing work looks like fast work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completeness {
    /// The number of events that are known to be missing or to have wrong times.
    pub lost: u64,
    /// The losses of each kind of events that is compared and that either profile has.
    pub losses: Vec<KindLoss>,
    /// Whether a note of loss, cuts or damage is malformed, so that anything may be missing.
    pub is_unreadable: bool,
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
    /// The kinds of devices that worked, each with the number of its devices.
    pub devices: Vec<(DeviceKind, u64)>,
    /// The optional data that was recorded.
    pub extras: Vec<Extra>,
}

/// A kind of events that is compared. Kinds are lost independently of each other, and the many
/// events of one kind must not hide that few of another are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Operators, ranges and runtime calls on the CPU.
    Cpu,
    /// Kernels, copies and other work of devices.
    Device,
    /// Calls of Python functions.
    PythonCall,
}

/// The loss of one kind of events. A cause of loss that does not tell the kind of its events counts
/// for every kind that it may have hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindLoss {
    /// The kind of events.
    pub kind: EventKind,
    /// The number of its events that the profile has.
    pub recorded: u64,
    /// The largest number of its events that may be missing or have wrong times.
    pub lost: u64,
}

impl KindLoss {
    /// Returns the lost events as a share of all events of the kind.
    pub fn share(&self) -> f64 {
        if self.lost == 0 {
            return 0.0;
        }
        self.lost as f64 / self.recorded.saturating_add(self.lost) as f64
    }
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
    /// Returns the numbers of events that a profile has and that its recording had, if a cut removed
    /// or shortened any.
    pub fn cut_of(profile: &Profile) -> Option<(u64, u64)> {
        cut_of(profile).ok().flatten()
    }

    /// Collects the facts of both profiles of a comparison. Python calls count only if they are
    /// compared.
    pub(crate) fn of_both(profiles: [&Profile; 2], python_functions: bool) -> [Self; 2] {
        let mut both = profiles.map(|profile| Self::of(profile, python_functions));
        let [first, second] = both.each_ref().map(|side| side.losses.clone());
        let is_present = |index: usize| first[index].recorded > 0 || second[index].recorded > 0;
        for side in &mut both {
            let losses = side.losses.iter().enumerate();
            // Loss of a kind that the causes name is real even if no event of the kind is left.
            let kept = losses.filter(|(index, loss)| {
                is_present(*index) || loss.kind == EventKind::Device && loss.lost > 0
            });
            side.losses = kept.map(|(_, loss)| *loss).collect();
        }
        both
    }

    fn of(profile: &Profile, python_functions: bool) -> Self {
        let damage = Damage::read(profile.metadata());
        let loss = |cause| profile.loss().count(cause);
        let cut = cut_of(profile);
        let mut facts = Self {
            is_unreadable: damage.unreadable > 0 || cut.is_err(),
            is_damaged: damage.cuts > 0 || loss(LossCause::Damaged) > 0,
            lacks_recordings: loss(LossCause::Workers) > 0 || loss(LossCause::Collections) > 0,
            cut: cut.ok().flatten(),
            steps: Steps::build(profile).complete().len() as u64,
            extras: extras(profile),
            ..Self::default()
        };
        let mut processes = FxHashSet::default();
        let mut ranks = FxHashSet::default();
        let mut devices: FxHashMap<DeviceKind, FxHashSet<_>> = FxHashMap::default();
        let (mut cpu_events, mut device_events) = (0, 0);
        for event in profile.events() {
            let thread = &profile.threads()[event.thread.index()];
            let rank = profile.rank(event.thread);
            ranks.insert(rank);
            if thread.device == DeviceKind::Cpu {
                processes.insert(thread.process);
            }
            let is_call = event.category == Category::PythonFunction;
            facts.python_calls += u64::from(is_call);
            let is_compared = python_functions || !is_call;
            let is_wait = event.category == Category::Other && thread.device != DeviceKind::Cpu;
            let is_interval = !event.flags.contains(Flags::INSTANT) && !is_wait;
            facts.intervals += u64::from(is_compared && is_interval);
            let is_on_cpu = thread.device == DeviceKind::Cpu && !is_call && is_interval;
            cpu_events += u64::from(is_on_cpu);
            let is_work = event.category == Category::Kernel && event.duration > Nanos::ZERO;
            device_events += u64::from(is_work);
            if is_work {
                let found = devices.entry(thread.device).or_default();
                found.insert((rank, thread.process));
            }
        }
        let counted = |(kind, found): (_, FxHashSet<_>)| (kind, found.len() as u64);
        facts.devices = devices.into_iter().map(counted).collect();
        facts.devices.sort_unstable();
        (facts.ranks, facts.processes) = (ranks.len() as u64, processes.len() as u64);
        facts.add_losses(profile, damage.altered, python_functions);
        for loss in &mut facts.losses {
            loss.recorded = match loss.kind {
                EventKind::Cpu => cpu_events,
                EventKind::Device => device_events,
                EventKind::PythonCall => facts.python_calls,
            };
        }
        facts
    }

    /// Adds the events that were lost one by one. The other causes count places.
    fn add_losses(&mut self, profile: &Profile, altered: u64, python_functions: bool) {
        // The recorder does not tell lost operators from lost Python calls, and a repair does not
        // tell which events it left out.
        let kinds_of = |cause| match cause {
            LossCause::Budget | LossCause::Names | LossCause::Depth => {
                &[EventKind::Cpu, EventKind::PythonCall][..]
            }
            LossCause::Unseen => &[EventKind::PythonCall],
            LossCause::Unreported => &[EventKind::Device],
            LossCause::Damaged | LossCause::Workers | LossCause::Collections => &[],
        };
        let mut kinds = vec![EventKind::Cpu, EventKind::Device];
        kinds.extend(python_functions.then_some(EventKind::PythonCall));
        let (recorded, lost) = (0, altered);
        let none = |&kind: &EventKind| KindLoss {
            kind,
            recorded,
            lost,
        };
        self.losses = kinds.iter().map(none).collect();
        self.lost = altered;
        for cause in LossCause::ALL {
            let (count, hit) = (profile.loss().count(cause), kinds_of(cause));
            for loss in self
                .losses
                .iter_mut()
                .filter(|loss| hit.contains(&loss.kind))
            {
                loss.lost = loss.lost.saturating_add(count);
            }
            if kinds.iter().any(|kind| hit.contains(kind)) {
                self.lost = self.lost.saturating_add(count);
            }
        }
    }

    /// Returns the loss of the kind of events that lost the largest share, or `None` if nothing was
    /// lost.
    pub fn worst_loss(&self) -> Option<KindLoss> {
        let losses = self.losses.iter().copied().filter(|loss| loss.lost > 0);
        losses.reduce(|worst, next| {
            if next.share() > worst.share() {
                next
            } else {
                worst
            }
        })
    }
}

fn extras(profile: &Profile) -> Vec<Extra> {
    let has = |extra: &Extra| match extra {
        Extra::Shapes => !profile.inputs().is_empty(),
        Extra::Stacks => !profile.stacks().is_empty(),
        Extra::Memory => !profile.memory().is_empty(),
    };
    Extra::ALL.into_iter().filter(has).collect()
}

/// The record of a cut that `mindprof slim` writes, as far as it matters here, or those of the ranks
/// of a merged profile.
#[derive(Deserialize)]
#[serde(untagged)]
enum CutDocument {
    One {
        events: u64,
        kept: u64,
        clipped: u64,
        earlier: Option<Box<Self>>,
    },
    Merged {
        parts: Vec<Self>,
    },
}

/// The counts of one or more cuts. Sums saturate, because a file may contain any numbers.
#[derive(Default)]
struct CutCounts {
    kept: u64,
    removed: u64,
    is_clipped: bool,
}

impl CutDocument {
    fn counts(&self) -> Result<CutCounts, UnreadableCut> {
        match self {
            Self::One {
                events,
                kept,
                clipped,
                earlier,
            } => {
                let removed = events.checked_sub(*kept).ok_or(UnreadableCut)?;
                let earlier = match earlier {
                    Some(earlier) => earlier.counts()?,
                    None => CutCounts::default(),
                };
                Ok(CutCounts {
                    kept: *kept,
                    removed: removed.saturating_add(earlier.removed),
                    is_clipped: earlier.is_clipped || *clipped > 0,
                })
            }
            Self::Merged { parts } => parts.iter().try_fold(CutCounts::default(), |sum, part| {
                let part = part.counts()?;
                Ok(CutCounts {
                    kept: sum.kept.saturating_add(part.kept),
                    removed: sum.removed.saturating_add(part.removed),
                    is_clipped: sum.is_clipped || part.is_clipped,
                })
            }),
        }
    }
}

/// The record of a cut has an unknown form.
struct UnreadableCut;

/// Returns the numbers of events that were kept and found by all cuts of a profile, or `None` if
/// nothing was removed.
fn cut_of(profile: &Profile) -> Result<Option<(u64, u64)>, UnreadableCut> {
    let Some(text) = profile.metadata().get(SLIM_KEY) else {
        return Ok(None);
    };
    let cuts: CutDocument = serde_json::from_str(text).map_err(|_| UnreadableCut)?;
    let counts = cuts.counts()?;
    let found = counts.kept.saturating_add(counts.removed);
    Ok((counts.removed > 0 || counts.is_clipped).then_some((counts.kept, found)))
}
