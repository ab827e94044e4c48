//! Indices are turned into one-hot vectors, and these are multiplied with a matrix.

use mindprof_model::{DType, EventId, Input, ThreadId};
use rustc_hash::FxHashMap;

use super::products::Product;
use crate::advice::Confidence;
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

/// Products with fewer classes are about as fast as selecting rows by index.
const MANY: u64 = 256;

/// Operators that only describe a tensor anew.
const VIEWS: [&str; 11] = [
    "aten::t",
    "aten::transpose",
    "aten::permute",
    "aten::view",
    "aten::reshape",
    "aten::flatten",
    "aten::unsqueeze",
    "aten::squeeze",
    "aten::contiguous",
    "aten::numpy_T",
    "aten::detach",
];

/// One-hot vectors, as the rows of a matrix.
#[derive(Clone, Copy)]
struct OneHot {
    event: EventId,
    rows: u64,
    classes: u64,
}

impl OneHot {
    /// Returns the vectors that a conversion of `sizes` takes from the operator `event`, if these
    /// sizes are those of its indices and of its classes.
    fn of(facts: &Facts<'_>, event: EventId, sizes: &[u64]) -> Option<Self> {
        let [rows @ .., classes] = sizes else {
            return None;
        };
        let mut inputs = facts.inputs(event);
        let is_rows = matches!(inputs.next(), Some(Input::Tensor { dims, .. }) if dims == rows);
        // Without a number of classes, the largest index decides.
        let is_classes = match inputs.next() {
            Some(Input::Int(number)) if number >= 0 => number.cast_unsigned() == *classes,
            _ => true,
        };
        (is_rows && is_classes).then(|| Self {
            event,
            rows: rows.iter().product(),
            classes: *classes,
        })
    }

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

/// A product with one-hot vectors.
struct Multiplied {
    one_hot: OneHot,
    conversion: EventId,
    product: EventId,
    is_sum: bool,
}

fn check(facts: &Facts<'_>) -> Outcome {
    let is_made = |name: &str| name == "aten::one_hot";
    if facts.named(&facts.operators, is_made).is_empty() {
        return Outcome::Clean;
    }
    if !facts.has_shapes() {
        return Outcome::Unknown("shapes were not recorded: record_shapes=True");
    }
    let multiplied = multiplied(facts);
    if multiplied.is_empty() {
        return Outcome::Clean;
    }
    let sums = multiplied.iter().filter(|it| it.is_sum).count();
    let mut events: Vec<EventId> = multiplied
        .iter()
        .flat_map(|it| [it.one_hot.event, it.conversion, it.product])
        .collect();
    events.extend(gradients(facts, &multiplied));
    events.sort_unstable();
    let mut mending = Mending::default();
    mending.remove(facts.all_inside(&events));
    let blamed = facts.blamed(events.iter().map(|&id| (id, facts.work(id))));
    Outcome::Found(Evidence {
        events,
        mending,
        blame: blamed.map(Blame::Frame),
        remedy: (sums * 2 > multiplied.len()).then_some(SUMS),
        // The sizes tell that a product takes the vectors, not the tensors themselves.
        confidence: Some(Confidence::Medium),
        ..Evidence::default()
    })
}

/// Returns the products that come right after the vectors that they take: vectors that are used in
/// another way, such as those of targets, are followed by other operators.
///
/// ```text
/// CPU   |one_hot|to|t|matmul|         a product with the vectors
/// CPU   |one_hot|to|mul|sum|          a loss
/// ```
fn multiplied(facts: &Facts<'_>) -> Vec<Multiplied> {
    let is_view = facts.names(|name| VIEWS.contains(&name));
    let is_product = facts.names(Product::is_name);
    let name = |id: EventId| facts.profile.event(id).name.index();
    let mut found = Vec::new();
    // By thread, the last indices, and the vectors that were converted from them.
    let mut made: FxHashMap<ThreadId, EventId> = FxHashMap::default();
    let mut converted: FxHashMap<ThreadId, (OneHot, EventId)> = FxHashMap::default();
    let operators = &facts.operators;
    for (place, &outer) in operators.iter().enumerate() {
        if facts.around(outer).is_in_operator || is_view[name(outer)] {
            continue;
        }
        let thread = facts.profile.event(outer).thread;
        let (event, vectors) = (made.remove(&thread), converted.remove(&thread));
        if facts.name(outer) == "aten::one_hot" {
            made.insert(thread, outer);
            continue;
        }
        let end = facts.profile.event(outer).end();
        // The operators inside of it, and itself.
        let mut inside = operators[place..].iter().copied().take_while(|&id| {
            let event = facts.profile.event(id);
            event.start < end || id == outer
        });
        if let Some(event) = event {
            let Some((DType::I64, sizes)) = facts.tensors(outer).first().copied() else {
                continue;
            };
            let one_hot = OneHot::of(facts, event, sizes);
            let one_hot = one_hot.filter(|it| it.classes >= MANY && converts(facts, outer));
            if let Some(one_hot) = one_hot {
                converted.insert(thread, (one_hot, outer));
            }
        } else if let Some((one_hot, conversion)) = vectors
            && facts.around(outer).step == facts.around(conversion).step
            && let Some(product) = inside.find(|&id| is_product[name(id)])
            && let Some(sizes) = Product::of(facts, product)
            && (one_hot.selects(&sizes) || one_hot.sums(&sizes))
        {
            found.push(Multiplied {
                one_hot,
                conversion,
                product,
                is_sum: !one_hot.selects(&sizes),
            });
        }
    }
    found
}

/// Returns whether an operator only converts its tensor: a product with a number does, too.
fn converts(facts: &Facts<'_>, id: EventId) -> bool {
    match facts.name(id) {
        "aten::to" | "aten::_to_copy" | "aten::type_as" => true,
        "aten::mul" => {
            let is_number = |input: &Input<'_>| match input {
                Input::Tensor { dims, .. } => dims.is_empty(),
                _ => true,
            };
            facts.inputs(id).nth(1).as_ref().is_none_or(is_number)
        }
        _ => false,
    }
}

