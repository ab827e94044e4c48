//! Links between events: kernels and their launches, backward nodes and their forward operators.

pub(crate) mod correlate;
pub(crate) mod device_time;
pub(crate) mod event_number;
pub(crate) mod execution;
pub(crate) mod flows;
pub(crate) mod forward;
pub(crate) mod launchers;
