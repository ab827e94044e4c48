//! What a profile is: plain data and the invariants its builder checks.
//!
//! A profile comes from a recording (`mindprof-record`) or from a trace file (`mindprof-formats`);
//! everything that is computed or written afterwards reads [`Profile`] and nothing else.

mod builder;
mod device;
mod error;
mod event;
mod event_batch;
mod extras;
mod halved_words;
mod id;
mod inputs;
mod link_columns;
mod links;
mod loss;
mod memory;
mod packed_texts;
mod profile;
mod rewritten;
mod split_text;
mod stacks;
mod storages;
mod strings;
mod thread;
mod time;

pub use builder::{ProfileBuilder, Timeline};
pub use device::DeviceKind;
pub use error::{Error, Result};
pub use event::{Category, Event, Flags, ScopeKind};
pub use event_batch::EventBatch;
pub use extras::{ExtraKind, ExtraWalk, Extras, ForeignRecord};
use halved_words::HalvedWords;
pub use id::{EventId, InputsId, StackId, StringId, TextId, ThreadId};
pub use inputs::{DType, Input, InputKind, InputsEncoder, InputsIter, InputsTable};
pub use link_columns::LinkColumns;
pub use links::Links;
pub use loss::{Loss, LossCause};
pub use memory::{MemoryRecord, MemoryRecords, MemoryRecordsIter};
pub use packed_texts::{PackedTexts, PatternId};
pub use profile::{Metadata, Profile};
pub use split_text::SplitText;
pub use stacks::StackTable;
pub use storages::{RoleRecord, StorageLists, TensorRole};
pub use strings::StringTable;
pub use thread::Thread;
pub use time::Nanos;