/// Returns the products of the backward pass: the first of fitting sizes after each product of the
/// forward pass, with its stack.
fn gradients(facts: &Facts<'_>, multiplied: &[Multiplied]) -> Vec<EventId> {
    let is_product = facts.names(Product::is_name);
    let stack = |id: EventId| facts.analysis.charged_stack(id);
    let mut found = Vec::new();
    for it in multiplied {
        let after = (facts.operators).partition_point(|&id| id <= it.product);
        let step = facts.around(it.product).step;
        let in_step = facts.operators[after..].iter().copied();
        let mut in_step = in_step.take_while(|&id| facts.around(id).step == step);
        found.extend(in_step.find(|&id| {
            let is_product = is_product[facts.profile.event(id).name.index()];
            is_product
                && stack(id) == stack(it.product)
                && Product::of(facts, id).is_some_and(|sizes| {
                    if it.is_sum {
                        it.one_hot.selects(&sizes)
                    } else {
                        it.one_hot.sums(&sizes)
                    }
                })
        }));
    }
    found.dedup();
    found
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
                time.takes(DType::I64, &[&[32, 64, CLASSES]]);
                time.operator("aten::to", |time| time.op("aten::_to_copy", 50));
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
                time.op("aten::to", 50);
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
        let profile = multiplying([ROWS, CLASSES], [CLASSES, 64], 10);
        assert!(found(profile, "one-hot-product").share < 0.1);
        let profile = training(4, |time, _| {
            time.op("aten::relu", 5_000);
            time.takes(DType::I64, &[&[16]]);
            time.op("aten::one_hot", 2);
            time.takes(DType::I64, &[&[16, CLASSES]]);
            time.op("aten::to", 2);
            time.takes(DType::F32, &[&[16, CLASSES], &[CLASSES, 64]]);
            time.op("aten::mm", 10);
        });
        assert_eq!(outcome(profile, "one-hot-product"), "clean");
    }

    /// Draws vectors with `between` after them, and a product of fitting sizes then.
    fn using(classes: usize, between: &[&str]) -> Profile {
        training(4, |time, _| {
            time.takes(DType::I64, &[&[ROWS]]);
            time.op("aten::one_hot", 100);
            time.takes(DType::I64, &[&[ROWS, classes]]);
            time.op("aten::to", 100);
            for name in between {
                time.op(name, 10);
            }
            time.takes(DType::F32, &[&[ROWS, classes], &[classes, 64]]);
            time.op("aten::mm", 1_000);
        })
    }

    #[test]
    fn views_between_are_no_other_use() {
        found(
            using(CLASSES, &["aten::view", "aten::t"]),
            "one-hot-product",
        );
    }

    // The targets of a loss; the next product of these sizes is that of a layer, forward or backward.
    #[test]
    fn one_hot_targets_are_clean() {
        let profile = using(CLASSES, &["aten::mul", "aten::sum"]);
        assert_eq!(outcome(profile, "one-hot-product"), "clean");
        let profile = multiplying([ROWS, 256], [256, 64], 900);
        assert_eq!(outcome(profile, "one-hot-product"), "clean");
    }

    #[test]
    fn few_classes_are_clean() {
        assert_eq!(outcome(using(20, &[]), "one-hot-product"), "clean");
    }

    // Only a mask is made of the vectors, and the features are integers too.
    #[test]
    fn integers_of_other_classes_are_clean() {
        let profile = training(4, |time, _| {
            time.takes(DType::I64, &[&[ROWS]]);
            time.op("aten::one_hot", 100);
            time.takes(DType::I64, &[&[ROWS, 10]]);
            time.op("aten::to", 10);
            time.takes(DType::I64, &[&[ROWS, CLASSES]]);
            time.op("aten::to", 100);
            time.takes(DType::F32, &[&[ROWS, CLASSES], &[CLASSES, 64]]);
            time.op("aten::mm", 1_000);
        });
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
