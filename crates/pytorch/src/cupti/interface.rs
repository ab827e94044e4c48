//! The functions of CUPTI and of torch's collector, looked up by name in the running process.
//!
//! libtorch depends on CUPTI, so a lookup in libtorch finds both.

#![expect(
    unsafe_code,
    reason = "functions are called by addresses that were looked up by name"
)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use mindprof_record::ticks;

use super::calls::CallbackData;
use super::layout::{Layout, kind};
use super::names::{CallRules, Domain};
use super::occupancy::Occupancy;
use crate::error::{Error, Result};
use crate::symbols::{LookUp, function, global, libraries};

/// Asks for a buffer: writes its address, its size, and the most records to put into it (zero for
/// as many as fit).
pub(super) type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);

/// Hands a buffer back: the context and stream, the buffer, its size, and how much of it is filled.
pub(super) type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Returns the record behind `record` in a buffer, or the first one if that is null.
pub(super) type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> i32;

/// Is called back at the beginning and the end of a call of CUDA.
pub(super) type Called = unsafe extern "C" fn(*mut c_void, u32, u32, *const CallbackData);

/// Switches the records of a call, by its number.
type Switch = unsafe extern "C" fn(u32, u8) -> i32;

/// The functions by which CUPTI records without Kineto.
struct Recording {
    set_clock: unsafe extern "C" fn(extern "C" fn() -> u64) -> i32,
    enable: unsafe extern "C" fn(u32) -> i32,
    disable: unsafe extern "C" fn(u32) -> i32,
    subscribe: unsafe extern "C" fn(*mut *mut c_void, Called, *mut c_void) -> i32,
    unsubscribe: unsafe extern "C" fn(*mut c_void) -> i32,
    call_back: unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> i32,
}

/// The kinds of records that CUPTI writes without Kineto. The kinds for calls, events and
/// synchronization make all calls slower.
const KINDS: [u32; 5] = [
    kind::KERNEL,
    kind::COPY,
    kind::PEER_COPY,
    kind::FILL,
    kind::OVERHEAD,
];

/// The reason why CUPTI takes no subscriber.
pub(super) enum Refusal {
    /// There is one already.
    Taken(Error),
    Other(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Taken(error) | Refusal::Other(error) => error,
        }
    }
}

/// A subscription to calls of CUDA.
pub(super) struct Subscription(*mut c_void);

// SAFETY: it is a handle, which CUPTI takes on any thread.
unsafe impl Send for Subscription {}

/// The functions, and the facts that follow from the versions of CUPTI and torch.
pub(super) struct Interface {
    register: unsafe extern "C" fn(Request, Complete) -> i32,
    flush: unsafe extern "C" fn(u32) -> i32,
    timestamp: unsafe extern "C" fn(*mut u64) -> i32,
    dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> i32,
    call_name: unsafe extern "C" fn(u32, u32, *mut *const c_char) -> i32,
    demangle: unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut i32) -> *mut c_char,
    /// Switches the records of one call of the runtime or the driver; from CUDA 12.5 on.
    switch: Option<[Switch; 2]>,
    /// Detaches CUPTI; from CUDA 13 on.
    finalize: Option<unsafe extern "C" fn() -> i32>,
    /// From CUDA 13 on.
    recording: Option<Recording>,
    /// Takes the buffers that are Kineto's.
    pub(super) kineto_complete: Complete,
    pub(super) next: Next,
    pub(super) layout: Layout,
    pub(super) rules: CallRules,
    pub(super) occupancy: Occupancy,
}

const SUCCESS: i32 = 0;
/// The status that says that CUPTI has a subscriber already.
const ONE_SUBSCRIBER: i32 = 39;
/// Hands back buffers that are not full, too.
const FORCED: u32 = 1;
/// The first version that may be detached, and that is used without Kineto. Earlier ones may crash
/// when they are attached again to a program with CUDA graphs.
const DETACHES: u32 = 130_000;

