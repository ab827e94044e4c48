//! What is asked of the interpreter about frames, through functions that the stable interface does
//! not list.
//!
//! They are looked up by name when they are first needed, so that one library serves every version:
//! those that a version lacks are done without. All of this needs the GIL; a value of [`Attached`]
//! says that it is held.

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

/// What the interpreter calls at every call and return.
pub(super) type Hook =
    unsafe extern "C" fn(*mut PyObject, *mut PyFrameObject, c_int, *mut PyObject) -> c_int;

type SetProfile = unsafe extern "C" fn(Option<Hook>, *mut PyObject);

type RunningState = unsafe extern "C" fn() -> *mut ffi::PyThreadState;

/// How threads are reached one by one, so that other tools keep those they have: before 3.14.
pub(super) struct EachThread {
    /// Sets the hook of a thread. Returns another number than zero, with an exception, if an audit
    /// hook refuses.
    pub(super) set_profile:
        unsafe extern "C" fn(*mut ffi::PyThreadState, Option<Hook>, *mut PyObject) -> c_int,
    pub(super) first: unsafe extern "C" fn(*mut ffi::PyInterpreterState) -> *mut ffi::PyThreadState,
    pub(super) next: unsafe extern "C" fn(*mut ffi::PyThreadState) -> *mut ffi::PyThreadState,
}

/// How the state is asked for that holds the GIL.
#[derive(Clone, Copy)]
pub(super) enum Running {
    /// Returns it if it is that of the calling thread. From 3.12 on.
    OfThisThread(RunningState),
    /// Returns it whichever thread's it is.
    OfAnyThread(RunningState),
}

/// The functions of the running interpreter.
pub(super) struct Interpreter {
    set_profile: SetProfile,
    /// From 3.12 on.
    set_profile_all_threads: Option<SetProfile>,
    /// Before 3.14: from then on it may be called in this thread only.
    pub(super) each_thread: Option<EachThread>,
    pub(super) running: Running,
    back: unsafe extern "C" fn(*mut PyFrameObject) -> *mut PyFrameObject,
    /// From 3.11 on.
    pub(super) instruction: Option<unsafe extern "C" fn(*mut PyFrameObject) -> c_int>,
    /// From 3.12 on.
    variable: Option<unsafe extern "C" fn(*mut PyFrameObject, *const c_char) -> *mut PyObject>,
}

static INTERPRETER: OnceLock<Option<Interpreter>> = OnceLock::new();

/// Looks the functions up. Returns false if this system or interpreter does not have them, and
/// calls cannot be followed.
pub(super) fn is_supported() -> bool {
    INTERPRETER.get_or_init(Interpreter::find).is_some()
}

#[inline]
pub(super) fn interpreter() -> Option<&'static Interpreter> {
    INTERPRETER.get().and_then(Option::as_ref)
}

impl Interpreter {
    fn find() -> Option<Self> {
        // SAFETY: each name is that of a function of CPython, which has this signature in every
        // version that has it.
        unsafe {
            let set_profile_all_threads = symbol(c"PyEval_SetProfileAllThreads");
            // Under the first name from 3.13 on.
            let running = symbol(c"PyThreadState_GetUnchecked")
                .or_else(|| symbol(c"_PyThreadState_UncheckedGet"))?;
            Some(Self {
                set_profile: symbol(c"PyEval_SetProfile")?,
                set_profile_all_threads,
                each_thread: (version() < (3, 14)).then(|| EachThread::find()).flatten(),
                // Both came with 3.12.
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

/// Returns the version of the interpreter; 3.10 does not say it.
fn version() -> (u32, u32) {
    // SAFETY: the name is that of a constant of CPython, which has this type.
    match unsafe { symbol::<*const c_ulong>(c"Py_Version") } {
        Some(version) => {
            // SAFETY: as above, and it never changes.
            let version = unsafe { *version } as u32;
            (version >> 24, version >> 16 & 0xff)
        }
        None => (3, 10),
    }
}

impl EachThread {
    /// Looks the functions up.
    ///
    /// # Safety
    /// The interpreter is one before 3.14, whose threads are walked like this.
    unsafe fn find() -> Option<Self> {
        // SAFETY: as in `Interpreter::find`.
        unsafe {
            Some(Self {
                set_profile: symbol(c"_PyEval_SetProfile")?,
                first: symbol(c"PyInterpreterState_ThreadHead")?,
                next: symbol(c"PyThreadState_Next")?,
            })
        }
    }
}

/// Returns the function of this name in the process.
///
/// # Safety
/// `F` is the type of a pointer to that function.
#[cfg(unix)]
unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the name ends in a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return None;
    }
    // SAFETY: a pointer to a function is as large as one to data here, and `F` is its type, by the
    // caller's word.
    Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
}

#[cfg(not(unix))]
unsafe fn symbol<F: Copy>(_name: &CStr) -> Option<F> {
    None
}

/// Says that this thread holds the GIL. What is asked of it needs that, and not always the word
/// itself.
#[derive(Clone, Copy)]
pub(super) struct Attached<'py>(Python<'py>);

#[expect(clippy::unused_self, reason = "it is the word that the GIL is held")]
impl<'py> Attached<'py> {
    /// Returns the word of a caller that knows it.
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
        // does not end before it goes on, which is after the call that we are in.
        let frame = unsafe { ffi::PyEval_GetFrame() };
        (!frame.is_null()).then_some(Frame {
            pointer: frame,
            attached: self,
        })
    }

    /// Returns the frame that the hook was called with.
    ///
    /// # Safety
    /// The pointer is that of a frame that lives as long as the call.
    pub(super) const unsafe fn frame(self, pointer: *mut PyFrameObject) -> Frame<'py> {
        Frame {
            pointer,
            attached: self,
        }
    }

