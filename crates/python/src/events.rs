//! The events of a profile as Python sees them: one store, and a handle per event that someone
//! looks at.
//!
//! A handle is two words. It is not followed by Python's collector, which would otherwise go
//! through all of them again and again; it holds the store and nothing else, so there is nothing to
//! collect. What a user sets on a handle is kept in the store, by event, and can lead back to
//! handles: from then on the collector follows these.

#![expect(
    unsafe_code,
    reason = "handles are taken out of the sight of Python's collector, for which PyO3 has no safe call"
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mindprof_analyze::{Analysis, Average, Flops, GroupBy, Item, MEMORY_KEY, event_number};
use mindprof_model::{EventId, Flags, Nanos};
use mindprof_report::events_table;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::{PyTraverseError, PyVisit};

use crate::analyzed::{Analyzed, Facts};
use crate::averages::{Averages, amounts_dict, microseconds};
use crate::enter::Enter;
use crate::error::Error;
use crate::function_event::FunctionEvent;
use crate::table::TableArguments;

/// Everything that a profile shows, in time order.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct Events {
    pub(crate) analyzed: Arc<Analyzed>,
    /// What is shown, unless that is simply every event.
    shown: OnceLock<Option<Vec<Item>>>,
    flops: Mutex<Flops>,
    is_changed: AtomicBool,
    changes: Mutex<HashMap<ItemKey, Py<PyDict>>>,
    /// What shares are of, once the list was shown.
    totals: OnceLock<ListTotals>,
    numbers: OnceLock<Numbers>,
}

/// What the numbers of memory records go on from.
struct Numbers {
    /// The highest number of an event.
    last: u32,
    /// The moments at which memory was not to be had.
    out_of_memory: Vec<EventId>,
}

/// What all events come to, in microseconds.
pub(crate) struct ListTotals {
    pub(crate) self_cpu: f64,
    pub(crate) self_device: f64,
    pub(crate) has_device: bool,
}

/// An item as the key of what was set on it.
pub(crate) type ItemKey = (bool, u32);

impl Events {
    pub(crate) fn new(analyzed: Arc<Analyzed>) -> Self {
        Self {
            flops: Mutex::new(Flops::new(analyzed.analysis.profile().strings())),
            analyzed,
            shown: OnceLock::new(),
            is_changed: AtomicBool::new(false),
            changes: Mutex::default(),
            totals: OnceLock::new(),
            numbers: OnceLock::new(),
        }
    }

    /// Returns the number of a memory record: they follow those of all events, and those of the
    /// moments at which there was no memory follow them.
    pub(crate) fn memory_number(&self, item: Item) -> u32 {
        let analysis = &self.analyzed.analysis;
        let numbers = self.numbers.get_or_init(|| Numbers::of(analysis));
        let loose = analysis.memory().unclaimed();
        let position = match item {
            Item::Memory(record) => loose.partition_point(|&other| other < record),
            Item::Event(id) => {
                loose.len() + numbers.out_of_memory.partition_point(|&other| other < id)
            }
        };
        numbers.last + position as u32 + 1
    }

    /// Returns what shares are of; none before the list was shown, as in torch.
    pub(crate) fn totals(&self) -> Option<&ListTotals> {
        self.totals.get()
    }

    /// Returns the handle of an item.
    pub(crate) fn handle<'py>(
        store: &Py<Self>,
        py: Python<'py>,
        item: Item,
    ) -> PyResult<Bound<'py, FunctionEvent>> {
        let handle = Bound::new(py, FunctionEvent::new(store.clone_ref(py), item))?;
        // Relaxed: see `change`.
        if !store.get().is_changed.load(Ordering::Relaxed) {
            // SAFETY: the pointer is of a live object of a type that the collector follows, made
            // just now; no one else has seen it. An object may be taken out of the collector's
            // sight at any time.
            unsafe { ffi::PyObject_GC_UnTrack(handle.as_ptr().cast()) };
        }
        Ok(handle)
    }

    /// Returns the floating-point operations of an event.
    pub(crate) fn flops(&self, id: EventId) -> u64 {
        let analysis = &self.analyzed.analysis;
        if !analysis.counts_flops() {
            return 0;
        }
        let mut flops = self.flops.lock().unwrap_or_else(PoisonError::into_inner);
        flops.count(analysis.profile(), id)
    }

    /// Returns what a user set on an item.
    pub(crate) fn change<'py>(&self, py: Python<'py>, key: ItemKey) -> Option<Bound<'py, PyDict>> {
        // Relaxed: whoever sets an attribute holds the GIL, as does whoever reads one.
        if !self.is_changed.load(Ordering::Relaxed) {
            return None;
        }
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.get(&key).map(|dict| dict.bind(py).clone())
    }

    /// Returns where to keep what a user sets on an item.
    pub(crate) fn change_mut<'py>(&self, py: Python<'py>, key: ItemKey) -> Bound<'py, PyDict> {
        self.is_changed.store(true, Ordering::Relaxed);
        // Made before the lock is taken: making an object can run the collector, which takes it.
        let new = PyDict::new(py).unbind();
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.entry(key).or_insert(new).bind(py).clone()
    }

    /// Returns all that users set on items.
    pub(crate) fn changes<'py>(&self, py: Python<'py>) -> Vec<(ItemKey, Bound<'py, PyDict>)> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = changes.iter();
        changes
            .map(|(&key, set)| (key, set.bind(py).clone()))
            .collect()
    }

    fn shown(&self) -> Option<&[Item]> {
        let find = || {
            let analysis = &self.analyzed.analysis;
            (!analysis.shows_every_event()).then(|| analysis.items().collect())
        };
        self.shown.get_or_init(find).as_deref()
    }

    fn item(&self, position: usize) -> Item {
        match self.shown() {
            Some(items) => items[position],
            None => Item::Event(EventId::from_index(position)),
        }
    }
}

