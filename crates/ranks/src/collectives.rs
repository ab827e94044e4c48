//! The table of collectives of a rank: what it exchanged with other ranks, and when.
//!
//! They are the communication kernels of devices, by their names or by their arguments, or, if there are none, the ranges in which the CPU
//! communicates (gloo).

mod arguments;
mod exposure;

use std::sync::Arc;

use mindprof_analyze::Analysis;
use mindprof_answers::{StepClass, Steps, WorkClasses};
use mindprof_model::{
    Category, DeviceKind, EventId, Input, InputsId, Nanos, PassthroughKind, Profile,
};
use serde::Serialize;

use self::arguments::CommunicationArguments;
use self::exposure::Exposure;
use crate::codec::{encode_choice, encode_fields};
use crate::identity::{Group, Identity};

/// The kind of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectiveKind {
    /// Every rank gets the sum of all.
    AllReduce,
    /// Every rank gets the data of all.
    AllGather,
    /// Every rank gets its part of the sum of all.
    ReduceScatter,
    /// Every rank sends a part to every other rank.
    AllToAll,
    /// One rank sends to all.
    Broadcast,
    /// One rank gets the sum of all.
    Reduce,
    /// One rank gets the data of all.
    Gather,
    /// One rank sends a part to every other rank.
    Scatter,
    /// Ranks wait for each other.
    Barrier,
    /// One rank sends to another.
    Send,
    /// One rank receives from another.
    Receive,
    /// Anything else, and kernels that do not tell.
    Other,
}
encode_choice!(CollectiveKind);

impl CollectiveKind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::AllToAll,
        Self::Broadcast,
        Self::Reduce,
        Self::Gather,
        Self::Scatter,
        Self::Barrier,
        Self::Send,
        Self::Receive,
        Self::Other,
    ];

    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Barrier => "barrier",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Other => "other",
        }
    }

    /// Returns whether no rank can be done before every rank has begun, so that it ends on all ranks
    /// at nearly the same time.
    pub const fn is_synchronizing(self) -> bool {
        match self {
            Self::AllReduce
            | Self::AllGather
            | Self::ReduceScatter
            | Self::AllToAll
            | Self::Barrier => true,
            Self::Broadcast
            | Self::Reduce
            | Self::Gather
            | Self::Scatter
            | Self::Send
            | Self::Receive
            | Self::Other => false,
        }
    }

    /// Returns the kind that a name tells: `_allgather_base`, `ncclDevKernel_AllReduce_Sum_f32`,
    /// `gloo:all_reduce`.
    fn of(name: &str) -> Self {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
        let known = [
            ("sendrecv", Self::Other),
            ("allreduce", Self::AllReduce),
            ("allgather", Self::AllGather),
            ("reducescatter", Self::ReduceScatter),
            ("alltoall", Self::AllToAll),
            ("broadcast", Self::Broadcast),
            ("barrier", Self::Barrier),
            ("reduce", Self::Reduce),
            ("gather", Self::Gather),
            ("scatter", Self::Scatter),
            ("send", Self::Send),
            ("recv", Self::Receive),
            ("receive", Self::Receive),
        ];
        let found = known.iter().find(|(part, _)| name.contains(part));
        found.map_or(Self::Other, |(_, kind)| *kind)
    }
}

/// One collective as one rank saw it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Collective {
    /// The start, since the reference time of the recording.
    pub start: Nanos,
    /// The end.
    pub end: Nanos,
    /// The part of it in which the device computed nothing. All of it on the CPU.
    pub exposed: Nanos,
    /// The position of its process group among those of the summary, or `None` if it is not known.
    pub group: Option<u32>,
    /// The number of the collective in its group, if the trace tells.
    pub sequence: Option<u64>,
    /// The number of the step that it was launched in.
    pub step: Option<u64>,
    /// Its kind.
    pub kind: CollectiveKind,
    /// The size of the message in bytes, or zero if it is not known.
    pub bytes: u64,
}
encode_fields!(Collective {
    start,
    end,
    exposed,
    group,
    sequence,
    step,
    kind,
    bytes
});

impl Collective {
    /// Returns its duration.
    pub fn duration(&self) -> Nanos {
        self.end.saturating_sub(self.start)
    }
}

/// The collectives of a rank, sorted by time, and the groups that they refer to, sorted.
pub(crate) struct Collectives {
    pub(crate) groups: Vec<Group>,
    pub(crate) list: Vec<Collective>,
}

