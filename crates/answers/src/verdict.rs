//! The verdict of a comparison: whether one profile is slower than another beyond a limit, or
//! cannot be judged at all.
//!
//! The verdict is part of the library, not of `mindprof diff --fail-over`, so that every interface
//! that judges a comparison accepts and refuses the same traces.

use mindprof_model::{DeviceKind, Nanos, Profile};

use crate::completeness::{Completeness, EventKind, Extra};
use crate::diff::{Diff, Measure, Side, Whole};

/// The largest share of lost events with which a profile is still judged. Lost events can hide as
/// much growth as their share, so a limit below this share accepts no greater loss than itself.
pub(crate) const MOST_LOST: f64 = 0.01;

/// The numbers that a limit applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    /// The profile as a whole: CPU time and device time separately, or the number of events.
    #[default]
    Total,
    /// Each row, whose growth is measured as a share of the first profile as a whole.
    Row,
}

/// Whether a profile from which something is missing is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Incomplete {
    /// It is refused.
    #[default]
    Refuse,
    /// It is judged, and the verdict has a doubt about it.
    Accept,
}

/// The amount by which the second profile may exceed the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limit {
    /// The largest accepted growth, for example 0.05 for five percent.
    pub share: f64,
    /// The numbers that the limit applies to.
    pub fail_on: FailOn,
    /// Whether incomplete profiles are judged.
    pub incomplete: Incomplete,
}

/// The part of a profile that grew most.
#[derive(Clone, Debug, PartialEq)]
pub enum Grown {
    /// A number of the profile as a whole.
    Whole(Side),
    /// The row with this key.
    Row(String),
    /// Nothing grew.
    Nothing,
}

/// The verdict of a comparison.
///
/// It is data: the callers word it and choose an exit status or a return value.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing grew beyond the limit.
    Within {
        /// The part that grew most.
        what: Grown,
        /// Its relative growth.
        growth: f64,
    },
    /// Something grew beyond the limit.
    Exceeded {
        /// The part that grew most.
        what: Grown,
        /// Its relative growth, which is infinite if it was zero before.
        growth: f64,
    },
    /// The profiles cannot be judged.
    Refused(Refusal),
}

