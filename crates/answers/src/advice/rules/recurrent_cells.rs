//! A recurrent network is called cell by cell, where it could run over the whole sequence.

use mindprof_model::{Category, EventId, Nanos};

use super::module_loops::ModuleLoop;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "recurrent-cells",
    cause: "a recurrent network is called cell by cell",
    remedy: "if its inputs are known before, run nn.LSTM, nn.GRU or nn.RNN over the whole sequence in one call",
    price: Price::replay(0.05, (0.5, 1.4)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

/// The modules of torch that compute one step of time.
const CELLS: [&str; 3] = ["LSTMCell", "GRUCell", "RNNCell"];

/// The cost of calling an operator, which a whole sequence has once.
const CALL: Nanos = Nanos(10_000);

/// The part of the arithmetic that is left, because a sequence has larger products.
const LEFT: f32 = 0.5;

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("calls of modules were not recorded: with_stack=True");
    }
    let Some(cells) = ModuleLoop::find(facts, is_cell) else {
        return Outcome::Clean;
    };
    let mut mending = Mending::default();
    for id in cells.events(facts, None) {
        mending.scale(id, left(facts, id));
    }
    Outcome::Found(Evidence {
        mending,
        blame: Some(Blame::Frame(cells.frame)),
        events: cells.calls,
        ..Evidence::default()
    })
}

/// Returns whether a module is a cell. Sampled calls have no number of the module at the end.
fn is_cell(module: &str) -> bool {
    let is_number = |rest: &str| rest.chars().all(|c| c == '_' || c.is_ascii_digit());
    let mut rests = CELLS.iter().filter_map(|cell| module.strip_prefix(cell));
    rests.any(is_number)
}

/// Returns the part of an event's own time that a whole sequence needs.
fn left(facts: &Facts<'_>, id: EventId) -> f32 {
    let own = facts.analysis.tree().self_time(id);
    let computes = facts.profile.event(id).category == Category::Kernel
        || facts.analysis.device_times().total(id) == Nanos::ZERO;
    match facts.profile.event(id).category {
        Category::Kernel | Category::Operator if computes => {
            LEFT * own.saturating_sub(CALL).0 as f32 / own.0.max(1) as f32
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    #[test]
    fn cells_have_a_number_or_none() {
        assert!(super::is_cell("LSTMCell") && super::is_cell("GRUCell_12"));
        assert!(!super::is_cell("LSTMCellWithAttention_0"));
    }

    fn running(module: &str, times: usize, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.op("aten::mm", 1_000);
            time.call("train.py(8): forward", |time| {
                for _ in 0..times {
                    time.call(&format!("nn.Module: {module}_0"), |time| {
                        time.idle(30);
                        time.op("aten::lstm_cell", micros);
                    });
                }
            });
        })
    }

    #[test]
    fn a_loop_over_cells_is_found() {
        let finding = found(running("LSTMCell", 50, 20), "recurrent-cells");
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.64);
    }

    // What the function does after the loop stays as it is.
    #[test]
    fn other_work_of_the_function_is_not_saved() {
        let profile = training(4, |time, _| {
            time.call("train.py(8): forward", |time| {
                for _ in 0..50 {
                    time.call("nn.Module: LSTMCell_0", |time| {
                        time.idle(30);
                        time.op("aten::lstm_cell", 10);
                    });
                }
                time.op("aten::mm", 2_000);
            });
        });
        assert_saves(&found(profile, "recurrent-cells"), 0.5);
    }

    #[test]
    fn a_few_cells_are_clean() {
        assert_eq!(
            outcome(running("LSTMCell", 6, 20), "recurrent-cells"),
            "clean"
        );
    }

    // A layer that is used again and again, with the output of the call before.
    #[test]
    fn other_modules_are_clean() {
        assert_eq!(
            outcome(running("Linear", 50, 20), "recurrent-cells"),
            "clean"
        );
    }
}
