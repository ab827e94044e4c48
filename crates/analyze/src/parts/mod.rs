//! Profiles made from other profiles: ranks merged into one, and smaller profiles cut out.

pub(crate) mod merge;
pub(crate) mod slim;
