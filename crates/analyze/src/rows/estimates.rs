//! Estimates of rows, if the recording holds only a share of the operators.
//!
//! The recorder draws outermost operators at random, each with everything inside it. With the
//! probability `p`, every drawn one stands for `1 / p` operators. The drawn trees are independent of
//! each other, so the error of a sum is known from the contributions of the trees.

use mindprof_model::{Category, EventId, Nanos, OperatorLimit};
use rustc_hash::FxHashMap;

use crate::analysis::Analysis;
use crate::rows::averages::Average;
use crate::rows::sums::Sums;

/// How far an estimate may be off: with a probability of 95 %, the truth is not further away.
///
/// [`averages`](crate::averages) attaches it to the rows of a profile that holds a share of the
/// operators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// The margin of the number of events.
    pub count: f64,
    /// The margin of the CPU time, including that of the children.
    pub cpu_total: Nanos,
    /// The margin of the self CPU time.
    pub self_cpu_total: Nanos,
}

/// The quantile of the normal distribution for 95 % on both sides.
const QUANTILE: f64 = 1.96;

/// The contributions of one tree to one row: the count, the total and the self time.
type Contribution = [f64; 3];

/// The facts about a profile whose rows are estimates.
pub(super) struct Estimates {
    share: f64,
    /// The rows of ranges and other events that are no operators.
    rows_around: FxHashMap<EventId, usize>,
    contributions: FxHashMap<(EventId, usize), Contribution>,
    /// The time of drawn operators directly inside the events of each of these rows.
    inside: FxHashMap<usize, Nanos>,
}

impl Estimates {
    /// Returns an empty collection, or `None` if the profile holds all operators that it should.
    pub(super) fn of(analysis: &Analysis) -> Option<Self> {
        let limit = OperatorLimit::read(analysis.profile().metadata())?;
        Some(Self {
            share: limit.share?,
            rows_around: FxHashMap::default(),
            contributions: FxHashMap::default(),
            inside: FxHashMap::default(),
        })
    }

    /// Notes an event of a row, with the sums of the row before and after it. Events come in start order.
    pub(super) fn add(
        &mut self,
        analysis: &Analysis,
        id: EventId,
        row: usize,
        [before, after]: [&Sums; 2],
    ) {
        let profile = analysis.profile();
        let event = profile.event(id);
        if event.category != Category::Operator {
            self.rows_around.insert(id, row);
            return;
        }
        let tree = outermost_operator(analysis, id);
        let grown = [
            (after.count - before.count) as f64,
            (after.cpu_total.0 - before.cpu_total.0) as f64,
            (after.self_cpu_total.0 - before.self_cpu_total.0) as f64,
        ];
        self.contribute(tree, row, grown);
        let parent = analysis.tree().parent(id);
        if let Some(&row) = parent.and_then(|parent| self.rows_around.get(&parent)) {
            let inside = self.inside.entry(row).or_default();
            *inside = *inside + event.duration;
            self.contribute(tree, row, [0.0, 0.0, event.duration.0 as f64]);
        }
    }

    fn contribute(&mut self, tree: EventId, row: usize, grown: Contribution) {
        let sums = self.contributions.entry((tree, row)).or_default();
        for (sum, grown) in sums.iter_mut().zip(grown) {
            *sum += grown;
        }
    }

    /// Turns the sums of rows into estimates: those of operators stand for all operators, and the
    /// operators that were left out take their time off the self time of what is around them.
    pub(super) fn apply(self, rows: &mut [Average]) {
        let mut squares = vec![[0.0; 3]; rows.len()];
        for ((_, row), contribution) in &self.contributions {
            for (square, part) in squares[*row].iter_mut().zip(contribution) {
                *square += part * part;
            }
        }
        let weight = 1.0 / self.share;
        for (index, (row, squares)) in rows.iter_mut().zip(squares).enumerate() {
            if row.category == Category::Operator {
                row.sums.scale(weight);
            } else if let Some(&inside) = self.inside.get(&index) {
                let left_out = Nanos((inside.0 as f64 * (weight - 1.0)).round() as u64);
                row.sums.self_cpu_total = row.sums.self_cpu_total.saturating_sub(left_out);
            } else {
                continue;
            }
            let factor = QUANTILE * (1.0 - self.share).sqrt() * weight;
            let [count, total, own] = squares.map(|square| factor * square.sqrt());
            row.margin = Some(Margin {
                count,
                cpu_total: Nanos(total.round() as u64),
                self_cpu_total: Nanos(own.round() as u64),
            });
        }
    }
}

