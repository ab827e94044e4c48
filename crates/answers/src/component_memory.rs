//! The memory of each component of the software on a device, as profilers of NPUs record it beside
//! torch's allocator.

use mindprof_model::Metadata;
use serde::{Deserialize, Serialize};

/// The memory of one component on one device, over the whole recording.
///
/// torch's allocator is one component among others (`PTA`). `APP` is the whole process, and
/// `PTA+GE` a sum, so that components do not add up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ComponentMemory {
    /// The name of the component, as the profiler wrote it.
    pub component: String,
    /// The index of the device among the NPUs of the process.
    pub device: i16,
    /// The bytes that its users held. `None` if the component does not tell.
    pub allocated: Option<ComponentAmount>,
    /// The bytes that it took from the device.
    pub reserved: Option<ComponentAmount>,
}

/// A number of bytes that changed over the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentAmount {
    /// The largest number of bytes.
    pub peak: u64,
    /// The time of the peak, in nanoseconds since the Unix epoch.
    pub peak_unix_ns: u64,
    /// The bytes at the end.
    pub end: u64,
}

impl ComponentMemory {
    /// Reads all components from the metadata of a profile: by device, those with the most reserved
    /// memory first. A malformed entry is left out.
    pub fn read(metadata: &Metadata) -> Vec<Self> {
        let text = metadata.get(Metadata::MEMORY_COMPONENTS);
        let entries = text.and_then(|text| serde_json::from_str(text).ok());
        let entries: Vec<serde_json::Value> = entries.unwrap_or_default();
        let entries = entries.into_iter();
        let mut components: Vec<Self> = entries
            .filter_map(|entry| serde_json::from_value(entry).ok())
            .collect();
        let peak = |amount: Option<ComponentAmount>| amount.map_or(0, |amount| amount.peak);
        components.sort_by_key(|one| {
            let falling = std::cmp::Reverse((peak(one.reserved), peak(one.allocated)));
            (one.device, falling)
        });
        components
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_listed_by_falling_peaks() {
        let mut metadata = Metadata::default();
        assert!(ComponentMemory::read(&metadata).is_empty());
        metadata.set(
            Metadata::MEMORY_COMPONENTS,
            r#"[{"component":"PTA","device":0,"allocated":{"peak":5,"peak_unix_ns":1,"end":2},
                 "reserved":{"peak":8,"peak_unix_ns":1,"end":8}},
                {"component":"APP","device":0,"allocated":null,
                 "reserved":{"peak":90,"peak_unix_ns":2,"end":90}},
                {"component":"HCCL","device":"first"}, 7]"#,
        );
        let found = ComponentMemory::read(&metadata);
        let [app, allocator] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((app.component.as_str(), app.allocated), ("APP", None));
        assert_eq!(allocator.component, "PTA");
        assert_eq!(allocator.allocated.map(|amount| amount.end), Some(2));
    }
}
