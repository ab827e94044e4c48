//! The completeness of a profile: what is missing from it, and how much of the program it covers.
//!
//! A comparison collects it for both sides, and [`crate::Verdict`] decides what it means.
//! [`crate::Advice`] asks which conclusions the rest still allows.

mod cut_record;
mod launches;

use mindprof_model::{
    Category, Damage, DeviceKind, Event, Flags, LossCause, Nanos, OperatorLimit, Profile, ThreadId,
};
use rustc_hash::{FxHashMap, FxHashSet};

use self::cut_record::CutRecord;
use self::launches::Launches;
use crate::device::DeviceProperties;
use crate::steps::Steps;

/// The facts by which a comparison is fair or not: missing events, and how much of the program the
/// profile covers. Times alone do not show them, because missing work looks like fast work.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and any may be combined"
)]
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
    /// Whether the recording of torch's collector was, which holds all that a process did.
    pub lacks_collections: bool,
    /// The numbers of events that `mindprof slim` kept and found, if it removed or shortened any.
    pub cut: Option<(u64, u64)>,
    /// The operators that were recorded, if others were left out. A comparison of two profiles with the
    /// same limit is fair, so neither has it then.
    pub limit: Option<OperatorLimit>,
    /// Whether a cut removed events from the time that it kept, and not only before and after it.
    pub is_thinned: bool,
    /// The numbers of launches whose device work is missing and of all launches, if many miss theirs.
    pub unanswered_launches: Option<(u64, u64)>,
    /// Whether the profile shows that its program has a device, with or without its work.
    pub names_device: bool,
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

