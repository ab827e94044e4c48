//! Access to the interpreter's frames and profile hook through functions outside of the stable ABI.
//!
//! The functions are looked up by name at first use, so that one library serves every version of
//! Python; functions that a version lacks are optional. All of this needs the GIL, which a value of
//! [`Attached`] proves to be held.

#![expect(
    unsafe_code,
    reason = "frames and the profile hook of the interpreter have no safe wrappers in PyO3"
)]

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::OnceLock;

use pyo3::ffi::{self, PyFrameObject, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::interned::CallNames;
use super::thread_state;
use crate::pending_exception::ignore_errors;

/// A function that the interpreter calls at every call and return.
pub(super) type Hook =
    unsafe extern "C" fn(*mut PyObject, *mut PyFrameObject, c_int, *mut PyObject) -> c_int;

type SetProfile = unsafe extern "C" fn(Option<Hook>, *mut PyObject);

type RunningState = unsafe extern "C" fn() -> *mut ffi::PyThreadState;

/// Functions that reach threads one by one, so that other tools keep their hooks. Before 3.14 only.
pub(super) struct EachThread {
    /// Sets the hook of a thread. Returns nonzero and sets an exception if an audit hook objects.
    pub(super) set_profile:
        unsafe extern "C" fn(*mut ffi::PyThreadState, Option<Hook>, *mut PyObject) -> c_int,
    pub(super) first: unsafe extern "C" fn(*mut ffi::PyInterpreterState) -> *mut ffi::PyThreadState,
    pub(super) next: unsafe extern "C" fn(*mut ffi::PyThreadState) -> *mut ffi::PyThreadState,
}

/// The function that returns the thread state that holds the GIL.
#[derive(Clone, Copy)]
pub(super) enum Running {
    /// Returns the state only if it is that of the calling thread. From 3.12 on.
    OfThisThread(RunningState),
    /// Returns the state of whichever thread holds the GIL.
    OfAnyThread(RunningState),
}

/// The functions of the running interpreter, looked up once per process.
pub(super) struct Interpreter {
    set_profile: SetProfile,
    /// From 3.12 on.
    set_profile_all_threads: Option<SetProfile>,
    /// Before 3.14 only: later versions allow the calls only for the calling thread.
    pub(super) each_thread: Option<EachThread>,
    pub(super) running: Running,
    back: unsafe extern "C" fn(*mut PyFrameObject) -> *mut PyFrameObject,
    /// From 3.11 on.
    pub(super) instruction: Option<unsafe extern "C" fn(*mut PyFrameObject) -> c_int>,
    /// From 3.12 on.
    variable: Option<unsafe extern "C" fn(*mut PyFrameObject, *const c_char) -> *mut PyObject>,
}

static INTERPRETER: OnceLock<Option<Interpreter>> = OnceLock::new();

/// Looks up the functions. Returns false if this system or interpreter lacks them, so that calls
/// cannot be followed.
pub(super) fn is_supported() -> bool {
    INTERPRETER.get_or_init(Interpreter::find).is_some()
}

#[inline]
pub(super) fn interpreter() -> Option<&'static Interpreter> {
    INTERPRETER.get().and_then(Option::as_ref)
}

impl Interpreter {
    fn find() -> Option<Self> {
        // SAFETY: each name is that of a CPython function that has had this signature in every
        // version that exports it.
        unsafe {
            let set_profile_all_threads = symbol(c"PyEval_SetProfileAllThreads");
            // The name up to 3.12 is the second one.
            let running = symbol(c"PyThreadState_GetUnchecked")
                .or_else(|| symbol(c"_PyThreadState_UncheckedGet"))?;
            Some(Self {
                set_profile: symbol(c"PyEval_SetProfile")?,
                set_profile_all_threads,
                each_thread: (version() < (3, 14)).then(|| EachThread::find()).flatten(),
                // `OfThisThread` behaves so from 3.12 on, which added `PyEval_SetProfileAllThreads`
                // too.
                running: match set_profile_all_threads {
                    Some(_) => Running::OfThisThread(running),
                    None => Running::OfAnyThread(running),
                },
                back: symbol(c"PyFrame_GetBack")?,
                instruction: symbol(c"PyFrame_GetLasti"),
                variable: symbol(c"PyFrame_GetVarString"),
            })
        }
    }
}

/// Returns the version of the interpreter. Version 3.10 does not export it.
fn version() -> (u32, u32) {
    // SAFETY: `Py_Version` is a constant of CPython with the type `unsigned long`.
    match unsafe { symbol::<*const c_ulong>(c"Py_Version") } {
        Some(version) => {
            // SAFETY: the pointer is that of a static constant, which is never written.
            let version = unsafe { *version } as u32;
            (version >> 24, version >> 16 & 0xff)
        }
        None => (3, 10),
    }
}

