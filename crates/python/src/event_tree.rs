//! The event tree of a profile for Python: `python/mindprof/_results/torch_tree.py` turns its nodes
//! into objects like those of torch's `experimental_event_tree()`.
//!
//! The tree and the numbers of tensors come from `analyze`; each method here returns plain values
//! of one node.

use std::sync::Arc;

use mindprof_analyze::{CallTree, Item, NodeTensors, SeenTensor, TensorNumbers, event_number};
use mindprof_model::{
    Category, DType, Event, EventId, Flags, Input, InputsIter, MEMORY_EVENT, TensorIdentity,
};
use mindprof_pytorch::HeldTensor;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyList};
use rustc_hash::FxHashMap;

use crate::analyzed::Analyzed;
use crate::enter::Enter;
use crate::error::Error;
use crate::held_tensors::{Holders, SeenModule, SeenOptimizer, SeenParameter};
use crate::names::{device_name, scope_number};
use crate::profile::Profile;

/// torch's numbers for the kinds of nodes.
mod kind {
    pub(super) const OPERATOR: u8 = 0;
    pub(super) const ALLOCATION: u8 = 3;
    pub(super) const CALL: u8 = 5;
    pub(super) const NATIVE_CALL: u8 = 6;
    pub(super) const COLLECTED: u8 = 7;
}

/// The begin of the names of C functions.
const BUILT_IN: &str = "<built-in ";

/// A tensor: C++ name of the dtype, sizes, strides, address of the storage, address of the object,
/// device, layout, number of the storage and number of the tensor. Addresses and what follows are
/// `None` if they were not recorded.
type Tensor = (
    &'static str,
    Vec<i64>,
    Vec<i64>,
    Option<u64>,
    Option<u64>,
    Option<u8>,
    Option<u8>,
    Option<u32>,
    Option<u32>,
);

/// A parameter of a module or an optimizer: name, tensor, gradient and state.
type Parameter = (String, Tensor, Option<Tensor>, Vec<(String, Tensor)>);

/// A memory record: address, bytes, total allocated, total reserved, kind and index of the device,
/// number of the storage and number of the tensor.
type Allocation = (
    u64,
    i64,
    u64,
    u64,
    &'static str,
    i16,
    Option<u32>,
    Option<u32>,
);

/// A module: its address, the address and the name of its class, and its parameters.
type Module = (usize, usize, String, Option<Vec<Parameter>>);

/// The tree of everything that the recording process recorded. `Profile.event_tree` builds it.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct EventTree {
    analyzed: Arc<Analyzed>,
    tree: CallTree,
    tensors: NodeTensors,
    /// The module or optimizer of each call that has one, and the node of its first call.
    held: FxHashMap<usize, Held>,
    /// The function that calls modules, if a module was called.
    module_call: Option<String>,
}

/// The tensors of a module or an optimizer, numbered at its first call.
#[derive(Clone)]
struct Held {
    first: usize,
    holder: Holder,
}

#[derive(Clone)]
enum Holder {
    Module(Arc<SeenModule>),
    Optimizer(Arc<SeenOptimizer>),
}

impl Holder {
    fn parameters(&self) -> &[SeenParameter] {
        match self {
            Self::Module(module) => module.parameters.as_deref().unwrap_or_default(),
            Self::Optimizer(optimizer) => &optimizer.parameters,
        }
    }

    /// Returns all tensors, in the order in which [`Parameter`] contains them.
    fn tensors(&self) -> Vec<SeenTensor> {
        let mut found = Vec::new();
        for parameter in self.parameters() {
            let state = parameter.state.iter().map(|(_, tensor)| tensor);
            let tensors = [&parameter.tensor].into_iter();
            let tensors = tensors.chain(&parameter.gradient).chain(state);
            found.extend(tensors.map(|tensor| SeenTensor {
                identity: tensor.identity,
                storage: tensor.storage,
            }));
        }
        found
    }
}

#[pymethods]
impl Profile {
    /// Builds the event tree of the process that made the recording.
    fn event_tree(&self, py: Python<'_>) -> PyResult<EventTree> {
        let process = self.own_process(py)?;
        py.enter(|| {
            let analyzed = Arc::clone(self.analyzed());
            Ok::<_, Error>(EventTree::build(analyzed, &self.holders, process))
        })
    }

