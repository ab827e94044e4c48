//! The CPU time that a captured graph of kernels saves: calls of operators, launches, and the
//! framework's own Python code around them.
//!
//! Data loading and the user's functions are not part of a graph, and run in each step as before.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, EventId, Nanos};

use crate::own_code::OwnCode;
use crate::step_split::NameKind;

/// The CPU time of replaying a captured graph, compared with launching each kernel.
pub(crate) const GRAPH_LAUNCH: f32 = 0.02;

/// An operator that takes longer than this and launches nothing computes on the CPU.
const LONG: Nanos = Nanos(100_000);

/// The place of an event in the program, as far as a graph is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Data loading, or work on the CPU, which no graph captures.
    Kept,
    /// The user's own Python code. The operators that it calls are captured.
    Own,
    /// The framework's code.
    Framework,
}

/// Returns the events of the CPU whose own time a captured graph saves.
pub(crate) fn captured(analysis: &Analysis, own: &OwnCode) -> Vec<EventId> {
    let profile = analysis.profile();
    let by_name: Vec<Option<Part>> = (profile.strings().iter())
        .map(|name| of_name(own, name))
        .collect();
    let mut parts: Vec<Part> = Vec::with_capacity(profile.events().len());
    let mut found = Vec::new();
    // Parents precede their children.
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        let around = analysis
            .tree()
            .parent(id)
            .map(|parent| parts[parent.index()]);
        let named = by_name[event.name.index()];
        let computes_on_cpu =
            || event.duration > LONG && analysis.device_times().total(id) == Nanos::ZERO;
        let part = match event.category {
            _ if around == Some(Part::Kept) => Part::Kept,
            Category::Annotation if named == Some(Part::Kept) => Part::Kept,
            Category::Operator if computes_on_cpu() => Part::Kept,
            Category::Operator | Category::Runtime => Part::Framework,
            // A library that is neither the user's nor the framework's works for its caller.
            Category::PythonFunction => named.or(around).unwrap_or(Part::Own),
            Category::Annotation
            | Category::Kernel
            | Category::DeviceAnnotation
            | Category::Other => around.unwrap_or(Part::Own),
        };
        parts.push(part);
        let is_captured = match event.category {
            Category::Operator | Category::Runtime | Category::PythonFunction => {
                part == Part::Framework
            }
            Category::Annotation
            | Category::Kernel
            | Category::DeviceAnnotation
            | Category::Other => false,
        };
        if is_captured {
            found.push(id);
        }
    }
    found
}

/// Returns the part of the program that a name tells: a range of data loading, a function of the
/// user's or one of the framework's.
fn of_name(own: &OwnCode, name: &str) -> Option<Part> {
    let is_built_in = || name.starts_with('<') && name.contains("torch");
    let is_of_torch = || name.starts_with("torch/") || name.contains("/torch/");
    if NameKind::of(name) == NameKind::Batch {
        Some(Part::Kept)
    } else if own.place(name).is_some() {
        Some(Part::Own)
    } else if name.starts_with("nn.Module: ") || is_of_torch() || is_built_in() {
        Some(Part::Framework)
    } else {
        None
    }
}
