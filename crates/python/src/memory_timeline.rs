//! The memory timeline of a profile, as Python asks for it.

use std::path::PathBuf;

use mindprof_analyze::MemoryDevice;
use mindprof_formats::{memory_device, memory_device_name};
use mindprof_report::write_memory_timeline_file;
use pyo3::prelude::*;

use crate::enter::Enter;
use crate::error::Error;
use crate::profile::Profile;

/// One change of the timeline: time, action, block, version, bytes, category before and after.
type Change = (i64, u8, u32, u32, u64, usize, usize);

#[pymethods]
impl Profile {
    /// Writes the memory timeline of a device; the name of the file says which kind.
    fn write_memory_timeline(&self, py: Python<'_>, path: PathBuf, device: &str) -> PyResult<()> {
        py.enter(move || {
            let device = memory_device(device)?;
            write_memory_timeline_file(&self.analyzed().analysis, device, &path)
        })
    }

    /// Returns the changes of memory on a device, or on all of them, in time order.
    #[pyo3(signature = (device = None))]
    fn memory_changes(&self, py: Python<'_>, device: Option<&str>) -> PyResult<Vec<Change>> {
        py.enter(|| {
            let device = device.map(memory_device).transpose()?;
            Ok::<_, Error>(self.changes(device))
        })
    }

    /// Returns the names of the devices that memory was recorded on, that with the most first.
    fn memory_devices(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.enter(|| {
            let analysis = &self.analyzed().analysis;
            let devices = analysis.memory_timeline().devices_by_peak(analysis);
            Ok::<_, Error>(devices.into_iter().map(memory_device_name).collect())
        })
    }
}

impl Profile {
    fn changes(&self, device: Option<MemoryDevice>) -> Vec<Change> {
        let analysis = &self.analyzed().analysis;
        let timeline = analysis.memory_timeline();
        let reference = analysis.profile().reference_unix_ns();
        let changes = timeline.changes().iter().filter(|change| {
            let block = &timeline.blocks()[change.block as usize];
            device.is_none_or(|device| block.device == device)
        });
        changes
            .map(|change| {
                let time = change.time.map_or(-1, |time| (reference + time.0) as i64);
                let categories = (change.category.index(), change.after.index());
                let (block, version) = (change.block, change.version);
                let action = change.action as u8;
                let (before, after) = categories;
                (time, action, block, version, change.bytes, before, after)
            })
            .collect()
    }
}