/// The reason why profiles cannot be judged.
///
/// Missing work cannot grow, so a limit alone would accept a trace that is damaged or empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// The trace was damaged or cut off.
    Damaged {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// The recording of a worker or of torch's collector was lost as a whole.
    LacksRecordings {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// A note of loss, cuts or damage is malformed, so that anything may be missing.
    Unreadable {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// Too many events of one kind were lost.
    Lost {
        /// Whether it is the second one.
        is_second: bool,
        /// The kind of events.
        kind: EventKind,
        /// The number of lost events.
        events: u64,
        /// Their share of all events of the kind.
        share: f64,
    },
    /// `mindprof slim` removed or shortened events.
    Cut {
        /// Whether it is the second one.
        is_second: bool,
        /// The number of events that were kept.
        kept: u64,
        /// The number of events before the cut.
        events: u64,
    },
    /// Only some of the operators were recorded, and not the same as for the other profile.
    Limited {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// The launches of device work were recorded, but many lack the work itself.
    LacksDeviceWork {
        /// Whether it is the second one.
        is_second: bool,
        /// The number of launches without their work.
        missing: u64,
        /// The number of all launches.
        launches: u64,
    },
    /// The second profile has fewer steps than the first.
    FewerSteps {
        /// The number of steps of the first profile.
        before: u64,
        /// The number of steps of the second profile.
        after: u64,
    },
    /// The second profile has fewer ranks than the first.
    FewerRanks {
        /// The number of ranks of the first profile.
        before: u64,
        /// The number of ranks of the second profile.
        after: u64,
    },
    /// Fewer devices of a kind worked in the second profile than in the first.
    FewerDevices {
        /// The kind of devices.
        kind: DeviceKind,
        /// The number of devices of the first profile.
        before: u64,
        /// The number of devices of the second profile.
        after: u64,
    },
    /// The profile has no events at all.
    Empty {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// The profile has events, but no operators, ranges or device work.
    NothingToCompare {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// No event of the profile has a duration, and times are compared.
    NoTime {
        /// Whether it is the second one.
        is_second: bool,
    },
    /// The second profile has no CPU time, while the first has some.
    NoCpuTime,
    /// No device worked in the second profile, while devices worked in the first.
    NoDeviceWork,
    /// A kind of device worked in the first profile, but not in the second.
    NoWorkOf(DeviceKind),
    /// Python calls are compared, and only the first profile has any.
    NoPythonCalls,
    /// No row of the first profile is in the second.
    NothingInCommon,
}

impl Refusal {
    /// Returns the name of the reason, as JSON documents have it.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Damaged { .. } => "damaged",
            Self::LacksRecordings { .. } => "lacks_recordings",
            Self::Unreadable { .. } => "unreadable",
            Self::Lost { .. } => "lost",
            Self::Cut { .. } => "cut",
            Self::Limited { .. } => "limited",
            Self::LacksDeviceWork { .. } => "lacks_device_work",
            Self::FewerSteps { .. } => "steps",
            Self::FewerRanks { .. } => "ranks",
            Self::FewerDevices { .. } => "devices",
            Self::Empty { .. } => "empty",
            Self::NothingToCompare { .. } => "nothing_to_compare",
            Self::NoTime { .. } => "no_time",
            Self::NoCpuTime => "no_cpu_time",
            Self::NoDeviceWork => "no_device_work",
            Self::NoWorkOf(_) => "no_work_of",
            Self::NoPythonCalls => "no_python_calls",
            Self::NothingInCommon => "nothing_in_common",
        }
    }

    /// Returns whether the refusal concerns the second of the two profiles.
    pub const fn is_second(self) -> bool {
        match self {
            Self::Damaged { is_second }
            | Self::LacksRecordings { is_second }
            | Self::Unreadable { is_second }
            | Self::Lost { is_second, .. }
            | Self::Cut { is_second, .. }
            | Self::Limited { is_second }
            | Self::LacksDeviceWork { is_second, .. }
            | Self::Empty { is_second }
            | Self::NothingToCompare { is_second }
            | Self::NoTime { is_second } => is_second,
            Self::FewerSteps { .. }
            | Self::FewerRanks { .. }
            | Self::FewerDevices { .. }
            | Self::NoCpuTime
            | Self::NoDeviceWork
            | Self::NoWorkOf(_)
            | Self::NoPythonCalls
            | Self::NothingInCommon => true,
        }
    }

    /// Returns whether [`Incomplete::Accept`] accepts the profile. If nothing would be compared, it
    /// does not.
    pub const fn is_incompleteness(self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::LacksRecordings { .. }
            | Self::Unreadable { .. }
            | Self::Lost { .. }
            | Self::Cut { .. }
            | Self::Limited { .. }
            | Self::LacksDeviceWork { .. }
            | Self::FewerSteps { .. }
            | Self::FewerRanks { .. }
            | Self::FewerDevices { .. } => true,
            Self::Empty { .. }
            | Self::NothingToCompare { .. }
            | Self::NoTime { .. }
            | Self::NoCpuTime
            | Self::NoDeviceWork
            | Self::NoWorkOf(_)
            | Self::NoPythonCalls
            | Self::NothingInCommon => false,
        }
    }
}

/// A difference between the profiles, other than speed, that their times may be due to. It is shown
/// beside the verdict, and beside a comparison that is not judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// A profile would be refused, but is accepted on request or not judged.
    Refusable(Refusal),
    /// Few events were lost.
    Lost {
        /// Whether they are of the second profile.
        is_second: bool,
        /// Their number.
        events: u64,
    },
    /// The profiles have different numbers of steps.
    Steps {
        /// The number of steps of the first profile.
        before: u64,
        /// The number of steps of the second profile.
        after: u64,
    },
    /// The profiles have different numbers of processes.
    Processes {
        /// The number of processes of the first profile.
        before: u64,
        /// The number of processes of the second profile.
        after: u64,
    },
    /// Only one of the profiles has this data.
    OnlyOneHas {
        /// The data.
        what: Extra,
        /// Whether it is the second profile that has it.
        is_second: bool,
    },
}

impl Verdict {
    /// Judges a comparison.
    pub fn build(diff: &Diff, limit: Limit) -> Self {
        let mut refusals = nothing_compared(diff);
        if limit.incomplete == Incomplete::Refuse {
            refusals.splice(0..0, incompleteness(diff, limit));
        }
        if let Some(&refusal) = refusals.first() {
            return Self::Refused(refusal);
        }
        let (what, growth) = grown(diff, limit.fail_on);
        if growth <= limit.share {
            Self::Within { what, growth }
        } else {
            Self::Exceeded { what, growth }
        }
    }
}

impl Doubt {
    /// Returns the doubts about a comparison without a limit: every reason for which some limit
    /// refuses it, and every other difference.
    pub fn notes(diff: &Diff) -> Vec<Self> {
        let refusals = nothing_compared(diff).into_iter().map(Self::Refusable);
        // A limit of zero accepts no loss.
        let doubts = Self::build(diff, Limit::default());
        refusals.chain(doubts).collect()
    }

    /// Returns the doubts about a comparison that is not refused.
    pub fn build(diff: &Diff, limit: Limit) -> Vec<Self> {
        let accepted = incompleteness(diff, limit);
        let mut doubts: Vec<Self> = accepted.iter().copied().map(Self::Refusable).collect();
        let [before, after] = &diff.completeness;
        for (is_second, side) in [(false, before), (true, after)] {
            let worst = side.worst_loss();
            if worst.is_some_and(|loss| loss.share() <= most_lost(limit)) {
                let events = side.lost;
                doubts.push(Self::Lost { is_second, events });
            }
        }
        let is_told = |refusal: &Refusal| matches!(refusal, Refusal::FewerSteps { .. });
        if before.steps != after.steps && !accepted.iter().any(is_told) {
            let (before, after) = (before.steps, after.steps);
            doubts.push(Self::Steps { before, after });
        }
        if before.processes != after.processes && before.ranks == after.ranks {
            let (before, after) = (before.processes, after.processes);
            doubts.push(Self::Processes { before, after });
        }
        for what in Extra::ALL {
            let [first, second] = [before, after].map(|side| side.extras.contains(&what));
            if first != second {
                let is_second = second;
                doubts.push(Self::OnlyOneHas { what, is_second });
            }
        }
        doubts
    }
}

fn most_lost(limit: Limit) -> f64 {
    limit.share.min(MOST_LOST)
}

/// Returns what is missing from a profile, whatever it is compared with. Loss counts beyond a share.
pub(crate) fn missing_from(side: &Completeness, is_second: bool, most_lost: f64) -> Vec<Refusal> {
    let damaged = side.is_damaged.then_some(Refusal::Damaged { is_second });
    let lacks = side.lacks_recordings;
    let lacks = lacks.then_some(Refusal::LacksRecordings { is_second });
    let unreadable = side.is_unreadable;
    let unreadable = unreadable.then_some(Refusal::Unreadable { is_second });
    let worst = side.worst_loss().filter(|loss| loss.share() > most_lost);
    let lost = worst.map(|loss| Refusal::Lost {
        is_second,
        kind: loss.kind,
        events: loss.lost,
        share: loss.share(),
    });
    let cut = side.cut.map(|(kept, events)| Refusal::Cut {
        is_second,
        kept,
        events,
    });
    let unanswered = side.unanswered_launches;
    let device = unanswered.map(|(missing, launches)| Refusal::LacksDeviceWork {
        is_second,
        missing,
        launches,
    });
    let limited = side.limit.is_some();
    let limited = limited.then_some(Refusal::Limited { is_second });
    let all = [damaged, lacks, unreadable, lost, cut, limited, device];
    all.into_iter().flatten().collect()
}

/// Returns what is missing from a profile.
pub(crate) fn gaps(profile: &Profile) -> Vec<Refusal> {
    missing_from(&Completeness::of_one(profile), false, MOST_LOST)
}

/// Writes refusals as their ids.
pub(crate) fn refusal_ids<S: serde::Serializer>(
    all: &[Refusal],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|one| one.id()))
}