impl EventKind {
    /// Every kind of events.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Device, Self::PythonCall];
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
        let cut = CutRecord::read(profile).ok().flatten();
        cut.map(|cut| (cut.kept, cut.found))
    }

    /// Collects the facts of one profile.
    pub(crate) fn of_one(profile: &Profile) -> Self {
        let mut facts = Self::of(profile, true);
        facts.losses.retain(|loss| is_told(loss, loss.recorded > 0));
        facts
    }

    /// Returns the kinds of events of which so many are missing that their absence says nothing.
    pub(crate) fn doubtful_kinds(&self, most_lost: f64) -> Vec<EventKind> {
        let is_any = self.is_damaged || self.is_unreadable || self.is_thinned;
        let is_doubtful = |kind: &EventKind| {
            let is_lost = |loss: &KindLoss| loss.kind == *kind && loss.share() > most_lost;
            let is_lacking = match kind {
                EventKind::Device => {
                    is_any && self.names_device || self.unanswered_launches.is_some()
                }
                EventKind::Cpu => is_any || self.lacks_collections || self.limit.is_some(),
                EventKind::PythonCall => is_any || self.lacks_collections,
            };
            is_lacking || self.losses.iter().any(is_lost)
        };
        EventKind::ALL.into_iter().filter(is_doubtful).collect()
    }

    /// Collects the facts of both profiles of a comparison. Python calls count only if they are
    /// compared.
    pub(crate) fn of_both(profiles: [&Profile; 2], python_functions: bool) -> [Self; 2] {
        let mut both = profiles.map(|profile| Self::of(profile, python_functions));
        if both[0].limit == both[1].limit {
            for side in &mut both {
                side.limit = None;
            }
        }
        let [first, second] = both.each_ref().map(|side| side.losses.clone());
        let is_present = |index: usize| first[index].recorded > 0 || second[index].recorded > 0;
        for side in &mut both {
            let losses = side.losses.iter().enumerate();
            let kept = losses.filter(|(index, loss)| is_told(loss, is_present(*index)));
            side.losses = kept.map(|(_, loss)| *loss).collect();
        }
        both
    }

    fn of(profile: &Profile, python_functions: bool) -> Self {
        let damage = Damage::read(profile.metadata());
        let loss = |cause| profile.loss().count(cause);
        let cut = CutRecord::read(profile);
        let is_unreadable = damage.unreadable > 0 || cut.is_err();
        let cut = cut.ok().flatten();
        let mut facts = Self {
            is_unreadable,
            is_damaged: damage.cuts > 0 || loss(LossCause::Damaged) > 0,
            lacks_recordings: loss(LossCause::Workers) > 0 || loss(LossCause::Collections) > 0,
            lacks_collections: loss(LossCause::Collections) > 0,
            cut: cut.map(|cut| (cut.kept, cut.found)),
            limit: OperatorLimit::read(profile.metadata()),
            is_thinned: cut.is_some_and(|cut| cut.is_thinned),
            unanswered_launches: Launches::count(profile).lacking(),
            names_device: names_device(profile),
            steps: Steps::build(profile).complete().len() as u64,
            extras: extras(profile),
            ..Self::default()
        };
        let counts = facts.add_events(profile, python_functions);
        facts.add_losses(profile, damage.altered, python_functions);
        for loss in &mut facts.losses {
            loss.recorded = counts[loss.kind as usize];
        }
        facts
    }

    /// Counts the events, and the processes, ranks and devices that they are from. Returns the number
    /// of events of each kind.
    fn add_events(&mut self, profile: &Profile, python_functions: bool) -> [u64; 3] {
        let threads = profile.threads();
        let (mut is_used, mut has_work) = (vec![false; threads.len()], vec![false; threads.len()]);
        let mut counts = [0; EventKind::ALL.len()];
        for event in profile.events() {
            let index = event.thread.index();
            let is_on_cpu = threads[index].device == DeviceKind::Cpu;
            is_used[index] = true;
            let is_call = event.category == Category::PythonFunction;
            let is_compared = python_functions || !is_call;
            let is_wait = event.category == Category::Other && !is_on_cpu;
            let is_interval = !event.flags.contains(Flags::INSTANT) && !is_wait;
            self.intervals += u64::from(is_compared && is_interval);
            let is_work = event.category == Category::Kernel && event.duration > Nanos::ZERO;
            has_work[index] |= is_work;
            counts[EventKind::PythonCall as usize] += u64::from(is_call);
            counts[EventKind::Cpu as usize] += u64::from(is_on_cpu && !is_call && is_interval);
            counts[EventKind::Device as usize] += u64::from(is_work);
        }
        let mut processes = FxHashSet::default();
        let mut ranks = FxHashSet::default();
        let mut devices: FxHashMap<DeviceKind, FxHashSet<_>> = FxHashMap::default();
        for (index, thread) in threads
            .iter()
            .enumerate()
            .filter(|(index, _)| is_used[*index])
        {
            let rank = profile.rank(ThreadId::from_index(index));
            ranks.insert(rank);
            if thread.device == DeviceKind::Cpu {
                processes.insert(thread.process);
            }
            if has_work[index] {
                let found = devices.entry(thread.device).or_default();
                found.insert((rank, thread.process));
            }
        }
        let counted = |(kind, found): (_, FxHashSet<_>)| (kind, found.len() as u64);
        self.devices = devices.into_iter().map(counted).collect();
        self.devices.sort_unstable();
        (self.ranks, self.processes) = (ranks.len() as u64, processes.len() as u64);
        self.python_calls = counts[EventKind::PythonCall as usize];
        counts
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

/// Returns whether a profile lists a device, or has a stream, a launch or memory of one.
fn names_device(profile: &Profile) -> bool {
    let is_of_device = |device: DeviceKind| device != DeviceKind::Cpu;
    let is_call = |event: &Event| event.category == Category::Runtime;
    !DeviceProperties::read(profile.metadata()).is_empty()
        || (profile.threads().iter()).any(|thread| is_of_device(thread.device))
        || (profile.memory().iter()).any(|record| is_of_device(record.device))
        || profile.events().iter().any(is_call)
}

fn extras(profile: &Profile) -> Vec<Extra> {
    let has = |extra: &Extra| match extra {
        Extra::Shapes => !profile.inputs().is_empty(),
        Extra::Stacks => !profile.stacks().is_empty(),
        Extra::Memory => !profile.memory().is_empty(),
    };
    Extra::ALL.into_iter().filter(has).collect()
}

/// Returns whether the loss of a kind of events matters. Loss of device work is real even if none is
/// left, because its causes name it; that of other kinds is if the profile has such events.
const fn is_told(loss: &KindLoss, is_present: bool) -> bool {
    is_present || matches!(loss.kind, EventKind::Device) && loss.lost > 0
}
