//! The functions of libtorch that the observer calls, looked up by name in the running process.
//!
//! A mangled C++ name contains the types of the arguments, so a name that exists has the signature
//! declared here; [`DebugInfoKind`] covers the type that changed under its name. `tensor` functions
//! are torch's C interface, which is stable.

#![expect(
    unsafe_code,
    reason = "functions are called by addresses that were looked up by name"
)]

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute_copy;
use std::ptr::NonNull;

use crate::collectives::CollectiveSymbols;
use crate::error::{Error, Result};
use crate::module_hierarchy::HierarchySymbols;

/// torch's `RecordFunction`, read only through a `Layout`.
#[repr(C)]
pub(crate) struct RecordFunction {
    _opaque: [u8; 0],
}

/// A tensor as torch's C interface takes it: the address of an `at::Tensor`.
pub(crate) type TensorHandle = *const c_void;

/// Writes the address of a context into the slot that it gets, and returns the slot.
pub(crate) type StartCallback = unsafe extern "C" fn(
    context: *mut *mut c_void,
    record: *const RecordFunction,
) -> *mut *mut c_void;

pub(crate) type EndCallback =
    unsafe extern "C" fn(record: *const RecordFunction, context: *mut c_void);

/// The scopes that a callback is called for. torch spends nothing on the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hears {
    /// Operators and backward nodes; ranges are always heard.
    pub(crate) operators: bool,
    /// Their inputs.
    pub(crate) inputs: bool,
}

impl Hears {
    /// Operators with their inputs.
    pub(crate) const fn everything() -> Self {
        Self {
            operators: true,
            inputs: true,
        }
    }
}

/// torch's `RecordFunctionCallback`, field by field.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Callback {
    pub(crate) start: StartCallback,
    pub(crate) end: EndCallback,
    pub(crate) sampling_probability: f64,
    pub(crate) scopes: [bool; 10],
    pub(crate) needs_inputs: bool,
    pub(crate) needs_outputs: bool,
    pub(crate) needs_ids: bool,
}

impl Callback {
    /// Makes a callback for all kinds of scopes that releases of torch report. Kernel dtypes (3),
    /// custom classes (4) and build features (5) are reported only by special builds, and every
    /// kind costs time whenever torch copies thread state.
    pub(crate) const fn new(start: StartCallback, end: EndCallback, hears: Hears) -> Self {
        let ops = hears.operators;
        Self {
            start,
            end,
            sampling_probability: 1.0,
            scopes: [ops, ops, ops, false, false, false, ops, true, ops, ops],
            needs_inputs: hears.inputs,
            needs_outputs: false,
            needs_ids: false,
        }
    }
}

/// The addresses of the functions. [`Symbols::find`] looks them up once; a [`Probe`](crate::Probe)
/// then checks that torch behaves as expected.
#[derive(Clone, Copy)]
pub struct Symbols {
    pub(crate) add_global_callback: unsafe extern "C" fn(Callback) -> u64,
    pub(crate) add_thread_local_callback: unsafe extern "C" fn(Callback) -> u64,
    pub(crate) remove_callback: unsafe extern "C" fn(u64),
    /// Takes the lock of the list of callbacks. `None` if it is not exported.
    #[cfg_attr(
        not(all(target_os = "linux", target_arch = "x86_64")),
        expect(dead_code, reason = "the lock is searched for on x86-64 alone")
    )]
    pub(crate) has_global_callbacks: Option<unsafe extern "C" fn() -> bool>,
    pub(crate) name: unsafe extern "C" fn(*const RecordFunction) -> *const c_char,
    /// Returns the overload of a scope with a schema, else an empty string. Observing operators does
    /// not need it.
    pub(crate) overload_name: Option<unsafe extern "C" fn(*const RecordFunction) -> *const c_char>,
    /// `None` if torch does not tell in which modules of `TorchScript` an operator runs.
    pub(crate) hierarchy: Option<HierarchySymbols>,
    /// `None` if torch does not describe collectives.
    pub(crate) collectives: Option<CollectiveSymbols>,
    pub(crate) num_inputs: unsafe extern "C" fn(*const RecordFunction) -> usize,
    /// Returns whether a scope may end on another thread, and does not contain what follows its
    /// begin.
    pub(crate) is_async: unsafe extern "C" fn(*const RecordFunction) -> bool,
    pub(crate) current_thread_id: unsafe extern "C" fn() -> u64,
    pub(crate) tensor: TensorSymbols,
    /// `None` if allocations cannot be reported to us.
    pub(crate) memory: Option<MemorySymbols>,
}

