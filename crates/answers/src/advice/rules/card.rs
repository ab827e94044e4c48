//! The device that a profile was recorded on, and how fast it is at best.

use mindprof_model::DType;

use super::products::Product;
use crate::advice::facts::Facts;
use crate::device::{Card, DeviceProperties, MathUnits};

/// Returns the first device that a profile lists.
pub(super) fn device(facts: &Facts<'_>) -> Option<DeviceProperties> {
    let devices = DeviceProperties::read(facts.profile.metadata());
    devices.into_iter().next()
}

/// Returns the seconds that a product takes at least. A product of 32-bit floats may leave the tensor
/// cores unused.
pub(super) fn least_seconds(card: &Card, product: &Product) -> Option<f64> {
    let units = match product.dtype {
        DType::F32 => MathUnits::Others,
        _ => MathUnits::TensorCores,
    };
    let speed = card.flops_per_s(product.dtype, units)?;
    let arithmetic = product.operations() as f64 / speed;
    Some(arithmetic.max(product.bytes() as f64 / card.bytes_per_s()))
}