impl Collectives {
    /// Collects the collectives of a profile in time nearly linear in the number of events.
    pub(crate) fn build(analysis: &Analysis, identity: &Identity, works: &WorkClasses) -> Self {
        let profile = analysis.profile();
        let events = found(analysis, works);
        let exposure = Exposure::build(analysis, works);
        let steps = Steps::build(profile);
        let mut arguments = profile.passthrough().walk(PassthroughKind::Arguments);
        let mut made: Vec<(Option<Group>, Collective)> = Vec::with_capacity(events.len());
        for id in events {
            let event = profile.event(id);
            let text = arguments.at(id.index());
            let text = text.map(|text| profile.passthrough().texts.text(text));
            let told = CommunicationArguments::parse(text.as_deref().unwrap_or_default());
            let is_device = profile.threads()[event.thread.index()].device != DeviceKind::Cpu;
            let (start, end) = (event.start, event.end());
            let kind = told.kind.as_deref().unwrap_or_else(|| profile.name(event));
            let launched = analysis.correlation().owner(id).filter(|_| is_device);
            let launched = launched.map_or(start, |owner| profile.event(owner).start);
            let exposed = if is_device {
                exposure.outside(start, end)
            } else {
                end - start
            };
            let collective = Collective {
                start,
                end,
                exposed,
                group: None,
                sequence: told.sequence,
                step: step_at(&steps, launched),
                kind: CollectiveKind::of(kind),
                bytes: told
                    .bytes
                    .unwrap_or_else(|| input_bytes(profile, event.inputs)),
            };
            made.push((told.group(identity), collective));
        }
        Self::of(made)
    }

    fn of(made: Vec<(Option<Group>, Collective)>) -> Self {
        let mut groups: Vec<Group> = made.iter().filter_map(|(group, _)| group.clone()).collect();
        groups.sort_unstable();
        groups.dedup();
        let list = made.into_iter().map(|(group, collective)| Collective {
            group: group.and_then(|group| {
                let place = groups.binary_search(&group).ok()?;
                u32::try_from(place).ok()
            }),
            ..collective
        });
        let mut list: Vec<Collective> = list.collect();
        list.sort_unstable();
        Self { groups, list }
    }
}

/// Returns the events that are collectives: kernels if there are any, otherwise ranges of the CPU.
fn found(analysis: &Analysis, works: &WorkClasses) -> Vec<EventId> {
    let profile = analysis.profile();
    let (mut kernels, mut ranges) = (Vec::new(), Vec::new());
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        if works.of(id, event) != StepClass::Communication || !analysis.is_shown(id) {
            continue;
        }
        match event.category {
            Category::Kernel => kernels.push(id),
            Category::Annotation => ranges.push(id),
            Category::Operator
            | Category::PythonFunction
            | Category::Runtime
            | Category::DeviceAnnotation
            | Category::Other => {}
        }
    }
    if kernels.is_empty() { ranges } else { kernels }
}

/// Returns the number of the complete step that a moment lies in.
fn step_at(steps: &Steps, moment: Nanos) -> Option<u64> {
    let number = steps.at(moment);
    let complete = steps.complete();
    let place = complete
        .binary_search_by_key(&number, |step| step.number)
        .ok()?;
    let step = &complete[place];
    (step.start <= moment && moment < step.end()).then_some(number)
}

/// Returns the bytes of the tensors among some inputs.
fn input_bytes(profile: &Profile, inputs: InputsId) -> u64 {
    if inputs == InputsId::NONE {
        return 0;
    }
    let tensor = |input: Input<'_>| match input {
        Input::Tensor { dtype, dims, .. } => dims
            .iter()
            .fold(dtype.bytes(), |product, &dim| product.saturating_mul(dim)),
        Input::Other
        | Input::Device
        | Input::TensorList(_)
        | Input::Int(_)
        | Input::Float(_)
        | Input::Bool(_)
        | Input::IntList(_)
        | Input::FloatList(_)
        | Input::BoolList(_)
        | Input::Complex { .. }
        | Input::NumberList(_) => 0,
    };
    profile
        .inputs()
        .inputs(inputs)
        .map(tensor)
        .fold(0, u64::saturating_add)
}

/// Returns the group that a rank must mean if it names none: its only one.
fn only_group(identity: &Identity) -> Option<Group> {
    match identity.groups.as_slice() {
        [only] => Some(only.clone()),
        [] | [_, ..] => None,
    }
}

/// Returns the group of a name among those that a trace lists, which are sorted by it.
fn listed_group<'a>(identity: &'a Identity, name: &str) -> Option<&'a Group> {
    let groups = &identity.groups;
    let place = groups.partition_point(|group| &*group.name < name);
    groups.get(place).filter(|group| &*group.name == name)
}

/// Returns a text as it is shared by many values.
fn shared(text: &str) -> Arc<str> {
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_kinds() {
        for (name, kind) in [
            ("allreduce", CollectiveKind::AllReduce),
            ("_allgather_base", CollectiveKind::AllGather),
            ("_reduce_scatter_base", CollectiveKind::ReduceScatter),
            ("all_to_allv", CollectiveKind::AllToAll),
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                CollectiveKind::AllReduce,
            ),
            (
                "ncclDevKernel_SendRecv(ncclDevComm*)",
                CollectiveKind::Other,
            ),
            ("gloo:all_reduce", CollectiveKind::AllReduce),
            ("nccl:recv 0<-1", CollectiveKind::Receive),
            ("hcom_broadcast__123", CollectiveKind::Broadcast),
            ("ncclKernel", CollectiveKind::Other),
        ] {
            assert_eq!(CollectiveKind::of(name), kind, "{name}");
        }
    }
}
