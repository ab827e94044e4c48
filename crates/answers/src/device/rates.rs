//! Kernels and operators of a device: their time, their tensor cores, and their rates against the
//! limits of the device.

use mindprof_analyze::Analysis;
use mindprof_model::{DType, EventId, Nanos, StringId};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::cards::{Card, MathUnits};
use super::counts::{OperatorCount, OperatorCounts};
use super::device_window::KernelFacts;
use super::tensor_cores::{multiplies_matrices, uses_tensor_cores};
use super::work::WorkItem;
use crate::input_dtypes::first_dtype;
use crate::questions::micros;
use crate::step_split::StepClass;

/// Operations or bytes per second, and how they compare with the limit of the device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// How many in all.
    pub total: u64,
    /// How many per second, while the kernels ran.
    pub per_s: f64,
    /// The limit of the device, if its model is known and has units for the dtype.
    pub limit_per_s: Option<f64>,
    /// The rate as a share of the limit.
    pub share: Option<f64>,
}

impl Rate {
    fn new(count: u64, time: Nanos, limit_per_s: Option<f64>) -> Option<Self> {
        if count == 0 || time == Nanos::ZERO {
            return None;
        }
        let per_s = count as f64 * 1e9 / time.0 as f64;
        Some(Self {
            total: count,
            per_s,
            limit_per_s,
            share: limit_per_s.map(|limit| per_s / limit),
        })
    }
}

/// The compute kernels of one name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelUse {
    /// The name.
    pub name: String,
    /// The number of kernels.
    pub calls: u64,
    /// The sum of their durations.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// Whether they use tensor cores, by their name.
    pub uses_tensor_cores: bool,
    /// The mean of their blocks per multiprocessor, weighted by duration.
    pub blocks_per_sm: Option<f64>,
    /// The mean of their occupancy, weighted by duration.
    pub occupancy: Option<f64>,
    /// Their operations, if each is the only kernel of an operator that is counted.
    pub flops: Option<Rate>,
    /// Their least memory traffic, under the same condition.
    pub bytes: Option<Rate>,
}

/// Operators of one name and dtype whose operations are counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperatorRate {
    /// The name.
    pub operator: String,
    /// The dtype of the first input.
    pub dtype: &'static str,
    /// Whether a kernel of theirs uses tensor cores.
    pub uses_tensor_cores: bool,
    /// The number of calls with kernels.
    pub calls: u64,
    /// The sum of the durations of their kernels.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// Their operations.
    pub flops: Option<Rate>,
    /// Their least memory traffic: inputs and outputs, each once.
    pub bytes: Option<Rate>,
}

/// Operators whose operations are not counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotCounted {
    /// The operator that launched the kernels, or `None` if it is unknown.
    pub operator: Option<String>,
    /// The number of kernels.
    pub kernels: u64,
    /// The sum of their durations.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// The share of these in the time of all compute kernels.
    pub share: f64,
}

/// Matrix products, convolutions and attention on inputs of one dtype.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatmulDtype {
    /// The dtype of the first input, or `None` if shapes were not recorded.
    pub dtype: Option<&'static str>,
    /// The sum of the durations of the kernels.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
    /// The part of it whose kernels use tensor cores.
    #[serde(rename = "tensor_cores_us", serialize_with = "micros")]
    pub tensor_cores: Nanos,
}

/// The kernels and operators of a device, each list by decreasing time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) kernels: Vec<KernelUse>,
    pub(crate) operators: Vec<OperatorRate>,
    pub(crate) not_counted: Vec<NotCounted>,
    pub(crate) matmul: Vec<MatmulDtype>,
}

impl Rates {
    /// Sums up the compute kernels of a device. `visit` gets each kernel with what is known of it,
    /// and the operations that begin with it.
    pub(crate) fn build(
        analysis: &Analysis,
        items: &[WorkItem],
        card: Option<&Card>,
        mut visit: impl FnMut(&WorkItem, KernelFacts, u64),
    ) -> Self {
        let mut sums = Sums::new(analysis);
        for item in items {
            let (facts, flops) = sums.add(item);
            visit(item, facts, flops);
        }
        sums.finish(items, card)
    }
}

/// The position of no call.
const NO_CALL: u32 = u32::MAX;

