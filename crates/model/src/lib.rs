//! The profile: plain data, and the invariants that its builder checks.
//!
//! A profile comes from a recording (`mindprof-record`) or from a trace file (`mindprof-trace`).
//! Every later computation and every output reads [`Profile`] and nothing else.
//!
//! ```
//! use mindprof_model::{Nanos, Timeline};
//!
//! // step   |--------------------|   0..100
//! // mul        |------|            10..40
//! let profile = Timeline::draw(|time| {
//!     time.annotation("step", |time| {
//!         time.idle(10);
//!         time.op("aten::mul", 30);
//!         time.idle(60);
//!     });
//! });
//!
//! let [step, mul] = profile.events() else { panic!("two events were drawn") };
//! assert_eq!(profile.name(step), "step");
//! assert_eq!(profile.name(mul), "aten::mul");
//! assert_eq!((mul.start, mul.duration), (Nanos(10), Nanos(30)));
//! assert_eq!(step.thread, mul.thread);
//! assert_eq!(profile.loss().total(), 0);
//! ```

mod builder;
mod columns;
mod damage;
mod device;
mod device_events;
mod dtype;
mod error;
mod event;
mod event_batch;
mod host_totals;
mod id;
mod inputs;
mod inputs_encoder;
mod inputs_table;
mod keywords;
mod links;
mod loss;
mod memory;
mod memory_snapshot;
mod operator_limit;
mod origins;
mod part;
mod passthrough;
mod place;
mod profile;
mod recorder;
mod results;
mod sampling;
mod selection;
mod stacks;
mod step_mark;
mod storages;
mod strings;
mod thread;
mod time;
mod timeline;
mod vocabulary;
mod whole_run;
mod word_sink;

pub use builder::{Kinship, ProfileBuilder};
use columns::SplitU64Column;
pub use columns::{LinkColumns, PackedTexts, PatternId, TextPiece, TextTemplate};
pub use damage::Damage;
pub use device::{DeviceKind, MemorySide};
pub use device_events::DeviceEvent;
pub use dtype::DType;
pub use error::{Error, Result};
pub use event::{Category, Event, Flags, ScopeKind};
pub use event_batch::EventBatch;
pub use host_totals::HostTotals;
pub use id::{EventId, InputsId, StackId, StringId, TextId, ThreadId};
pub use inputs::{Input, InputsIter};
pub use inputs_encoder::{Encoder, InputsEncoder};
pub use inputs_table::InputsTable;
pub use keywords::KeywordValue;
pub use links::{ForwardThread, Links, ThreadNumbers};
pub use loss::{Loss, LossCause};
pub use memory::{MemoryRecord, MemoryRecords, MemoryRecordsIter};
pub use memory_snapshot::{
    AllocatorAction, AllocatorEntry, AllocatorSettings, BlockState, MemorySnapshot, SnapshotBlock,
    SnapshotDevice, SnapshotSegment,
};
pub use operator_limit::OperatorLimit;
use origins::Origins;
pub use part::Part;
pub use passthrough::{PassthroughArgs, PassthroughKind, PassthroughWalk, UnknownEvent};
pub use place::Place;
pub use profile::{Metadata, Profile};
pub use recorder::{RecordedStacks, Recorder};
pub use results::Results;
pub use sampling::{Sampling, WAITING_FRAME};
pub use selection::Selection;
pub use stacks::StackTable;
pub use step_mark::StepMark;
pub use storages::{RoleRecord, StorageLists, TensorIdentity, TensorRole};
pub use strings::StringTable;
pub use thread::Thread;
pub use time::Nanos;
pub use timeline::Timeline;
pub use vocabulary::{
    INSTANT_ACTIVITY, MEMORY_EVENT, OUT_OF_MEMORY_EVENT, WINDOW_ACTIVITY, activity_category,
    activity_device, activity_meaning, activity_name, current_activity, derivable_activity,
    is_backward_wrapper, is_hidden_event, is_runtime_call, is_step_event, is_unknown_activity,
    is_window_mark, module_number, step_number, wrapped_node,
};
pub use whole_run::{NameSums, WholeRun};
pub use word_sink::WordSink;
