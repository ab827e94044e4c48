//! The events of a profile for Python: one store, and a handle for each event that is accessed.
//! The store is also a sequence of raw events, which is what torch's results list.
//!
//! Python's garbage collector does not track handles, because it would traverse all of them again
//! and again; a handle refers only to the store, so there is nothing to collect. Attributes that a
//! user sets on a handle are kept in the store and may refer to handles: from then on new handles
//! are tracked.

#![expect(
    unsafe_code,
    reason = "PyO3 has no safe call to untrack an object from the garbage collector"
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mindprof_analyze::{Analysis, Average, Flops, GroupBy, Item, MEMORY_KEY, event_number};
use mindprof_model::{EventId, Flags, Nanos, Profile};
use mindprof_report::events_table;
use pyo3::exceptions::PyIndexError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice};
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit};

use crate::analyzed::{Analyzed, Facts};
use crate::averages::{Averages, amounts_dict, microseconds};
use crate::enter::Enter;
use crate::error::Error;
use crate::function_event::{FunctionEvent, KinetoEvent};
use crate::table::TableArguments;

/// The store of a profile's events, in time order, and of the attributes that users set on them.
#[pyclass(frozen, sequence, module = "mindprof._core")]
pub(crate) struct Events {
    pub(crate) analyzed: Arc<Analyzed>,
    /// The shown items, or `None` if every event is shown.
    shown: OnceLock<Option<Vec<Item>>>,
    /// The raw events, or `None` if they are the events of the profile.
    raw: OnceLock<Option<Vec<Item>>>,
    flops: Mutex<Flops>,
    is_changed: AtomicBool,
    changes: Mutex<HashMap<ItemKey, Py<PyDict>>>,
    /// The totals that shares refer to, set once the list was shown.
    totals: OnceLock<ListTotals>,
    numbers: OnceLock<Numbers>,
}

/// The basis for the ids of memory records, which follow the ids of events.
struct Numbers {
    /// The highest id of an event.
    last: u32,
    /// The out-of-memory events, in order.
    out_of_memory: Vec<EventId>,
}

/// The sums over all events, in microseconds.
pub(crate) struct ListTotals {
    pub(crate) self_cpu: f64,
    pub(crate) self_device: f64,
    pub(crate) has_device: bool,
}

/// The key of an item: whether it is a memory record, and its index.
pub(crate) type ItemKey = (bool, u32);

impl Events {
    pub(crate) fn new(analyzed: Arc<Analyzed>) -> Self {
        Self {
            flops: Mutex::new(Flops::new(analyzed.analysis.profile().strings())),
            analyzed,
            shown: OnceLock::new(),
            raw: OnceLock::new(),
            is_changed: AtomicBool::new(false),
            changes: Mutex::default(),
            totals: OnceLock::new(),
            numbers: OnceLock::new(),
        }
    }

    /// Returns the id of a memory record. These ids follow those of all events, and the ids of
    /// out-of-memory events follow them.
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

    /// Returns the totals that shares refer to, or `None` before the list was shown, as in torch.
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
            // SAFETY: the handle is alive, its type supports garbage collection, and the GIL is
            // held. It was created here and is not shared yet.
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

