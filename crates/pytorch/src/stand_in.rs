//! A stand-in for libtorch, for tests: functions under torch's names, and objects with a layout
//! that the test knows.

#![expect(unsafe_code, reason = "it stands in for C++ functions")]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use mindprof_model::TensorRole;

use crate::layout::{ComplexNumbers, Layout, RECORD_BYTES, Tags};
use crate::observer::Observer;
use crate::symbols::{Callback, Hears, RecordFunction, SharedPointer, Symbols, TensorHandle};
use crate::tensor_samples::TensorSamples;

pub(crate) const COMPLEX: ComplexNumbers = ComplexNumbers { tag: 17, offset: 8 };

/// A complex number, as values point to it.
pub(crate) static NUMBER: [u64; 4] = [9, 3.0_f64.to_bits(), 4.0_f64.to_bits(), 9];

/// Offsets and tags that no version of torch has.
pub(crate) const LAYOUT: Layout = Layout {
    scope: 21,
    sequence: 64,
    forward_thread: 128,
    handle: Some(136),
    inputs: 240,
    tags: Tags {
        tensor: 11,
        int: 12,
        double: 13,
        bool: 14,
        list: 15,
        complex: Some(COMPLEX),
    },
    list_values: 24,
    list_type: 48,
    tensor_type: 0x7ee0,
};

const NONE_TAG: u64 = 16;
const NAME: usize = RECORD_BYTES / 8 - 1;
const COUNT: usize = NAME - 1;
const ASYNC: usize = NAME - 2;
pub(crate) const THREAD: u64 = 77;

/// The next handle of a scope, for callbacks that need one.
static HANDLES: AtomicU64 = AtomicU64::new(1);

static CALLBACKS: Mutex<Vec<(u64, Callback)>> = Mutex::new(Vec::new());

/// Returns the functions, without those for which `is_missing` holds.
pub(crate) fn symbols(is_missing: impl Fn(&str) -> bool) -> crate::Result<Symbols> {
    let look_up = |name: &CStr| {
        let name = name.to_str().unwrap();
        let address = if is_missing(name) {
            ptr::null()
        } else {
            address_of(name)
        };
        NonNull::new(address.cast_mut())
    };
    // SAFETY: the functions below have the signatures of those whose names they stand in for.
    unsafe { Symbols::resolve(&look_up) }
}

fn address_of(name: &str) -> *const c_void {
    let known = [
        ("addGlobalCallback", add_callback as *const c_void),
        ("addThreadLocalCallback", add_callback as *const c_void),
        ("removeCallback", remove_callback as *const c_void),
        ("RecordFunction4name", name_of as *const c_void),
        ("overload_name", overload_of as *const c_void),
        ("num_inputs", count_of as *const c_void),
        ("isAsync", is_async as *const c_void),
        ("currentThreadId", thread_number as *const c_void),
        ("get_dim", dim_of as *const c_void),
        ("get_sizes", sizes_of as *const c_void),
        ("get_strides", strides_of as *const c_void),
        ("get_dtype", dtype_of as *const c_void),
        ("get_layout", zero_number as *const c_void),
        ("get_storage_offset", offset_of as *const c_void),
        ("get_data_ptr", data_of as *const c_void),
        ("get_storage_size", bytes_of as *const c_void),
        ("get_device_type", device_of as *const c_void),
        ("UndefinedTensorImpl", (&raw const UNDEFINED).cast()),
        ("_ZTVN3c1010TensorImplE", (&raw const PLAIN_TABLE).cast()),
        ("DebugInfo3get", get_slot as *const c_void),
        ("7current", current_slot as *const c_void),
        ("5_push", push_slot as *const c_void),
        ("4_pop", pop_slot as *const c_void),
        ("hasThreadLocalCallbacks", has_callbacks as *const c_void),
    ];
    let found = known.iter().find(|(part, _)| name.contains(part));
    found.map_or(ptr::null(), |(_, address)| *address)
}