/// Returns what is missing from either profile.
fn incompleteness(diff: &Diff, limit: Limit) -> Vec<Refusal> {
    let [before, after] = &diff.completeness;
    let sides = [(false, before), (true, after)];
    let of_side =
        |(is_second, side): (bool, &Completeness)| missing_from(side, is_second, most_lost(limit));
    let mut found: Vec<Refusal> = sides.into_iter().flat_map(of_side).collect();
    // A recording without steps may cover as much as one with steps.
    if (1..before.steps).contains(&after.steps) {
        let (before, after) = (before.steps, after.steps);
        found.push(Refusal::FewerSteps { before, after });
    }
    if (1..before.ranks).contains(&after.ranks) {
        let (before, after) = (before.ranks, after.ranks);
        found.push(Refusal::FewerRanks { before, after });
        // The missing ranks explain their missing devices.
        return found;
    }
    for &(kind, before) in &before.devices {
        let mut same = after.devices.iter().filter(|(other, _)| *other == kind);
        if let Some(&(_, after)) = same.next().filter(|(_, after)| *after < before) {
            found.push(Refusal::FewerDevices {
                kind,
                before,
                after,
            });
        }
    }
    found
}

/// Returns why nothing, or only a part of the work, would be compared.
fn nothing_compared(diff: &Diff) -> Vec<Refusal> {
    let has_time = |whole: &Whole| whole.host > Nanos::ZERO || whole.device > Nanos::ZERO;
    let are_times = diff.measure != Measure::Count;
    let mut found = Vec::new();
    let wholes = [&diff.before, &diff.after];
    for (is_second, (whole, facts)) in [false, true]
        .into_iter()
        .zip(wholes.into_iter().zip(&diff.completeness))
    {
        if whole.recorded == 0 {
            found.push(Refusal::Empty { is_second });
        } else if whole.count == 0 || facts.intervals == 0 {
            found.push(Refusal::NothingToCompare { is_second });
        } else if are_times && !has_time(whole) {
            found.push(Refusal::NoTime { is_second });
        }
    }
    if !found.is_empty() {
        return found;
    }
    let (before, after) = (&diff.before, &diff.after);
    let [had, has] = &diff.completeness;
    if before.device > Nanos::ZERO && after.device == Nanos::ZERO {
        found.push(Refusal::NoDeviceWork);
    } else {
        let is_gone = |kind: &DeviceKind| has.devices.iter().all(|(other, _)| other != kind);
        let gone = had.devices.iter().map(|&(kind, _)| kind).find(is_gone);
        found.extend(gone.map(Refusal::NoWorkOf));
    }
    if are_times && before.host > Nanos::ZERO && after.host == Nanos::ZERO {
        found.push(Refusal::NoCpuTime);
    }
    if diff.python_functions && had.python_calls > 0 && has.python_calls == 0 {
        found.push(Refusal::NoPythonCalls);
    }
    if !diff.has_common_rows() {
        found.push(Refusal::NothingInCommon);
    }
    found
}

