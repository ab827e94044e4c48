//! What only the Chrome format knows of categories: the track of the window, the margin of device
//! annotations, and the keys of our own metadata. Kineto's names are in `mindprof_model`.

use mindprof_model::{LossCause, TensorRole};

/// The process and the thread of the span that shows how long the profiler recorded, as JSON:
/// today's, and that of Kineto's first year.
pub(super) const WINDOW_TRACKS: [(&[u8], &[u8]); 2] = [
    (b"\"Spans\"", b"\"PyTorch Profiler\""),
    (b"\"Traces\"", b"\"PyTorch Profiler\""),
];

/// How many nanoseconds a device annotation is widened on each side, so that viewers nest its first
/// and last kernel in it.
pub(super) const DEVICE_ANNOTATION_MARGIN: u64 = 1;

/// Returns the key of a cause of loss in the metadata of a trace.
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

/// Returns the word for the role of a tensor.
pub(super) const fn role_key(role: TensorRole) -> &'static str {
    match role {
        TensorRole::Parameter => "parameter",
        TensorRole::Gradient => "gradient",
        TensorRole::OptimizerState => "optimizer_state",
    }
}

/// Returns the role that a word stands for, or `None` if it stands for none.
pub(super) fn role_of(key: &str) -> Option<TensorRole> {
    let mut roles = TensorRole::ALL.into_iter();
    roles.find(|role| role_key(*role) == key)
}
