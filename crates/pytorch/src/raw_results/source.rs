//! One event as torch's collector describes it, and the trait of the sources of such events.
//!
//! Events come from Python objects or directly from torch's memory, and go to the reader, which
//! makes a part of them.

use mindprof_model::{
    Category, DeviceKind, InputsEncoder, Part, StackId, StringId, StringTable, is_runtime_call,
};

use crate::error::Error;
use crate::kineto_inputs::KnownValue;

/// One raw event, without its name, inputs, stack and bytes.
///
/// Sources create it on demand, one at a time. Values that torch returns as signed or unsigned
/// 64-bit integers, depending on the accessor, are `i128`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each mirrors one of torch's accessors"
)]
pub struct RawEvent {
    /// When it began, in nanoseconds since the Unix epoch.
    pub start_ns: i128,
    /// When it ended, in nanoseconds since the Unix epoch.
    pub end_ns: i128,
    /// The thread it began on, as torch numbers threads.
    pub start_thread: u64,
    /// The thread it ended on, as torch numbers threads.
    pub end_thread: u64,
    /// The thread of a backward node's forward operator; zero if it has none.
    pub forward_thread: u64,
    /// The number of torch's `RecordScope`.
    pub scope: i128,
    /// The sequence number that links forward operators with backward nodes; negative if it has
    /// none.
    pub sequence: i128,
    /// The kind of device it ran on.
    pub device: DeviceKind,
    /// The index of the device, or the process id of an event on the CPU.
    pub device_index: i128,
    /// The operating system's id of a CPU thread, or the stream of a device.
    pub resource: i128,
    /// The event's own correlation id.
    pub correlation: i128,
    /// The correlation id of the scope that launched it; zero if no scope did.
    pub linked: i128,
    /// The external id: zero for events that are not scopes, `None` if this torch has no such
    /// accessor.
    pub external: Option<i128>,
    /// Whether torch marked it as asynchronous.
    pub is_async: bool,
    /// Whether torch hides it from results.
    pub is_hidden: bool,
    /// Whether it is a range that a user named.
    pub is_annotation: bool,
    /// Whether it is a call of a Python function.
    pub is_python: bool,
    /// The category of its activity type, or `None` if the source does not tell it.
    pub activity: Option<Category>,
}

impl RawEvent {
    /// Returns whether the event is a scope, whose correlation id other events link to.
    ///
    /// Runtime calls outside any scope, and the work they launch, have correlation ids too, but
    /// from a different counter.
    pub fn is_scope(&self, name: &str) -> bool {
        let may_be = self.device == DeviceKind::Cpu || self.is_annotation;
        may_be
            && self.linked == 0
            && match self.external {
                Some(external) => external != 0,
                // The collector's own overhead has a negative process id.
                None => self.device_index >= 0 && !is_call(name),
            }
    }

    /// Returns the category of the event.
    pub fn category(&self, name: &str) -> Category {
        // On the CPU, everything that a scope launched is a call into the runtime.
        if self.linked > 0 && self.device == DeviceKind::Cpu {
            return Category::Runtime;
        }
        if self.device != DeviceKind::Cpu {
            return if self.is_annotation && self.linked == 0 {
                Category::DeviceAnnotation
            } else {
                Category::Kernel
            };
        }
        if self.is_python {
            return Category::PythonFunction;
        }
        if self.is_annotation {
            return Category::Annotation;
        }
        let is_scope = self.is_scope(name);
        match self.activity {
            Some(Category::Runtime) if !is_scope => Category::Runtime,
            None if !is_scope && is_call(name) => Category::Runtime,
            Some(Category::Other) | None if !is_scope => Category::Other,
            _ => Category::Operator,
        }
    }

    /// Returns whether the event may end on a different thread from the one it began on.
    pub fn may_change_thread(&self) -> bool {
        self.is_async || self.start_thread != self.end_thread
    }
}

/// Kineto's name of calls that are newer than its list of them.
const UNLISTED_CALL: &str = "INVALID";

fn is_call(name: &str) -> bool {
    is_runtime_call(name) || name == UNLISTED_CALL
}

/// A source of raw events, which are identified by their positions.
///
/// Positions count from zero in the order in which torch returns the events.
pub trait RawEvents {
    /// The error of an accessor. The reader's own errors are converted into it.
    type Error: From<Error>;

    /// Returns the number of events.
    fn len(&self) -> usize;

    /// Returns whether there are no events.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Interns the names of all events and returns their ids by position.
    ///
    /// # Errors
    /// If an accessor fails.
    fn names(&self, strings: &mut StringTable) -> Result<Vec<StringId>, Self::Error>;

    /// Returns one event, without its name, inputs, stack and bytes.
    ///
    /// # Errors
    /// If an accessor fails or returns an invalid value.
    fn event(&self, position: usize) -> Result<RawEvent, Self::Error>;

    /// Returns the number of bytes that a memory event allocated; negative if it freed them.
    ///
    /// # Errors
    /// If an accessor fails.
    fn bytes(&self, position: usize) -> Result<i64, Self::Error>;

    /// Interns the stack of an event in a part and returns its id.
    ///
    /// # Errors
    /// If an accessor fails.
    fn stack(&self, position: usize, part: &mut Part) -> Result<StackId, Self::Error>;

    /// Returns the arguments of device work that a profile does not model, as the inside of a JSON
    /// object, or `None` if the source does not tell them.
    ///
    /// # Errors
    /// If an accessor fails.
    fn arguments(&self, _position: usize) -> Result<Option<String>, Self::Error> {
        Ok(None)
    }

    /// Returns a number that events with equal arguments may share, so that they are read once.
    fn arguments_key(&self, _position: usize) -> Option<u32> {
        None
    }

    /// Encodes the inputs of an event.
    ///
    /// # Errors
    /// If an accessor fails or returns an invalid value.
    fn inputs(&self, position: usize, inputs: &mut InputsEncoder) -> Result<(), Self::Error>;
}

/// A source that also knows the values of scalar inputs.
///
/// [`NativeLayout::learn`](super::NativeLayout::learn) and
/// [`NativeLayout::with_inputs`](super::NativeLayout::with_inputs) check a guessed layout of
/// torch's memory against it; afterwards the memory is read directly.
pub trait ReferenceEvents: RawEvents {
    /// Returns known inputs: the position of the event, the index among its inputs, and the value.
    ///
    /// # Errors
    /// If an accessor fails.
    fn known_values(&self) -> Result<Vec<(usize, usize, KnownValue)>, Self::Error>;
}
