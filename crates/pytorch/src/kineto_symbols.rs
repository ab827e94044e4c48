//! The accessors of the events of torch's own collector, looked up by name in the running process.

#![expect(
    unsafe_code,
    reason = "functions are called by addresses that were looked up by name"
)]

use std::ffi::c_void;

use crate::error::Result;
use crate::ivalue::slice;
use crate::symbols::{LookUp, function, global, libraries};

/// An accessor: a const method without arguments.
type Accessor<T> = unsafe extern "C" fn(event: *const c_void) -> T;

/// The accessors, and the `delete` that frees their strings.
#[derive(Clone, Copy)]
pub(crate) struct KinetoSymbols {
    pub(crate) start_ns: Accessor<u64>,
    pub(crate) end_ns: Accessor<u64>,
    pub(crate) start_thread: Accessor<u64>,
    pub(crate) end_thread: Accessor<u64>,
    pub(crate) forward_thread: Accessor<u64>,
    pub(crate) scope: Accessor<u8>,
    pub(crate) sequence: Accessor<i64>,
    pub(crate) device_type: Accessor<u8>,
    pub(crate) device_index: Accessor<i32>,
    pub(crate) resource: Accessor<i64>,
    pub(crate) correlation: Accessor<u64>,
    pub(crate) linked: Accessor<u64>,
    /// torch has it from 2.15 on.
    pub(crate) external: Option<Accessor<i64>>,
    pub(crate) activity: Accessor<u8>,
    pub(crate) is_async: Accessor<u8>,
    /// torch 2.7 does not have it.
    pub(crate) is_hidden: Option<Accessor<u8>>,
    pub(crate) is_python: Accessor<u8>,
    pub(crate) bytes: Accessor<i64>,
    pub(crate) stack: Accessor<Array>,
    pub(crate) dims: Accessor<Array>,
    pub(crate) types: Accessor<Array>,
    pub(crate) values: Accessor<Array>,
    pub(crate) has_keywords: Accessor<u8>,
    /// torch has it from 2.15 on.
    pub(crate) nested_dims: Option<Accessor<Array>>,
    /// torch has it from 2.15 on.
    pub(crate) nested_strides: Option<Accessor<Array>>,
    pub(crate) name: TextAccessor,
    /// The arguments of device work, if torch was asked to keep them.
    pub(crate) metadata: Option<TextAccessor>,
    pub(crate) delete: unsafe extern "C" fn(*mut c_void),
}

/// A `std::string` of libstdc++: a pointer to its bytes, their number, and room for a few of them.
#[repr(C)]
pub(crate) struct Text {
    begin: *const u8,
    len: usize,
    room: [u64; 2],
}

/// An accessor that writes a string into its first argument and returns that.
pub(crate) type TextAccessor = unsafe extern "C" fn(*mut Text, event: *const c_void) -> *mut Text;

/// An `ArrayRef`: a pointer to its elements, and their number.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Array {
    pub(crate) begin: *const c_void,
    pub(crate) len: usize,
}

#[cfg(test)]
impl Array {
    pub(crate) const EMPTY: Self = Self {
        begin: std::ptr::null(),
        len: 0,
    };

    pub(crate) const fn of<T>(elements: &[T]) -> Self {
        Self {
            begin: elements.as_ptr().cast(),
            len: elements.len(),
        }
    }
}

impl KinetoSymbols {
    /// Finds the accessors in the libtorch of this process.
    ///
    /// # Errors
    /// If the platform is not supported, libtorch is not loaded, or it lacks an accessor.
    pub(crate) fn find() -> Result<Self> {
        let libraries = libraries()?;
        // SAFETY: the names are looked up in torch's own libraries, which are never unloaded.
        unsafe { Self::resolve(&|name| libraries.iter().find_map(|library| library.get(name))) }
    }

    /// # Safety
    /// The address found for a name is that of torch's symbol, and stays valid.
    unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        macro_rules! accessor {
            ($name:literal) => {
                function(
                    look_up,
                    const {
                        let name =
                            concat!("_ZNK5torch8autograd8profiler11KinetoEvent", $name, "Ev\0");
                        match std::ffi::CStr::from_bytes_with_nul(name.as_bytes()) {
                            Ok(name) => name,
                            Err(_) => panic!("the name ends in its only zero"),
                        }
                    },
                )
            };
        }
        // SAFETY: the mangled names state the class and that there are no further arguments. The
        // return types are those of torch's header in all versions that have the name.
        unsafe {
            Ok(Self {
                start_ns: accessor!("7startNs")?,
                end_ns: accessor!("5endNs")?,
                start_thread: accessor!("13startThreadId")?,
                end_thread: accessor!("11endThreadId")?,
                forward_thread: accessor!("11fwdThreadId")?,
                scope: accessor!("5scope")?,
                sequence: accessor!("10sequenceNr")?,
                device_type: accessor!("10deviceType")?,
                device_index: accessor!("11deviceIndex")?,
                resource: accessor!("16deviceResourceId")?,
                correlation: accessor!("13correlationId")?,
                linked: accessor!("19linkedCorrelationId")?,
                external: accessor!("10externalId").ok(),
                activity: accessor!("12activityType")?,
                is_async: accessor!("7isAsync")?,
                is_hidden: accessor!("13isHiddenEvent").ok(),
                is_python: accessor!("16isPythonFunction")?,
                bytes: accessor!("6nBytes")?,
                stack: accessor!("5stackB5cxx11")?,
                dims: accessor!("6shapes")?,
                types: accessor!("6dtypesB5cxx11")?,
                values: accessor!("14concreteInputs")?,
                has_keywords: accessor!("11hasKwinputs")?,
                nested_dims: accessor!("21structuredInputShapes").ok(),
                nested_strides: accessor!("22structuredInputStrides").ok(),
                name: accessor!("4nameB5cxx11")?,
                metadata: accessor!("12metadataJsonB5cxx11").ok(),
                delete: function(&|name| global(name).or_else(|| look_up(name)), c"_ZdlPv")?,
            })
        }
    }
}

impl Text {
    /// An empty slot for a returned string.
    pub(crate) const EMPTY: Self = Self {
        begin: std::ptr::null(),
        len: 0,
        room: [0; 2],
    };

    #[cfg(test)]
    pub(crate) const fn new(begin: *const u8, len: usize) -> Self {
        let room = [0; 2];
        Self { begin, len, room }
    }

    /// Returns its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a string of torch's points to `len` live bytes; `EMPTY` has a null pointer.
        unsafe { slice(self.begin, self.len) }
    }

    /// Frees the bytes of the string.
    ///
    /// # Safety
    /// torch created the string, it has not been freed, and it is not used again. `delete` is that of
    /// the `new` by which torch allocates.
    pub(crate) unsafe fn free(&mut self, delete: unsafe extern "C" fn(*mut c_void)) {
        let own_room = (&raw const self.room).cast();
        if !self.begin.is_null() && self.begin != own_room {
            // SAFETY: bytes outside the string itself were allocated for it by the `new` that
            // belongs to this `delete`.
            unsafe { delete(self.begin.cast_mut().cast()) };
        }
        *self = Self::EMPTY;
    }
}
