//! The ranks of a process group as a short text, such as `0-7` or `0-56:8`.
//!
//! A list of ranks in each of many ranks would grow with the square of their number, a text of runs
//! does not.

use std::fmt::Write;

/// Returns the text of ranks: runs of equally spaced ranks, joined by commas.
///
/// ```text
/// 0 1 2 3        0-3
/// 0 8 16 24      0-24:8
/// 0 1 2 9        0-2,9
/// ```
pub(crate) fn text_of(ranks: &[u64]) -> String {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    ranks.dedup();
    let mut text = String::new();
    let mut rest = &ranks[..];
    while let [first, after @ ..] = rest {
        let stride = after.first().map_or(1, |second| second - first);
        let run = run_length(rest, stride);
        // Two ranks that are apart are no run.
        let run = if run == 2 && stride > 1 && rest.len() > 2 {
            1
        } else {
            run
        };
        let comma = if text.is_empty() { "" } else { "," };
        let last = rest[run - 1];
        let written = match (run, stride) {
            (1, _) => write!(text, "{comma}{first}"),
            (_, 1) => write!(text, "{comma}{first}-{last}"),
            (_, _) => write!(text, "{comma}{first}-{last}:{stride}"),
        };
        written.expect("a string takes any text");
        rest = &rest[run..];
    }
    text
}

/// The most ranks of a group whose ranks are not listed one by one.
pub(crate) const MOST_RANKS: u64 = 1 << 20;

/// Returns the text of all ranks of a job, or `None` if their number is absurd.
pub(crate) fn all_ranks(size: u64) -> Option<String> {
    match size {
        0 => None,
        1 => Some("0".into()),
        2..=MOST_RANKS => Some(format!("0-{}", size - 1)),
        _ => None,
    }
}

/// Returns the number of ranks in a text that [`text_of`] returned. Zero if they are not known.
pub(crate) fn count_of(text: &str) -> u64 {
    let runs = text.split(',').filter(|run| !run.is_empty());
    runs.fold(0, |sum, run| {
        sum.saturating_add(run_count(run).unwrap_or(0))
    })
}

fn run_count(run: &str) -> Option<u64> {
    let (ends, stride) = run.split_once(':').unwrap_or((run, "1"));
    let (first, last) = ends.split_once('-').unwrap_or((ends, ends));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let stride: u64 = stride.parse().ok()?;
    Some(
        last.checked_sub(first)?
            .checked_div(stride)?
            .saturating_add(1),
    )
}

fn run_length(ranks: &[u64], stride: u64) -> usize {
    let pairs = ranks.windows(2);
    1 + pairs.take_while(|pair| pair[1] - pair[0] == stride).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_written_short() {
        for (ranks, text) in [
            (&[][..], ""),
            (&[3], "3"),
            (&[1, 0], "0-1"),
            (&[0, 1, 2, 3], "0-3"),
            (&[0, 8, 16, 24], "0-24:8"),
            (&[0, 4], "0-4:4"),
            (&[0, 1, 2, 9], "0-2,9"),
            (&[0, 5, 6, 7], "0,5-7"),
        ] {
            assert_eq!(text_of(ranks), text);
            assert_eq!(count_of(text), ranks.len() as u64, "{text}");
        }
    }
}
