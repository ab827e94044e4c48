//! The functions of libtorch that the observer calls, found by name in the running process.
//!
//! C++ gives a function its types with its name, so that a name that is there has the signature
//! that is written here; where a type changed under its name, [`DebugInfoKind`] says how that is
//! told. `tensor` functions are torch's C interface, which is stable.

#![expect(
    unsafe_code,
    reason = "functions are called by addresses that were looked up by name"
)]

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute_copy;
use std::ptr::NonNull;

use crate::error::{Error, Result};

/// A `RecordFunction` of torch's. Only looked at, through a `Layout`.
#[repr(C)]
pub(crate) struct RecordFunction {
    _opaque: [u8; 0],
}

/// A tensor as torch's C interface takes it: the address of an `at::Tensor`.
pub(crate) type TensorHandle = *const c_void;

/// Returns a context by writing its address where it is told to, and that place.
pub(crate) type StartCallback = unsafe extern "C" fn(
    context: *mut *mut c_void,
    record: *const RecordFunction,
) -> *mut *mut c_void;

pub(crate) type EndCallback =
    unsafe extern "C" fn(record: *const RecordFunction, context: *mut c_void);

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
    /// Makes a callback for scopes of all kinds that a torch of a release has: types of kernels (3),
    /// classes (4) and features of a build (5) are told by builds of their own alone. Each kind
    /// costs whenever torch gives a thread the state of another.
    pub(crate) const fn new(start: StartCallback, end: EndCallback, needs_inputs: bool) -> Self {
        Self {
            start,
            end,
            sampling_probability: 1.0,
            scopes: [
                true, true, true, false, false, false, true, true, true, true,
            ],
            needs_inputs,
            needs_outputs: false,
            needs_ids: false,
        }
    }
}

/// The functions.
#[derive(Clone, Copy)]
pub struct Symbols {
    pub(crate) add_global_callback: unsafe extern "C" fn(Callback) -> u64,
    pub(crate) add_thread_local_callback: unsafe extern "C" fn(Callback) -> u64,
    pub(crate) remove_callback: unsafe extern "C" fn(u64),
    pub(crate) name: unsafe extern "C" fn(*const RecordFunction) -> *const c_char,
    pub(crate) num_inputs: unsafe extern "C" fn(*const RecordFunction) -> usize,
    /// Says of a scope that it may end elsewhere, and that what comes after its begin is not in it.
    pub(crate) is_async: unsafe extern "C" fn(*const RecordFunction) -> bool,
    pub(crate) current_thread_id: unsafe extern "C" fn() -> u64,
    pub(crate) tensor: TensorSymbols,
    /// None where memory cannot be reported to us.
    pub(crate) memory: Option<MemorySymbols>,
}

/// What tensors are asked. Each function writes its answer and returns zero.
#[derive(Clone, Copy)]
pub(crate) struct TensorSymbols {
    pub(crate) dim: unsafe extern "C" fn(TensorHandle, *mut i64) -> i32,
    pub(crate) sizes: unsafe extern "C" fn(TensorHandle, *mut *const i64) -> i32,
    pub(crate) strides: unsafe extern "C" fn(TensorHandle, *mut *const i64) -> i32,
    pub(crate) dtype: unsafe extern "C" fn(TensorHandle, *mut i32) -> i32,
    /// Not in torch 2.7.
    pub(crate) layout: Option<unsafe extern "C" fn(TensorHandle, *mut i32) -> i32>,
    pub(crate) storage_offset: unsafe extern "C" fn(TensorHandle, *mut i64) -> i32,
    pub(crate) data: unsafe extern "C" fn(TensorHandle, *mut *const c_void) -> i32,
    /// How many bytes a storage has, and on which kind of device it lies. Neither is needed to
    /// observe operators.
    pub(crate) storage: Option<StorageSymbols>,
    /// The address of the one tensor that is undefined.
    pub(crate) undefined: u64,
    /// With what a plain tensor begins; none where that is not told.
    pub(crate) plain_table: Option<u64>,
}

/// An object of C++ points behind the first two words of the table of its class.
const TABLE_HEADER: u64 = 16;

/// What storages are asked, by one of their tensors.
#[derive(Clone, Copy)]
pub(crate) struct StorageSymbols {
    pub(crate) bytes: unsafe extern "C" fn(TensorHandle, *mut i64) -> i32,
    pub(crate) device_kind: unsafe extern "C" fn(TensorHandle, *mut i32) -> i32,
}

/// A `std::shared_ptr`: what it points to, and who counts its owners.
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

