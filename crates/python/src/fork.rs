//! The recorder's hooks around a fork, for `os.register_at_fork`.

use mindprof_record::ForkSide;
use pyo3::prelude::*;

/// Takes the recorder's locks.
#[pyfunction]
pub(crate) fn before_fork() {
    mindprof_record::before_fork();
}

/// Gives the locks back.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    mindprof_record::after_fork(ForkSide::Parent);
}

/// Gives the locks back and forgets what was being recorded.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    mindprof_record::after_fork(ForkSide::Child);
}
