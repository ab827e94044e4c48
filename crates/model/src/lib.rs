//! What a profile is: plain data and the invariants its builder checks.
//!
//! A profile comes from a recording (`mindprof-record`) or from a trace file (`mindprof-formats`);
//! everything that is computed or written afterwards reads [`Profile`] and nothing else.

mod builder;
mod device;
mod dtype;
mod error;
mod event;
mod event_batch;
mod extras;
mod halved_words;
mod id;
mod inputs;
mod inputs_encoder;
mod inputs_table;
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
mod text_part;
mod text_run;
mod thread;
mod time;
mod timeline;

pub use builder::ProfileBuilder;
pub use device::DeviceKind;
pub use dtype::DType;
pub use error::{Error, Result};
pub use event::{Category, Event, Flags, ScopeKind};
pub use event_batch::EventBatch;
pub use extras::{ExtraKind, ExtraWalk, Extras, ForeignRecord};
use halved_words::HalvedWords;
pub use id::{EventId, InputsId, StackId, StringId, TextId, ThreadId};
pub use inputs::{Input, InputKind, InputsIter};
pub use inputs_encoder::{Encoder, InputsEncoder, InputsRewriter, Rewrite};
pub use inputs_table::InputsTable;
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
pub use timeline::Timeline;
