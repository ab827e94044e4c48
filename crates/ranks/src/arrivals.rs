//! The rank that came last to each collective, and how long the others waited.
//!
//! ```text
//! rank 0    |---- waits ----|--transfer--|
//! rank 1          |- waits -|--transfer--|
//! rank 2                    |--transfer--|      came last
//! ```

use mindprof_model::Nanos;

use crate::clocks::Clocks;
use crate::collectives::CollectiveKind;
use crate::matched::{Match, Matches};
use crate::summary::RankSummary;

/// One collective on the common clock.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) group: usize,
    pub(crate) kind: CollectiveKind,
    pub(crate) bytes: u64,
    pub(crate) step: Option<u64>,
    pub(crate) sequence: Option<u64>,
    /// The number of ranks that took part and have a clock.
    pub(crate) ranks: usize,
    /// The position of the rank that came last.
    pub(crate) last: usize,
    /// The time between the first and the last start.
    pub(crate) skew: Nanos,
    /// The time from the last start to the end of the rank that came last.
    pub(crate) transfer: Nanos,
    /// The sum of the waits of all ranks.
    pub(crate) wait: Nanos,
    /// The time between the first and the last end.
    pub(crate) end_spread: Nanos,
    /// The sums over all ranks of the exposed time that is certainly transfer, and of the exposed
    /// time that may be.
    pub(crate) exposed_transfer: (Nanos, Nanos),
    /// The sum over all ranks of the time that is hidden behind computing.
    pub(crate) hidden: Nanos,
}

/// Puts all collectives on the common clock, in linear time. Those of fewer than two ranks are left
/// out, and those with a rank whose clock is not known: it may be the one that the others wait for,
/// and their wait would be taken for transfer.
pub(crate) fn arrivals(
    summaries: &[&RankSummary],
    matches: &Matches<'_>,
    clocks: &Clocks,
) -> Vec<Arrival> {
    let found = matches.list.iter();
    found
        .filter_map(|found| arrival(summaries, found, clocks))
        .collect()
}

fn arrival(summaries: &[&RankSummary], found: &Match<'_>, clocks: &Clocks) -> Option<Arrival> {
    let members = found.members.iter().map(|&(rank, collective)| {
        let start = clocks.at(summaries, rank, collective.start)?;
        let end = clocks.at(summaries, rank, collective.end)?;
        Some((start, end, rank, collective))
    });
    let members: Vec<_> = members.collect::<Option<_>>()?;
    if members.len() < 2 {
        return None;
    }
    let &(last_start, last_end, last, _) =
        members.iter().max_by_key(|member| (member.0, member.2))?;
    let first_start = members.iter().map(|member| member.0).min()?;
    let (first_end, final_end) = members.iter().fold((last_end, last_end), |ends, member| {
        (ends.0.min(member.1), ends.1.max(member.1))
    });
    let mut sums = Sums::default();
    for &(start, _, _, collective) in &members {
        let wait = nanos(last_start - start).min(collective.duration());
        let transfer = collective.duration().saturating_sub(wait);
        sums.wait = sums.wait.saturating_add(wait);
        let certain = collective.exposed.saturating_sub(wait);
        let possible = collective.exposed.min(transfer);
        sums.least = sums.least.saturating_add(certain);
        sums.most = sums.most.saturating_add(possible);
        let hidden = collective.duration().saturating_sub(collective.exposed);
        sums.hidden = sums.hidden.saturating_add(hidden);
    }
    Some(Arrival {
        group: found.group,
        kind: found.kind,
        bytes: found.bytes,
        step: found.step,
        sequence: found.sequence,
        ranks: members.len(),
        last,
        skew: nanos(last_start - first_start),
        transfer: nanos(last_end - last_start),
        wait: sums.wait,
        end_spread: nanos(final_end - first_end),
        exposed_transfer: (sums.least, sums.most),
        hidden: sums.hidden,
    })
}

#[derive(Debug, Default)]
struct Sums {
    wait: Nanos,
    least: Nanos,
    most: Nanos,
    hidden: Nanos,
}

fn nanos(time: i128) -> Nanos {
    Nanos(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
}
