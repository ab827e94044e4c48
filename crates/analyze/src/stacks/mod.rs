//! Stacks: the source lines of events, and folded stacks weighted by time.

pub(crate) mod folded;
pub(crate) mod source;
