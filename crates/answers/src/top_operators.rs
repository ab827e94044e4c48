//! The operators that take most of the time, each with the line that most of it belongs to and the
//! dtype of most calls, and double precision where the rest of a program computes in less.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, DType, DeviceKind, EventId, Nanos, Place, StringId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::called::{Called, called_name};
use crate::input_dtypes::{first_dtype, main_dtype};
use crate::own_code::OwnCode;
use crate::questions::micros;

/// The least share of the time of operators on floating-point tensors that surprises.
const MUCH: f64 = 0.05;

/// A place in the user's own code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct CodePlace {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function that the line is in.
    pub function: String,
}

impl CodePlace {
    pub(crate) fn new(place: &Place<'_>) -> Self {
        Self {
            file: place.file.into(),
            line: place.line,
            function: place.function.into(),
        }
    }
}

/// An operator, summed up over all its calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopOperator {
    /// Its name and its self time on the CPU and on devices.
    #[serde(flatten)]
    pub called: Called,
    /// The number of its calls.
    pub calls: u64,
    /// The line of the user's that most of the time belongs to.
    pub place: Option<CodePlace>,
    /// The dtype that most calls work on, by its name in Python. `None` if it is unknown.
    pub dtype: Option<&'static str>,
}

/// Double precision beside single or half precision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WideFloats {
    /// The time of operators on tensors in double precision.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// The time of operators on all floating-point tensors.
    #[serde(rename = "of_us", serialize_with = "micros")]
    pub of: Nanos,
    /// The line of the user's that most of the time belongs to.
    pub most: Option<CodePlace>,
    /// The line of the user's that first computed in double precision.
    pub first: Option<CodePlace>,
}

/// The operators of a profile by decreasing time, and what is striking about their dtypes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TopOperators {
    /// The operators.
    pub operators: Vec<TopOperator>,
    /// Double precision, if it is much of the time and not all of it.
    pub wide: Option<WideFloats>,
}

#[derive(Default)]
struct Sum {
    time: Nanos,
    calls: u64,
    frames: FxHashMap<StringId, Nanos>,
    /// The calls by the dtype that they work on.
    dtypes: FxHashMap<Option<DType>, u64>,
}

impl TopOperators {
    /// Sums up the operators among some events in time linear in all events and stacks. `is_part`
    /// tells by event whether it is one of them.
    pub(crate) fn build(analysis: &Analysis, own: &OwnCode, is_part: &[bool]) -> Self {
        let profile = analysis.profile();
        let strings = profile.strings();
        let places: Vec<Option<Place<'_>>> = strings.iter().map(|text| own.place(text)).collect();
        let mut by_stack: Vec<Option<StringId>> = vec![None];
        for (caller, frame) in profile.stacks().nodes() {
            let is_own = places[frame.index()].is_some();
            by_stack.push(if is_own {
                Some(frame)
            } else {
                by_stack[caller.index()]
            });
        }
        let mut sums: FxHashMap<StringId, Sum> = FxHashMap::default();
        let mut floats: FxHashMap<DType, Nanos> = FxHashMap::default();
        let mut doubles: FxHashMap<StringId, Nanos> = FxHashMap::default();
        let mut first_double = None;
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            let is_operator = event.category == Category::Operator
                && is_part[index]
                && analysis.device(id) == DeviceKind::Cpu
                && analysis.is_shown(id);
            if !is_operator {
                continue;
            }
            let time = analysis.tree().self_time(id) + analysis.device_times().own(id);
            let frame = by_stack[analysis.charged_stack(id).index()];
            let inputs = profile.inputs().inputs(event.inputs);
            let sum = sums.entry(event.name).or_default();
            sum.time = sum.time + time;
            sum.calls += 1;
            *sum.dtypes.entry(main_dtype(inputs.clone())).or_default() += 1;
            if let Some(frame) = frame {
                add(&mut sum.frames, frame, time);
            }
            let Some(dtype) = first_dtype(inputs) else {
                continue;
            };
            if is_float(dtype) {
                add(&mut floats, dtype, time);
            }
            if dtype == DType::F64
                && let Some(frame) = frame
            {
                first_double = first_double.or(Some(frame));
                add(&mut doubles, frame, time);
            }
        }
        let place = |frame: StringId| places[frame.index()].as_ref().map(CodePlace::new);
        let mut operators: Vec<TopOperator> = sums
            .into_iter()
            .map(|(name, sum)| TopOperator {
                called: Called {
                    name: called_name(strings.text(name)),
                    time: sum.time,
                },
                calls: sum.calls,
                place: largest(&sum.frames).and_then(place),
                dtype: largest(&sum.dtypes).flatten().map(DType::name),
            })
            .collect();
        operators.sort_by(|a, b| {
            let times = b.called.time.cmp(&a.called.time);
            times.then_with(|| a.called.name.cmp(&b.called.name))
        });
        let of = Nanos(floats.values().map(|time| time.0).sum());
        let double = floats.get(&DType::F64).copied().unwrap_or_default();
        let is_much = double.0 as f64 > MUCH * of.0 as f64 && double < of;
        let wide = is_much.then(|| WideFloats {
            time: double,
            of,
            most: largest(&doubles).and_then(place),
            first: first_double.and_then(place),
        });
        Self { operators, wide }
    }
}