    /// Returns the roots of the event tree: torch's own if its collector made the recording and its
    /// result was kept, otherwise objects like torch's.
    fn experimental_event_tree<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(collected) = &slf.get().collected {
            let collected = collected.bind(slf.py());
            return collected.call_method0("experimental_event_tree");
        }
        let objects = slf.py().import("mindprof._results.torch_tree")?;
        objects.call_method1("event_tree_of", (slf,))
    }

    /// Returns whether the recording contains events of devices.
    #[getter]
    fn has_device_events(&self) -> bool {
        self.analyzed().analysis.accelerator().is_some()
    }
}

#[pymethods]
impl EventTree {
    fn __len__(&self) -> usize {
        self.tree.len()
    }

    /// Returns the function that calls modules, as `file.py(10): function`; `None` if none was seen.
    #[getter]
    fn module_call(&self) -> Option<&str> {
        self.module_call.as_deref()
    }

    /// Returns the nodes without a parent.
    fn roots(&self) -> Vec<usize> {
        self.tree.roots().collect()
    }

    /// Returns the nodes directly inside a node.
    fn children(&self, node: usize) -> PyResult<Vec<u32>> {
        self.check(node)?;
        Ok(self.tree.children(node).to_vec())
    }

    /// Returns the node around a node.
    fn parent(&self, node: usize) -> PyResult<Option<usize>> {
        self.check(node)?;
        Ok(self.tree.parent(node))
    }

    /// Returns torch's number for the kind of a node.
    fn kind(&self, node: usize) -> PyResult<u8> {
        let Some((_, event)) = self.event(node)? else {
            return Ok(kind::ALLOCATION);
        };
        Ok(match event.category {
            Category::PythonFunction if self.name_of(event).starts_with(BUILT_IN) => {
                kind::NATIVE_CALL
            }
            Category::PythonFunction => kind::CALL,
            Category::Runtime => kind::COLLECTED,
            Category::Operator
            | Category::Annotation
            | Category::Kernel
            | Category::DeviceAnnotation
            | Category::Other => kind::OPERATOR,
        })
    }

    /// Returns the name of a node.
    fn name(&self, node: usize) -> PyResult<&str> {
        let event = self.event(node)?;
        Ok(event.map_or(MEMORY_EVENT, |(_, event)| self.name_of(event)))
    }

    /// Returns the start and the end of a node in nanoseconds since the Unix epoch, and its thread
    /// and torch's number for it. The end is `None` if the event had not ended.
    fn place(&self, node: usize) -> PyResult<(u64, Option<u64>, u32, u32)> {
        let analysis = &self.analyzed.analysis;
        let reference = analysis.profile().reference_unix_ns();
        self.check(node)?;
        Ok(match self.tree.item(node) {
            Item::Memory(record) => {
                let record = analysis.profile().memory().at(record as usize);
                let time = reference + record.time.0;
                (time, Some(time), analysis.memory_thread_number(&record), 0)
            }
            Item::Event(id) => {
                let event = analysis.profile().event(id);
                let is_unfinished = event.flags.contains(Flags::UNFINISHED);
                let is_call = event.category == Category::PythonFunction;
                let end = (!is_unfinished || is_call).then(|| reference + event.end().0);
                let thread = analysis.thread_number(id);
                (
                    reference + event.start.0,
                    end,
                    thread,
                    event_number(analysis, id),
                )
            }
        })
    }

    /// Returns torch's number for the scope of an operator, and its sequence number.
    fn operator(&self, node: usize) -> PyResult<(u8, i64)> {
        let (_, event) = self.event_of(node)?;
        let sequence = event.sequence().map_or(-1, i64::from);
        Ok((scope_number(event.scope), sequence))
    }

