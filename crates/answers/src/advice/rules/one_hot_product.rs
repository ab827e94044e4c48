//! Indices are turned into one-hot vectors, and these are multiplied with a matrix.

use mindprof_model::{DType, EventId, StackId};
use rustc_hash::FxHashMap;

use super::products::Product;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "one-hot-product",
    cause: "indices become one-hot vectors, which are multiplied with a matrix",
    remedy: "select the rows by index: nn.Embedding or F.embedding(indices, table), where table is linear.weight.t() of a Linear",
    price: Price::replay(0.03, (0.6, 1.05)),
    needs: &[EventKind::Cpu],
    check,
};

/// The remedy if most of the products sum the rows of each class.
const SUMS: &str =
    "add up the rows by index: torch.zeros(classes, width).index_add_(0, indices, x)";

/// One-hot vectors, as the rows of a matrix.
#[derive(Clone, Copy)]
struct OneHot {
    event: EventId,
    rows: u64,
    classes: u64,
}

impl OneHot {
    /// Returns whether a product selects rows by these vectors.
    fn selects(&self, product: &Product) -> bool {
        product.rows() == self.rows && product.inner == self.classes
    }

    /// Returns whether a product sums the rows of each class.
    fn sums(&self, product: &Product) -> bool {
        let classes = [product.rows(), product.columns];
        product.inner == self.rows && classes.contains(&self.classes)
    }
}