impl Interface {
    /// Finds the functions, once per process.
    ///
    /// # Errors
    /// If one is missing, or if the version of CUPTI is unknown.
    pub(super) fn find() -> Result<&'static Self> {
        static FOUND: OnceLock<std::result::Result<Interface, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| Self::resolve().map_err(|error| error.to_string()));
        found.as_ref().map_err(|error| Error::Cupti(error.clone()))
    }

    fn resolve() -> Result<Self> {
        let libraries = libraries()?;
        let look_up: LookUp<'_> = &|name| libraries.iter().find_map(|library| library.get(name));
        // SAFETY: CUPTI's functions belong to its C interface, whose types are those of the fields
        // in all versions. The mangled name of Kineto's contains its types. torch is never unloaded.
        unsafe {
            let version: unsafe extern "C" fn(*mut u32) -> i32 =
                function(look_up, c"cuptiGetVersion")?;
            let mut number = 0;
            if version(&raw mut number) != SUCCESS {
                return Err(Error::Cupti("its version is unknown".to_owned()));
            }
            let layout = Layout::of_version(number);
            let unknown = || Error::Cupti(format!("the records of version {number} are unknown"));
            Ok(Self {
                register: function(look_up, c"cuptiActivityRegisterCallbacks")?,
                flush: function(look_up, c"cuptiActivityFlushAll")?,
                timestamp: function(look_up, c"cuptiGetTimestamp")?,
                dropped: function(look_up, c"cuptiActivityGetNumDroppedRecords")?,
                call_name: function(look_up, c"cuptiGetCallbackName")?,
                demangle: function(
                    &|name| look_up(name).or_else(|| global(name)),
                    c"__cxa_demangle",
                )?,
                switch: switches(look_up),
                finalize: (number >= DETACHES)
                    .then(|| function(look_up, c"cuptiFinalize").ok())
                    .flatten(),
                recording: (number >= DETACHES)
                    .then(|| Recording::resolve(look_up))
                    .flatten(),
                kineto_complete: function(
                    look_up,
                    c"_ZN9libkineto16CuptiActivityApi25bufferCompletedTrampolineEP8CUctx_stjPhmm",
                )?,
                next: function(look_up, c"cuptiActivityGetNextRecord")?,
                layout: layout.ok_or_else(unknown)?,
                rules: CallRules::resolve(look_up),
                occupancy: Occupancy::resolve(look_up),
            })
        }
    }

    /// Checks that CUPTI takes its times from the counter that the recorder reads, which is so once
    /// Kineto has registered its clock.
    ///
    /// # Errors
    /// If it has another clock, or is not in use.
    pub(super) fn check_clock(&self) -> Result<()> {
        let before = ticks();
        let mut time = 0;
        // SAFETY: the function writes one number.
        let status = unsafe { (self.timestamp)(&raw mut time) };
        let after = ticks();
        if status != SUCCESS {
            return Err(failed("tell the time", status));
        }
        if !(before..=after).contains(&time) {
            return Err(Error::Cupti("its clock is not the recorder's".to_owned()));
        }
        Ok(())
    }

    /// Has all buffers handed back that CUPTI holds, whether they are full or not.
    ///
    /// # Errors
    /// If CUPTI refuses.
    pub(super) fn flush(&self) -> Result<()> {
        // SAFETY: the function has no other argument. It calls back, so no lock is held.
        match unsafe { (self.flush)(FORCED) } {
            SUCCESS => Ok(()),
            status => Err(failed("flush", status)),
        }
    }

    /// Has CUPTI ask these functions for buffers from now on, and hand them back to them.
    ///
    /// # Errors
    /// If CUPTI refuses.
    pub(super) fn register(&self, request: Request, complete: Complete) -> Result<()> {
        // SAFETY: both functions are valid for the life of the process.
        match unsafe { (self.register)(request, complete) } {
            SUCCESS => Ok(()),
            status => Err(failed("register", status)),
        }
    }

    /// Switches off the records of calls that torch does not show, which are most of all records.
    /// Kineto switches them on again when it starts the next time.
    pub(super) fn leave_out_calls(&self) {
        static LEFT_OUT: OnceLock<Vec<(Domain, u32)>> = OnceLock::new();
        let Some([runtime, driver]) = self.switch else {
            return;
        };
        for &(domain, number) in LEFT_OUT.get_or_init(|| self.rules.left_out(self)) {
            let switch = match domain {
                Domain::Runtime => runtime,
                Domain::Driver => driver,
            };
            // A call that cannot be switched off is left out later. SAFETY: CUPTI has a call of this
            // number.
            unsafe { switch(number, 0) };
        }
    }

    /// Returns whether CUPTI can record without Kineto.
    pub(super) fn records(&self) -> bool {
        self.recording.is_some()
    }

    /// Has CUPTI record the work of devices, with the recorder's clock.
    ///
    /// # Errors
    /// If CUPTI refuses. Nothing is then recorded.
    pub(super) fn start_kinds(&self) -> Result<()> {
        let recording = self.recording()?;
        // SAFETY: the clock is valid for the life of the process, and CUPTI has these kinds.
        unsafe {
            // CUPTI keeps the clock that it has, if it is in use; it is examined later.
            (recording.set_clock)(clock);
            for kind in KINDS {
                let status = (recording.enable)(kind);
                if status != SUCCESS {
                    self.stop_kinds();
                    return Err(failed("record a kind of work", status));
                }
            }
        }
        Ok(())
    }

    /// Ends what `start_kinds` started.
    pub(super) fn stop_kinds(&self) {
        if let Some(recording) = &self.recording {
            for kind in KINDS {
                // Nothing can be done if CUPTI refuses. SAFETY: CUPTI has this kind.
                unsafe { (recording.disable)(kind) };
            }
        }
    }

    /// Has CUPTI call back at the calls of CUDA that torch shows.
    ///
    /// # Errors
    /// If CUPTI refuses.
    pub(super) fn subscribe(&self, called: Called) -> std::result::Result<Subscription, Refusal> {
        static SHOWN: OnceLock<Vec<(Domain, u32)>> = OnceLock::new();
        let recording = self.recording()?;
        let mut subscriber = ptr::null_mut();
        // SAFETY: the function writes the handle, and the callback is valid for the life of the
        // process.
        let status = unsafe { (recording.subscribe)(&raw mut subscriber, called, ptr::null_mut()) };
        if status != SUCCESS {
            let error = failed("subscribe", status);
            return Err(if status == ONE_SUBSCRIBER {
                Refusal::Taken(error)
            } else {
                Refusal::Other(error)
            });
        }
        for &(domain, number) in SHOWN.get_or_init(|| self.rules.shown(self)) {
            // SAFETY: CUPTI has a call of this number.
            let status = unsafe { (recording.call_back)(1, subscriber, domain.number(), number) };
            if status != SUCCESS {
                self.unsubscribe(&Subscription(subscriber));
                return Err(Refusal::Other(failed("call back", status)));
            }
        }
        Ok(Subscription(subscriber))
    }

    /// Ends a subscription. The ends of running calls may still be reported.
    pub(super) fn unsubscribe(&self, subscription: &Subscription) {
        if let Some(recording) = &self.recording {
            // Nothing can be done if CUPTI refuses. SAFETY: CUPTI made the handle.
            unsafe { (recording.unsubscribe)(subscription.0) };
        }
    }

    fn recording(&self) -> Result<&Recording> {
        let missing = || Error::Cupti("it records only with Kineto".to_owned());
        self.recording.as_ref().ok_or_else(missing)
    }

    /// Detaches CUPTI from the process, if it can be attached again later.
    ///
    /// Otherwise it slows down all calls of CUDA until the process ends, even if nothing is
    /// recorded. Names in records are CUPTI's and are gone afterwards.
    ///
    /// # Errors
    /// If CUPTI refuses.
    pub(super) fn detach(&self) -> Result<()> {
        let Some(finalize) = self.finalize else {
            return Ok(());
        };
        // SAFETY: the function has no argument, and the caller has read all records.
        match unsafe { finalize() } {
            SUCCESS => Ok(()),
            status => Err(failed("detach", status)),
        }
    }

    /// Returns how many records CUPTI dropped of a queue since the last call.
    pub(super) fn dropped(&self, context: *mut c_void, stream: u32) -> u64 {
        let mut count = 0;
        // SAFETY: CUPTI passed the context and the stream along with a buffer of theirs.
        let status = unsafe { (self.dropped)(context, stream, &raw mut count) };
        if status == SUCCESS { count as u64 } else { 0 }
    }

    /// Returns CUPTI's name of a call of the driver (1) or the runtime (2), if it has one.
    pub(super) fn call_name(&self, domain: u32, number: u32) -> Option<&str> {
        let mut name = ptr::null();
        // SAFETY: the function writes the address of a constant string.
        let status = unsafe { (self.call_name)(domain, number, &raw mut name) };
        if status != SUCCESS || name.is_null() {
            return None;
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(name) }.to_str().ok()
    }

    /// Returns a symbol as it stands in the source, or unchanged if it is no mangled name.
    pub(super) fn demangled(&self, symbol: &CStr) -> String {
        /// Longer names stay mangled, as with Kineto.
        const LONGEST: usize = 8192;
        let plain = || symbol.to_string_lossy().into_owned();
        if symbol.count_bytes() > LONGEST {
            return plain();
        }
        let mut status = 0;
        // SAFETY: the name is NUL-terminated, and without a buffer the function allocates one.
        let text = unsafe {
            (self.demangle)(
                symbol.as_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
                &raw mut status,
            )
        };
        if text.is_null() {
            return plain();
        }
        // SAFETY: the function returned a NUL-terminated string, allocated by `malloc`.
        unsafe {
            let name = CStr::from_ptr(text).to_string_lossy().into_owned();
            free(text.cast());
            name
        }
    }
}