    /// Returns the inputs of an operator: tuples for tensors, lists of tuples for lists of tensors,
    /// numbers, and `None` for everything else.
    fn inputs<'py>(&self, py: Python<'py>, node: usize) -> PyResult<Bound<'py, PyList>> {
        let (id, event) = self.event_of(node)?;
        let profile = self.analyzed.analysis.profile();
        let storages = profile.storages();
        let mut identities = storages.identities(id.index());
        let mut known = Known {
            storages: storages.of(id.index()).iter(),
            identities: &mut identities,
            numbers: self.tensors.of(node).iter(),
        };
        let list = PyList::empty(py);
        for input in profile.inputs().inputs(event.inputs) {
            match input {
                Input::Tensor {
                    dtype,
                    dims,
                    strides,
                    ..
                } => list.append(known.next(dtype, dims, strides))?,
                Input::TensorList(tensors) => list.append(known.next_list(tensors))?,
                Input::Int(value) => list.append(value)?,
                Input::Float(value) => list.append(value)?,
                Input::Bool(value) => list.append(value)?,
                Input::Complex { real, imaginary } => {
                    list.append(PyComplex::from_doubles(py, real, imaginary))?;
                }
                Input::Other
                | Input::Device
                | Input::IntList(_)
                | Input::FloatList(_)
                | Input::BoolList(_)
                | Input::NumberList(_) => list.append(py.None())?,
            }
        }
        Ok(list)
    }

    /// Returns the memory record of a node.
    fn allocation(&self, node: usize) -> PyResult<Allocation> {
        self.check(node)?;
        let Item::Memory(record) = self.tree.item(node) else {
            return Err(PyIndexError::new_err("the node is not a memory record"));
        };
        let record = self
            .analyzed
            .analysis
            .profile()
            .memory()
            .at(record as usize);
        let numbers = self.tensors.of(node).first().copied().unwrap_or_default();
        Ok((
            record.address,
            record.bytes,
            record.total_allocated,
            record.total_reserved,
            device_name(record.device),
            record.device_index,
            numbers.storage,
            numbers.tensor,
        ))
    }

    /// Returns the place that a Python call was made at, as the innermost frame of its stack that is
    /// not a C function names it: a line, or a module. `None` if it is unknown.
    fn caller(&self, node: usize) -> PyResult<Option<&str>> {
        let (_, event) = self.event_of(node)?;
        let profile = self.analyzed.analysis.profile();
        let frames = profile.stacks().frames(event.stack);
        let mut frames = frames.map(|name| profile.strings().text(name));
        Ok(frames.find(|name| !name.starts_with(BUILT_IN)))
    }

    /// Returns the module that a Python call is of. Its parameters are `None` if they were not
    /// recorded.
    fn module(&self, node: usize) -> PyResult<Option<Module>> {
        self.check(node)?;
        let Some(held) = self.held.get(&node) else {
            return Ok(None);
        };
        let Holder::Module(module) = &held.holder else {
            return Ok(None);
        };
        let parameters = module.parameters.as_ref().map(|_| self.parameters(held));
        let (class, name) = (module.class, module.class_name.clone());
        Ok(Some((module.address, class, name, parameters)))
    }

    /// Returns the optimizer whose step a Python call is: its address and its parameters.
    fn optimizer(&self, node: usize) -> PyResult<Option<(usize, Vec<Parameter>)>> {
        self.check(node)?;
        let held = self.held.get(&node);
        Ok(held.and_then(|held| match &held.holder {
            Holder::Module(_) => None,
            Holder::Optimizer(optimizer) => Some((optimizer.address, self.parameters(held))),
        }))
    }
}

impl EventTree {
    fn build(analyzed: Arc<Analyzed>, holders: &Holders, process: u64) -> Self {
        let profile = analyzed.analysis.profile();
        let tree = CallTree::build(profile, process);
        let held = find_holders(&analyzed, &tree, holders);
        let first_calls = held.iter().filter(|(node, held)| held.first == **node);
        let of_nodes: FxHashMap<usize, Vec<SeenTensor>> = first_calls
            .map(|(&node, held)| (node, held.holder.tensors()))
            .collect();
        let tensors = NodeTensors::build(profile, &tree, |node| {
            of_nodes.get(&node).map_or(&[], Vec::as_slice)
        });
        Self {
            tree,
            tensors,
            held,
            module_call: holders.module_call.clone(),
            analyzed,
        }
    }

    fn check(&self, node: usize) -> PyResult<()> {
        if node < self.tree.len() {
            return Ok(());
        }
        Err(PyIndexError::new_err("the tree has fewer nodes"))
    }

    /// Returns the event of a node, or `None` for a memory record.
    fn event(&self, node: usize) -> PyResult<Option<(EventId, &Event)>> {
        self.check(node)?;
        Ok(match self.tree.item(node) {
            Item::Event(id) => Some((id, self.analyzed.analysis.profile().event(id))),
            Item::Memory(_) => None,
        })
    }

