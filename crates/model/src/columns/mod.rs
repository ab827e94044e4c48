//! What a profile has many of, packed into columns: the identifiers of events, numbers of 64 bits
//! that change little, and texts that differ in little but their numbers.

mod link_columns;
mod packed_texts;
mod split_u64_column;
mod text_part;
mod text_template;
mod tokenize;

pub use link_columns::LinkColumns;
pub use packed_texts::{PackedTexts, PatternId};
pub(crate) use split_u64_column::SplitU64Column;
pub use text_template::TextTemplate;