impl Recording {
    /// # Safety
    /// As for [`function`].
    unsafe fn resolve(look_up: LookUp<'_>) -> Option<Self> {
        // SAFETY: the functions belong to CUPTI's C interface, in all versions that have them.
        unsafe {
            Some(Self {
                set_clock: function(look_up, c"cuptiActivityRegisterTimestampCallback").ok()?,
                enable: function(look_up, c"cuptiActivityEnable").ok()?,
                disable: function(look_up, c"cuptiActivityDisable").ok()?,
                subscribe: function(look_up, c"cuptiSubscribe").ok()?,
                unsubscribe: function(look_up, c"cuptiUnsubscribe").ok()?,
                call_back: function(look_up, c"cuptiEnableCallback").ok()?,
            })
        }
    }
}

/// The recorder's clock, for CUPTI.
extern "C" fn clock() -> u64 {
    ticks()
}

/// # Safety
/// As for [`function`].
unsafe fn switches(look_up: LookUp<'_>) -> Option<[Switch; 2]> {
    // SAFETY: both functions belong to CUPTI's C interface, in all versions that have them.
    unsafe {
        let runtime = function(look_up, c"cuptiActivityEnableRuntimeApi").ok()?;
        let driver = function(look_up, c"cuptiActivityEnableDriverApi").ok()?;
        Some([runtime, driver])
    }
}