    /// Has `hook` called in this thread, with `marker` as what `sys.getprofile` returns.
    pub(super) fn set_hook(self, hook: Hook, marker: &Bound<'py, PyAny>) {
        if let Some(interpreter) = interpreter() {
            // SAFETY: the GIL is held, the hook never unwinds, and the interpreter takes a
            // reference of its own.
            unsafe { (interpreter.set_profile)(Some(hook), marker.as_ptr()) };
        }
    }

    /// Has `hook` called in every thread where no other is; from 3.14 on, in every thread.
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
                // SAFETY: as in `set_hook`.
                unsafe { set(Some(hook), marker.as_ptr()) };
            }
            Some(_) | None => {}
        }
    }

    /// Has `hook`, which is ours, called in no thread any more; from 3.14 on, no hook.
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

    /// Has no hook called in this thread any more.
    pub(super) fn remove_hook(self) {
        if let Some(interpreter) = interpreter() {
            // SAFETY: the GIL is held.
            unsafe { (interpreter.set_profile)(None, std::ptr::null_mut()) };
        }
    }
}

/// A frame that is running or waiting for one that it called. Not owned: it is looked at while it
/// cannot end.
#[derive(Clone, Copy)]
pub(super) struct Frame<'py> {
    pointer: *mut PyFrameObject,
    attached: Attached<'py>,
}

impl<'py> Frame<'py> {
    /// Returns what tells it apart from other frames that live.
    #[inline]
    pub(super) fn identity(self) -> usize {
        self.pointer as usize
    }

    /// Returns its code.
    #[inline]
    pub(super) fn code(self) -> Bound<'py, PyAny> {
        // SAFETY: the frame lives, the GIL is held, and the function returns a reference that is
        // ours.
        unsafe {
            let code = ffi::PyFrame_GetCode(self.pointer);
            Bound::from_owned_ptr(self.attached.python(), code.cast())
        }
    }

    /// Returns the frame that called it. That one waits for it, and so lives as long.
    #[inline]
    pub(super) fn back(self) -> Option<Self> {
        let interpreter = interpreter()?;
        // SAFETY: the frame lives and the GIL is held. The reference that is returned is ours, and
        // is given up at once: the caller of a running frame is kept by the thread.
        let pointer = unsafe {
            let back = (interpreter.back)(self.pointer);
            ffi::Py_XDECREF(back.cast());
            back
        };
        (!pointer.is_null()).then_some(Self { pointer, ..self })
    }

    /// Returns the position of the instruction that it is at.
    #[inline]
    pub(super) fn instruction(self) -> c_int {
        match interpreter().and_then(|interpreter| interpreter.instruction) {
            // SAFETY: the frame lives and the GIL is held.
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

    /// Returns the line that it is at. Takes time by the length of the function.
    #[cold]
    pub(super) fn line(self) -> c_int {
        // SAFETY: the frame lives and the GIL is held.
        unsafe { ffi::PyFrame_GetLineNumber(self.pointer) }
    }

    /// Returns the argument of this name, right after the function was called.
    pub(super) fn argument(self, name: &CStr) -> Option<Bound<'py, PyAny>> {
        if let Some(variable) = interpreter()?.variable {
            // SAFETY: the frame lives, the GIL is held, and the function returns a reference that
            // is ours, or none and an error, which is taken away.
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
        // SAFETY: a frame that lives is an object; the reference that is taken here is given back
        // by `Bound`.
        unsafe { Bound::from_borrowed_ptr(self.py(), self.pointer.cast()) }
    }

    const fn py(self) -> Python<'py> {
        self.attached.python()
    }
}

/// A function written in C, as the interpreter lays it out: after the head of every object comes
/// its definition.
#[repr(C)]
struct NativeFunction {
    head: PyObject,
    definition: *const Definition,
}

/// The beginning of a definition of such a function.
#[repr(C)]
struct Definition {
    name: *const c_char,
}

/// Returns what tells a function written in C apart from others, whichever object it is bound to,
/// and its name. None of what is no such function.
pub(super) fn native_function<'a>(function: &Bound<'a, PyAny>) -> Option<(usize, &'a CStr)> {
    // SAFETY: the check tells that the object is laid out as `NativeFunction`, whose definition and
    // name live as long as the function.
    unsafe {
        if ffi::PyCFunction_Check(function.as_ptr()) == 0 {
            return None;
        }
        let definition = (*function.as_ptr().cast::<NativeFunction>()).definition;
        let name = (*definition).name;
        Some((definition as usize, CStr::from_ptr(name)))
    }
}
