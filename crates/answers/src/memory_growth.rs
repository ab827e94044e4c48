//! Memory that each step allocates and that no later step frees, and the line that allocates it.
//!
//! Growth is judged at the beginning of the last step: the variables of a function that trains are
//! freed when it returns, which may be in the last step, after it, or never.

use mindprof_analyze::{Analysis, MemoryPlace};
use mindprof_model::{Nanos, Place, StringId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::own_code::OwnCode;
use crate::steps::Step;
use crate::top_operators::CodePlace;

/// The number of steps from which on growth can be told from a beginning.
const ENOUGH_STEPS: usize = 6;

/// The first and the last steps do not count: an optimizer creates its state in the first, and the
/// last one's tensors are still in use.
const UNCOUNTED: usize = 2;

/// The least growth in bytes per step that is worth mentioning.
const LEAST: u64 = 16 * 1024;

/// Memory that grows with every step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryGrowth {
    /// The median of the bytes that a step allocates and that no later step frees.
    pub bytes_per_step: u64,
    /// The number of steps that were looked at.
    pub steps: usize,
    /// The line of the user's that allocates most of them.
    pub place: Option<CodePlace>,
    /// All lines of the user's that allocate them, by decreasing bytes.
    pub lines: Vec<GrownLine>,
    /// The operator that allocates most of them.
    pub operator: Option<String>,
}

/// A line of the user's that allocates memory in every step which no later step frees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrownLine {
    /// The line.
    pub place: CodePlace,
    /// The average of the bytes that a step allocates there and that no later step frees.
    pub bytes_per_step: u64,
}

impl MemoryGrowth {
    /// Finds memory that grows in nearly every step, that of one process and device or all of it.
    /// Returns `None` if no memory was recorded, if there are too few steps, or if memory does not
    /// grow.
    pub fn find(
        analysis: &Analysis,
        own: &OwnCode,
        steps: &[Step],
        of: Option<MemoryPlace>,
    ) -> Option<Self> {
        if !analysis.has_memory() || steps.len() < ENOUGH_STEPS {
            return None;
        }
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.start);
        let counted = &steps[UNCOUNTED..steps.len() - UNCOUNTED];
        let judged = steps[steps.len() - 1].start;
        let profile = analysis.profile();
        let places: Vec<Option<Place<'_>>> = profile
            .strings()
            .iter()
            .map(|text| own.place(text))
            .collect();
        let mut kept = vec![0_u64; counted.len()];
        let mut by_frame: FxHashMap<StringId, u64> = FxHashMap::default();
        let mut by_operator: FxHashMap<StringId, u64> = FxHashMap::default();
        for block in analysis.memory_timeline().blocks() {
            let Some(created) = block.created else {
                continue;
            };
            let is_freed = block.destroyed.is_some_and(|end| end < judged);
            let is_other = block.is_rest_of_total() || of.is_some_and(|of| of != block.place);
            if is_freed || is_other {
                continue;
            }
            let Some(step) = step_at(counted, created).filter(|_| block.are_times_known) else {
                continue;
            };
            kept[step] += block.bytes;
            let Some(owner) = block.owner else { continue };
            *by_operator.entry(profile.event(owner).name).or_default() += block.bytes;
            let mut frames = profile.stacks().frames(analysis.charged_stack(owner));
            if let Some(frame) = frames.find(|frame| places[frame.index()].is_some()) {
                *by_frame.entry(frame).or_default() += block.bytes;
            }
        }
        kept.sort_unstable();
        // Nine of ten steps have to grow: a cache that is filled once is no leak.
        let least = kept[kept.len() / 10];
        let median = kept[kept.len() / 2];
        let most = |sums: &FxHashMap<StringId, u64>| {
            let most = sums.iter().max_by_key(|&(&name, &bytes)| (bytes, name));
            most.map(|(&name, _)| name)
        };
        (least >= LEAST).then(|| Self {
            bytes_per_step: median,
            steps: steps.len(),
            place: most(&by_frame)
                .and_then(|frame| places[frame.index()].as_ref().map(CodePlace::new)),
            lines: lines(&by_frame, &places, counted.len()),
            operator: most(&by_operator).map(|name| profile.strings().text(name).into()),
        })
    }
}

fn lines(
    by_frame: &FxHashMap<StringId, u64>,
    places: &[Option<Place<'_>>],
    steps: usize,
) -> Vec<GrownLine> {
    let mut lines: Vec<GrownLine> = by_frame
        .iter()
        .filter_map(|(frame, bytes)| {
            Some(GrownLine {
                place: CodePlace::new(places[frame.index()].as_ref()?),
                bytes_per_step: bytes / steps.max(1) as u64,
            })
        })
        .filter(|line| line.bytes_per_step > 0)
        .collect();
    lines.sort_by(|a, b| {
        let bytes = b.bytes_per_step.cmp(&a.bytes_per_step);
        bytes.then_with(|| (&a.place.file, a.place.line).cmp(&(&b.place.file, b.place.line)))
    });
    lines
}

fn step_at(steps: &[Step], moment: Nanos) -> Option<usize> {
    let after = steps.partition_point(|step| step.start <= moment);
    let step = after.checked_sub(1)?;
    (moment < steps[step].end()).then_some(step)
}
