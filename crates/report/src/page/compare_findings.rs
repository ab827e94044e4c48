//! The findings of two profiles side by side, those whose price changed most first.

use mindprof_answers::{Advice, Finding};

use super::table::{Cell, Kind, Table, column};
use crate::sentence::sentence;

/// The outcome of a rule in one of the profiles.
#[derive(Clone, Copy, Debug)]
enum Outcome<'a> {
    Found(&'a Finding),
    Clean,
    /// The recording lacks data that the rule needs.
    Unknown(&'static str),
    /// Another finding covers the work, or others are more valuable.
    Unlisted,
}

impl<'a> Outcome<'a> {
    fn of(advice: &'a Advice, rule: &str) -> Self {
        if let Some(found) = advice.findings.iter().find(|one| one.rule.id == rule) {
            return Self::Found(found);
        }
        if let Some(unknown) = advice.unknown.iter().find(|one| one.rule == rule) {
            return Self::Unknown(unknown.missing);
        }
        if advice.clean.contains(&rule) {
            Self::Clean
        } else {
            Self::Unlisted
        }
    }

    /// Returns the price as a fraction of a step, if it is known.
    fn share(self) -> Option<f64> {
        match self {
            Self::Found(finding) => (finding.share > 0.0).then_some(finding.share),
            Self::Clean => Some(0.0),
            Self::Unknown(_) | Self::Unlisted => None,
        }
    }
}

/// Returns the findings of both profiles. One that the other profile cannot tell is neither new nor
/// gone.
pub(super) fn findings_table(before: &Advice, after: &Advice) -> Table {
    let mut rules: Vec<&Finding> = after.findings.iter().collect();
    let is_known = |rule: &str| after.findings.iter().any(|one| one.rule.id == rule);
    let gone = before.findings.iter();
    rules.extend(gone.filter(|one| !is_known(one.rule.id)));
    let mut rows: Vec<(f64, Vec<Cell>)> = rules
        .into_iter()
        .map(|finding| row(finding, before, after))
        .collect();
    rows.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    Table {
        id: "compare-findings",
        caption: "Findings, by how much more or less mending them would save now".into(),
        columns: vec![
            column("Finding", Kind::Name, ""),
            column(
                "Change",
                Kind::Points,
                "The share now minus the share before, in percentage points.",
            ),
            column(
                "Saves before",
                Kind::Share,
                "The share of a step that mending it would have saved before.",
            ),
            column(
                "Saves now",
                Kind::Share,
                "The share of a step that mending it would save now.",
            ),
            column("State", Kind::Text, "Whether only one profile has it."),
        ],
        rows: rows.into_iter().map(|(_, cells)| cells).collect(),
        sorted_by: None,
    }
}

/// Returns the row of a finding, and the size of its change.
fn row(finding: &Finding, before: &Advice, after: &Advice) -> (f64, Vec<Cell>) {
    let rule = finding.rule.id;
    let outcomes = [Outcome::of(before, rule), Outcome::of(after, rule)];
    let shares = outcomes.map(Outcome::share);
    let change = match shares {
        [Some(before), Some(after)] => Some(after - before),
        [None, _] | [_, None] => None,
    };
    let text = format!("{} [{rule}]", sentence(finding.rule.cause));
    let position = after.findings.iter().position(|one| one.rule.id == rule);
    let name = match position {
        Some(position) => Cell::Link(text, format!("detail?kind=finding&name={position}")),
        None => Cell::text(text),
    };
    let number = |share: Option<f64>| share.map_or(Cell::Empty, Cell::Number);
    let cells = vec![
        name,
        number(change),
        price(outcomes[0]),
        price(outcomes[1]),
        Cell::text(state(outcomes)),
    ];
    (change.map_or(-1.0, f64::abs), cells)
}

fn price(outcome: Outcome<'_>) -> Cell {
    match outcome {
        Outcome::Found(finding) => Cell::price(finding),
        Outcome::Clean | Outcome::Unknown(_) | Outcome::Unlisted => Cell::Empty,
    }
}

/// Returns what became of a finding, in words.
fn state(outcomes: [Outcome<'_>; 2]) -> String {
    match outcomes {
        [Outcome::Clean, _] => "new".into(),
        [_, Outcome::Clean] => "gone".into(),
        [Outcome::Unknown(missing), _] => format!("cannot tell before: {missing}"),
        [_, Outcome::Unknown(missing)] => format!("cannot tell now: {missing}"),
        [Outcome::Unlisted, _] => "not listed before: less valuable, or a part of another".into(),
        [_, Outcome::Unlisted] => "not listed now: less valuable, or a part of another".into(),
        [Outcome::Found(_), Outcome::Found(_)] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use mindprof_answers::{Confidence, RULES, Unknown};
    use mindprof_model::Nanos;

    use super::*;

    /// Returns a finding of the rule at a position.
    fn finding(rule: usize, share: f64) -> Finding {
        Finding {
            rule: RULES[rule],
            share,
            low: share,
            high: share,
            time: Nanos::ZERO,
            confidence: Confidence::High,
            place: None,
            module: None,
            events: Vec::new(),
            count: 0,
            per_step: 0.0,
            recorded: Nanos::ZERO,
            bytes: None,
            name: None,
            remedy: "",
            merged: Vec::new(),
        }
    }

    /// Returns the states of the findings, in the order of the table.
    fn states(before: &Advice, after: &Advice) -> Vec<(String, String)> {
        let table = findings_table(before, after);
        let rows = table.json()["rows"].as_array().unwrap().clone();
        let text = |cell: &serde_json::Value| cell.as_str().or(cell[0].as_str()).unwrap().into();
        let rows = rows.iter().map(|row| (text(&row[0]), text(&row[4])));
        rows.collect()
    }

    #[test]
    fn findings_are_sorted_by_their_change_and_unknown_ones_are_not_new() {
        let before = Advice {
            findings: vec![finding(0, 0.5), finding(1, 0.04), finding(2, 0.1)],
            clean: vec![RULES[3].id],
            unknown: vec![Unknown {
                rule: RULES[4].id,
                missing: "it has no stacks",
            }],
            ..Advice::default()
        };
        let after = Advice {
            findings: vec![finding(0, 0.1), finding(3, 0.02), finding(4, 0.9)],
            clean: vec![RULES[1].id],
            unknown: vec![Unknown {
                rule: RULES[2].id,
                missing: "it has no shapes",
            }],
            ..Advice::default()
        };
        let found = states(&before, &after);
        let expected = [
            (0, ""),
            (1, "gone"),
            (3, "new"),
            (4, "cannot tell before: it has no stacks"),
            (2, "cannot tell now: it has no shapes"),
        ];
        for ((name, state), (rule, wanted)) in found.iter().zip(expected) {
            assert!(name.ends_with(&format!("[{}]", RULES[rule].id)), "{name}");
            assert_eq!(state, wanted);
        }
        assert_eq!(found.len(), expected.len());
    }
}