fn add<K: std::hash::Hash + Eq>(sums: &mut FxHashMap<K, Nanos>, key: K, time: Nanos) {
    let sum = sums.entry(key).or_default();
    *sum = *sum + time;
}

fn largest<K: Copy + Ord, V: Copy + Ord>(sums: &FxHashMap<K, V>) -> Option<K> {
    let largest = sums
        .iter()
        .max_by_key(|&(&key, &sum)| (sum, std::cmp::Reverse(key)));
    largest.map(|(&key, _)| key)
}

const fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Event, InputsEncoder, InputsId, Part, StringTable, Thread, ThreadId};

    use super::*;

    /// The tensors that a call gets: their dtypes and dimensions.
    type Tensors<'a> = &'a [(DType, &'a [usize])];

    /// Draws calls of one operator after each other: the tensors that each gets, and its duration.
    fn dtype_of(calls: &[(Tensors<'_>, u64)]) -> Option<&'static str> {
        let mut part = Part::new();
        let thread: ThreadId = part.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        let name = part.strings.intern("aten::mul");
        let mut start = Nanos(0);
        for &(tensors, duration) in calls {
            let mut encoder = InputsEncoder::default();
            for (dtype, dims) in tensors {
                let strides = vec![1; dims.len()];
                encoder.tensor(*dtype, dims, &strides);
            }
            let duration = Nanos(duration);
            let mut event = Event::new(Category::Operator, name, thread, start, duration);
            event.inputs = if tensors.is_empty() {
                InputsId::NONE
            } else {
                part.inputs.intern(encoder.words())
            };
            part.add_event(event);
            start = start + duration;
        }
        let analysis = Analysis::build(part.into_profile().unwrap());
        let is_part = vec![true; calls.len()];
        let top = TopOperators::build(&analysis, &OwnCode::default(), &is_part);
        top.operators[0].dtype
    }

    #[test]
    fn the_dtype_of_an_operator_is_that_of_most_calls() {
        let double: Tensors<'_> = &[(DType::F64, &[])];
        let mask: Tensors<'_> = &[(DType::Bool, &[4, 4])];
        // Numbers without dimensions are all that these calls get.
        let dtype = dtype_of(&[(double, 1), (mask, 9), (double, 1)]);
        assert_eq!(dtype, Some("float64"));
        // A number beside a tensor does not count.
        let scaled: Tensors<'_> = &[(DType::F64, &[]), (DType::F32, &[4])];
        let dtype = dtype_of(&[(scaled, 1), (mask, 9), (scaled, 1)]);
        assert_eq!(dtype, Some("float32"));
        assert_eq!(dtype_of(&[(&[], 1), (mask, 9), (&[], 1)]), None);
    }
}
