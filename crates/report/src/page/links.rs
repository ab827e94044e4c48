//! Arrows between drawn events: from launches to kernels, from forward operators to backward nodes,
//! and from operators to the kernels that count as theirs.

use mindprof_analyze::{Analysis, FlowKind, FlowSide};
use mindprof_model::EventId;
use rustc_hash::FxHashMap;

use super::columns::Columns;
use super::events::DrawnEvents;

/// Writes the arrows as pairs of positions, in columns named after their meaning.
pub(super) fn write_links(analysis: &Analysis, drawn: &DrawnEvents, columns: &mut Columns) {
    let profile = analysis.profile();
    let mut tails: FxHashMap<(bool, u32), EventId> = FxHashMap::default();
    let mut heads: Vec<(bool, u32, u32)> = Vec::new();
    let mut owners: Vec<(u32, u32)> = Vec::new();
    for id in drawn.ids() {
        let event = profile.event(id);
        if let Some(from) = drawn.position(id) {
            let kernels = analysis.kernels(id).iter();
            let kernels = kernels.filter_map(|&kernel| drawn.position(kernel));
            owners.extend(kernels.map(|to| (from, to)));
        }
        let Some(end) = analysis.flows().end_at(id, event) else {
            continue;
        };
        let is_launch = end.kind == FlowKind::Launch;
        match end.side {
            FlowSide::Tail => {
                tails.insert((is_launch, end.number), id);
            }
            FlowSide::Head => {
                if let Some(position) = drawn.position(id) {
                    heads.push((is_launch, end.number, position));
                }
            }
        }
    }
    let arrows = |wanted: bool| -> Vec<(u32, u32)> {
        let heads = heads.iter().filter(|(is_launch, ..)| *is_launch == wanted);
        heads
            .filter_map(|(is_launch, number, to)| {
                let tail = tails.get(&(*is_launch, *number))?;
                Some((drawn.position(*tail)?, *to))
            })
            .collect()
    };
    push_pairs(columns, ["launch_from", "launch_to"], arrows(true));
    push_pairs(columns, ["backward_from", "backward_to"], arrows(false));
    push_pairs(columns, ["owner_from", "owner_to"], owners);
}

fn push_pairs(columns: &mut Columns, names: [&'static str; 2], mut pairs: Vec<(u32, u32)>) {
    pairs.sort_unstable_by_key(|&(_, to)| to);
    let (from, to): (Vec<u64>, Vec<u64>) = pairs
        .into_iter()
        .map(|(from, to)| (u64::from(from), u64::from(to)))
        .unzip();
    columns.push_differences(names[0], &from);
    columns.push_differences(names[1], &to);
}