static UNDEFINED: u64 = 0;

extern "C" fn add_callback(callback: Callback) -> u64 {
    let mut callbacks = CALLBACKS.lock().unwrap();
    let handle = callbacks.last().map_or(1, |(last, _)| last + 1);
    callbacks.push((handle, callback));
    handle
}

extern "C" fn remove_callback(handle: u64) {
    CALLBACKS
        .lock()
        .unwrap()
        .retain(|(known, _)| *known != handle);
}

/// Registers a callback that does nothing but need the handles of scopes. Returns its number.
pub(crate) fn need_handles(symbols: &Symbols) -> u64 {
    extern "C" fn start(
        context: *mut *mut c_void,
        _record: *const RecordFunction,
    ) -> *mut *mut c_void {
        context
    }
    extern "C" fn end(_record: *const RecordFunction, _context: *mut c_void) {}
    let callback = Callback {
        needs_ids: true,
        ..Callback::new(start, end, Hears::default())
    };
    // SAFETY: the callbacks are static functions and never unwind.
    unsafe { (symbols.add_global_callback)(callback) }
}

/// Returns, for each registered callback, whether it wants inputs.
pub(crate) fn installed() -> Vec<bool> {
    let callbacks = CALLBACKS.lock().unwrap();
    callbacks
        .iter()
        .map(|(_, callback)| callback.needs_inputs)
        .collect()
}

extern "C" fn name_of(record: &Record) -> *const c_char {
    record.words[NAME] as *const c_char
}

/// Additions have an overload, other operators do not.
extern "C" fn overload_of(record: &Record) -> *const c_char {
    let has_overload = record.name.to_bytes().starts_with(b"aten::add");
    if has_overload { c"Tensor" } else { c"" }.as_ptr()
}

extern "C" fn count_of(record: &Record) -> usize {
    record.words[COUNT] as usize
}

extern "C" fn is_async(record: &Record) -> bool {
    record.words[ASYNC] != 0
}

extern "C" fn thread_number() -> u64 {
    THREAD
}

/// A tensor: words with a layout that no version of torch has, and the memory they point to.
#[repr(C)]
pub(crate) struct Tensor {
    words: [u64; TENSOR_WORDS],
    /// Its storage: a pointer to its owner, followed by the address of its bytes.
    _storage: Box<[u64; 8]>,
    bytes: Box<[u8; 256]>,
    /// Sizes and strides that are not stored in the words.
    other_shape: Option<[Vec<i64>; 2]>,
    /// The sizes and strides that the words point to if there are many.
    many: Vec<i64>,
}

const TENSOR_WORDS: usize = 24;
/// The offsets of fields in words; the dtype is in the last half of its word.
const STORAGE: usize = 3;
const DIM: usize = 6;
const STRIDES: usize = DIM + 6;
const TYPE: usize = 19;
const OFFSET: usize = 20;
/// The byte offset of the kind of device.
const DEVICE: usize = 171;
/// The offset in a storage of the address of its bytes.
const BYTES: usize = 4;

/// The virtual table of plain tensors, with its two leading words.
static PLAIN_TABLE: [u64; 3] = [0; 3];

impl Tensor {
    /// Makes a plain tensor.
    pub(crate) fn new(dtype: u16, sizes: &[i64], strides: &[i64], offset: u64) -> Self {
        let bytes = Box::new([0; 256]);
        let mut storage = Box::new([0; 8]);
        storage[BYTES] = bytes.as_ptr() as u64;
        let mut words = [0; TENSOR_WORDS];
        words[0] = (&raw const PLAIN_TABLE[2]) as u64;
        words[STORAGE] = storage.as_ptr() as u64;
        words[DIM] = sizes.len() as u64;
        let many = [sizes, strides].concat();
        if sizes.len() > 5 {
            words[DIM + 1] = many.as_ptr() as u64;
        } else {
            for (place, numbers) in [(DIM + 1, sizes), (STRIDES, strides)] {
                for (word, &number) in words[place..].iter_mut().zip(numbers) {
                    *word = number as u64;
                }
            }
        }
        words[TYPE] = u64::from(dtype) << 48;
        words[OFFSET] = offset;
        Self {
            words,
            _storage: storage,
            bytes,
            other_shape: None,
            many,
        }
    }

