//! The memory timeline of a profile: its export, its changes and its devices.

use std::path::PathBuf;

use mindprof_analyze::MemoryPlace;
use mindprof_formats::{memory_device, memory_device_name};
use mindprof_report::write_memory_timeline_file;
use pyo3::prelude::*;

use crate::enter::Enter;
use crate::error::Error;
use crate::profile::Profile;

/// A change of the timeline: time, action, block, version, bytes, category before and after.
type Change = (i64, u8, u32, u32, u64, usize, usize);

#[pymethods]
impl Profile {
    /// Writes the memory timeline of a process on a device. The extension of the path selects the
    /// format. Without a process, the one with the highest peak on the device is used.
    #[pyo3(signature = (path, device, process = None))]
    fn write_memory_timeline(
        &self,
        py: Python<'_>,
        path: PathBuf,
        device: &str,
        process: Option<u64>,
    ) -> PyResult<()> {
        py.enter(move || {
            let device = memory_device(device)?;
            let places = self.memory_places(process);
            let known = places.into_iter().find(|place| place.device == device);
            // A device without any memory gets an empty timeline.
            let place = known.unwrap_or(MemoryPlace { process: 0, device });
            write_memory_timeline_file(&self.analyzed().analysis, place, &path)
        })
    }

    /// Returns the memory changes in time order, optionally only those of a device or a process.
    #[pyo3(signature = (device = None, process = None))]
    fn memory_changes(
        &self,
        py: Python<'_>,
        device: Option<&str>,
        process: Option<u64>,
    ) -> PyResult<Vec<Change>> {
        py.enter(|| {
            let device = device.map(memory_device).transpose()?;
            let is_wanted = |place: MemoryPlace| {
                device.is_none_or(|device| place.device == device)
                    && process.is_none_or(|process| place.process == process)
            };
            Ok::<_, Error>(self.changes(is_wanted))
        })
    }

    /// Returns the names of the devices with recorded memory, highest peak first.
    #[pyo3(signature = (process = None))]
    fn memory_devices(&self, py: Python<'_>, process: Option<u64>) -> PyResult<Vec<String>> {
        py.enter(|| {
            let mut names: Vec<String> = Vec::new();
            for place in self.memory_places(process) {
                let name = memory_device_name(place.device);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            Ok::<_, Error>(names)
        })
    }

    /// Returns the process that made the recording, as opposed to its workers.
    pub(crate) fn own_process(&self, py: Python<'_>) -> PyResult<u64> {
        py.enter(|| {
            let threads = self.analyzed().analysis.profile().threads();
            Ok::<_, Error>(threads.first().map_or(0, |thread| thread.process))
        })
    }
}

impl Profile {
    /// Returns the places with recorded memory, of one process or of all, highest peak first.
    fn memory_places(&self, process: Option<u64>) -> Vec<MemoryPlace> {
        let analysis = &self.analyzed().analysis;
        let mut places = analysis.memory_timeline().places_by_peak(analysis);
        places.retain(|place| process.is_none_or(|process| place.process == process));
        places
    }

    fn changes(&self, is_wanted: impl Fn(MemoryPlace) -> bool) -> Vec<Change> {
        let analysis = &self.analyzed().analysis;
        let timeline = analysis.memory_timeline();
        let reference = analysis.profile().reference_unix_ns();
        let changes = timeline
            .changes()
            .iter()
            .filter(|change| is_wanted(timeline.blocks()[change.block as usize].place));
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
