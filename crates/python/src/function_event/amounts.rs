//! The amounts of an event: times, memory, FLOPs and shares of the total.

#![expect(
    clippy::unused_self,
    reason = "getters need `self`, even if the value is the same for all events"
)]

use mindprof_analyze::elapsed_micros;
use mindprof_model::DeviceKind;
use mindprof_report::share_text;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::FunctionEvent;
use crate::averages::microseconds;
use crate::events::ListTotals;
use crate::py_cache::classes;

/// torch's value of a share until its list was shown as a table.
const UNSHOWN: i64 = -1;

#[pymethods]
impl FunctionEvent {
    #[getter]
    fn count(&self) -> u8 {
        1
    }

    #[getter]
    fn time_range<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (start, end) = self.interval();
        let interval = classes(py)?.interval.bind(py);
        interval.call1((microseconds(start), microseconds(end)))
    }

    #[getter]
    fn cpu_time_total(&self) -> f64 {
        match self.event() {
            Some((_, event)) if self.device() == DeviceKind::Cpu => elapsed_micros(event),
            Some(_) | None => 0.0,
        }
    }

    #[getter]
    fn self_cpu_time_total(&self) -> f64 {
        match self.event() {
            Some((id, _)) => microseconds(self.analysis().tree().self_time(id)),
            None => 0.0,
        }
    }

    #[getter]
    fn device_time_total(&self) -> f64 {
        match self.event() {
            Some((id, _)) if self.device() == DeviceKind::Cpu => {
                self.analysis().device_times().total_micros(id)
            }
            Some((_, event)) => elapsed_micros(event),
            None => 0.0,
        }
    }

    #[getter]
    fn self_device_time_total(&self) -> f64 {
        match self.event() {
            Some((id, _)) if self.device() == DeviceKind::Cpu => {
                microseconds(self.analysis().device_times().own(id))
            }
            Some((_, event)) => microseconds(event.duration),
            None => 0.0,
        }
    }

    #[getter]
    fn cpu_memory_usage(&self) -> i64 {
        self.memory().host
    }

    #[getter]
    fn device_memory_usage(&self) -> i64 {
        self.memory().device
    }

    #[getter]
    fn self_cpu_memory_usage(&self) -> i64 {
        self.own_memory().host
    }

    #[getter]
    fn self_device_memory_usage(&self) -> i64 {
        self.own_memory().device
    }

    #[getter]
    pub(super) fn flops(&self) -> Option<u64> {
        self.recorded().map(|(id, _)| self.store.get().flops(id))
    }

    /// The share of the list's total as text once the list was shown as a table, else -1.
    #[getter]
    fn self_cpu_percent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.share(py, self.self_cpu_time_total(), |totals| totals.self_cpu)
    }

    #[getter]
    fn total_cpu_percent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.is_async() && self.store.get().totals().is_some() {
            return 0_i64.into_bound_py_any(py);
        }
        self.share(py, self.cpu_time_total(), |totals| totals.self_cpu)
    }

    #[getter]
    fn total_device_percent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.store.get().totals() {
            Some(totals) if totals.has_device => {
                self.share(py, self.self_device_time_total(), |totals| {
                    totals.self_device
                })
            }
            Some(_) | None => UNSHOWN.into_bound_py_any(py),
        }
    }
}

impl FunctionEvent {
    fn share<'py>(
        &self,
        py: Python<'py>,
        part: f64,
        whole: impl Fn(&ListTotals) -> f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.store.get().totals() {
            Some(totals) => share_text(part, whole(totals)).into_bound_py_any(py),
            None => UNSHOWN.into_bound_py_any(py),
        }
    }
}
