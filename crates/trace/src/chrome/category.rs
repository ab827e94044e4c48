//! The parts of categories that are specific to the Chrome format: the track of the window, the
//! margin of device annotations, and the keys of our own metadata. Kineto's names are in
//! `mindprof_model`.

use mindprof_model::{LossCause, TensorRole};

/// The process and thread of the span that shows the recorded window, as JSON: the current ones,
/// and those of Kineto in 2021.
pub(super) const WINDOW_TRACKS: [(&[u8], &[u8]); 2] = [
    (b"\"Spans\"", b"\"PyTorch Profiler\""),
    (b"\"Traces\"", b"\"PyTorch Profiler\""),
];

/// The number of nanoseconds by which a device annotation is extended on each side, so that viewers
/// nest its first and last kernels in it.
pub(super) const DEVICE_ANNOTATION_MARGIN: u64 = 1;

/// Returns the metadata key for a cause of loss.
pub const fn loss_key(cause: LossCause) -> &'static str {
    match cause {
        LossCause::Budget => "budget",
        LossCause::Names => "names",
        LossCause::Depth => "depth",
        LossCause::Unseen => "unseen",
        LossCause::Unreported => "unreported",
        LossCause::Damaged => "damaged",
        LossCause::Workers => "workers",
        LossCause::Collections => "collections",
    }
}

/// Returns the name of a tensor role.
pub(super) const fn role_key(role: TensorRole) -> &'static str {
    match role {
        TensorRole::Parameter => "parameter",
        TensorRole::Gradient => "gradient",
        TensorRole::OptimizerState => "optimizer_state",
    }
}

/// Returns the tensor role of a name. `None` if there is no such role.
pub(super) fn role_of(key: &str) -> Option<TensorRole> {
    let mut roles = TensorRole::ALL.into_iter();
    roles.find(|role| role_key(*role) == key)
}
