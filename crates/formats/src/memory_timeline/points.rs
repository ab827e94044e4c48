//! The timeline as points: how much there was of each category after each microsecond in which something changed.

use mindprof_analyze::{Analysis, CategoryBytes, MemoryCategory, MemoryDevice};

/// Times and sizes of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPoints {
    /// The times, in microseconds since the Unix epoch. What was there before the window shares the first time.
    pub times: Vec<u64>,
    /// The bytes by category after each time.
    pub bytes: Vec<CategoryBytes>,
}

impl MemoryPoints {
    /// Collects the points of a device. Changes within one microsecond are one point.
    ///
    /// ```text
    /// changes   (before) a b        c  d d     e
    /// points    0                   1  2       3     a, b and 0 are at the same time: b is in the first microsecond
    /// ```
    pub fn build(analysis: &Analysis, device: MemoryDevice) -> Self {
        let reference = analysis.profile().reference_unix_ns();
        let mut points = Self::default();
        let mut bytes = CategoryBytes::default();
        let (mut previous, mut first) = (None, None);
        for change in analysis.memory_timeline().changes_on(device) {
            let time = change.time.map(|time| (reference + time.0) / 1000);
            first = first.or(time);
            change.apply(&mut bytes);
            match points.bytes.last_mut() {
                Some(last) if previous == Some(time) => *last = bytes,
                _ => {
                    points.times.push(time.unwrap_or_default());
                    points.bytes.push(bytes);
                }
            }
            previous = Some(time);
        }
        let only_before = reference / 1000;
        for time in points.times.iter_mut().take_while(|time| **time == 0) {
            *time = first.unwrap_or(only_before);
        }
        points
    }
}

/// Returns the name of a category, as torch's enumeration has it.
pub const fn memory_category_name(category: MemoryCategory) -> &'static str {
    match category {
        MemoryCategory::Parameter => "PARAMETER",
        MemoryCategory::OptimizerState => "OPTIMIZER_STATE",
        MemoryCategory::Input => "INPUT",
        MemoryCategory::Temporary => "TEMPORARY",
        MemoryCategory::Activation => "ACTIVATION",
        MemoryCategory::Gradient => "GRADIENT",
        MemoryCategory::AutogradDetail => "AUTOGRAD_DETAIL",
        MemoryCategory::Unknown => "UNKNOWN",
    }
}
