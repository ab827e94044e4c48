//! Finds the results that Python holds in torch's memory, and reads them there.
//!
//! The layout of that memory is learnt once, from a small result that is also read through Python's
//! accessors. Until then, and for inputs that cannot be read from memory, the accessors are used.

use std::cell::OnceCell;
use std::sync::OnceLock;

use mindprof_frames::read_words;
use mindprof_model::InputsEncoder;
use mindprof_pytorch::{
    Error, NativeEvents, NativeLayout, RawEvents, ResultInMemory, note_collecting_thread,
};
use pyo3::prelude::*;

use super::accessors::{AccessorError, PythonEvents, whole};
use crate::py_cache::accessor_names;
use crate::sampled_stacks::own_number;

static LAYOUT: OnceLock<NativeLayout> = OnceLock::new();

/// Learns how results of torch's collector lie in memory, from a small one. Later results are read
/// from memory.
///
/// The result must contain a user annotation, and scalars and lists of integers as inputs.
///
/// # Errors
/// If memory and accessors differ. Results are then read by accessors as before; if only inputs
/// differ, only inputs are.
#[pyfunction]
pub(crate) fn check_torch_results(result: &Bound<'_, PyAny>) -> PyResult<()> {
    note_collecting_thread(own_number());
    let python = PythonEvents::of(result)?;
    let place = place(result)?;
    let layout = NativeLayout::learn(&python, place)?;
    let with_inputs = layout.with_inputs(&python, place);
    // If two threads learn it, both learn the same.
    let _ = LAYOUT.set(*with_inputs.as_ref().unwrap_or(&layout));
    with_inputs?;
    Ok(())
}

/// Opens a result in torch's memory. Returns `None` if the layout is unknown or the memory does not
/// look like a result.
pub(super) fn native_events<'a>(
    result: &'a Bound<'a, PyAny>,
) -> Option<impl RawEvents<Error = AccessorError> + 'a> {
    let layout = LAYOUT.get()?;
    let place = place(result).ok()?;
    // Made when first needed, because it is slow.
    let python = OnceCell::new();
    let other_inputs = move |position: usize, inputs: &mut InputsEncoder| {
        let python = if let Some(python) = python.get() {
            python
        } else {
            let events = PythonEvents::of(result)?;
            python.get_or_init(|| events)
        };
        if position >= python.len() {
            return Err(Error::Different {
                what: "number",
                position,
            }
            .into());
        }
        python.inputs(position, inputs)
    };
    NativeEvents::open(layout, place, other_inputs).ok()
}

/// Returns the place of the C++ object behind a Python object. The reader validates what lies there.
fn place<'a>(result: &'a Bound<'_, PyAny>) -> Result<ResultInMemory<'a>, AccessorError> {
    // It follows the reference count and the type, with which every Python object begins.
    let place = result.as_ptr() as u64 + 2 * size_of::<usize>() as u64;
    let unreadable = || Error::Layout("results of torch's collector: they cannot be read".into());
    let [address] = read_words(place).ok_or_else(unreadable)?;
    let start_ns = accessor_names(result.py()).trace_start_ns.bind(result.py());
    let start_ns = whole(result, start_ns)? as u64;
    Ok(ResultInMemory::new(address, start_ns, result))
}
