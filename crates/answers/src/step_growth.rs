//! Which function and which operator took longer in slow steps than in the others.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, EventId, Nanos, Place, ScopeKind, StringId, ThreadId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::called::{Called, called_name};
use crate::own_code::OwnCode;
use crate::questions::micros;
use crate::steps::Step;

/// The function and the operator that grew most in a slow step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// The user's own function.
    pub function: Option<GrownFunction>,
    /// The operator, with the time by which it grew.
    pub operator: Option<Called>,
}

/// A function that took longer in a slow step than in an average one that is not slow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrownFunction {
    /// The file that defines it.
    pub file: String,
    /// Its name.
    pub function: String,
    /// The line in it that grew most, as far as that is known.
    pub line: u32,
    /// The time by which its own code, and the operators and libraries that it calls, grew.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
}

/// Compares each slow step with the average of the usual ones.
pub(crate) fn growths(
    analysis: &Analysis,
    own: &OwnCode,
    slow: &[Step],
    usual: &[Step],
    loop_thread: ThreadId,
) -> Vec<Growth> {
    let profile = analysis.profile();
    let windows = Windows::new(slow, usual);
    let names = profile.strings().len();
    let blame = Blame::build(analysis, own);
    let mut by_frame = vec![vec![0_i64; names]; slow.len() + 1];
    let mut by_operator = by_frame.clone();
    let mut blamed: Vec<Option<StringId>> = Vec::with_capacity(profile.events().len());
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        let is_call = event.category == Category::PythonFunction;
        let is_operator = event.category == Category::Operator;
        let is_near = event.thread == loop_thread || event.scope == ScopeKind::Backward;
        if !is_near || !(is_call || is_operator) || !analysis.is_shown(id) {
            blamed.push(None);
            continue;
        }
        let frame = blame.of(analysis, id);
        blamed.push(frame);
        let parent = analysis.tree().parent(id);
        let around = parent.and_then(|parent| blamed[parent.index()]);
        let is_outermost =
            parent.is_none_or(|parent| profile.event(parent).category != Category::Operator);
        windows.overlaps(event.start, event.end(), |bucket, time| {
            // The time of a child is no self time of its parent.
            if let Some(around) = around {
                by_frame[bucket][around.index()] -= time;
            }
            if let Some(frame) = frame {
                by_frame[bucket][frame.index()] += time;
            }
            if is_operator && is_outermost {
                by_operator[bucket][event.name.index()] += time;
            }
        });
    }
    let count = usual.len().max(1) as i64;
    let usual = slow.len();
    (0..slow.len())
        .map(|bucket| {
            let excess = |sums: &[Vec<i64>]| -> Vec<i64> {
                let pairs = sums[bucket].iter().zip(&sums[usual]);
                pairs.map(|(time, sum)| time - sum / count).collect()
            };
            Growth {
                function: blame.grown(&excess(&by_frame)),
                operator: grown_operator(analysis, &excess(&by_operator)),
            }
        })
        .collect()
}

/// Steps in time order, each with the bucket that its time is summed in: its own for a slow step,
/// the last one for all others.
struct Windows {
    sorted: Vec<(Nanos, Nanos, usize)>,
}

impl Windows {
    fn new(slow: &[Step], usual: &[Step]) -> Self {
        let slow_ones = slow.iter().enumerate();
        let slow_ones = slow_ones.map(|(bucket, step)| (step.start, step.end(), bucket));
        let others = usual
            .iter()
            .map(|step| (step.start, step.end(), slow.len()));
        let mut sorted: Vec<_> = slow_ones.chain(others).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// Reports the time that a range has in common with each step. Most ranges lie in one step.
    fn overlaps(&self, begin: Nanos, end: Nanos, mut report: impl FnMut(usize, i64)) {
        let first = self.sorted.partition_point(|&(_, until, _)| until <= begin);
        for &(from, to, bucket) in &self.sorted[first..] {
            if from >= end {
                break;
            }
            let shared = to.min(end).saturating_sub(from.max(begin));
            report(bucket, shared.0 as i64);
        }
    }
}

/// The frame of the user's own code that each stack and each Python call leads back to.
struct Blame<'a> {
    places: Vec<Option<Place<'a>>>,
    by_stack: Vec<Option<StringId>>,
}

impl<'a> Blame<'a> {
    fn build(analysis: &'a Analysis, own: &OwnCode) -> Self {
        let profile = analysis.profile();
        let places: Vec<_> = profile
            .strings()
            .iter()
            .map(|text| own.place(text))
            .collect();
        let mut by_stack: Vec<Option<StringId>> = vec![None];
        for (caller, frame) in profile.stacks().nodes() {
            let is_own = places[frame.index()].is_some();
            by_stack.push(if is_own {
                Some(frame)
            } else {
                by_stack[caller.index()]
            });
        }
        Self { places, by_stack }
    }

    fn of(&self, analysis: &Analysis, id: EventId) -> Option<StringId> {
        let event = analysis.profile().event(id);
        if event.category == Category::PythonFunction && self.places[event.name.index()].is_some() {
            return Some(event.name);
        }
        self.by_stack[analysis.charged_stack(id).index()]
    }

    /// Returns the function whose frames grew most together, and its frame that grew most.
    fn grown(&self, excess: &[i64]) -> Option<GrownFunction> {
        let mut functions: FxHashMap<(&str, &str), (i64, i64, u32)> = FxHashMap::default();
        for (name, &time) in excess.iter().enumerate().filter(|(_, time)| **time != 0) {
            let Some(place) = self.places[name] else {
                continue;
            };
            let key = (place.file, place.function);
            let (sum, most, line) = functions.entry(key).or_insert((0, i64::MIN, 0));
            *sum += time;
            if (time, place.line) > (*most, *line) {
                (*most, *line) = (time, place.line);
            }
        }
        let grown = functions
            .into_iter()
            .max_by_key(|&(key, (sum, ..))| (sum, key));
        let ((file, function), (sum, _, line)) = grown.filter(|(_, (sum, ..))| *sum > 0)?;
        Some(GrownFunction {
            file: file.into(),
            function: function.into(),
            line,
            time: Nanos(sum as u64),
        })
    }
}

fn grown_operator(analysis: &Analysis, excess: &[i64]) -> Option<Called> {
    let strings = analysis.profile().strings();
    let grown = strings.iter().zip(excess).filter(|(_, time)| **time > 0);
    let (name, &time) = grown.max_by_key(|&(name, time)| (time, name))?;
    Some(Called {
        name: called_name(name),
        time: Nanos(time as u64),
    })
}