#[pymethods]
impl Events {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever holds the lock keeps the store alive: what is not shown is taken as in use.
        if let Ok(changes) = self.changes.try_lock() {
            for set in changes.values() {
                visit.call(set)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let changes = self
            .changes
            .try_lock()
            .map(|mut changes| std::mem::take(&mut *changes));
        // Dropped after the lock is given back: this can run any code.
        drop(changes);
    }

    fn __len__(&self) -> usize {
        match self.shown() {
            Some(items) => items.len(),
            None => self.analyzed.analysis.profile().events().len(),
        }
    }

    /// Whether something was set on one of the events.
    #[getter]
    fn changed(&self) -> bool {
        self.is_changed.load(Ordering::Relaxed)
    }

    /// Returns the handles of events `begin` to `end`.
    fn make<'py>(slf: &Bound<'py, Self>, begin: usize, end: usize) -> PyResult<Bound<'py, PyList>> {
        let (this, py) = (slf.get(), slf.py());
        let store = slf.clone().unbind();
        let _pause = CollectorPause::begin();
        let list = PyList::empty(py);
        for position in begin..end.min(this.__len__()) {
            list.append(Self::handle(&store, py, this.item(position))?)?;
        }
        Ok(list)
    }

    /// Returns the rows of the events.
    #[pyo3(signature = (*, group_by_input_shape, include_python_functions, group_by_stack_n = 0))]
    fn averages(
        &self,
        py: Python<'_>,
        group_by_input_shape: bool,
        include_python_functions: bool,
        group_by_stack_n: usize,
    ) -> PyResult<Averages> {
        let group_by = GroupBy {
            input_shapes: group_by_input_shape,
            stack_frames: group_by_stack_n,
            python_functions: include_python_functions,
        };
        py.enter(|| Ok::<_, Error>(Averages::new(Arc::clone(&self.analyzed), group_by)))
    }

    /// Returns the rows of the operators that no count of floating-point operations covers.
    fn uncounted(&self, py: Python<'_>) -> PyResult<Averages> {
        py.enter(|| Ok::<_, Error>(Averages::uncounted(Arc::clone(&self.analyzed))))
    }

    /// Returns the attributes of one row that sums all events.
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        amounts_dict(py, &self.all_rows().total().sums.into())
    }

    /// Returns the sum of the events' own time in microseconds.
    fn self_cpu_time_total(&self) -> f64 {
        microseconds(self.all_rows().self_cpu_total())
    }

    /// Returns the events as a table.
    fn table(&self, py: Python<'_>, arguments: TableArguments) -> PyResult<String> {
        py.enter(|| {
            let options = arguments.options()?;
            self.totals.get_or_init(|| ListTotals::of(&self.all_rows()));
            Ok::<_, Error>(events_table(&self.analyzed.analysis, &options))
        })
    }

    /// Returns what holds for all events.
    fn facts(&self) -> Facts {
        self.analyzed.facts()
    }

    /// Returns how many events are missing, by cause.
    fn loss(&self) -> Vec<u64> {
        self.analyzed.loss()
    }
}

impl Events {
    /// Returns the rows of all events, those of Python functions included.
    fn all_rows(&self) -> Arc<mindprof_analyze::Averages> {
        self.analyzed.averages(GroupBy {
            python_functions: true,
            ..GroupBy::default()
        })
    }
}

impl Numbers {
    fn of(analysis: &Analysis) -> Self {
        let ids = (0..analysis.profile().events().len()).map(EventId::from_index);
        let is_hidden = |id| analysis.profile().event(id).flags.contains(Flags::HIDDEN);
        let shown = ids.filter(|&id| !is_hidden(id));
        let (out_of_memory, events): (Vec<_>, Vec<_>) =
            shown.partition(|&id| analysis.is_out_of_memory(id));
        let numbers = events.into_iter().map(|id| event_number(analysis, id));
        Self {
            last: numbers.max().unwrap_or(0),
            out_of_memory,
        }
    }
}

impl ListTotals {
    fn of(rows: &mindprof_analyze::Averages) -> Self {
        let on_device = |row: &&Average| row.device.is_device_work() && !row.is_annotation();
        let work = rows.rows.iter().filter(on_device);
        let device: u64 = work.map(|row| row.sums.self_device_total.0).sum();
        let mut sums = rows.rows.iter().map(|row| row.sums.self_device_total);
        Self {
            self_cpu: microseconds(rows.self_cpu_total()),
            self_device: microseconds(Nanos(device)),
            has_device: sums.any(|time| time > Nanos::ZERO),
        }
    }
}

/// Returns the name that an item is shown under.
pub(crate) fn item_name(events: &Events, item: Item) -> &str {
    let profile = events.analyzed.analysis.profile();
    match item {
        Item::Event(id) => profile.name(profile.event(id)),
        Item::Memory(_) => MEMORY_KEY,
    }
}

/// Keeps Python's collector from running while many objects are made that it need not see.
struct CollectorPause {
    was_on: bool,
}

impl CollectorPause {
    fn begin() -> Self {
        // SAFETY: the caller holds the GIL, which is all the call asks for.
        let was_on = unsafe { ffi::PyGC_Disable() } == 1;
        Self { was_on }
    }
}

impl Drop for CollectorPause {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: as above: the pause does not outlive the call that began it, which holds the
            // GIL.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