    /// Sets bits beside its dtype that say that its sizes or strides differ.
    pub(crate) fn with_others(mut self, bits: u64) -> Self {
        self.words[TYPE] |= bits;
        self
    }

    /// Moves it to another kind of device.
    pub(crate) fn on_device(mut self, kind: u8) -> Self {
        self.words[DEVICE / 8] |= u64::from(kind) << (8 * (DEVICE % 8));
        self
    }

    /// Makes it an instance of another class, in which sizes and dtype lie elsewhere.
    pub(crate) fn of_another_class(mut self) -> Self {
        let [sizes, strides] = [self.sizes().to_vec(), self.strides().to_vec()];
        self.words[0] += 8;
        self.words[TYPE] = 0;
        self.other_shape = Some([sizes, strides]);
        self
    }

    fn sizes(&self) -> &[i64] {
        self.shape(0, DIM + 1)
    }

    fn strides(&self) -> &[i64] {
        self.shape(1, STRIDES)
    }

    fn shape(&self, which: usize, place: usize) -> &[i64] {
        let dim = self.words[DIM] as usize;
        if let Some(shape) = &self.other_shape {
            return &shape[which];
        }
        if dim > 5 {
            return &self.many[which * dim..][..dim];
        }
        // SAFETY: `dim` words lie there, and every word is a valid number.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().add(place).cast(), dim) }
    }

    fn is_plain(&self) -> bool {
        self.words[0] == (&raw const PLAIN_TABLE[2]) as u64
    }

    /// Returns the address of its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.as_ptr() as u64
    }
}

/// Returns tensors of two dtypes with every number of dimensions that fits into them.
pub(crate) fn sample_tensors() -> Vec<Tensor> {
    let (sizes, strides) = ([2, 3, 5, 7, 11], [1155, 385, 77, 11, 1]);
    let of = |dim: usize| {
        let dtype = if dim.is_multiple_of(2) { 6 } else { 7 };
        Tensor::new(dtype, &sizes[..dim], &strides[5 - dim..], dim as u64)
    };
    (0..=5).map(of).collect()
}

/// Returns a tensor on another kind of device, one with many sizes, and three of another class, of
/// which the last two have other sizes and strides.
pub(crate) fn further_tensors() -> [Tensor; 5] {
    let plain = || Tensor::new(6, &[2, 3], &[3, 1], 0);
    [
        plain().on_device(14),
        Tensor::new(6, &[1, 2, 1, 2, 1, 2], &[8, 4, 4, 2, 2, 1], 0),
        plain(),
        plain().with_others(0b1010),
        plain().with_others(0b0101),
    ]
}

/// Returns the samples of a probe.
pub(crate) fn samples<'a>(plain: &'a [u64], further: &[Tensor; 5]) -> TensorSamples<'a> {
    let [elsewhere, large, own, sized, strided] = further
        .each_ref()
        .map(|tensor| ptr::from_ref(tensor) as u64);
    TensorSamples {
        plain,
        large,
        others: [elsewhere, own, sized, strided],
        wrapper: [0; 2],
    }
}

/// Returns the addresses of tensors.
pub(crate) fn addresses(tensors: &[Tensor]) -> Vec<u64> {
    let address = |tensor| ptr::from_ref::<Tensor>(tensor) as u64;
    tensors.iter().map(address).collect()
}

fn tensor<'a>(handle: TensorHandle) -> &'a Tensor {
    // SAFETY: a handle is the address of a value whose payload is the address of a tensor, which
    // the test keeps alive.
    unsafe { &**handle.cast::<*const Tensor>() }
}