/// The functions that query tensors. Each writes its answer and returns zero.
#[derive(Clone, Copy)]
pub(crate) struct TensorSymbols {
    pub(crate) dim: unsafe extern "C" fn(TensorHandle, *mut i64) -> i32,
    pub(crate) sizes: unsafe extern "C" fn(TensorHandle, *mut *const i64) -> i32,
    pub(crate) strides: unsafe extern "C" fn(TensorHandle, *mut *const i64) -> i32,
    pub(crate) dtype: unsafe extern "C" fn(TensorHandle, *mut i32) -> i32,
    /// torch 2.7 does not have it.
    pub(crate) layout: Option<unsafe extern "C" fn(TensorHandle, *mut i32) -> i32>,
    pub(crate) storage_offset: unsafe extern "C" fn(TensorHandle, *mut i64) -> i32,
    pub(crate) data: unsafe extern "C" fn(TensorHandle, *mut *const c_void) -> i32,
    /// The size and the kind of device of a storage. Observing operators does not need them.
    pub(crate) storage: Option<StorageSymbols>,
    /// The address of the undefined tensor, a singleton.
    pub(crate) undefined: u64,
    /// The virtual table pointer with which a plain tensor begins; `None` if it is not exported.
    pub(crate) plain_table: Option<u64>,
}

/// A C++ object points behind the first two words of the virtual table of its class.
const TABLE_HEADER: u64 = 16;

/// The functions that query a storage, through one of its tensors.
#[derive(Clone, Copy)]
pub(crate) struct StorageSymbols {
    pub(crate) bytes: unsafe extern "C" fn(TensorHandle, *mut i64) -> i32,
    pub(crate) device_kind: unsafe extern "C" fn(TensorHandle, *mut i32) -> i32,
}

/// A `std::shared_ptr`: the object, and the control block that counts its owners.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SharedPointer {
    pub(crate) object: *const c_void,
    pub(crate) control: *const c_void,
}

impl SharedPointer {
    pub(crate) const NULL: Self = Self {
        object: std::ptr::null(),
        control: std::ptr::null(),
    };
}

/// The functions that access a thread's debug-info slots, where torch's allocators look for a
/// reporter.
#[derive(Clone, Copy)]
pub(crate) struct MemorySymbols {
    pub(crate) get: unsafe extern "C" fn(DebugInfoKind) -> *const c_void,
    pub(crate) current: unsafe extern "C" fn(*mut SharedPointer) -> *mut SharedPointer,
    pub(crate) push: unsafe extern "C" fn(DebugInfoKind, *const SharedPointer),
    pub(crate) pop: unsafe extern "C" fn(*mut SharedPointer, DebugInfoKind) -> *mut SharedPointer,
    /// Returns whether the thread has callbacks of its own, as torch's profilers have.
    pub(crate) has_callbacks: unsafe extern "C" fn() -> bool,
    /// The slot of profilers.
    pub(crate) kind: DebugInfoKind,
}

/// Identifies a slot: a number up to torch 2.12, the address of a string from 2.13 on, where the
/// slot of profilers has its own symbol. Both are passed in the same register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct DebugInfoKind(u64);

impl DebugInfoKind {
    /// The slot of profilers, up to torch 2.12.
    const PROFILER_STATE: Self = Self(2);

    /// Returns whether the field at `address` identifies the same slot.
    ///
    /// # Safety
    /// The address is that of a field of torch's type.
    pub(crate) unsafe fn is_at(self, address: *const c_void) -> bool {
        // Numbers are one byte. SAFETY: the caller guarantees a field of the type, whose size the
        // value tells.
        unsafe {
            match u8::try_from(self.0) {
                Ok(number) => address.cast::<u8>().read() == number,
                Err(_) => address.cast::<u64>().read() == self.0,
            }
        }
    }
}

/// Looks up the address of a symbol.
pub(crate) type LookUp<'a> = &'a dyn Fn(&CStr) -> Option<NonNull<c_void>>;

impl Symbols {
    /// Finds the functions in the libtorch of this process.
    ///
    /// # Errors
    /// If the platform is not supported, libtorch is not loaded, or it lacks a function.
    pub fn find() -> Result<Self> {
        let libraries = libraries()?;
        // SAFETY: the names are looked up in torch's own libraries, which are never unloaded.
        unsafe { Self::resolve(&|name| libraries.iter().find_map(|library| library.get(name))) }
    }

