//! The numbers by which torch names events.

use mindprof_model::{Category, EventId};

use crate::analysis::Analysis;

/// Returns torch's number for an event: the correlation id for runtime calls and kernels, zero for
/// Python function calls, and otherwise the external id, or the event's position in its process.
pub fn event_number(analysis: &Analysis, id: EventId) -> u32 {
    let profile = analysis.profile();
    let links = profile.links(id).unwrap_or_default();
    match profile.event(id).category {
        Category::PythonFunction => 0,
        Category::Kernel | Category::Runtime => links.correlation,
        Category::Operator
        | Category::Annotation
        | Category::DeviceAnnotation
        | Category::Other => profile.scope_number(id, &links),
    }
}
