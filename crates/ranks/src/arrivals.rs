//! The rank that came last to each collective, and how long the others waited.
//!
//! ```text
//! rank 0    |---- waits ----|--transfer--|
//! rank 1          |- waits -|--transfer--|
//! rank 2                    |--transfer--|      came last
//! ```

use std::cmp::Reverse;

use mindprof_model::Nanos;

use crate::clocks::Clocks;
use crate::collectives::CollectiveKind;
use crate::exposed::Exposed;
use crate::matched::{Match, Matches};
use crate::median::median;
use crate::summary::RankSummary;

/// Transfers are not told from waits if the ends are apart by this part of the transfers.
const HIDING_PART: u128 = 5;

/// One collective on the common clock.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) group: usize,
    pub(crate) kind: CollectiveKind,
    /// The size of the message, or zero if it is not known.
    pub(crate) bytes: u64,
    pub(crate) step: Option<u64>,
    pub(crate) sequence: Option<u64>,
    /// Whether every rank of the group took part and has a clock. Otherwise others may have come
    /// later, and only the order of those that are there is known.
    pub(crate) is_whole: bool,
    /// The positions of the ranks that took part and have a clock, and how much later than the median
    /// rank each of them came.
    pub(crate) ranks: Vec<(usize, Nanos)>,
    /// The position of the rank that came last, the first of equal ones.
    pub(crate) last: usize,
    /// The positions of the ranks that came as late, as far as the clocks can tell, with the last.
    pub(crate) late: Vec<usize>,
    /// The time between the first and the last start.
    pub(crate) skew: Nanos,
    /// The time from the last start to the end of the rank that came last.
    pub(crate) transfer: Nanos,
    /// The sum of the waits of all ranks.
    pub(crate) wait: Nanos,
    /// The sum over all ranks of the waits in which they do nothing else.
    pub(crate) exposed_wait: Nanos,
    /// The sum over all ranks of the exposed time.
    pub(crate) exposed: Nanos,
    /// The time between the first and the last end.
    pub(crate) end_spread: Nanos,
    /// The sums over all ranks of the exposed time that is certainly transfer, and of the exposed
    /// time that may be.
    pub(crate) exposed_transfer: (Nanos, Nanos),
    /// The sum over all ranks of the time that is hidden behind computing.
    pub(crate) hidden: Nanos,
}

impl Arrival {
    /// Returns the size of the message, if it is known.
    pub(crate) fn known_bytes(&self) -> Option<u64> {
        Some(self.bytes).filter(|&bytes| bytes > 0)
    }
}

/// Puts all collectives on the common clock, in linear time. Those with fewer than two ranks that
/// have a clock are left out. `noise` is a skew that the clocks may feign.
pub(crate) fn arrivals(
    summaries: &[&RankSummary],
    matches: &Matches<'_>,
    clocks: &Clocks,
    noise: Nanos,
) -> Vec<Arrival> {
    let exposed = Exposed::build(summaries);
    let found = matches.list.iter();
    found
        .filter_map(|found| {
            let mut arrival = arrival(summaries, found, (clocks, noise), &exposed)?;
            arrival.is_whole = arrival.ranks.len() as u64 == matches.groups[found.group].size;
            Some(arrival)
        })
        .collect()
}

fn arrival(
    summaries: &[&RankSummary],
    found: &Match<'_>,
    (clocks, noise): (&Clocks, Nanos),
    exposed: &Exposed,
) -> Option<Arrival> {
    let members: Vec<_> = found
        .members
        .iter()
        .filter_map(|&(rank, collective)| {
            let start = clocks.at(summaries, rank, collective.start)?;
            let end = clocks.at(summaries, rank, collective.end)?;
            Some((start, end, rank, collective))
        })
        .collect();
    if members.len() < 2 {
        return None;
    }
    let &(last_start, last_end, last, _) = members
        .iter()
        .max_by_key(|member| (member.0, Reverse(member.2)))?;
    let first_start = members.iter().map(|member| member.0).min()?;
    let (first_end, final_end) = members.iter().fold((last_end, last_end), |ends, member| {
        (ends.0.min(member.1), ends.1.max(member.1))
    });
    let mut starts: Vec<i128> = members.iter().map(|member| member.0).collect();
    let middle = median(&mut starts)?;
    let mut sums = Sums::default();
    for &(start, _, rank, collective) in &members {
        let own = |part: Nanos| exposed.own(rank, collective, part);
        let wait = nanos(last_start - start).min(collective.duration());
        let transfer = collective.duration().saturating_sub(wait);
        sums.wait = sums.wait.saturating_add(wait);
        let certain = own(collective.exposed.saturating_sub(wait));
        let possible = own(collective.exposed.min(transfer));
        let waited = own(collective.exposed.min(wait));
        sums.exposed_wait = sums.exposed_wait.saturating_add(waited);
        sums.exposed = sums.exposed.saturating_add(own(collective.exposed));
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
        is_whole: false,
        ranks: members
            .iter()
            .map(|member| (member.2, nanos(member.0 - middle)))
            .collect(),
        last,
        late: members
            .iter()
            .filter(|member| nanos(last_start - member.0) <= noise)
            .map(|member| member.2)
            .collect(),
        skew: nanos(last_start - first_start),
        transfer: nanos(last_end - last_start),
        wait: sums.wait,
        exposed_wait: sums.exposed_wait,
        exposed: sums.exposed,
        end_spread: nanos(final_end - first_end),
        exposed_transfer: (sums.least, sums.most),
        hidden: sums.hidden,
    })
}

/// Returns whether collectives end so far apart that the time after the last start says little about
/// the transfer of data: a rank may have its data and still wait for a processor.
pub(crate) fn do_ends_hide_transfers(arrivals: &[Arrival]) -> bool {
    let ending = || {
        arrivals
            .iter()
            .filter(|arrival| arrival.kind.is_synchronizing())
    };
    let sum = |of: fn(&Arrival) -> Nanos| -> u128 {
        ending().map(|arrival| u128::from(of(arrival).0)).sum()
    };
    let (apart, transfer) = (
        sum(|arrival| arrival.end_spread),
        sum(|arrival| arrival.transfer),
    );
    apart * HIDING_PART >= transfer
}

#[derive(Debug, Default)]
struct Sums {
    wait: Nanos,
    exposed_wait: Nanos,
    exposed: Nanos,
    least: Nanos,
    most: Nanos,
    hidden: Nanos,
}

fn nanos(time: i128) -> Nanos {
    Nanos(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
}
