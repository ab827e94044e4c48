//! Functions of torch that answer for our recordings too, or do not see the object in torch's slot.
//!
//! A function object of pybind11 calls through a method definition of its own. While a recording
//! needs it, the definition holds a function of ours, which calls torch's. Every reference to the
//! object thus calls ours, even one that a program took earlier. `_frameworks/torch_names` chooses
//! the functions.

#![expect(
    unsafe_code,
    reason = "the interpreter's method definitions are changed through the C API"
)]

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mindprof_pytorch::Observer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::pending_exception::ignore_errors;
use crate::torch_names::is_recorded_here;

/// A function object of the interpreter, up to the fields that are used.
#[repr(C)]
struct FunctionObject {
    head: ffi::PyObject,
    definition: *mut ffi::PyMethodDef,
    receiver: *mut ffi::PyObject,
}

/// A function of torch that calls ours as long as this object lives. The recordings that need it
/// have an object each; the last one restores the function.
#[pyclass(frozen, module = "mindprof._core")]
pub(crate) struct InterposedFunction {
    /// The index among [`KNOWN`], until the function is restored.
    index: Mutex<Option<usize>>,
}

#[pymethods]
impl InterposedFunction {
    /// Interposes in `function`, which pybind11 must have made. If it returns `none` on a thread that
    /// started a recording, it returns `ours` instead. Without both, the object in torch's slot is
    /// hidden from it, until the profiler that it starts has ended. `lock` is held meanwhile, and
    /// `before` is called first.
    #[new]
    #[pyo3(signature = (function, none = None, ours = None, *, lock = None, before = None))]
    fn new(
        function: &Bound<'_, PyAny>,
        none: Option<Py<PyAny>>,
        ours: Option<Py<PyAny>>,
        lock: Option<Py<PyAny>>,
        before: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let definition = definition_of(function)?;
        let guard = lock.map(|lock| Guard { lock, before });
        let mut known = self::lock(&KNOWN);
        let position = known.iter().position(|one| one.function.is(function));
        let index = position.unwrap_or(known.len());
        if position.is_none() {
            known.push(Known {
                function: function.clone().unbind(),
                definition: definition as usize,
                theirs: Method::read(definition)?,
                answers: none.zip(ours),
                guard: None,
                holders: 0,
            });
        }
        known[index].holders += 1;
        if guard.is_some() {
            known[index].guard = guard;
        }
        known[index].theirs.interpose(definition);
        Ok(Self {
            index: Mutex::new(Some(index)),
        })
    }

    /// Restores the function now, unless another recording needs it. A second call has no effect.
    fn undo(&self) {
        let Some(index) = lock(&self.index).take() else {
            return;
        };
        let mut known = lock(&KNOWN);
        let known = &mut known[index];
        known.holders -= 1;
        if known.holders == 0 {
            known
                .theirs
                .write(known.definition as *mut ffi::PyMethodDef);
        }
    }
}

impl Drop for InterposedFunction {
    fn drop(&mut self) {
        Python::try_attach(|_| self.undo());
    }
}

/// Calls `function` without arguments, as torch defined it.
#[pyfunction]
pub(crate) fn torchs_own_answer<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let theirs = {
        let known = lock(&KNOWN);
        let known = known.iter().find(|one| one.function.is(function));
        known.map(|known| known.theirs)
    };
    let Some(theirs) = theirs else {
        return function.call0();
    };
    let py = function.py();
    // SAFETY: only function objects are known. The interpreter calls their methods in the same way:
    // with the receiver of the object and with no keywords.
    unsafe {
        let receiver = (*function.as_ptr().cast::<FunctionObject>()).receiver;
        let result = match theirs {
            Method::Vector(call) => call(receiver, std::ptr::null(), 0, std::ptr::null_mut()),
            Method::Tuple(call) => {
                let arguments = pyo3::types::PyTuple::empty(py);
                call(receiver, arguments.as_ptr(), std::ptr::null_mut())
            }
        };
        Bound::from_owned_ptr_or_err(py, result)
    }
}

/// A function that was interposed in. It is kept for the life of the process: a thread may be on its
/// way to our function when the definition is restored.
struct Known {
    function: Py<PyAny>,
    /// The address of its method definition, and the method there.
    definition: usize,
    theirs: Method,
    /// The answer that is replaced, and our answer.
    answers: Option<(Py<PyAny>, Py<PyAny>)>,
    guard: Option<Guard>,
    holders: usize,
}

/// A lock for calls of torch's method, and a function to call before each.
struct Guard {
    /// A lock that is held.
    lock: Py<PyAny>,
    /// Called first.
    before: Option<Py<PyAny>>,
}

impl Guard {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        let before = self.before.as_ref();
        Self {
            lock: self.lock.clone_ref(py),
            before: before.map(|before| before.clone_ref(py)),
        }
    }

    /// Calls torch's method with the lock held, unless a signal ends the wait for it.
    fn call(
        &self,
        py: Python<'_>,
        call: impl FnOnce() -> *mut ffi::PyObject,
    ) -> *mut ffi::PyObject {
        let is_held = ignore_errors(py, self.lock.call_method0(py, "acquire")).is_some();
        if let Some(before) = &self.before {
            ignore_errors(py, before.call0(py));
        }
        let answer = call();
        if is_held {
            let raised = PyErr::take(py);
            ignore_errors(py, self.lock.call_method0(py, "release"));
            if let Some(raised) = raised {
                raised.restore(py);
            }
        }
        answer
    }
}

/// The functions known so far. The lock is taken with the GIL held.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A method as pybind11 defines it: version 2 takes a tuple of arguments, version 3 a vector.
#[derive(Clone, Copy)]
enum Method {
    Vector(ffi::PyCFunctionFastWithKeywords),
    Tuple(ffi::PyCFunctionWithKeywords),
}

