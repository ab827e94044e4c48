//! What torch's collector says of one event, and who can be asked for it.
//!
//! Comes from objects of Python or straight from torch's memory; goes to the reader, which makes a
//! part of it.

use mindprof_model::{Category, DeviceKind, InputsEncoder, Part, StackId, StringId, StringTable};
use pyo3::prelude::*;

/// One event in the words of torch's accessors. Times and numbers may need 64 bits with or without
/// a sign.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are torch's accessors")]
pub(super) struct RawEvent {
    pub(super) start_ns: i128,
    pub(super) end_ns: i128,
    /// Threads by the numbers that torch counts them with.
    pub(super) start_thread: u64,
    pub(super) end_thread: u64,
    /// Where the forward operator of a backward node ran; zero for none.
    pub(super) forward_thread: u64,
    pub(super) scope: i128,
    pub(super) sequence: i128,
    pub(super) device: DeviceKind,
    pub(super) device_index: i128,
    /// The system's number of a host's thread, or the stream of a device.
    pub(super) resource: i128,
    /// Its own number.
    pub(super) correlation: i128,
    /// The number of the scope that asked for it; zero for none.
    pub(super) linked: i128,
    /// Zero for what is no scope; none where torch does not say.
    pub(super) external: Option<i128>,
    pub(super) is_async: bool,
    pub(super) is_hidden: bool,
    pub(super) is_annotation: bool,
    pub(super) is_python: bool,
    /// What kind of activity it is; none where torch does not say.
    pub(super) activity: Option<Category>,
}

impl RawEvent {
    /// Returns whether it is a scope, whose number others name. Runtime calls that nobody asked for,
    /// and the work of those, have numbers too, but of another count.
    pub(super) fn is_scope(&self, name: &str) -> bool {
        let may_be = self.device == DeviceKind::Cpu || self.is_annotation;
        may_be
            && self.linked == 0
            && match self.external {
                Some(external) => external != 0,
                // What the collector itself costs has no process.
                None => self.device_index >= 0 && !is_runtime_call(name),
            }
    }

    /// Returns what kind of thing it is.
    pub(super) fn category(&self, name: &str) -> Category {
        // Whatever a scope asked for is work, on the host a call into the runtime.
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
            None if !is_scope && is_runtime_call(name) => Category::Runtime,
            Some(Category::Other) | None if !is_scope => Category::Other,
            _ => Category::Operator,
        }
    }

    /// Returns whether it ended on another thread than it began on.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_async || self.start_thread != self.end_thread
    }
}

/// Returns whether calls into the runtime or driver of a device have such names.
fn is_runtime_call(name: &str) -> bool {
    // CUDA's, ROCm's, and those of XPUs: Unified Runtime and Level Zero.
    ["cuda", "cu", "hip", "ur", "ze"].iter().any(|prefix| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    })
}

/// Whoever can be asked about raw events, by their positions.
pub(super) trait RawEvents {
    /// Returns how many there are.
    fn len(&self) -> usize;

    /// Adds the names of all to a table, and returns their ids, by position.
    fn names(&self, strings: &mut StringTable) -> PyResult<Vec<StringId>>;

    /// Returns one without its name, inputs and stack.
    fn event(&self, position: usize) -> PyResult<RawEvent>;

    /// Returns how many bytes an event of memory took, or gave back.
    fn bytes(&self, position: usize) -> PyResult<i64>;

    /// Adds who called an event to a part, and returns the id.
    fn stack(&self, position: usize, part: &mut Part) -> PyResult<StackId>;

    /// Writes what an event was given.
    fn inputs(&self, position: usize, inputs: &mut InputsEncoder) -> PyResult<()>;
}
