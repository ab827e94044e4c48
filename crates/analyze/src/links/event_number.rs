//! The numbers by which torch names events.

use mindprof_model::{Category, EventId};

use crate::analysis::Analysis;

/// Returns the number that torch has for an event: its own, or the one that joins a call of a
/// device's runtime and what the device did for it.
pub fn event_number(analysis: &Analysis, id: EventId) -> u32 {
    let links = analysis.profile().links(id).unwrap_or_default();
    match analysis.profile().event(id).category {
        Category::PythonFunction => 0,
        Category::Kernel | Category::Runtime => links.correlation,
        Category::Operator
        | Category::Annotation
        | Category::DeviceAnnotation
        | Category::Other => {
            if links.external == 0 {
                id.to_raw() + 1
            } else {
                links.external
            }
        }
    }
}
