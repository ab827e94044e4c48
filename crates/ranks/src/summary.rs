//! The summary of one rank: everything about its trace that answers about the job need.
//!
//! A summary is a few tens of kilobytes, so that those of thousands of ranks fit into memory when
//! their traces do not. Times are whole nanoseconds since the reference time of the recording.

use std::collections::BTreeMap;
use std::sync::Arc;

use mindprof_analyze::Analysis;
use mindprof_answers::{
    Advice, Confidence, Device, OwnCode, StepClass, StepSplit, StepTimes, Steps, WorkClasses,
};
use mindprof_model::{Damage, LossCause, Nanos, Profile};
use serde_json::Value;

use crate::codec::{Encode, Reader, Writer, encode_choice, encode_fields};
use crate::collectives::{Collective, Collectives};
use crate::device_totals::{DeviceTotals, StreamTotals};
use crate::error::Result;
use crate::identity::{Group, Identity};
use crate::rows::{self, Row};

/// The summary of one rank.
///
/// [`crate::Ranks`] merges them. The order of the fields is the order by which summaries are
/// sorted, so the rank comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankSummary {
    /// The place of the trace in its job.
    pub identity: Identity,
    /// The reference time, in nanoseconds since the Unix epoch by the clock of the rank.
    pub reference_unix_ns: u64,
    /// The length of the recording.
    pub span: Nanos,
    /// The number of events.
    pub events: u64,
    /// The steps whose beginning is known, sorted by number.
    pub steps: Vec<RankStep>,
    /// The process groups of its collectives, sorted.
    pub groups: Vec<Group>,
    /// Its collectives, sorted by time.
    pub collectives: Vec<Collective>,
    /// The use of its devices, if it has device work.
    pub device: Option<DeviceTotals>,
    /// The streams of its devices.
    pub streams: Vec<StreamTotals>,
    /// The rows of its events, sorted by name.
    pub rows: Vec<Row>,
    /// The findings of `mindprof advise`, sorted by rule.
    pub findings: Vec<RankFinding>,
    /// The peaks of memory, sorted by device.
    pub memory: Vec<MemoryPeaks>,
    /// The numbers of lost events by cause, and of repairs of the file.
    pub faults: Vec<Fault>,
}
encode_fields!(RankSummary {
    identity,
    reference_unix_ns,
    span,
    events,
    steps,
    groups,
    collectives,
    device,
    streams,
    rows,
    findings,
    memory,
    faults,
});

/// One step of a rank. If the rank has devices, it lasts until the work launched in it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankStep {
    /// The number of the step.
    pub number: u64,
    /// The start of the step.
    pub start: Nanos,
    /// The time of each class, in the order of [`StepClass::ALL`]. The sum is the step's duration.
    pub classes: [Nanos; StepClass::ALL.len()],
}
encode_fields!(RankStep {
    number,
    start,
    classes
});

impl RankStep {
    fn new(number: u64, start: Nanos, split: &StepSplit) -> Self {
        let classes = StepClass::ALL.map(|class| split.time(class));
        Self {
            number,
            start,
            classes,
        }
    }

    /// Returns the time of a class.
    pub const fn time(&self, class: StepClass) -> Nanos {
        self.classes[class as usize]
    }

    /// Returns the duration.
    pub fn duration(&self) -> Nanos {
        self.classes
            .iter()
            .fold(Nanos::ZERO, |sum, &time| sum.saturating_add(time))
    }

    /// Returns the time in which the rank did something other than communicate or wait for others.
    pub fn own(&self) -> Nanos {
        self.duration()
            .saturating_sub(self.time(StepClass::Communication))
    }
}

/// A finding of `mindprof advise` about one rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankFinding {
    /// The id of the rule.
    pub rule: Arc<str>,
    /// The part of the step time that mending it is likely to save, in millionths.
    pub share_ppm: u32,
    /// The least part that it is likely to save, in millionths.
    pub low_ppm: u32,
    /// The largest part that it could save, in millionths.
    pub high_ppm: u32,
    /// Whether the finding is sure.
    pub sureness: Sureness,
}
encode_fields!(RankFinding {
    rule,
    share_ppm,
    low_ppm,
    high_ppm,
    sureness
});

/// How sure a finding about one rank is. It mirrors [`Confidence`], which has no stable encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sureness {
    /// [`Confidence::Low`].
    Low,
    /// [`Confidence::Medium`].
    Medium,
    /// [`Confidence::High`].
    High,
}
encode_choice!(Sureness);

impl Sureness {
    const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// Returns it as the confidence of a finding.
    pub(crate) const fn confidence(self) -> Confidence {
        match self {
            Self::Low => Confidence::Low,
            Self::Medium => Confidence::Medium,
            Self::High => Confidence::High,
        }
    }

    const fn of(confidence: Confidence) -> Self {
        match confidence {
            Confidence::Low => Self::Low,
            Confidence::Medium => Self::Medium,
            Confidence::High => Self::High,
        }
    }
}

/// The peaks of the memory of one device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryPeaks {
    /// The device as torch names it, such as `cuda:0`.
    pub device: Arc<str>,
    /// The most bytes that tensors had.
    pub allocated: u64,
    /// The most bytes that the allocator had.
    pub reserved: u64,
    /// The size of the device's memory, or zero if it is not known.
    pub capacity: u64,
}
encode_fields!(MemoryPeaks {
    device,
    allocated,
    reserved,
    capacity
});

/// A fault of a recording or of its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Events were lost for this cause: its words follow "lost".
    Lost(Arc<str>, u64),
    /// The file had such faults, which were repaired: their stable name.
    Repaired(Arc<str>, u64),
    /// The file was cut off or damaged in so many places.
    Cut(u64),
}