impl EachThread {
    /// Looks up the functions.
    ///
    /// # Safety
    /// The interpreter must be older than 3.14, so that the states of other threads may be used.
    unsafe fn find() -> Option<Self> {
        // SAFETY: each name is that of a CPython function with this signature, as in
        // `Interpreter::find`.
        unsafe {
            Some(Self {
                set_profile: symbol(c"_PyEval_SetProfile")?,
                first: symbol(c"PyInterpreterState_ThreadHead")?,
                next: symbol(c"PyThreadState_Next")?,
            })
        }
    }
}

/// Returns the function of this name, searched in the whole process.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
#[cfg(unix)]
unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a `CStr` is NUL-terminated.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return None;
    }
    // SAFETY: the assertion checks that `F` has the size of a pointer, and the caller guarantees
    // that `F` is the type of a pointer to the function of this name.
    Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
}

#[cfg(not(unix))]
unsafe fn symbol<F: Copy>(_name: &CStr) -> Option<F> {
    None
}

/// Proof that this thread holds the GIL, which all of these functions need.
#[derive(Clone, Copy)]
pub(super) struct Attached<'py>(Python<'py>);

#[expect(clippy::unused_self, reason = "`self` proves that the GIL is held")]
impl<'py> Attached<'py> {
    /// Creates the proof from `PyO3`'s token.
    pub(super) const fn new(py: Python<'py>) -> Self {
        Self(py)
    }

    pub(super) const fn python(self) -> Python<'py> {
        self.0
    }

    /// Returns the innermost frame of this thread.
    #[inline]
    pub(super) fn current_frame(self) -> Option<Frame<'py>> {
        // SAFETY: the GIL is held. The reference is borrowed from the thread, whose innermost frame
        // cannot return before the current call does.
        let frame = unsafe { ffi::PyEval_GetFrame() };
        (!frame.is_null()).then_some(Frame {
            pointer: frame,
            attached: self,
        })
    }

    /// Wraps the frame that the hook was called with.
    ///
    /// # Safety
    /// The pointer must be that of a frame that stays alive during the current call.
    pub(super) const unsafe fn frame(self, pointer: *mut PyFrameObject) -> Frame<'py> {
        Frame {
            pointer,
            attached: self,
        }
    }

    /// Installs `hook` in this thread, with `marker` as the result of `sys.getprofile`.
    pub(super) fn set_hook(self, hook: Hook, marker: &Bound<'py, PyAny>) {
        if let Some(interpreter) = interpreter() {
            // SAFETY: the GIL is held, the hook never unwinds, and the interpreter takes its own
            // reference to the marker.
            unsafe { (interpreter.set_profile)(Some(hook), marker.as_ptr()) };
        }
    }

    /// Installs `hook` in every thread that has none. From 3.14 on, replaces the hooks of all
    /// threads.
    pub(super) fn set_hook_everywhere(self, hook: Hook, marker: &Bound<'py, PyAny>) {
        match interpreter() {
            Some(Interpreter {
                each_thread: Some(each_thread),
                ..
            }) => thread_state::set_free_hooks(self, each_thread, hook, marker),
            Some(Interpreter {
                set_profile_all_threads: Some(set),
                ..
            }) => {
                // SAFETY: the GIL is held, the hook never unwinds, and the interpreter takes its
                // own references to the marker.
                unsafe { set(Some(hook), marker.as_ptr()) };
            }
            Some(_) | None => {}
        }
    }

    /// Removes `hook` from all threads. From 3.14 on, removes all hooks of all threads.
    pub(super) fn remove_hook_everywhere(self, hook: Hook) {
        match interpreter() {
            Some(Interpreter {
                each_thread: Some(each_thread),
                ..
            }) => thread_state::remove_own_hooks(self, each_thread, hook),
            Some(Interpreter {
                set_profile_all_threads: Some(set),
                ..
            }) => {
                // SAFETY: the GIL is held.
                unsafe { set(None, std::ptr::null_mut()) };
            }
            Some(_) | None => {}
        }
    }

    /// Removes the hook of this thread.
    pub(super) fn remove_hook(self) {
        if let Some(interpreter) = interpreter() {
            // SAFETY: the GIL is held.
            unsafe { (interpreter.set_profile)(None, std::ptr::null_mut()) };
        }
    }
}

/// A frame that is running or waiting for a call that it made. It is a borrowed pointer, used only
/// while the frame cannot return.
#[derive(Clone, Copy)]
pub(super) struct Frame<'py> {
    pointer: *mut PyFrameObject,
    attached: Attached<'py>,
}

impl<'py> Frame<'py> {
    /// Returns the address that distinguishes it from other living frames.
    #[inline]
    pub(super) fn identity(self) -> usize {
        self.pointer as usize
    }