/// Returns the outermost operator around an operator, which may be itself.
fn outermost_operator(analysis: &Analysis, id: EventId) -> EventId {
    let mut outermost = id;
    let mut around = analysis.tree().parent(id);
    while let Some(ancestor) = around {
        if analysis.profile().event(ancestor).category == Category::Operator {
            outermost = ancestor;
        }
        around = analysis.tree().parent(ancestor);
    }
    outermost
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Part, Profile, ProfileBuilder, Timeline};

    use super::*;
    use crate::rows::averages::{GroupBy, averages};

    /// ```text
    /// step   |--------------------------------|   100 times
    /// mul      |--------| add inside |--|           every `nth` of them is recorded
    /// ```
    fn steps(nth: usize) -> Profile {
        let profile = Timeline::draw(|time| {
            for step in 0..100 {
                time.annotation("step", |time| {
                    time.idle(10);
                    if step % nth == 0 {
                        time.scope("aten::mul", |time| {
                            time.idle(20);
                            time.op("aten::add", 30);
                        });
                    } else {
                        time.idle(50);
                    }
                });
            }
        });
        let mut part = Part::from(profile);
        if nth > 1 {
            let share = format!("share={}", 1.0 / nth as f64);
            let limit = OperatorLimit::parse([share.as_str()]).unwrap();
            limit.write(&mut part.metadata);
        }
        ProfileBuilder::from(part).build().unwrap()
    }

    fn rows(profile: Profile) -> Vec<(String, u64, u64, u64)> {
        let analysis = Analysis::build(profile);
        let rows = averages(&analysis, GroupBy::default()).rows;
        let row = |row: Average| {
            let sums = row.sums;
            (row.key, sums.count, sums.cpu_total.0, sums.self_cpu_total.0)
        };
        rows.into_iter().map(row).collect()
    }

    #[test]
    fn a_recorded_operator_stands_for_those_that_were_left_out() {
        let whole = rows(steps(1));
        assert_eq!(whole[0], ("step".to_owned(), 100, 6_000, 1_000));
        assert_eq!(whole[1], ("aten::mul".to_owned(), 100, 5_000, 2_000));
        for nth in [2, 4, 10, 20] {
            assert_eq!(rows(steps(nth)), whole, "one of {nth}");
        }
    }

    #[test]
    fn margins_are_those_of_independent_draws() {
        let analysis = Analysis::build(steps(4));
        let rows = averages(&analysis, GroupBy::default()).rows;
        // 25 draws of probability 1/4: the estimate of 100 has the variance (1 - p) / p² · 25.
        let expected = 1.96 * (0.75_f64 / 0.0625 * 25.0).sqrt();
        let mul = rows[1].margin.unwrap();
        assert!((mul.count - expected).abs() < 1e-9, "{}", mul.count);
        assert_eq!(mul.cpu_total, Nanos((expected * 50.0).round() as u64));
        assert_eq!(mul.self_cpu_total, Nanos((expected * 20.0).round() as u64));
        let step = rows[0].margin.unwrap();
        assert_eq!((step.count, step.cpu_total), (0.0, Nanos(0)));
        assert_eq!(step.self_cpu_total, Nanos((expected * 50.0).round() as u64));
    }

    #[test]
    fn rows_of_a_whole_recording_have_no_margins() {
        let analysis = Analysis::build(steps(1));
        let rows = averages(&analysis, GroupBy::default()).rows;
        assert!(rows.iter().all(|row| row.margin.is_none()));
    }
}
