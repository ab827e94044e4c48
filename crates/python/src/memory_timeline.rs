//! The memory timeline: what modules and optimizers say of their tensors, and what follows from it.

use std::path::PathBuf;

use mindprof_analyze::MemoryDevice;
use mindprof_formats::{memory_device, memory_device_name};
use mindprof_model::TensorRole;
use mindprof_record::{tensor_role, wants_storages};
use mindprof_report::write_memory_timeline_file;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::enter::Enter;
use crate::error::Error;
use crate::profile::Profile;
use crate::tensor::Tensor;

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

/// Tells the recorder which tensors are parameters of a module and their gradients, if some window
/// wants to know.
#[pyfunction]
pub(crate) fn note_module(module: &Bound<'_, PyAny>) {
    if wants_storages() {
        // A module of another make is left alone: profiling must not be what makes a program fail.
        let _ = note_parameters_of(module);
    }
}

/// Tells the recorder which tensors an optimizer updates and keeps, if some window wants to know.
#[pyfunction]
pub(crate) fn note_optimizer(optimizer: &Bound<'_, PyAny>) {
    if wants_storages() {
        // As with modules.
        let _ = note_groups_of(optimizer);
    }
}

fn note_parameters_of(module: &Bound<'_, PyAny>) -> PyResult<()> {
    let parameters = module.getattr("_parameters")?;
    for parameter in parameters.call_method0("values")?.try_iter()? {
        note_parameter(&parameter?);
    }
    Ok(())
}

fn note_groups_of(optimizer: &Bound<'_, PyAny>) -> PyResult<()> {
    let state = optimizer.getattr("state")?;
    for group in optimizer.getattr("param_groups")?.try_iter()? {
        for parameter in group?.get_item("params")?.try_iter()? {
            let parameter = parameter?;
            note_parameter(&parameter);
            // Asked without `[]`, which would add an entry.
            let kept = state.call_method1("get", (&parameter,))?;
            let Ok(kept) = kept.cast::<PyDict>() else {
                continue;
            };
            for value in kept.values() {
                note(&value, TensorRole::OptimizerState);
            }
        }
    }
    Ok(())
}

fn note_parameter(parameter: &Bound<'_, PyAny>) {
    note(parameter, TensorRole::Parameter);
    if let Ok(parameter) = parameter.cast::<Tensor>()
        && let Some(gradient) = parameter.get().0.grad()
    {
        tell(&gradient, TensorRole::Gradient);
    }
}

fn note(value: &Bound<'_, PyAny>, role: TensorRole) {
    if let Ok(tensor) = value.cast::<Tensor>() {
        tell(&tensor.get().0, role);
    }
}

fn tell(tensor: &mindtorch_tensor::Tensor, role: TensorRole) {
    let (address, bytes) = (tensor.storage_address(), tensor.storage_bytes());
    tensor_role(role, address as u64, bytes as u64);
}