    /// Returns its code object.
    #[inline]
    pub(super) fn code(self) -> Bound<'py, PyAny> {
        // SAFETY: the frame is alive, the GIL is held, and the function returns a new reference.
        unsafe {
            let code = ffi::PyFrame_GetCode(self.pointer);
            Bound::from_owned_ptr(self.attached.python(), code.cast())
        }
    }

    /// Returns the calling frame, which waits for this one and therefore stays alive as long.
    #[inline]
    pub(super) fn back(self) -> Option<Self> {
        let interpreter = interpreter()?;
        // SAFETY: the frame is alive and the GIL is held. The function returns a new reference,
        // which is released at once: the thread keeps the caller of a running frame alive.
        let pointer = unsafe {
            let back = (interpreter.back)(self.pointer);
            ffi::Py_XDECREF(back.cast());
            back
        };
        (!pointer.is_null()).then_some(Self { pointer, ..self })
    }

    /// Returns the offset of the current instruction.
    #[inline]
    pub(super) fn instruction(self) -> c_int {
        match interpreter().and_then(|interpreter| interpreter.instruction) {
            // SAFETY: the frame is alive and the GIL is held.
            Some(instruction) => unsafe { instruction(self.pointer) },
            None => self.instruction_by_name(),
        }
    }

    #[cold]
    fn instruction_by_name(self) -> c_int {
        let position = self
            .object()
            .getattr(CallNames::get(self.py()).frame_instruction.bind(self.py()));
        position
            .and_then(|position| position.extract())
            .unwrap_or(-1)
    }

    /// Returns the current line. The time this takes grows with the length of the function.
    #[cold]
    pub(super) fn line(self) -> c_int {
        // SAFETY: the frame is alive and the GIL is held.
        unsafe { ffi::PyFrame_GetLineNumber(self.pointer) }
    }

    /// Returns the argument of this name. Valid only at the start of the call, before it is
    /// reassigned.
    pub(super) fn argument(self, name: &CStr) -> Option<Bound<'py, PyAny>> {
        if let Some(variable) = interpreter()?.variable {
            // SAFETY: the frame is alive and the GIL is held. The function returns a new reference,
            // or null with an exception set, which is cleared.
            return unsafe {
                let value = variable(self.pointer, name.as_ptr());
                let value = Bound::from_owned_ptr_or_opt(self.py(), value);
                if value.is_none() {
                    ffi::PyErr_Clear();
                }
                value
            };
        }
        let locals = self
            .object()
            .getattr(CallNames::get(self.py()).frame_locals.bind(self.py()));
        let name = PyString::new(self.py(), name.to_str().ok()?);
        locals.and_then(|locals| locals.get_item(name)).ok()
    }

    fn object(self) -> Bound<'py, PyAny> {
        // SAFETY: a living frame is a Python object; `from_borrowed_ptr` takes a new reference,
        // which `Bound` releases.
        unsafe { Bound::from_borrowed_ptr(self.py(), self.pointer.cast()) }
    }

    pub(super) const fn py(self) -> Python<'py> {
        self.attached.python()
    }
}

/// The layout of a C function object: the header of every object, then the method definition.
#[repr(C)]
struct NativeFunction {
    head: PyObject,
    definition: *const Definition,
}

/// The start of a method definition.
#[repr(C)]
struct Definition {
    name: *const c_char,
}

/// Returns the address of a C function's definition, which identifies it regardless of the object
/// it is bound to, and its name. Returns `None` for other objects.
pub(super) fn native_function<'a>(function: &Bound<'a, PyAny>) -> Option<(usize, &'a CStr)> {
    // SAFETY: `PyCFunction_Check` guarantees that the object has the layout of `NativeFunction`,
    // whose definition and name outlive the function.
    unsafe {
        if ffi::PyCFunction_Check(function.as_ptr()) == 0 {
            return None;
        }
        let definition = (*function.as_ptr().cast::<NativeFunction>()).definition;
        let name = (*definition).name;
        Some((definition as usize, CStr::from_ptr(name)))
    }
}

/// Returns the text that `repr` returns for a C function, as the interpreter writes it:
/// `<built-in method name of type object at 0x...>`.
///
/// The function of its type is called, and not `repr`, which runs signal handlers first: their
/// exceptions would be lost here. It runs no Python code.
pub(super) fn native_text(function: &Bound<'_, PyAny>) -> Option<String> {
    native_function(function)?;
    // SAFETY: the GIL is held, and C functions cannot be subclassed in Python, so the slot holds
    // the interpreter's own function. It returns a new reference, or null with an exception.
    let text = unsafe {
        let slot = ffi::PyType_GetSlot(ffi::Py_TYPE(function.as_ptr()), ffi::Py_tp_repr);
        if slot.is_null() {
            return None;
        }
        let repr = std::mem::transmute::<*mut c_void, ffi::reprfunc>(slot);
        Bound::from_owned_ptr_or_err(function.py(), repr(function.as_ptr()))
    };
    // Only memory can be missing.
    let text = ignore_errors(function.py(), text)?;
    Some(text.cast::<PyString>().ok()?.to_string_lossy().into_owned())
}