extern "C" fn dim_of(handle: TensorHandle, answer: &mut i64) -> i32 {
    *answer = tensor(handle).sizes().len() as i64;
    0
}

extern "C" fn sizes_of(handle: TensorHandle, answer: &mut *const i64) -> i32 {
    *answer = tensor(handle).sizes().as_ptr();
    0
}

extern "C" fn strides_of(handle: TensorHandle, answer: &mut *const i64) -> i32 {
    *answer = tensor(handle).strides().as_ptr();
    0
}

/// Every tensor of another class has 64-bit floats.
extern "C" fn dtype_of(handle: TensorHandle, answer: &mut i32) -> i32 {
    let tensor = tensor(handle);
    *answer = if tensor.is_plain() {
        (tensor.words[TYPE] >> 48) as i32
    } else {
        7
    };
    0
}

extern "C" fn zero_number(_handle: TensorHandle, answer: &mut i32) -> i32 {
    *answer = 0;
    0
}

extern "C" fn offset_of(handle: TensorHandle, answer: &mut i64) -> i32 {
    *answer = tensor(handle).words[OFFSET] as i64;
    0
}

/// Every dtype of the tests has four bytes or eight.
extern "C" fn data_of(handle: TensorHandle, answer: &mut *const c_void) -> i32 {
    let mut number = 0;
    dtype_of(handle, &mut number);
    let bytes = if number == 6 { 4 } else { 8 };
    let tensor = tensor(handle);
    *answer = (tensor.bytes() + bytes * tensor.words[OFFSET]) as *const c_void;
    0
}

extern "C" fn bytes_of(handle: TensorHandle, answer: &mut i64) -> i32 {
    *answer = 4 * tensor(handle).sizes().iter().product::<i64>();
    0
}

extern "C" fn device_of(handle: TensorHandle, answer: &mut i32) -> i32 {
    *answer = i32::from(tensor(handle).words[DEVICE / 8].to_le_bytes()[DEVICE % 8]);
    0
}

/// An entry of a thread's list, as torch lays it out, and the control block of its owners.
#[repr(C)]
struct Entry {
    object: SharedPointer,
    kind: u64,
    /// A virtual table, and the number of owners.
    control: [u64; 2],
}

/// The kind of the slot of profilers, which the looked-up symbols do not name.
const PROFILER_STATE: u64 = 2;