#[cfg(unix)]
unsafe fn free(memory: *mut c_void) {
    // SAFETY: the caller passes memory of `malloc`.
    unsafe { libc::free(memory) }
}

#[cfg(not(unix))]
unsafe fn free(_memory: *mut c_void) {}

fn failed(step: &str, status: i32) -> Error {
    Error::Cupti(format!("it failed to {step} with status {status}"))
}

#[cfg(test)]
impl Interface {
    /// An interface without torch and CUPTI, whose records follow each other by `next`.
    pub(super) fn stand_in(next: Next, layout: Layout) -> Self {
        unsafe extern "C" fn register(_: Request, _: Complete) -> i32 {
            SUCCESS
        }
        unsafe extern "C" fn flush(_: u32) -> i32 {
            SUCCESS
        }
        unsafe extern "C" fn timestamp(time: *mut u64) -> i32 {
            // SAFETY: the caller passes room for a number.
            unsafe { time.write(ticks()) };
            SUCCESS
        }
        unsafe extern "C" fn dropped(_: *mut c_void, _: u32, count: *mut usize) -> i32 {
            // SAFETY: the caller passes room for a number.
            unsafe { count.write(0) };
            SUCCESS
        }
        unsafe extern "C" fn call_name(domain: u32, number: u32, name: *mut *const c_char) -> i32 {
            let text = match (domain, number) {
                (2, 10) => c"cudaGetLastError_v3020",
                (2, 211) => c"cudaLaunchKernel_v7000",
                (2, 311) => c"cudaGraphLaunch_v10000",
                (2, 41) => c"cudaMemcpyAsync_v3020",
                (1, 307) => c"cuLaunchKernel",
                (1, 719) => c"cuKernelGetName",
                _ => return 1,
            };
            // SAFETY: the caller passes room for an address.
            unsafe { name.write(text.as_ptr()) };
            SUCCESS
        }
        unsafe extern "C" fn demangle(
            _: *const c_char,
            _: *mut c_char,
            _: *mut usize,
            _: *mut i32,
        ) -> *mut c_char {
            ptr::null_mut()
        }
        unsafe extern "C" fn complete(_: *mut c_void, _: u32, _: *mut u8, _: usize, _: usize) {}
        Self {
            register,
            flush,
            timestamp,
            dropped,
            call_name,
            demangle,
            switch: None,
            finalize: None,
            recording: None,
            kineto_complete: complete,
            next,
            layout,
            rules: CallRules::resolve(&|_| None),
            occupancy: Occupancy::resolve(&|_| None),
        }
    }
}
