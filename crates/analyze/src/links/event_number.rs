//! The numbers by which torch names events.

use mindprof_model::{Category, EventId};

use crate::analysis::Analysis;

/// Returns torch's number for an event: the correlation id for runtime calls and kernels, zero for
/// Python function calls, and otherwise the external id, or the event's position if it has none.
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