thread_local! {
    /// The entries pushed on this thread. They are never freed, so that tests may look at those that
    /// were popped.
    static SLOTS: RefCell<Vec<*mut Entry>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    /// Whether a profiler has left its callbacks on this thread.
    pub(crate) static HAS_CALLBACKS: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn has_callbacks() -> bool {
    HAS_CALLBACKS.get()
}

extern "C" fn get_slot(_kind: u64) -> *const c_void {
    let newest = SLOTS.with_borrow(|slots| slots.last().copied());
    // SAFETY: entries are never freed, and each is used by one thread at a time.
    newest.map_or(ptr::null(), |entry| unsafe { (*entry).object.object })
}

extern "C" fn push_slot(_kind: u64, pointer: &SharedPointer) {
    let entry = Entry {
        object: *pointer,
        kind: PROFILER_STATE,
        control: [0, 1],
    };
    SLOTS.with_borrow_mut(|slots| slots.push(Box::leak(Box::new(entry))));
}

extern "C" fn pop_slot(answer: &mut SharedPointer, _kind: u64) -> *const SharedPointer {
    let popped = SLOTS.with_borrow_mut(Vec::pop);
    let popped = popped.expect("a slot is popped only after a push");
    // SAFETY: entries are never freed.
    *answer = unsafe { (*popped).object };
    answer
}

/// Returns the newest entry, with one owner more.
extern "C" fn current_slot(answer: &mut SharedPointer) -> *const SharedPointer {
    if let Some(newest) = SLOTS.with_borrow(|slots| slots.last().copied()) {
        answer.object = newest.cast_const().cast();
        // SAFETY: entries are never freed.
        unsafe {
            (*newest).control[1] += 1;
            answer.control = (&raw const (*newest).control).cast();
        }
    }
    answer
}

/// Returns the number of entries of this thread. Besides the thread, a live object owns the newest.
pub(crate) fn slots() -> usize {
    SLOTS.with_borrow(|slots| {
        // SAFETY: entries are never freed.
        let owners = slots.last().map(|&newest| unsafe { (*newest).control[1] });
        assert!(owners.is_none_or(|owners| owners <= 2), "{owners:?}");
        slots.len()
    })
}

/// Returns whether the slot of this thread is empty for torch.
pub(crate) fn slot_is_empty() -> bool {
    get_slot(0).is_null()
}

/// Fills the slot of this thread as another profiler would.
pub(crate) fn take_slot() {
    let object = (&raw const UNDEFINED).cast();
    push_slot(
        0,
        &SharedPointer {
            object,
            ..SharedPointer::NULL
        },
    );
}

/// Replaces the entries of this thread by a copy of their list, as torch does during a backward pass.
/// Returns a function that puts the list back.
pub(crate) fn swap_slots() -> impl FnOnce() {
    let before = SLOTS.with_borrow(Vec::clone);
    move || SLOTS.set(before)
}

/// Removes the newest entry of this thread, as the profiler that pushed it would.
pub(crate) fn drop_newest() {
    SLOTS.with_borrow_mut(Vec::pop);
}

/// Empties the slots of this thread.
pub(crate) fn clear_slots() {
    SLOTS.with_borrow_mut(Vec::clear);
}

/// Reports memory to the object in the slot, as torch's allocators do.
pub(crate) fn allocate(address: u64, bytes: i64, total: u64, device: u16) {
    type Report = extern "C" fn(*const c_void, u64, i64, u64, u64, u16);
    type IsEnabled = extern "C" fn(*const c_void) -> bool;
    let object = get_slot(0);
    if object.is_null() {
        return;
    }
    // SAFETY: an object in the slot begins with its virtual table, whose third and fifth functions
    // these are.
    unsafe {
        let table = object.cast::<*const *const c_void>().read();
        let report = std::mem::transmute::<*const c_void, Report>(table.add(2).read());
        let is_enabled = std::mem::transmute::<*const c_void, IsEnabled>(table.add(4).read());
        if is_enabled(object) {
            report(object, address, bytes, total, 0, device);
        }
    }
}

/// A value: its payload and tag, and the memory it points to.
pub(crate) struct Value {
    words: [u64; 2],
    _list: Option<Box<List>>,
}

#[repr(C)]
struct List {
    words: [u64; 8],
    values: Vec<[u64; 2]>,
}

impl Value {
    pub(crate) fn new(payload: u64, tag: u32) -> Self {
        Self {
            words: [payload, u64::from(tag)],
            _list: None,
        }
    }

    pub(crate) fn tensor(tensor: &Tensor) -> Self {
        Self::new(ptr::from_ref(tensor) as u64, LAYOUT.tags.tensor)
    }

    pub(crate) fn complex() -> Self {
        Self::new((&raw const NUMBER) as u64, COMPLEX.tag)
    }

    pub(crate) fn none() -> Self {
        Self::new(0, NONE_TAG as u32)
    }

    pub(crate) fn list(values: &[Self], element_type: u64) -> Self {
        let values: Vec<[u64; 2]> = values.iter().map(|value| value.words).collect();
        let begin = values.as_ptr() as u64;
        let end = begin + 16 * values.len() as u64;
        let mut words = [0; 8];
        let first = LAYOUT.list_values / 8;
        words[first..first + 3].copy_from_slice(&[begin, end, end]);
        words[LAYOUT.list_type / 8] = element_type;
        let list = Box::new(List { words, values });
        Self {
            words: [ptr::from_ref(&*list) as u64, u64::from(LAYOUT.tags.list)],
            _list: Some(list),
        }
    }
}

/// A scope, as torch holds it while it is open.
#[repr(C)]
pub(crate) struct Record {
    words: [u64; RECORD_BYTES / 8],
    contexts: Vec<(Callback, *mut c_void)>,
    name: CString,
    _inputs: Vec<[u64; 2]>,
    _values: Vec<Value>,
}

/// The facts of a scope.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u8,
    pub(crate) sequence: i64,
    pub(crate) forward: u64,
}