fn check(facts: &Facts<'_>) -> Outcome {
    let made = facts.named(&facts.operators, |name| name == "aten::one_hot");
    if made.is_empty() {
        return Outcome::Clean;
    }
    if !facts.has_shapes() {
        return Outcome::Unknown("shapes were not recorded: record_shapes=True");
    }
    let is_conversion = facts.names(|name| name == "aten::_to_copy");
    let is_product = facts.names(Product::is_name);
    let name = |id: EventId| facts.profile.event(id).name.index();
    let mut events: Vec<EventId> = Vec::new();
    let (mut selected, mut summed) = (0, 0);
    // By the stack of a product in the forward pass, which its backward work has too.
    let mut multiplied: FxHashMap<StackId, OneHot> = FxHashMap::default();
    // The last indices, and the vectors that were made of them but not multiplied yet.
    let mut indices: Option<(EventId, &[u64])> = None;
    let mut vectors: Option<(OneHot, EventId)> = None;
    for &id in &facts.operators {
        if facts.name(id) == "aten::one_hot" {
            indices = facts.tensors(id).first().map(|&(_, sizes)| (id, sizes));
        } else if is_conversion[name(id)] {
            let tensors = facts.tensors(id);
            let Some((event, sizes)) = indices else {
                continue;
            };
            if let Some(&(DType::I64, [rows @ .., classes])) = tensors.first()
                && rows == sizes
                && facts.around(id).step == facts.around(event).step
            {
                let (rows, classes) = (rows.iter().product(), *classes);
                let conversion = OneHot {
                    event,
                    rows,
                    classes,
                };
                vectors = Some((conversion, id));
            }
        } else if is_product[name(id)]
            && let Some(product) = Product::of(facts, id)
        {
            let stack = facts.analysis.charged_stack(id);
            if let Some((one_hot, conversion)) = vectors
                && (one_hot.selects(&product) || one_hot.sums(&product))
                && facts.around(id).step == facts.around(one_hot.event).step
            {
                if one_hot.selects(&product) {
                    selected += 1;
                } else {
                    summed += 1;
                }
                events.extend([one_hot.event, conversion, id]);
                multiplied.insert(stack, one_hot);
                vectors = None;
            } else if let Some(one_hot) = multiplied.get(&stack)
                && (one_hot.selects(&product) || one_hot.sums(&product))
            {
                events.push(id);
            }
        }
    }
    if events.is_empty() {
        return Outcome::Clean;
    }
    events.sort_unstable();
    let mut mending = Mending::default();
    mending.remove(facts.all_inside(&events));
    let blamed = facts.blamed(events.iter().map(|&id| (id, facts.work(id))));
    Outcome::Found(Evidence {
        events,
        mending,
        blame: blamed.map(Blame::Frame),
        remedy: (summed > selected).then_some(SUMS),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DType, Profile};

    use crate::advice::rules::kit::*;

    const ROWS: usize = 2_048;
    const CLASSES: usize = 2_000;

    /// Draws vectors of 32 times 64 indices, and a product that takes these matrices.
    fn multiplying(left: [usize; 2], right: [usize; 2], micros: u64) -> Profile {
        training(4, |time, _| {
            time.op("aten::relu", 1_000);
            time.call("model.py(4): forward", |time| {
                time.takes(DType::I64, &[&[32, 64]]);
                time.op("aten::one_hot", 10);
                time.operator("aten::to", |time| {
                    time.takes(DType::I64, &[&[32, 64, CLASSES]]);
                    time.op("aten::_to_copy", 50);
                });
                time.takes(DType::F32, &[&left, &right]);
                time.op("aten::mm", micros);
            });
            time.call("loss.py(9): loss", |time| {
                time.takes(DType::F32, &[&[ROWS, 64], &[64, CLASSES]]);
                time.op("aten::mm", 500);
            });
        })
    }

    #[test]
    fn a_product_that_selects_rows_is_found() {
        let profile = multiplying([ROWS, CLASSES], [CLASSES, 64], 940);
        let finding = found(profile, "one-hot-product");
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.4);
        assert!(finding.remedy.contains("nn.Embedding"));
    }

    #[test]
    fn a_product_that_sums_the_rows_of_classes_is_found() {
        let profile = multiplying([CLASSES, ROWS], [ROWS, 64], 940);
        let finding = found(profile, "one-hot-product");
        assert_saves(&finding, 0.4);
        assert!(finding.remedy.contains("index_add_"));
    }

    // The gradient of the matrix is a product with the vectors as well.
    #[test]
    fn the_product_of_the_backward_pass_is_saved_too() {
        let profile = training(4, |time, step| {
            let number = step as u32 * 10 + 1;
            time.op("aten::relu", 1_000);
            time.call("model.py(4): forward", |time| {
                time.takes(DType::I64, &[&[ROWS]]);
                time.op("aten::one_hot", 50);
                time.takes(DType::I64, &[&[ROWS, CLASSES]]);
                time.op("aten::_to_copy", 50);
                time.number(number);
                time.takes(DType::F32, &[&[ROWS, CLASSES], &[CLASSES, 64]]);
                time.op("aten::mm", 900);
            });
            let node = "autograd::engine::evaluate_function: MmBackward0";
            time.operator(node, |time| {
                time.node("MmBackward0", number, |time| {
                    time.takes(DType::F32, &[&[CLASSES, ROWS], &[ROWS, 64]]);
                    time.op("aten::mm", 2_000);
                });
            });
        });
        assert_saves(&found(profile, "one-hot-product"), 0.75);
    }

    #[test]
    fn a_short_product_is_clean() {
        let profile = multiplying([16, 20], [20, 64], 20);
        assert_eq!(outcome(profile, "one-hot-product"), "clean");
        let profile = training(4, |time, _| {
            time.op("aten::relu", 5_000);
            time.takes(DType::I64, &[&[16]]);
            time.op("aten::one_hot", 2);
            time.takes(DType::I64, &[&[16, 20]]);
            time.op("aten::_to_copy", 2);
            time.takes(DType::F32, &[&[16, 20], &[20, 64]]);
            time.op("aten::mm", 10);
        });
        assert_eq!(outcome(profile, "one-hot-product"), "clean");
    }

    // Targets of a loss, which is no product, and a product of other matrices.
    #[test]
    fn one_hot_targets_are_clean() {
        let profile = multiplying([ROWS, 256], [256, 64], 900);
        assert_eq!(outcome(profile, "one-hot-product"), "clean");
    }

    #[test]
    fn sizes_have_to_be_recorded() {
        let profile = training(4, |time, _| {
            time.op("aten::one_hot", 50);
            time.op("aten::mm", 900);
        });
        assert_eq!(outcome(profile, "one-hot-product"), "unknown");
    }
}