/// The slots of a thread in which torch looks for whom to tell of memory.
#[derive(Clone, Copy)]
pub(crate) struct MemorySymbols {
    pub(crate) get: unsafe extern "C" fn(DebugInfoKind) -> *const c_void,
    pub(crate) current: unsafe extern "C" fn(*mut SharedPointer) -> *mut SharedPointer,
    pub(crate) push: unsafe extern "C" fn(DebugInfoKind, *const SharedPointer),
    pub(crate) pop: unsafe extern "C" fn(*mut SharedPointer, DebugInfoKind) -> *mut SharedPointer,
    /// Which slot is that of profilers.
    pub(crate) kind: DebugInfoKind,
}

/// Names a slot: a number up to torch 2.12, and the address of a text from 2.13 on, where the slot
/// of profilers has a symbol of its own. Both are passed in the same register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct DebugInfoKind(u64);

impl DebugInfoKind {
    /// The slot of profilers, up to torch 2.12.
    const PROFILER_STATE: Self = Self(2);
}

/// Looks up the address of a name.
pub(crate) type LookUp<'a> = &'a dyn Fn(&CStr) -> Option<NonNull<c_void>>;

impl Symbols {
    /// Finds the functions in the libtorch of this process.
    ///
    /// # Errors
    /// If the platform is not supported, libtorch is not loaded, or lacks a function.
    pub fn find() -> Result<Self> {
        let libraries = libraries()?;
        // SAFETY: the names are looked up in torch's own libraries.
        unsafe { Self::resolve(&|name| libraries.iter().find_map(|library| library.get(name))) }
    }

    /// Finds the functions by `look_up`.
    ///
    /// # Safety
    /// What is found under a name is what torch has under it, and stays.
    pub(crate) unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        // SAFETY: each name below has its types in it, or is of torch's C interface; the fields
        // they are put into have the same.
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
                name: function(look_up, c"_ZNK2at14RecordFunction4nameEv")?,
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
    /// As of [`Symbols::resolve`].
    unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        // SAFETY: both are of torch's C interface, with the types of their fields.
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
    /// As of [`Symbols::resolve`].
    unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        let own_symbol = look_up(c"_ZN3c1013DebugInfoKind14PROFILER_STATEE");
        // SAFETY: as in `Symbols::resolve`; a symbol of that name is a `DebugInfoKind`, one word.
        unsafe {
            Ok(Self {
                get: function(look_up, c"_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE")?,
                current: function(look_up, c"_ZN3c1020ThreadLocalDebugInfo7currentEv")?,
                push: function(
                    look_up,
                    c"_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE",
                )?,
                pop: function(look_up, c"_ZN3c1020ThreadLocalDebugInfo4_popENS_13DebugInfoKindE")?,
                kind: own_symbol.map_or(DebugInfoKind::PROFILER_STATE, |kind| {
                    DebugInfoKind(kind.cast::<u64>().read())
                }),
            })
        }
    }
}

/// Returns with what objects of a class begin.
fn table(look_up: LookUp<'_>, name: &'static CStr) -> Option<u64> {
    Some(look_up(name)?.as_ptr() as u64 + TABLE_HEADER)
}

fn address(look_up: LookUp<'_>, name: &'static CStr) -> Result<NonNull<c_void>> {
    look_up(name).ok_or_else(|| Error::Symbol(name.to_str().unwrap_or_default()))
}

/// # Safety
/// What the name is found under is a function of type `F`.
pub(crate) unsafe fn function<F: Copy>(look_up: LookUp<'_>, name: &'static CStr) -> Result<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = address(look_up, name)?.as_ptr();
    // SAFETY: a pointer to a function is as large as one to data, and `F` is its type, by the
    // caller's word.
    Ok(unsafe { transmute_copy::<*mut c_void, F>(&address) })
}

/// Returns the libraries of torch in which all is looked up.
pub(crate) fn libraries() -> Result<[Library; 2]> {
    Ok([open(c"libtorch_cpu.so")?, open(c"libc10.so")?])
}

/// Looks up a name that the program has for all of its libraries, such as that of an allocator
/// which takes the place of others.
#[cfg(unix)]
pub(crate) fn global(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name ends in a zero.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

#[cfg(not(unix))]
pub(crate) fn global(_name: &CStr) -> Option<NonNull<c_void>> {
    None
}

/// A library that is loaded already, and is never unloaded: torch cannot be.
pub(crate) struct Library(NonNull<c_void>);

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn open(name: &'static CStr) -> Result<Library> {
    // SAFETY: the name ends in a zero; nothing is loaded that is not there.
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
        // SAFETY: the handle is of a library that stays, and the name ends in a zero.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }

    #[cfg(not(unix))]
    pub(crate) fn get(&self, _name: &CStr) -> Option<NonNull<c_void>> {
        let _ = self.0;
        None
    }
}