impl Record {
    /// Makes a scope with inputs.
    pub(crate) fn new(scope: Scope<'_>, values: Vec<Value>) -> Box<Self> {
        let name = CString::new(scope.name).unwrap();
        let inputs: Vec<[u64; 2]> = values.iter().map(|value| value.words).collect();
        let mut words = [0; RECORD_BYTES / 8];
        words[LAYOUT.scope / 8] |= u64::from(scope.kind) << (8 * (LAYOUT.scope % 8));
        words[LAYOUT.sequence / 8] = scope.sequence as u64;
        words[LAYOUT.forward_thread / 8] = scope.forward;
        words[LAYOUT.inputs / 8] = inputs.as_ptr() as u64;
        words[LAYOUT.inputs / 8 + 1] = inputs.len() as u64;
        words[NAME] = name.as_ptr() as u64;
        words[COUNT] = inputs.len() as u64;
        Box::new(Self {
            words,
            contexts: Vec::new(),
            name,
            _inputs: inputs,
            _values: values,
        })
    }

    /// Marks it as asynchronous.
    pub(crate) fn set_async(mut self: Box<Self>) -> Box<Self> {
        self.words[ASYNC] = 1;
        self
    }

    /// Begins the scope and calls the registered callbacks.
    pub(crate) fn begin(mut self: Box<Self>) -> Box<Self> {
        let callbacks: Vec<Callback> = {
            let callbacks = CALLBACKS.lock().unwrap();
            callbacks.iter().map(|(_, callback)| *callback).collect()
        };
        if callbacks.iter().any(|callback| callback.needs_ids) {
            self.words[LAYOUT.handle.unwrap() / 8] = HANDLES.fetch_add(1, Ordering::Relaxed);
        }
        let record: *const RecordFunction = ptr::from_ref(&*self).cast();
        for callback in callbacks {
            let mut context = ptr::null_mut();
            // SAFETY: the record is live and `context` is a slot for one pointer, as when torch
            // calls it.
            unsafe { (callback.start)(&raw mut context, record) };
            self.contexts.push((callback, context));
        }
        self
    }

    /// Ends it on any thread: calls the callbacks again and destroys their contexts.
    pub(crate) fn end(self: Box<Self>) {
        type Destroy = unsafe extern "C" fn(*mut c_void);
        let record: *const RecordFunction = ptr::from_ref(&*self).cast();
        for (callback, context) in &self.contexts {
            // SAFETY: the context came from `start` of the same callback, is passed once, and
            // begins with its virtual table, whose second function destroys it.
            unsafe {
                (callback.end)(record, *context);
                if !context.is_null() {
                    let table = context.cast::<*const Destroy>().read();
                    (*table.add(1))(*context);
                }
            }
        }
    }

    /// Begins and ends it.
    pub(crate) fn run(self: Box<Self>) {
        self.begin().end();
    }
}

// SAFETY: a test moves a scope to another thread as a whole, so only one thread accesses it.
unsafe impl Send for Record {}

/// Records the role of a tensor by its address; zero stands for no tensor.
pub(crate) fn tell_role(observer: &Observer, role: TensorRole, tensor: u64) {
    // SAFETY: the observer calls the functions above, for which the address is that of a live
    // tensor or zero.
    unsafe { observer.tensor_role(role, tensor) };
}
