//! What is looked up in Python once and cached: interned names, and classes of the Python packages.
//!
//! A cell that one thread is filling while another forks stays half full in the child, where
//! whoever asks for it waits for ever. So all cells of the module are here, and are filled when the
//! packages are imported, not when something is first used.

use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString, PyType};

use crate::python_calls::find_interpreter;
use crate::tensor::GradientNode;

static NAMES: PyOnceLock<InternedNames> = PyOnceLock::new();
static ACCESSOR_NAMES: PyOnceLock<AccessorNames> = PyOnceLock::new();
static TENSOR_NAMES: PyOnceLock<TensorNames> = PyOnceLock::new();
static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
static SIZE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static GETATTR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Names that the interpreter is asked for while calls are followed and inputs are taken.
pub(crate) struct InternedNames {
    pub(crate) array_item_size: Py<PyString>,
    pub(crate) array_strides: Py<PyString>,
    pub(crate) class_dict_offset: Py<PyString>,
    pub(crate) class_flags: Py<PyString>,
    pub(crate) code_file: Py<PyString>,
    pub(crate) code_line: Py<PyString>,
    pub(crate) code_name: Py<PyString>,
    pub(crate) frame_instruction: Py<PyString>,
    pub(crate) frame_locals: Py<PyString>,
    pub(crate) getprofile: Py<PyString>,
    pub(crate) sys: Py<PyString>,
    pub(crate) tensor_dtype: Py<PyString>,
    pub(crate) tensor_shape: Py<PyString>,
    pub(crate) tensor_stride: Py<PyString>,
    pub(crate) dtype_name: Py<PyString>,
}

/// Makes a struct of names that are interned, each under itself.
macro_rules! names {
    ($(#[$attribute:meta])* $struct:ident { $($name:ident,)* }) => {
        $(#[$attribute])*
        pub(crate) struct $struct {
            $(pub(crate) $name: Py<PyString>,)*
        }

        impl $struct {
            fn intern(py: Python<'_>) -> Self {
                Self {
                    $($name: PyString::intern(py, stringify!($name)).unbind(),)*
                }
            }
        }
    };
}

names! {
    /// How the results of torch's collector are asked.
    AccessorNames {
        activity_type,
        concrete_inputs,
        correlation_id,
        device_index,
        device_resource_id,
        device_type,
        dtypes,
        end_ns,
        end_thread_id,
        events,
        external_id,
        fwd_thread_id,
        is_async,
        is_hidden_event,
        is_python_function,
        is_user_annotation,
        kwinputs,
        linked_correlation_id,
        name,
        nbytes,
        scope,
        sequence_nr,
        shapes,
        stack,
        start_ns,
        start_thread_id,
        structured_input_shapes,
        structured_input_strides,
        trace_start_ns,
    }
}

names! {
    /// Where modules, optimizers and torch's tensors hold tensors.
    TensorNames {
        _cdata,
        _parameters,
        grad,
        is_leaf,
        param_groups,
        params,
        state,
        values,
    }
}

/// What of the package `mindprof` is made or handed out here.
pub(crate) struct Classes {
    /// The members of `DeviceType`, by number.
    pub(crate) device_types: Py<PyList>,
    pub(crate) function_event: Py<PyAny>,
    pub(crate) interval: Py<PyAny>,
    pub(crate) kernel: Py<PyAny>,
    /// What makes profiles and events again that travelled, and their handles.
    pub(crate) events_of_trace: Py<PyAny>,
    pub(crate) profile_of_trace: Py<PyAny>,
    pub(crate) event_at: Py<PyAny>,
    /// What `sys.getprofile` returns while the hook is ours.
    pub(crate) marker: Py<PyAny>,
}

/// Returns the interned names.
pub(crate) fn interned_names(py: Python<'_>) -> &'static InternedNames {
    let intern = |text| PyString::intern(py, text).unbind();
    NAMES.get_or_init(py, || InternedNames {
        array_item_size: intern("itemsize"),
        array_strides: intern("strides"),
        class_dict_offset: intern("__dictoffset__"),
        class_flags: intern("__flags__"),
        code_file: intern("co_filename"),
        code_line: intern("co_firstlineno"),
        code_name: intern("co_name"),
        frame_instruction: intern("f_lasti"),
        frame_locals: intern("f_locals"),
        getprofile: intern("getprofile"),
        sys: intern("sys"),
        tensor_dtype: intern("dtype"),
        tensor_shape: intern("shape"),
        tensor_stride: intern("stride"),
        dtype_name: intern("name"),
    })
}

/// Returns the names of the accessors of torch's results.
pub(crate) fn accessor_names(py: Python<'_>) -> &'static AccessorNames {
    ACCESSOR_NAMES.get_or_init(py, || AccessorNames::intern(py))
}

/// Returns the names of what holds tensors.
pub(crate) fn tensor_names(py: Python<'_>) -> &'static TensorNames {
    TENSOR_NAMES.get_or_init(py, || TensorNames::intern(py))
}

/// Returns the classes.
pub(crate) fn classes(py: Python<'_>) -> PyResult<&'static Classes> {
    CLASSES.get_or_try_init(py, || {
        let events = py.import("mindprof._results.function_event")?;
        let class = |name| Ok::<_, PyErr>(events.getattr(name)?.unbind());
        let members = py
            .import("mindprof._results.device_type")?
            .getattr("MEMBERS")?;
        let core = py.import("mindprof._core")?;
        Ok(Classes {
            device_types: members.cast_into::<PyList>()?.unbind(),
            function_event: class("FunctionEvent")?,
            interval: class("Interval")?,
            kernel: class("Kernel")?,
            events_of_trace: core.getattr("events_of_trace")?.unbind(),
            profile_of_trace: core.getattr("profile_of_trace")?.unbind(),
            event_at: core.getattr("event_at")?.unbind(),
            marker: core.getattr("follow_thread")?.unbind(),
        })
    })
}

/// Returns the class of sizes.
pub(crate) fn size_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    SIZE.import(py, "mindtorch_v2._named", "Size")
}

/// Returns the builtin `getattr`, which makes no exception where it is given a default.
pub(crate) fn builtin_getattr(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    GETATTR.import(py, "builtins", "getattr")
}

/// Fills what needs no package of ours.
pub(crate) fn fill(py: Python<'_>) -> PyResult<()> {
    interned_names(py);
    accessor_names(py);
    tensor_names(py);
    builtin_getattr(py)?;
    find_interpreter();
    // Types that nobody exports are made when the first of their objects is.
    py.get_type::<GradientNode>();
    py.get_type::<PanicException>();
    Ok(())
}

/// Looks up what of the package `mindprof` is used here.
#[pyfunction]
pub(crate) fn look_up_classes(py: Python<'_>) -> PyResult<()> {
    classes(py).map(|_| ())
}

/// Looks up what of the package `mindtorch_v2` is used here.
#[pyfunction]
pub(crate) fn look_up_sizes(py: Python<'_>) -> PyResult<()> {
    size_class(py).map(|_| ())
}