impl Encode for Fault {
    fn write(&self, writer: &mut Writer) {
        let (kind, name, count) = match self {
            Self::Lost(name, count) => (0_u64, name.clone(), *count),
            Self::Repaired(name, count) => (1, name.clone(), *count),
            Self::Cut(count) => (2, "".into(), *count),
        };
        kind.write(writer);
        (name, count).write(writer);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let kind = u64::read(reader)?;
        let (name, count) = Encode::read(reader)?;
        match kind {
            0 => Ok(Self::Lost(name, count)),
            1 => Ok(Self::Repaired(name, count)),
            2 => Ok(Self::Cut(count)),
            3.. => Err(crate::Error::Damaged("unknown kind")),
        }
    }
}

/// The source of a trace: its name, and what its reader had to repair.
#[derive(Clone, Debug, Default)]
pub struct Source<'a> {
    /// The name of the file, without its folder.
    pub file: &'a str,
    /// The repairs of the reader, by their stable names.
    pub repairs: Vec<(&'a str, u64)>,
}

impl RankSummary {
    /// Returns which operators were recorded, as in `share=0.1`; `None` is all of them.
    pub(crate) fn limit(&self) -> Option<&str> {
        self.identity.limit.as_deref()
    }

    /// Sums up the profile of one rank, in time nearly linear in the number of events.
    pub fn build(analysis: &Analysis, source: &Source<'_>) -> Self {
        let profile = analysis.profile();
        let own = OwnCode::of(profile.metadata(), &[]);
        let identity = Identity::of(profile, source.file);
        let device = Device::build(analysis);
        let works = WorkClasses::build(profile);
        let Collectives { groups, list } = Collectives::build(analysis, &identity, &works);
        let advice = Advice::build(analysis, &own);
        Self {
            reference_unix_ns: profile.reference_unix_ns(),
            span: profile.span(),
            events: profile.events().len() as u64,
            steps: steps(analysis, &own, &device),
            groups,
            collectives: list,
            device: DeviceTotals::build(analysis, &device),
            streams: StreamTotals::build(&device),
            rows: rows::build(analysis, &works),
            findings: findings(&advice),
            memory: memory(profile),
            faults: faults(profile, source),
            identity,
        }
    }
}

fn steps(analysis: &Analysis, own: &OwnCode, device: &Device) -> Vec<RankStep> {
    let mut steps: Vec<RankStep> = if device.devices.is_empty() {
        let times = StepTimes::build(analysis, own);
        let steps = times.steps.iter();
        steps
            .map(|time| RankStep::new(time.step.number, time.step.start, &time.split))
            .collect()
    } else {
        let steps = device.steps.iter();
        steps
            .map(|step| RankStep::new(step.step.number, step.step.start, &step.split))
            .collect()
    };
    // Imports and all other preparation would be compared with steps.
    let first = Steps::build(analysis.profile()).first_of_marks();
    steps.retain(|step| Some(step.number) != first.map(|first| first.number));
    steps.sort_unstable();
    steps
}

fn findings(advice: &Advice) -> Vec<RankFinding> {
    let ppm = |share: f64| (share.clamp(0.0, 1.0) * 1e6) as u32;
    let findings = advice.findings.iter().map(|finding| RankFinding {
        rule: finding.rule.id.into(),
        share_ppm: ppm(finding.share),
        low_ppm: ppm(finding.low),
        high_ppm: ppm(finding.high),
        sureness: Sureness::of(finding.confidence),
    });
    let mut findings: Vec<RankFinding> = findings.collect();
    findings.sort_unstable();
    findings
}

fn memory(profile: &Profile) -> Vec<MemoryPeaks> {
    let listed = profile
        .metadata()
        .get("deviceProperties")
        .unwrap_or_default();
    let listed: Vec<Value> = serde_json::from_str(listed).unwrap_or_default();
    let capacity = |index: i16| {
        let is_meant = |device: &&Value| device["id"].as_i64() == Some(i64::from(index));
        let found = listed.iter().find(is_meant);
        found
            .and_then(|device| device["totalGlobalMem"].as_u64())
            .unwrap_or(0)
    };
    let mut peaks = BTreeMap::new();
    for record in profile.memory() {
        let (allocated, reserved): &mut (u64, u64) = peaks
            .entry((record.device, record.device_index))
            .or_default();
        *allocated = (*allocated).max(record.total_allocated);
        *reserved = (*reserved).max(record.total_reserved);
    }
    let peaks = peaks
        .into_iter()
        .map(|((kind, index), (allocated, reserved))| {
            let is_cpu = kind == mindprof_model::DeviceKind::Cpu;
            let name = profile.device_name(kind);
            MemoryPeaks {
                device: if is_cpu {
                    name.into()
                } else {
                    format!("{name}:{index}").into()
                },
                allocated,
                reserved,
                capacity: if is_cpu { 0 } else { capacity(index) },
            }
        });
    let mut peaks: Vec<MemoryPeaks> = peaks.collect();
    peaks.sort_unstable();
    peaks
}

fn faults(profile: &Profile, source: &Source<'_>) -> Vec<Fault> {
    let lost = LossCause::ALL
        .into_iter()
        .map(|cause| Fault::Lost(cause.describe().into(), profile.loss().count(cause)));
    let repaired = source.repairs.iter();
    let repaired = repaired.map(|&(name, count)| Fault::Repaired(name.into(), count));
    let cut = Fault::Cut(Damage::read(profile.metadata()).cuts);
    let is_any = |fault: &Fault| match fault {
        Fault::Lost(_, count) | Fault::Repaired(_, count) | Fault::Cut(count) => *count > 0,
    };
    let mut faults: Vec<Fault> = lost.chain(repaired).chain([cut]).filter(is_any).collect();
    faults.sort_unstable();
    faults
}