    /// Finds the functions with `look_up`.
    ///
    /// # Safety
    /// The address found for a name is that of torch's symbol, and stays valid.
    pub(crate) unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        // SAFETY: each name contains its types or belongs to torch's C interface, and the fields
        // have the same types.
        unsafe {
            Ok(Self {
                add_global_callback: function(
                    look_up,
                    c"_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE",
                )?,
                add_thread_local_callback: function(
                    look_up,
                    c"_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE",
                )?,
                remove_callback: function(look_up, c"_ZN2at14removeCallbackEm")?,
                has_global_callbacks: function(look_up, c"_ZN2at18hasGlobalCallbacksEv").ok(),
                name: function(look_up, c"_ZNK2at14RecordFunction4nameEv")?,
                overload_name: function(look_up, c"_ZNK2at14RecordFunction13overload_nameEv").ok(),
                hierarchy: HierarchySymbols::resolve(look_up).ok(),
                collectives: CollectiveSymbols::resolve(look_up).ok(),
                num_inputs: function(look_up, c"_ZNK2at14RecordFunction10num_inputsEv")?,
                is_async: function(look_up, c"_ZNK2at14RecordFunction7isAsyncEv")?,
                current_thread_id: function(look_up, c"_ZN2at14RecordFunction15currentThreadIdEv")?,
                tensor: TensorSymbols {
                    dim: function(look_up, c"aoti_torch_get_dim")?,
                    sizes: function(look_up, c"aoti_torch_get_sizes")?,
                    strides: function(look_up, c"aoti_torch_get_strides")?,
                    dtype: function(look_up, c"aoti_torch_get_dtype")?,
                    layout: function(look_up, c"aoti_torch_get_layout").ok(),
                    storage_offset: function(look_up, c"aoti_torch_get_storage_offset")?,
                    data: function(look_up, c"aoti_torch_get_data_ptr")?,
                    storage: StorageSymbols::resolve(look_up).ok(),
                    undefined: address(look_up, c"_ZN3c1019UndefinedTensorImpl10_singletonE")?
                        .as_ptr() as u64,
                    plain_table: table(look_up, c"_ZTVN3c1010TensorImplE"),
                },
                memory: MemorySymbols::resolve(look_up).ok(),
            })
        }
    }
}

impl StorageSymbols {
    /// # Safety
    /// As for [`Symbols::resolve`].
    unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        // SAFETY: both functions belong to torch's C interface and have the types of their fields.
        unsafe {
            Ok(Self {
                bytes: function(look_up, c"aoti_torch_get_storage_size")?,
                device_kind: function(look_up, c"aoti_torch_get_device_type")?,
            })
        }
    }
}

impl MemorySymbols {
    /// # Safety
    /// As for [`Symbols::resolve`].
    unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        let own_symbol = look_up(c"_ZN3c1013DebugInfoKind14PROFILER_STATEE");
        // SAFETY: as in `Symbols::resolve`. A symbol of that name is a `DebugInfoKind`, which is
        // one word.
        unsafe {
            Ok(Self {
                get: function(look_up, c"_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE")?,
                current: function(look_up, c"_ZN3c1020ThreadLocalDebugInfo7currentEv")?,
                push: function(
                    look_up,
                    c"_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE",
                )?,
                pop: function(look_up, c"_ZN3c1020ThreadLocalDebugInfo4_popENS_13DebugInfoKindE")?,
                has_callbacks: function(look_up, c"_ZN2at23hasThreadLocalCallbacksEv")?,
                kind: own_symbol.map_or(DebugInfoKind::PROFILER_STATE, |kind| {
                    DebugInfoKind(kind.cast::<u64>().read())
                }),
            })
        }
    }
}

/// Returns the virtual table pointer with which objects of a class begin.
fn table(look_up: LookUp<'_>, name: &'static CStr) -> Option<u64> {
    Some(look_up(name)?.as_ptr() as u64 + TABLE_HEADER)
}

fn address(look_up: LookUp<'_>, name: &'static CStr) -> Result<NonNull<c_void>> {
    look_up(name).ok_or_else(|| Error::Symbol(name.to_str().unwrap_or_default()))
}

/// # Safety
/// The symbol is a function of type `F`.
pub(crate) unsafe fn function<F: Copy>(look_up: LookUp<'_>, name: &'static CStr) -> Result<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = address(look_up, name)?.as_ptr();
    // SAFETY: function and data pointers have the same size, and the caller guarantees that `F` is
    // the type of the function.
    Ok(unsafe { transmute_copy::<*mut c_void, F>(&address) })
}

/// Returns torch's libraries, in which symbols are looked up.
pub(crate) fn libraries() -> Result<[Library; 2]> {
    Ok([open(c"libtorch_cpu.so")?, open(c"libc10.so")?])
}

/// Looks up a symbol in the global scope of the process, such as a replaced allocator.
#[cfg(unix)]
pub(crate) fn global(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name is NUL-terminated.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

#[cfg(not(unix))]
pub(crate) fn global(_name: &CStr) -> Option<NonNull<c_void>> {
    None
}

/// A loaded library. torch cannot be unloaded, so it stays valid.
pub(crate) struct Library(NonNull<c_void>);

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn open(name: &'static CStr) -> Result<Library> {
    // SAFETY: the name is NUL-terminated, and `RTLD_NOLOAD` loads nothing, so no initializer runs.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    let handle = NonNull::new(handle).map(Library);
    handle.ok_or_else(|| Error::Library(name.to_str().unwrap_or_default()))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn open(_name: &'static CStr) -> Result<Library> {
    Err(Error::Platform)
}

impl Library {
    #[cfg(unix)]
    pub(crate) fn get(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is that of a library that is never unloaded, and the name is
        // NUL-terminated.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }

    #[cfg(not(unix))]
    pub(crate) fn get(&self, _name: &CStr) -> Option<NonNull<c_void>> {
        let _ = self.0;
        None
    }
}
