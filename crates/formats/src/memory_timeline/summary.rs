//! A summary of the memory timeline as JSON: the peak, the memory in use at the end, and the
//! operators whose allocations were live at the peak.

use mindprof_analyze::{
    Analysis, CategoryBytes, MemoryCategory, MemoryHolder, MemoryOrigin, MemoryPeak, MemoryPlace,
    UnseenMemory, shown_frames,
};
use mindprof_model::StackId;
use serde_json::{Value, json};

use super::points::{memory_category_name, points};
use crate::memory_device::memory_device_name;

/// Returns a summary of the memory of a process on a device as JSON.
pub fn memory_summary_json(analysis: &Analysis, place: MemoryPlace) -> Value {
    let peak = analysis.memory_timeline().peak(analysis, place);
    let holders: Vec<Value> = peak
        .holders
        .iter()
        .map(|holder| {
            json!({
                "owner": holder_name(analysis, holder),
                "category": memory_category_name(holder.category),
                "bytes": holder.bytes,
                "blocks": holder.blocks,
                "preexisting": is_preexisting(holder.origin),
                "stack": frame_texts(analysis, holder.stack),
            })
        })
        .collect();
    json!({
        "device": memory_device_name(place.device),
        "process": place.process,
        "points": points(analysis, place).count(),
        "peak_ns": peak.time.map(|time| time.0),
        "peak": by_category(&peak, &peak.bytes),
        "peak_bytes": peak.total(),
        "end": by_category(&peak, &peak.at_end),
        "end_bytes": peak.total_at_end(),
        "precision": peak.precision().name(),
        "categories_known": peak.are_categories_known,
        "unseen": peak.unseen.map(|unseen| json!({
            "what": unseen_name(unseen),
            "peak_bytes": unseen.at_peak,
            "end_bytes": unseen.at_end,
        })),
        "untimed": {
            "blocks": peak.untimed.blocks,
            "bytes": peak.untimed.bytes,
        },
        "holders": holders,
    })
}

/// Returns the name of memory that the allocator counts but no block of the trace accounts for.
pub fn unseen_name(unseen: UnseenMemory) -> &'static str {
    if unseen.is_from_before {
        "before the window"
    } else {
        "not in the trace"
    }
}

/// Returns the bytes in each category by name. If categories are not known, all but `Unknown` are
/// null rather than zero.
fn by_category(peak: &MemoryPeak, bytes: &CategoryBytes) -> Value {
    let is_known = |category| peak.are_categories_known || category == MemoryCategory::Unknown;
    let pairs = MemoryCategory::ALL.into_iter().zip(bytes);
    let pairs = pairs.map(|(category, &bytes)| {
        let bytes = is_known(category).then_some(bytes);
        (memory_category_name(category).into(), bytes.into())
    });
    Value::Object(pairs.collect())
}

/// Returns the operator that allocated the blocks of a holder, or a phrase if there is none.
pub fn holder_name(analysis: &Analysis, holder: &MemoryHolder) -> String {
    if let Some(name) = holder.owner {
        return analysis.profile().strings().text(name).into();
    }
    let name = match holder.origin {
        MemoryOrigin::Window => "outside of operators",
        MemoryOrigin::Before => "before the window",
        MemoryOrigin::NotTold => "before the window, or by a thread whose memory was not recorded",
        MemoryOrigin::Total => "in blocks that the file does not list",
    };
    name.into()
}

/// Returns whether blocks were allocated before the window; `None` if that is not known.
const fn is_preexisting(origin: MemoryOrigin) -> Option<bool> {
    match origin {
        MemoryOrigin::Window => Some(false),
        MemoryOrigin::Before => Some(true),
        MemoryOrigin::NotTold | MemoryOrigin::Total => None,
    }
}

/// Returns the visible frames of a stack, innermost first.
pub fn frame_texts(analysis: &Analysis, stack: StackId) -> Vec<&str> {
    let profile = analysis.profile();
    shown_frames(profile, stack)
        .map(|frame| profile.strings().text(frame))
        .collect()
}
