//! Stacks: the source line of an event, and folded stacks weighted by time.

pub(crate) mod folded;
pub(crate) mod source;