/// The kernels of one call of a counted operator.
#[derive(Clone, Copy, Debug)]
struct Call {
    operator: EventId,
    count: OperatorCount,
    kernels: u32,
    time: Nanos,
    uses_tensor_cores: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct KernelSum {
    count: u64,
    time: Nanos,
    blocks: f64,
    with_blocks: f64,
    occupancy: f64,
    with_occupancy: f64,
    flops: u64,
    bytes: u64,
    /// The kernels with operations and bytes, and those with operations of another dtype than the
    /// first.
    with_flops: u64,
    with_bytes: u64,
    dtype: Option<DType>,
    is_mixed: bool,
}

struct Sums<'a> {
    analysis: &'a Analysis,
    counts: OperatorCounts<'a>,
    uses_tensor_cores: Vec<bool>,
    multiplies: Vec<bool>,
    /// The calls of counted operators, and by event the position of its call or [`NO_CALL`].
    calls: Vec<Call>,
    call_of: Vec<u32>,
    /// By kernel in the order of items, the position of the call that it is counted for.
    counted_for: Vec<u32>,
    not_counted: FxHashMap<Option<StringId>, (u64, Nanos)>,
    matmul: FxHashMap<Option<DType>, (Nanos, Nanos)>,
    time: Nanos,
}

impl<'a> Sums<'a> {
    fn new(analysis: &'a Analysis) -> Self {
        let strings = analysis.profile().strings();
        Self {
            analysis,
            counts: OperatorCounts::new(analysis),
            uses_tensor_cores: strings.iter().map(uses_tensor_cores).collect(),
            multiplies: strings.iter().map(multiplies_matrices).collect(),
            calls: Vec::new(),
            call_of: vec![NO_CALL; analysis.profile().events().len()],
            counted_for: Vec::new(),
            not_counted: FxHashMap::default(),
            matmul: FxHashMap::default(),
            time: Nanos::ZERO,
        }
    }

    fn add(&mut self, item: &WorkItem) -> (KernelFacts, u64) {
        if item.class != StepClass::Kernel {
            return (KernelFacts::default(), 0);
        }
        let profile = self.analysis.profile();
        let time = item.duration();
        self.time = self.time + time;
        let uses_tensor_cores = self.uses_tensor_cores[profile.event(item.id).name.index()];
        let owner = self.analysis.correlation().owner(item.id);
        let owner = owner.map(|owner| profile.event(owner));
        if let Some(owner) = owner
            && self.multiplies[owner.name.index()]
        {
            let dtype = first_dtype(profile.inputs().inputs(owner.inputs));
            let (all, on_tensor_cores) = self.matmul.entry(dtype).or_default();
            *all = *all + time;
            if uses_tensor_cores {
                *on_tensor_cores = *on_tensor_cores + time;
            }
        }
        let counted = self.counts.operator_of(item.id);
        let mut flops = 0;
        if let Some((operator, count)) = counted {
            let position = &mut self.call_of[operator.index()];
            if *position == NO_CALL {
                *position = self.calls.len() as u32;
                flops = count.flops;
                self.calls.push(Call {
                    operator,
                    count,
                    kernels: 0,
                    time: Nanos::ZERO,
                    uses_tensor_cores: false,
                });
            }
            self.counted_for.push(*position);
            let call = &mut self.calls[*position as usize];
            call.kernels += 1;
            call.time = call.time + time;
            call.uses_tensor_cores |= uses_tensor_cores;
        } else {
            self.counted_for.push(NO_CALL);
            let name = owner.map(|owner| owner.name);
            let (kernels, sum) = self.not_counted.entry(name).or_default();
            *kernels += 1;
            *sum = *sum + time;
        }
        let facts = KernelFacts {
            uses_tensor_cores,
            is_counted: counted.is_some(),
        };
        (facts, flops)
    }

