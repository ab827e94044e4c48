//! Rows as tables show them: texts and microseconds.
//!
//! Made from the engine's averages and events, or by whoever has rows of another kind.

use std::borrow::Cow;
use std::rc::Rc;

use mindprof_analyze::{
    Analysis, Average, Averages, Flops, GroupBy, Item, Keys, MEMORY_KEY, Percentiles, percentiles,
    shown_frames,
};
use mindprof_model::{DeviceKind, InputsId, Nanos, StackId};
use rustc_hash::FxHashMap;

use crate::shapes_text;

/// One row of a table. Times are microseconds.
#[derive(Clone, Debug, Default)]
pub struct Row<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// Which of the operators of that name it is.
    pub overload: Cow<'a, str>,
    /// How many events there are.
    pub count: i64,
    /// The time on the host, without and with the children.
    pub self_cpu: f64,
    /// The time on the host, children included.
    pub cpu_total: f64,
    /// The time on devices without the children's.
    pub self_device: f64,
    /// The time on devices, children's included.
    pub device_total: f64,
    /// The memory on the host without the children's.
    pub self_cpu_memory: i64,
    /// The memory on the host, children's included.
    pub cpu_memory: i64,
    /// The memory on devices without the children's.
    pub self_device_memory: i64,
    /// The memory on devices, children's included.
    pub device_memory: i64,
    /// The machine, -1 where there is but one.
    pub node: i64,
    /// The shapes of the inputs as text; empty where there are none to show.
    pub shapes: Option<Rc<str>>,
    /// The frames it was called from, innermost first.
    pub stack: Rc<[Cow<'a, str>]>,
    /// The floating-point operations, where they are known.
    pub flops: Option<f64>,
    /// Whether it ended on another thread than it began on.
    pub is_async: bool,
    /// Whether it ran inside of another.
    pub has_parent: bool,
    /// Whether its device time is part of the device's total: it is no annotation and no operator.
    pub is_device_work: bool,
    /// How the times on the host are spread.
    pub percentiles: Option<Percentiles>,
}

/// Returns averages as rows.
pub fn average_rows<'a>(
    analysis: &'a Analysis,
    averages: &'a Averages,
    group_by: GroupBy,
) -> Vec<Row<'a>> {
    let mut texts = Texts::new(analysis, group_by.stack_frames);
    let rows = averages.rows.iter();
    rows.map(|average| texts.row(average, Cow::Borrowed(&average.key)))
        .collect()
}

/// Adds how times are spread to the rows of averages.
pub fn add_percentiles(rows: &mut [Row<'_>], analysis: &Analysis, group_by: GroupBy) {
    for (row, found) in rows.iter_mut().zip(percentiles(analysis, group_by)) {
        row.percentiles = Some(found);
    }
}

/// Returns one row for everything that a profile shows, in time order.
pub fn event_rows(analysis: &Analysis) -> Vec<Row<'_>> {
    let mut texts = Texts::new(analysis, usize::MAX);
    let mut flops = Flops::new(analysis.profile().strings());
    analysis
        .items()
        .map(|item| texts.item_row(item, &mut flops))
        .collect()
}

/// Makes the texts of rows, each distinct one once.
#[derive(Debug)]
pub struct Texts<'a> {
    analysis: &'a Analysis,
    frames: usize,
    shapes: FxHashMap<InputsId, Rc<str>>,
    stacks: FxHashMap<StackId, Rc<[Cow<'a, str>]>>,
}

impl<'a> Texts<'a> {
    /// Prepares to make rows that show this many frames of a stack.
    pub fn new(analysis: &'a Analysis, frames: usize) -> Self {
        Self {
            analysis,
            frames,
            shapes: FxHashMap::default(),
            stacks: FxHashMap::default(),
        }
    }

    /// Returns the row of one thing that the profile shows.
    pub fn item_row(&mut self, item: Item, flops: &mut Flops) -> Row<'a> {
        match item {
            Item::Event(id) => {
                let average = Average::of_event(self.analysis, id, flops);
                let name = self
                    .analysis
                    .profile()
                    .name(self.analysis.profile().event(id));
                self.row(&average, Cow::Borrowed(Keys::text(name)))
            }
            Item::Memory(record) => {
                let average = Average::of_memory(self.analysis, record);
                self.row(&average, Cow::Borrowed(MEMORY_KEY))
            }
        }
    }

    fn row(&mut self, average: &Average, name: Cow<'a, str>) -> Row<'a> {
        let sums = &average.sums;
        let shapes = average.inputs.map(|inputs| self.shapes(inputs));
        Row {
            name,
            overload: Cow::Borrowed(""),
            count: sums.count as i64,
            self_cpu: microseconds(sums.self_cpu_total),
            cpu_total: sums.cpu_micros,
            self_device: microseconds(sums.self_device_total),
            device_total: sums.device_micros,
            self_cpu_memory: sums.self_memory.host,
            cpu_memory: sums.memory.host,
            self_device_memory: sums.self_memory.device,
            device_memory: sums.memory.device,
            node: -1,
            shapes,
            stack: self.stack(average.stack.unwrap_or(StackId::NONE)),
            flops: Some(sums.flops as f64),
            is_async: average.is_async,
            has_parent: !average.is_top_level,
            is_device_work: is_device_work(average.device) && !average.is_annotation(),
            percentiles: None,
        }
    }

    fn shapes(&mut self, inputs: InputsId) -> Rc<str> {
        let make = || shapes_text(self.analysis.profile().inputs(), inputs).into();
        Rc::clone(self.shapes.entry(inputs).or_insert_with(make))
    }

    fn stack(&mut self, stack: StackId) -> Rc<[Cow<'a, str>]> {
        let profile = self.analysis.profile();
        let make = || {
            let frames = shown_frames(profile, stack).take(self.frames);
            frames
                .map(|frame| Cow::Borrowed(profile.strings().text(frame)))
                .collect()
        };
        Rc::clone(self.stacks.entry(stack).or_insert_with(make))
    }
}

/// Returns whether what runs on a device of this kind is part of the total of device time.
pub fn is_device_work(device: DeviceKind) -> bool {
    matches!(
        device,
        DeviceKind::Cuda | DeviceKind::PrivateUse1 | DeviceKind::Mtia | DeviceKind::Xpu
    )
}

/// Returns the name that torch's Python knows a kind of device by.
pub const fn device_name(device: DeviceKind) -> &'static str {
    match device {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Cuda => "cuda",
        DeviceKind::Mkldnn => "mkldnn",
        DeviceKind::OpenGl => "opengl",
        DeviceKind::OpenCl => "opencl",
        DeviceKind::Ideep => "ideep",
        DeviceKind::Hip => "hip",
        DeviceKind::Fpga => "fpga",
        DeviceKind::Maia => "maia",
        DeviceKind::Xla => "xla",
        DeviceKind::Vulkan => "vulkan",
        DeviceKind::Metal => "metal",
        DeviceKind::Xpu => "xpu",
        DeviceKind::Mps => "mps",
        DeviceKind::Meta => "meta",
        DeviceKind::Hpu => "hpu",
        DeviceKind::Ve => "ve",
        DeviceKind::Lazy => "lazy",
        DeviceKind::Ipu => "ipu",
        DeviceKind::Mtia => "mtia",
        DeviceKind::PrivateUse1 => "privateuseone",
    }
}

pub(crate) fn microseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}
