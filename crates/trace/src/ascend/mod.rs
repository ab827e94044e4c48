//! Profiles of Ascend NPUs: the vocabulary that all of their files share.
//!
//! `trace_view.json` is a Chrome trace, which `chrome::collect` reads.

mod vocabulary;

pub(crate) use self::vocabulary::{Layer, device_of_process, is_user_range, is_wait, process_of};
