//! Packed columns for data that a profile has a lot of: the links of events, 64-bit numbers that
//! change little, and texts that differ mostly in their numbers.

mod link_columns;
mod packed_texts;
mod split_u64_column;
mod text_part;
mod text_template;
mod tokenize;

pub use link_columns::LinkColumns;
pub use packed_texts::{PackedTexts, PatternId, TextPiece};
pub(crate) use split_u64_column::SplitU64Column;
pub use text_template::TextTemplate;