/// Returns the part that grew most, and its relative growth.
fn grown(diff: &Diff, fail_on: FailOn) -> (Grown, f64) {
    match (fail_on, diff.worst()) {
        (FailOn::Row, Some(row)) => (Grown::Row(row.key.clone()), diff.row_growth(row)),
        (FailOn::Row, None) => (Grown::Nothing, 0.0),
        (FailOn::Total, _) => {
            let (side, growth) = diff.most_grown();
            (Grown::Whole(side), growth)
        }
    }
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::{Analysis, SLIM_KEY};
    use mindprof_model::{
        Category, Damage, Event, Flags, LossCause, OperatorLimit, Part, Profile, Thread, Timeline,
    };

    use super::*;
    use crate::diff::DiffOptions;

    fn profile(time: u64) -> Profile {
        Timeline::draw(|draw| draw.op("mm", time))
    }

    /// A profile of `events` operators of which some are changed.
    fn changed(events: u64, change: impl FnOnce(&mut Part)) -> Profile {
        let drawn = Timeline::draw(|draw| (0..events).for_each(|_| draw.op("mm", 10)));
        let mut part = Part::from(drawn);
        change(&mut part);
        part.into_profile().expect("the part stays sound")
    }

    fn judged_with(before: Profile, after: Profile, limit: Limit, measure: Measure) -> Verdict {
        let (before, after) = (Analysis::build(before), Analysis::build(after));
        let options = DiffOptions {
            measure,
            ..DiffOptions::default()
        };
        Verdict::build(&Diff::build(&before, &after, options), limit)
    }

    fn five_percent() -> Limit {
        Limit {
            share: 0.05,
            ..Limit::default()
        }
    }

    fn judged(before: Profile, after: Profile) -> Verdict {
        judged_with(before, after, five_percent(), Measure::SelfTime)
    }

    fn refusal(verdict: &Verdict) -> Option<Refusal> {
        match verdict {
            Verdict::Refused(refusal) => Some(*refusal),
            Verdict::Within { .. } | Verdict::Exceeded { .. } => None,
        }
    }

    #[test]
    fn growth_up_to_the_limit_is_within() {
        let verdict = judged(profile(100), profile(105));
        assert!(matches!(verdict, Verdict::Within { growth, .. } if growth > 0.049));
        let verdict = judged(profile(100), profile(106));
        let whole = Grown::Whole(Side::Host);
        assert!(matches!(verdict, Verdict::Exceeded { what, .. } if what == whole));
    }

    #[test]
    fn a_damaged_trace_is_refused_first() {
        let damage = Damage {
            cuts: 1,
            ..Damage::default()
        };
        let damaged = changed(1, |part| damage.write(&mut part.metadata));
        assert_eq!(
            judged(Timeline::draw(|_| {}), damaged),
            Verdict::Refused(Refusal::Damaged { is_second: true })
        );
    }

    #[test]
    fn a_profile_without_events_is_refused() {
        assert_eq!(
            judged(profile(1), Timeline::draw(|_| {})),
            Verdict::Refused(Refusal::Empty { is_second: true })
        );
    }

    #[test]
    fn a_loss_is_accepted_up_to_one_percent_and_up_to_the_limit() {
        let losing = |cause, count| changed(100, |part| part.add_loss(cause, count));
        let whole = || changed(100, |_| {});
        for (count, share, is_refused) in [(1, 0.05, false), (2, 0.05, true), (1, 0.005, true)] {
            let limit = Limit {
                share,
                ..Limit::default()
            };
            let after = losing(LossCause::Budget, count);
            let verdict = judged_with(whole(), after, limit, Measure::SelfTime);
            assert_eq!(refusal(&verdict).is_some(), is_refused, "{count} {share}");
            let accepting = Limit {
                incomplete: Incomplete::Accept,
                ..limit
            };
            let after = losing(LossCause::Budget, count);
            let verdict = judged_with(whole(), after, accepting, Measure::SelfTime);
            assert_eq!(refusal(&verdict), None);
        }
        // One of these stands for an unknown number of events.
        let is_second = false;
        let damaged = Refusal::Damaged { is_second };
        let lacks = Refusal::LacksRecordings { is_second };
        for (cause, expected) in [
            (LossCause::Damaged, damaged),
            (LossCause::Workers, lacks),
            (LossCause::Collections, lacks),
        ] {
            let verdict = judged(losing(cause, 1), whole());
            assert_eq!(refusal(&verdict), Some(expected));
        }
        // Python calls are not compared, so it does not matter that some were not seen.
        assert_eq!(
            refusal(&judged(whole(), losing(LossCause::Unseen, 99))),
            None
        );
    }

    /// Adds events of one category and nanosecond to a part, on a thread of its own.
    fn add_events(part: &mut Part, count: u64, category: Category, place: (DeviceKind, u64)) {
        let name = part.strings.intern("added");
        let (device, process) = place;
        let thread = part.add_thread(Thread {
            process,
            native: 99,
            name,
            device,
        });
        for start in 0..count {
            let (start, duration) = (Nanos(start), Nanos(1));
            part.add_event(Event::new(category, name, thread, start, duration));
        }
    }

    #[test]
    fn a_loss_is_a_share_of_the_kind_that_was_lost() {
        let calls = |part: &mut Part| {
            let cpu = (DeviceKind::Cpu, 1);
            add_events(part, 20_000, Category::PythonFunction, cpu);
        };
        let kernels = |part: &mut Part, count| {
            add_events(part, count, Category::Kernel, (DeviceKind::Cuda, 0));
        };
        let lost = |kind, events, share| Refusal::Lost {
            is_second: true,
            kind,
            events,
            share,
        };
        let after = changed(10, |part| {
            calls(part);
            part.add_loss(LossCause::Budget, 90);
        });
        let found = refusal(&judged(changed(100, calls), after));
        assert_eq!(found, Some(lost(EventKind::Cpu, 90, 0.9)));
        let before = changed(10_000, |part| kernels(part, 100));
        let after = changed(10_000, |part| {
            kernels(part, 5);
            part.add_loss(LossCause::Unreported, 95);
        });
        let found = refusal(&judged(before, after));
        assert_eq!(found, Some(lost(EventKind::Device, 95, 0.95)));
        // A repair does not tell which events it altered, so it may have been the few kernels.
        let altered = Damage {
            altered: 5,
            ..Damage::default()
        };
        let before = changed(10_000, |part| kernels(part, 5));
        let after = changed(10_000, |part| {
            kernels(part, 5);
            altered.write(&mut part.metadata);
        });
        let found = refusal(&judged(before, after));
        assert_eq!(found, Some(lost(EventKind::Device, 5, 0.5)));
    }

    #[test]
    fn fewer_devices_of_a_kind_are_refused() {
        let on_devices = |count: u64| {
            changed(3, |part| {
                for index in 0..count {
                    add_events(part, 1, Category::Kernel, (DeviceKind::Cuda, index));
                }
            })
        };
        let fewer = Refusal::FewerDevices {
            kind: DeviceKind::Cuda,
            before: 4,
            after: 1,
        };
        let found = refusal(&judged(on_devices(4), on_devices(1)));
        assert_eq!(found, Some(fewer));
        assert_eq!(refusal(&judged(on_devices(4), on_devices(4))), None);
        let found = refusal(&judged(on_devices(4), on_devices(0)));
        assert_eq!(found, Some(Refusal::NoDeviceWork));
    }

    #[test]
    fn a_comparison_without_a_limit_has_a_note_for_each_refusal() {
        let notes = |before, after| {
            let [before, after] = [before, after].map(Analysis::build);
            Doubt::notes(&Diff::build(&before, &after, DiffOptions::default()))
        };
        let whole = || changed(99, |_| {});
        assert_eq!(notes(whole(), whole()), []);
        let is_second = true;
        let damaged = changed(99, |part| {
            part.add_loss(LossCause::Budget, 1);
            part.metadata.set(SLIM_KEY, "{}");
        });
        let lost = Refusal::Lost {
            is_second,
            kind: EventKind::Cpu,
            events: 1,
            share: 0.01,
        };
        let expected = [Refusal::Unreadable { is_second }, lost].map(Doubt::Refusable);
        assert_eq!(notes(whole(), damaged), expected);
        let empty = Doubt::Refusable(Refusal::Empty { is_second });
        assert_eq!(notes(whole(), Timeline::draw(|_| {})), [empty]);
    }

    #[test]
    fn notes_that_cannot_be_read_are_refused() {
        let is_second = true;
        let unreadable = Some(Refusal::Unreadable { is_second });
        for (key, text) in [
            (SLIM_KEY, "{\"events\":100,\"kept\":10}"),
            (SLIM_KEY, "{\"events\":100.0,\"kept\":10,\"clipped\":0}"),
            (SLIM_KEY, "\"{}\""),
            (SLIM_KEY, "{\"events\":1,\"kept\":10,\"clipped\":0}"),
            ("mindprof_damage", "{\"altered\":90}"),
        ] {
            let after = changed(9, |part| part.metadata.set(key, text));
            let found = refusal(&judged(changed(9, |_| {}), after));
            assert_eq!(found, unreadable, "{text}");
        }
        // Two cuts may have shortened more events than a number holds.
        let clipped = "\"events\":9,\"kept\":9,\"clipped\":9223372036854775808";
        let twice = format!("{{{clipped},\"earlier\":{{{clipped}}}}}");
        let after = changed(9, |part| {
            part.metadata.set(SLIM_KEY, &twice);
            part.add_loss(LossCause::Budget, u64::MAX);
            part.add_loss(LossCause::Depth, u64::MAX);
        });
        let found = refusal(&judged(changed(9, |_| {}), after));
        assert!(matches!(found, Some(Refusal::Lost { .. })), "{found:?}");
    }

    #[test]
    fn events_whose_times_were_replaced_count_as_lost() {
        let damage = Damage {
            altered: 50,
            ..Damage::default()
        };
        let altered = changed(100, |part| damage.write(&mut part.metadata));
        let found = refusal(&judged(changed(100, |_| {}), altered));
        assert!(matches!(found, Some(Refusal::Lost { events: 50, .. })));
    }

    #[test]
    fn a_trace_that_was_cut_is_refused_unless_the_cut_removed_nothing() {
        let slimmed = |text: &str| changed(9, |part| part.metadata.set(SLIM_KEY, text));
        let judge = |text| refusal(&judged(changed(9, |_| {}), slimmed(text)));
        let whole = "{\"events\":9,\"kept\":9,\"clipped\":0}";
        assert_eq!(judge(whole), None);
        let cut = "{\"events\":90,\"kept\":9,\"clipped\":0}";
        let (kept, is_second) = (9, true);
        let expected = |events| Refusal::Cut {
            is_second,
            kept,
            events,
        };
        assert_eq!(judge(cut), Some(expected(90)));
        let twice = format!("{}, \"earlier\": {cut}}}", whole.trim_end_matches('}'));
        assert_eq!(judge(&twice), Some(expected(90)));
    }

    #[test]
    fn recordings_of_some_operators_are_compared_only_if_they_have_the_same_limit() {
        let limited = |word: &str| {
            let limit = OperatorLimit::parse([word]).unwrap();
            changed(9, |part| limit.write(&mut part.metadata))
        };
        let is_second = true;
        let found = refusal(&judged(changed(9, |_| {}), limited("depth=1")));
        assert_eq!(found, Some(Refusal::Limited { is_second }));
        let found = refusal(&judged(limited("depth=1"), limited("depth=2")));
        assert_eq!(found, Some(Refusal::Limited { is_second: false }));
        assert_eq!(
            refusal(&judged(limited("depth=1"), limited("depth=1"))),
            None
        );
    }

    #[test]
    fn a_merged_trace_is_refused_if_any_of_its_parts_was_cut() {
        let slimmed = |text: &str| changed(9, |part| part.metadata.set(SLIM_KEY, text));
        let judge = |text: &str| refusal(&judged(changed(9, |_| {}), slimmed(text)));
        let whole = "{\"events\":4,\"kept\":4,\"clipped\":0}";
        let cut = "{\"events\":50,\"kept\":5,\"clipped\":0}";
        let both = format!("{{\"parts\": [{whole}, {cut}]}}");
        let (kept, events, is_second) = (9, 54, true);
        let expected = Refusal::Cut {
            is_second,
            kept,
            events,
        };
        assert_eq!(judge(&both), Some(expected));
        // A later cut of the merged trace, which removed nothing.
        let later = format!("{{\"events\":9,\"kept\":9,\"clipped\":0,\"earlier\":{both}}}");
        assert_eq!(judge(&later), Some(expected));
        // A part that was not cut has no record, so that the later cut found more than was kept.
        let more = format!("{{\"events\":109,\"kept\":109,\"clipped\":0,\"earlier\":{cut}}}");
        let found = judge(&more);
        assert!(
            matches!(
                found,
                Some(Refusal::Cut {
                    kept: 109,
                    events: 154,
                    ..
                })
            ),
            "{found:?}"
        );
        assert_eq!(judge(&format!("{{\"parts\": [{whole}, {whole}]}}")), None);
        let unreadable = Some(Refusal::Unreadable { is_second });
        assert_eq!(judge(&format!("{{\"parts\": [{whole}, 1]}}")), unreadable);
    }

    #[test]
    fn instants_and_events_without_duration_are_nothing_to_compare() {
        let is_second = true;
        let instants = || {
            let mut part = Part::from(Timeline::draw(|draw| draw.idle(5)));
            let name = part.strings.intern("mm");
            let thread = part.add_thread(Thread {
                process: 1,
                native: 1,
                name,
                device: DeviceKind::Cpu,
            });
            let mut event = Event::new(Category::Operator, name, thread, Nanos(1), Nanos::ZERO);
            event.flags = Flags::INSTANT;
            part.add_event(event);
            part.into_profile().expect("the event's ids are valid")
        };
        let nothing = Refusal::NothingToCompare { is_second };
        for measure in [Measure::SelfTime, Measure::Count] {
            let verdict = judged_with(changed(3, |_| {}), instants(), five_percent(), measure);
            assert_eq!(refusal(&verdict), Some(nothing), "{measure:?}");
        }
        let momentary = || Timeline::draw(|draw| draw.op("mm", 0));
        let verdict = judged(profile(1), momentary());
        assert_eq!(refusal(&verdict), Some(Refusal::NoTime { is_second }));
        let verdict = judged_with(profile(1), momentary(), five_percent(), Measure::Count);
        assert_eq!(refusal(&verdict), None);
    }

    #[test]
    fn fewer_steps_are_refused_and_more_are_a_doubt() {
        let steps = |count: u64| {
            Timeline::draw(|draw| {
                for step in 0..count {
                    draw.annotation(&format!("ProfilerStep#{step}"), |draw| draw.op("mm", 10));
                }
            })
        };
        let fewer = Refusal::FewerSteps {
            before: 4,
            after: 3,
        };
        assert_eq!(refusal(&judged(steps(4), steps(3))), Some(fewer));
        assert_eq!(refusal(&judged(steps(4), profile(10))), None);
        let [before, after] = [steps(3), steps(4)].map(Analysis::build);
        let diff = Diff::build(&before, &after, DiffOptions::default());
        let (before, after) = (3, 4);
        assert_eq!(
            Doubt::build(&diff, five_percent()),
            [Doubt::Steps { before, after }]
        );
    }

    #[test]
    fn different_programs_are_refused() {
        let other = Timeline::draw(|draw| draw.op("softmax", 1));
        let found = refusal(&judged(profile(10), other));
        assert_eq!(found, Some(Refusal::NothingInCommon));
    }

    #[test]
    fn python_calls_on_one_side_alone_are_refused() {
        let before = Timeline::draw(|draw| {
            draw.op("mm", 10);
            draw.event(Category::PythonFunction, "f", |draw| draw.idle(90));
        });
        let [before, after] = [before, profile(10)].map(Analysis::build);
        let options = DiffOptions {
            python_functions: true,
            ..DiffOptions::default()
        };
        let diff = Diff::build(&before, &after, options);
        let verdict = Verdict::build(&diff, five_percent());
        assert_eq!(refusal(&verdict), Some(Refusal::NoPythonCalls));
    }
}