    fn event_of(&self, node: usize) -> PyResult<(EventId, &Event)> {
        let event = self.event(node)?;
        event.ok_or_else(|| PyIndexError::new_err("the node is a memory record"))
    }

    fn name_of(&self, event: &Event) -> &str {
        self.analyzed.analysis.profile().name(event)
    }

    fn parameters(&self, held: &Held) -> Vec<Parameter> {
        let mut numbers = self.tensors.of(held.first).iter().copied();
        let mut next = |tensor: &HeldTensor| tensor_of(tensor, numbers.next().unwrap_or_default());
        let parameters = held.holder.parameters().iter();
        parameters
            .map(|parameter| {
                let tensor = next(&parameter.tensor);
                let gradient = parameter.gradient.as_ref().map(&mut next);
                let state = parameter.state.iter();
                let state = state.map(|(name, tensor)| (name.clone(), next(tensor)));
                (parameter.name.clone(), tensor, gradient, state.collect())
            })
            .collect()
    }
}

/// Finds the module or optimizer of each Python call that has one.
fn find_holders(analyzed: &Analyzed, tree: &CallTree, holders: &Holders) -> FxHashMap<usize, Held> {
    let mut found = FxHashMap::default();
    if holders.modules.is_empty() && holders.steps.is_empty() {
        return found;
    }
    let profile = analyzed.analysis.profile();
    let reference = profile.reference_unix_ns();
    let mut first_modules: FxHashMap<&str, usize> = FxHashMap::default();
    let mut first_optimizers: FxHashMap<usize, usize> = FxHashMap::default();
    let mut steps = holders.steps.iter().peekable();
    for node in 0..tree.len() {
        let Item::Event(id) = tree.item(node) else {
            continue;
        };
        let event = profile.event(id);
        if event.category != Category::PythonFunction {
            continue;
        }
        let name = profile.name(event);
        if let Some(module) = holders.modules.get(name) {
            let first = *first_modules.entry(name).or_insert(node);
            let holder = Holder::Module(Arc::clone(module));
            found.insert(node, Held { first, holder });
        } else if name.ends_with(": _optimizer_step_code") {
            // The hook noted the step right after the call began.
            let (begin, end) = (reference + event.start.0, reference + event.end().0);
            while steps.next_if(|(time, _)| *time < begin).is_some() {}
            if let Some(&(_, number)) = steps.next_if(|(time, _)| *time <= end) {
                let first = *first_optimizers.entry(number).or_insert(node);
                let holder = Holder::Optimizer(Arc::clone(&holders.optimizers[number]));
                found.insert(node, Held { first, holder });
            }
        }
    }
    found
}

/// The recorded facts about an operator's tensors, taken one after another.
struct Known<'a> {
    storages: std::slice::Iter<'a, u64>,
    identities: &'a mut dyn Iterator<Item = TensorIdentity>,
    numbers: std::slice::Iter<'a, TensorNumbers>,
}

impl Known<'_> {
    fn next(&mut self, dtype: DType, dims: &[u64], strides: &[u64]) -> Tensor {
        let signed = |words: &[u64]| words.iter().map(|&word| word as i64).collect();
        let storage = self.storages.next().copied();
        let identity = self.identities.next();
        let numbers = self.numbers.next().copied().unwrap_or_default();
        (
            dtype.cpp_name(),
            signed(dims),
            signed(strides),
            storage,
            identity.map(TensorIdentity::address),
            identity.map(TensorIdentity::device),
            identity.map(TensorIdentity::layout),
            numbers.storage,
            numbers.tensor,
        )
    }

    fn next_list(&mut self, tensors: InputsIter<'_>) -> Vec<Option<Tensor>> {
        let tensors = tensors.map(|tensor| match tensor {
            Input::Tensor {
                dtype,
                dims,
                strides,
                ..
            } => Some(self.next(dtype, dims, strides)),
            _ => None,
        });
        tensors.collect()
    }
}

fn tensor_of(tensor: &HeldTensor, numbers: TensorNumbers) -> Tensor {
    (
        tensor.dtype.cpp_name(),
        tensor.dims.iter().map(|&dim| dim as i64).collect(),
        tensor.strides.iter().map(|&stride| stride as i64).collect(),
        Some(tensor.storage),
        Some(tensor.identity.address()),
        Some(tensor.identity.device()),
        Some(tensor.identity.layout()),
        numbers.storage,
        numbers.tensor,
    )
}
