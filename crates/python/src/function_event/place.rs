//! The place an event ran at (process, thread, stream, rank, step), as in data frames.

use mindprof_analyze::Item;
use mindprof_formats::Place;
use pyo3::prelude::*;

use super::FunctionEvent;

#[pymethods]
impl FunctionEvent {
    #[getter]
    fn process(&self) -> Option<i64> {
        self.place().process
    }

    #[getter(thread_id)]
    fn system_thread(&self) -> Option<i64> {
        self.place().thread_id
    }

    #[getter]
    fn thread_name(&self) -> Option<&str> {
        self.place().thread_name
    }

    #[getter]
    fn stream(&self) -> Option<i64> {
        self.place().stream
    }

    #[getter]
    fn rank(&self) -> Option<i64> {
        self.place().rank
    }

    #[getter]
    fn correlation(&self) -> Option<u32> {
        let number = self.recorded().map(|_| self.links().correlation);
        number.filter(|&number| number != 0)
    }

    #[getter(step)]
    fn step_number(&self) -> u64 {
        self.store.get().analyzed.steps().at(self.interval().0)
    }
}

impl FunctionEvent {
    fn place(&self) -> Place<'_> {
        let profile = self.analysis().profile();
        let thread = match self.item {
            Item::Event(id) => profile.event(id).thread,
            Item::Memory(record) => profile.memory().at(record as usize).thread,
        };
        Place::of(profile, thread)
    }
}
