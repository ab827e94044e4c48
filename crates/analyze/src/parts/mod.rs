//! Profiles made of other profiles: ranks merged into one, and parts cut out.

pub(crate) mod merge;
pub(crate) mod slim;