    /// Returns the attributes that a user set on an item.
    pub(crate) fn change<'py>(&self, py: Python<'py>, key: ItemKey) -> Option<Bound<'py, PyDict>> {
        // Relaxed: attributes are set and read with the GIL held.
        if !self.is_changed.load(Ordering::Relaxed) {
            return None;
        }
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.get(&key).map(|dict| dict.bind(py).clone())
    }

    /// Returns the dict of attributes that a user sets on an item, and marks the store as changed.
    pub(crate) fn change_mut<'py>(&self, py: Python<'py>, key: ItemKey) -> Bound<'py, PyDict> {
        self.is_changed.store(true, Ordering::Relaxed);
        // Created before the lock is taken: that can run the collector, which needs the lock.
        let new = PyDict::new(py).unbind();
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.entry(key).or_insert(new).bind(py).clone()
    }

    /// Returns all attributes that users set on items.
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

    /// Returns the number of shown items.
    fn shown_len(&self) -> usize {
        match self.shown() {
            Some(items) => items.len(),
            None => self.analyzed.analysis.profile().events().len(),
        }
    }

    fn raw(&self) -> Option<&[Item]> {
        let profile = self.analyzed.analysis.profile();
        let find = || (!profile.memory().is_empty()).then(|| raw_items(profile));
        self.raw.get_or_init(find).as_deref()
    }

    fn raw_event(slf: &Bound<'_, Self>, position: usize) -> KinetoEvent {
        let item = match slf.get().raw() {
            Some(items) => items[position],
            None => Item::Event(EventId::from_index(position)),
        };
        KinetoEvent::new(slf.clone().unbind(), item)
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
        // The lock is held only by code that keeps the store alive; objects that are not visited
        // count as in use.
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
        // Dropped after the lock is released: dropping can run any code.
        drop(changes);
    }

    /// Returns the number of raw events.
    fn __len__(&self) -> usize {
        let profile = self.analyzed.analysis.profile();
        profile.events().len() + profile.memory().len()
    }

    /// Returns a raw event, or a list of them for a slice.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, count) = (slf.py(), slf.get().__len__() as isize);
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(count)?;
            let positions = (0..range.slicelength as isize).map(|n| range.start + n * range.step);
            let events = positions.map(|position| Self::raw_event(slf, position as usize));
            return events.collect::<Vec<_>>().into_bound_py_any(py);
        }
        let given: isize = index.extract()?;
        let position = if given < 0 { given + count } else { given };
        if !(0..count).contains(&position) {
            return Err(PyIndexError::new_err("list index out of range"));
        }
        Self::raw_event(slf, position as usize).into_bound_py_any(py)
    }

    /// Iterates over the raw events.
    fn __iter__(slf: &Bound<'_, Self>) -> KinetoEventIterator {
        KinetoEventIterator {
            events: slf.clone().unbind(),
            next: AtomicUsize::new(0),
        }
    }

    /// Returns the number of items that a list of events shows.
    fn count_shown(&self) -> usize {
        self.shown_len()
    }

    /// Whether a user set an attribute on any event.
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
        for position in begin..end.min(this.shown_len()) {
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

    /// Returns whether the overloads of operators were recorded.
    fn has_overloads(&self) -> bool {
        self.analyzed.analysis.profile().has_overloads()
    }

    /// Returns the rows of the operators that have no FLOP formula.
    fn uncounted(&self, py: Python<'_>) -> PyResult<Averages> {
        py.enter(|| Ok::<_, Error>(Averages::uncounted(Arc::clone(&self.analyzed))))
    }

    /// Returns the attributes of a row that sums all events.
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        amounts_dict(py, &self.all_rows().total().sums.into())
    }

    /// Returns the sum of all self CPU times, in microseconds.
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

    /// Returns the facts that hold for all events.
    fn facts(&self) -> Facts {
        self.analyzed.facts()
    }

    /// Returns the number of lost events by cause.
    fn loss(&self) -> Vec<u64> {
        self.analyzed.loss()
    }

    /// Returns the words that limit the recorded operators; empty if all were recorded.
    fn only(&self) -> Vec<String> {
        self.analyzed.only()
    }
}

impl Events {
    /// Returns the rows of all events, including those of Python functions.
    fn all_rows(&self) -> Arc<mindprof_analyze::Averages> {
        self.analyzed.all_rows()
    }
}

/// An iterator over the raw events of a store.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct KinetoEventIterator {
    events: Py<Events>,
    next: AtomicUsize,
}

#[pymethods]
impl KinetoEventIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<KinetoEvent> {
        let events = self.events.bind(py);
        // Relaxed: the GIL orders the calls.
        let position = self.next.load(Ordering::Relaxed);
        (position < events.get().__len__()).then(|| {
            self.next.store(position + 1, Ordering::Relaxed);
            Events::raw_event(events, position)
        })
    }
}

/// Returns all events and memory records in time order, an event before a record of its start.
fn raw_items(profile: &Profile) -> Vec<Item> {
    let (events, memory) = (profile.events(), profile.memory());
    let mut items = Vec::with_capacity(events.len() + memory.len());
    let mut record = 0;
    for (index, event) in events.iter().enumerate() {
        while record < memory.len() && memory.time(record) < event.start {
            items.push(Item::Memory(record as u32));
            record += 1;
        }
        items.push(Item::Event(EventId::from_index(index)));
    }
    items.extend((record..memory.len()).map(|record| Item::Memory(record as u32)));
    items
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

/// Pauses Python's garbage collector while many untracked objects are created.
struct CollectorPause {
    was_on: bool,
}

impl CollectorPause {
    fn begin() -> Self {
        // SAFETY: the call only requires the GIL, which `make` holds while it creates and drops the
        // pause.
        let was_on = unsafe { ffi::PyGC_Disable() } == 1;
        Self { was_on }
    }
}

impl Drop for CollectorPause {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: the pause is a local of `make`, which holds the GIL until it returns.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
