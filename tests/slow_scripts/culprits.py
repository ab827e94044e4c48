"""What makes each of the scripts here slow: the function to change, and lines that name it."""

from typing import NamedTuple


class Culprit(NamedTuple):
    """The cause that a script has.

    Args:
        function: The function that the first screen has to name.
        words: Texts that the first screen has to contain as well.
    """

    function: str
    words: tuple[str, ...] = ()


CULPRITS = {
    "slow_dataset": Culprit("tokenize"),
    "slow_workers": Culprit("augment", ("workers",)),
    "item_metrics": Culprit("accuracy"),
    "loop_over_batch": Culprit("Scorer.forward"),
    "rebuilt_masks": Culprit("causal_mask"),
    "frozen_teacher": Culprit("teacher_targets"),
    "validation_in_step": Culprit("validate"),
    "double_precision": Culprit("normalize", ("float64",)),
    "contiguous_copies": Culprit("mix_channels"),
    "kept_graphs": Culprit("main", ("memory grows", "kept_graphs.py:2")),
    "recompilation": Culprit("scaled", ("compil",)),
    "parameter_optimizer": Culprit("Momentum.step"),
    "gradient_norms": Culprit("log_gradients"),
    "onehot_inputs": Culprit("encode"),
}
