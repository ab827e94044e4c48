//! Kernels of layers and losses, over contiguous slices.

mod attention;
mod convolution;
mod norm;
mod pool;
mod softmax;

pub(crate) use attention::{Attention, attention_forward, attention_gradient};
pub(crate) use convolution::{Window, convolve, convolve_input_gradient, convolve_weight_gradient};
pub(crate) use norm::{
    NormGradient, Statistics, channel_statistics, normalise_channels, normalise_channels_gradient,
    normalise_rows, normalise_rows_gradient,
};
pub(crate) use pool::{average_regions, average_regions_gradient, largest, largest_gradient};
pub(crate) use softmax::{Softmax, softmax, softmax_gradient};