    fn finish(self, items: &[WorkItem], card: Option<&Card>) -> Rates {
        let text = |name: StringId| self.analysis.profile().strings().text(name).to_owned();
        let mut not_counted: Vec<NotCounted> = (self.not_counted.iter())
            .map(|(&operator, &(kernels, time))| NotCounted {
                operator: operator.map(text),
                kernels,
                time,
                share: time.0 as f64 / self.time.0.max(1) as f64,
            })
            .collect();
        not_counted.sort_by(|a, b| {
            b.time
                .cmp(&a.time)
                .then_with(|| a.operator.cmp(&b.operator))
        });
        let mut matmul: Vec<MatmulDtype> = (self.matmul.iter())
            .map(|(&dtype, &(time, tensor_cores))| MatmulDtype {
                dtype: dtype.filter(|of| *of != DType::Unknown).map(DType::name),
                time,
                tensor_cores,
            })
            .collect();
        matmul.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.dtype.cmp(&b.dtype)));
        Rates {
            kernels: self.kernels(items, card),
            operators: self.operators(card),
            not_counted,
            matmul,
        }
    }

    fn operators(&self, card: Option<&Card>) -> Vec<OperatorRate> {
        #[derive(Default)]
        struct Row {
            calls: u64,
            time: Nanos,
            flops: u64,
            bytes: Option<u64>,
        }
        let profile = self.analysis.profile();
        let mut rows: FxHashMap<(StringId, DType, MathUnits), Row> = FxHashMap::default();
        for call in &self.calls {
            let key = (
                profile.event(call.operator).name,
                call.count.dtype,
                units(call.uses_tensor_cores),
            );
            let row = rows.entry(key).or_insert_with(|| Row {
                bytes: Some(0),
                ..Row::default()
            });
            row.calls += 1;
            row.time = row.time + call.time;
            row.flops = row.flops.saturating_add(call.count.flops);
            row.bytes =
                (row.bytes.zip(call.count.bytes)).map(|(sum, more)| sum.saturating_add(more));
        }
        let mut rates: Vec<OperatorRate> = rows
            .into_iter()
            .map(|((name, dtype, units), row)| OperatorRate {
                operator: profile.strings().text(name).to_owned(),
                dtype: dtype.name(),
                uses_tensor_cores: units == MathUnits::TensorCores,
                calls: row.calls,
                time: row.time,
                flops: Rate::new(row.flops, row.time, flops_limit(card, dtype, units)),
                bytes: row
                    .bytes
                    .and_then(|bytes| Rate::new(bytes, row.time, card.map(Card::bytes_per_s))),
            })
            .collect();
        rates.sort_by(|a, b| {
            let names = || (&a.operator, a.dtype).cmp(&(&b.operator, b.dtype));
            b.time.cmp(&a.time).then_with(names)
        });
        rates
    }

    fn kernels(&self, items: &[WorkItem], card: Option<&Card>) -> Vec<KernelUse> {
        let profile = self.analysis.profile();
        let mut positions: Vec<Option<usize>> = vec![None; profile.strings().len()];
        let mut sums: Vec<(StringId, KernelSum)> = Vec::new();
        let kernels = items.iter().filter(|item| item.class == StepClass::Kernel);
        for (item, call) in kernels.zip(&self.counted_for) {
            let name = profile.event(item.id).name;
            let position = *positions[name.index()].get_or_insert_with(|| {
                sums.push((name, KernelSum::default()));
                sums.len() - 1
            });
            let sum = &mut sums[position].1;
            sum.add(item);
            let call = self.calls.get(*call as usize);
            if let Some(call) = call.filter(|call| call.kernels == 1) {
                sum.add_counts(call.count);
            }
        }
        let mut kernels: Vec<KernelUse> = sums
            .into_iter()
            .map(|(name, sum)| {
                let uses_tensor_cores = self.uses_tensor_cores[name.index()];
                let text = profile.strings().text(name);
                sum.finish(text, uses_tensor_cores, card)
            })
            .collect();
        kernels.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        kernels
    }
}

impl KernelSum {
    fn add(&mut self, item: &WorkItem) {
        let time = item.duration().0 as f64;
        self.count += 1;
        self.time = self.time + item.duration();
        if let Some(blocks) = item.arguments.blocks_per_sm {
            self.blocks += blocks * time;
            self.with_blocks += time;
        }
        if let Some(occupancy) = item.arguments.known_occupancy() {
            self.occupancy += occupancy / 100.0 * time;
            self.with_occupancy += time;
        }
    }

    fn add_counts(&mut self, count: OperatorCount) {
        self.is_mixed |= self.dtype.is_some_and(|dtype| dtype != count.dtype);
        self.dtype = Some(count.dtype);
        self.flops = self.flops.saturating_add(count.flops);
        self.with_flops += 1;
        if let Some(bytes) = count.bytes {
            self.bytes = self.bytes.saturating_add(bytes);
            self.with_bytes += 1;
        }
    }

    fn finish(self, name: &str, uses_tensor_cores: bool, card: Option<&Card>) -> KernelUse {
        let mean = |sum: f64, time: f64| (time > 0.0).then(|| sum / time);
        let dtype = self.dtype.filter(|_| !self.is_mixed);
        let limit = dtype.and_then(|dtype| flops_limit(card, dtype, units(uses_tensor_cores)));
        // A rate over some of the kernels is that of none of them.
        let rate = |with: u64, count, limit| {
            let is_whole = with == self.count;
            is_whole
                .then(|| Rate::new(count, self.time, limit))
                .flatten()
        };
        KernelUse {
            name: name.to_owned(),
            calls: self.count,
            time: self.time,
            uses_tensor_cores,
            blocks_per_sm: mean(self.blocks, self.with_blocks),
            occupancy: mean(self.occupancy, self.with_occupancy),
            flops: rate(self.with_flops, self.flops, limit),
            bytes: rate(self.with_bytes, self.bytes, card.map(Card::bytes_per_s)),
        }
    }
}

fn units(uses_tensor_cores: bool) -> MathUnits {
    if uses_tensor_cores {
        MathUnits::TensorCores
    } else {
        MathUnits::Others
    }
}

fn flops_limit(card: Option<&Card>, dtype: DType, units: MathUnits) -> Option<f64> {
    card.and_then(|card| card.flops_per_s(dtype, units))
}