const VECTOR: c_int = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
const TUPLE: c_int = ffi::METH_VARARGS | ffi::METH_KEYWORDS;

impl Method {
    /// Reads the method of a function.
    fn read(definition: *mut ffi::PyMethodDef) -> PyResult<Self> {
        // SAFETY: `definition_of` returns a live definition, whose flags tell the type of the
        // method.
        unsafe {
            match (*definition).ml_flags {
                VECTOR => Ok(Self::Vector(
                    (*definition).ml_meth.PyCFunctionFastWithKeywords,
                )),
                TUPLE => Ok(Self::Tuple((*definition).ml_meth.PyCFunctionWithKeywords)),
                flags => Err(unknown(&format!("its flags are {flags:#x}"))),
            }
        }
    }

    /// Makes a function with this method call ours.
    fn interpose(self, definition: *mut ffi::PyMethodDef) {
        match self {
            Self::Vector(_) => Self::Vector(call_with_vector),
            Self::Tuple(_) => Self::Tuple(call_with_tuple),
        }
        .write(definition);
    }

    /// Makes a function have this method. Its flags must tell the same type.
    fn write(self, definition: *mut ffi::PyMethodDef) {
        // SAFETY: the definition is live and was allocated by pybind11 for one function. The
        // interpreter reads it with the GIL held, which this thread holds.
        unsafe {
            match self {
                Self::Vector(call) => (*definition).ml_meth.PyCFunctionFastWithKeywords = call,
                Self::Tuple(call) => (*definition).ml_meth.PyCFunctionWithKeywords = call,
            }
        }
    }
}

/// Returns the method definition of a function of pybind11, which lives as long as the function.
///
/// # Errors
/// If the function is another kind of object, or is laid out in an unknown way.
fn definition_of(function: &Bound<'_, PyAny>) -> PyResult<*mut ffi::PyMethodDef> {
    // SAFETY: `PyCFunction_Check` guarantees the layout of `FunctionObject`; the receiver is compared
    // to what the interpreter says, and only then is the definition read.
    let definition = unsafe {
        if ffi::PyCFunction_Check(function.as_ptr()) == 0 {
            return Err(unknown("it is not a C function"));
        }
        let object = function.as_ptr().cast::<FunctionObject>();
        if (*object).receiver != ffi::PyCFunction_GetSelf(function.as_ptr()) {
            return Err(unknown("its fields are not where they were expected"));
        }
        (*object).definition
    };
    let receiver = function.getattr("__self__")?.get_type();
    let kind = receiver.name()?.to_string_lossy().into_owned();
    if kind == "PyCapsule" || kind.contains("pybind11") {
        return Ok(definition);
    }
    Err(unknown(&format!("it belongs to a {kind}, not to pybind11")))
}

fn unknown(reason: &str) -> PyErr {
    PyTypeError::new_err(format!("the function cannot be interposed in: {reason}"))
}

/// Called in place of a method that takes a vector of arguments.
unsafe extern "C" fn call_with_vector(
    receiver: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let call = |theirs| match theirs {
        // SAFETY: the interpreter calls with valid arguments, which are passed on unchanged.
        Method::Vector(theirs) => unsafe { theirs(receiver, arguments, count, keywords) },
        Method::Tuple(_) => std::ptr::null_mut(),
    };
    // SAFETY: the interpreter calls with the GIL held and the receiver of the function.
    unsafe { respond(receiver, call) }
}

/// Called in place of a method that takes a tuple of arguments.
unsafe extern "C" fn call_with_tuple(
    receiver: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let call = |theirs| match theirs {
        // SAFETY: the interpreter calls with valid arguments, which are passed on unchanged.
        Method::Tuple(theirs) => unsafe { theirs(receiver, arguments, keywords) },
        Method::Vector(_) => std::ptr::null_mut(),
    };
    // SAFETY: the interpreter calls with the GIL held and the receiver of the function.
    unsafe { respond(receiver, call) }
}

/// Calls torch's method, and returns its result or ours.
///
/// # Safety
/// The GIL is held. `call` calls a method of the interpreter's, which returns an owned object, or null
/// with an exception.
unsafe fn respond(
    receiver: *mut ffi::PyObject,
    call: impl FnOnce(Method) -> *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the caller holds the GIL.
    let py = unsafe { Python::assume_attached() };
    let known = lock(&KNOWN);
    let found = known.iter().find(|one| {
        // SAFETY: only function objects are known, and they are kept alive.
        receiver == unsafe { (*one.function.as_ptr().cast::<FunctionObject>()).receiver }
    });
    let Some((theirs, answers, guard)) = found.map(|one| {
        let answers = one.answers.as_ref();
        let answers = answers.map(|(none, ours)| (none.clone_ref(py), ours.clone_ref(py)));
        let guard = one.guard.as_ref().map(|guard| guard.clone_ref(py));
        (one.theirs, answers, guard)
    }) else {
        PyRuntimeError::new_err("the function was never interposed in").restore(py);
        return std::ptr::null_mut();
    };
    drop(known);
    let Some((none, ours)) = answers else {
        let without_slot = || match Observer::present() {
            Some(observer) => observer.without_slot(|| call(theirs)),
            None => call(theirs),
        };
        return match guard {
            Some(guard) => guard.call(py, without_slot),
            None => without_slot(),
        };
    };
    let answer = call(theirs);
    // SAFETY: the caller guarantees an owned object or null.
    let Some(answer) = (unsafe { Bound::from_owned_ptr_or_opt(py, answer) }) else {
        return answer;
    };
    if is_recorded_here() && ignore_errors(py, answer.eq(none)).unwrap_or(false) {
        return ours.into_ptr();
    }
    answer.into_ptr()
}
