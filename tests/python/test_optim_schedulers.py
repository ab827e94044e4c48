"""Schedulers against what torch did, and torch's errors and warnings."""

from __future__ import annotations

import warnings
from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import optim
from mindtorch_v2.nn import Parameter
from mindtorch_v2.optim import lr_scheduler

from tests.python.host_fixtures import scheduler_cases
from tests.python.host_fixtures.compare import RECORDED, near

loose: Any = lr_scheduler  # for calls that the types forbid


def sgd(momentum: float = 0.9) -> optim.SGD:
    return optim.SGD([Parameter(torch.ones(2))], lr=0.1, momentum=momentum)


@pytest.mark.parametrize("name", list(scheduler_cases.SCHEDULERS))
def test_rates_over_thirty_epochs_are_those_of_torch(name: str) -> None:
    expected = RECORDED["schedulers"][name]
    found = scheduler_cases.run_scheduler(torch, name)
    assert found["rates"] == expected["rates"]
    assert found["momenta"] == expected["momenta"]


@pytest.mark.parametrize("name", list(scheduler_cases.SCHEDULERS))
def test_state_is_that_of_torch(name: str) -> None:
    expected = RECORDED["schedulers"][name]["state"]
    found = scheduler_cases.run_scheduler(torch, name)["state"]
    assert list(found) == list(expected)
    assert found == near(expected)


def test_a_loaded_scheduler_goes_on_where_the_saved_one_was() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    for _ in range(5):
        optimizer.step()
        scheduler.step()
    other = lr_scheduler.StepLR(optimizer, 7)
    other.load_state_dict(scheduler.state_dict())
    assert other.get_last_lr() == [0.025]
    assert (other.step_size, other.last_epoch) == (2, 5)
    other.step()
    assert other.get_last_lr() == [0.0125]


def test_the_state_of_callable_objects_is_kept() -> None:
    class Halving:
        def __init__(self, power: int) -> None:
            self.power = power

        def __call__(self, epoch: int) -> float:
            return 0.5 ** (self.power * epoch)

    state = lr_scheduler.LambdaLR(sgd(), Halving(3)).state_dict()
    assert state["lr_lambdas"] == [{"power": 3}]
    function = Halving(1)
    lr_scheduler.LambdaLR(sgd(), function).load_state_dict(state)
    assert function.power == 3


def test_a_step_before_the_optimizer_is_warned_about() -> None:
    scheduler = lr_scheduler.StepLR(sgd(), 3)
    with pytest.warns(
        UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"
    ):
        scheduler.step()


def test_the_right_order_is_silent() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()
        scheduler.step()


def test_steps_before_the_scheduler_was_made_do_not_count() -> None:
    optimizer = sgd()
    optimizer.step()
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()


def test_a_replaced_step_is_warned_about() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    optimizer.__dict__["step"] = lambda: None
    with pytest.warns(UserWarning, match="has been overridden after learning rate scheduler"):
        scheduler.step()


def test_asking_for_the_next_rate_is_warned_about() -> None:
    scheduler = lr_scheduler.ExponentialLR(sgd(), 0.5)
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        scheduler.get_lr()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: lr_scheduler.StepLR(o, 2), 0.001),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.5), 0.1 * 0.5**4),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 8), 0.05),
        (lambda o: lr_scheduler.LambdaLR(o, lambda epoch: epoch), 0.4),
    ],
)
def test_an_epoch_can_be_named(make: Any, expected: float) -> None:
    optimizer = sgd()
    scheduler = make(optimizer)
    optimizer.step()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
        scheduler.step(4)
    assert scheduler.get_last_lr() == [pytest.approx(expected)]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o: loose.StepLR(3, 3), TypeError, "int is not an Optimizer"),
        (
            lambda o: lr_scheduler.StepLR(o, 3, last_epoch=2),
            KeyError,
            "param 'initial_lr' is not specified in param_groups[0]",
        ),
        (
            lambda o: lr_scheduler.LambdaLR(o, [abs, abs]),
            ValueError,
            "Expected 1 lr_lambdas, but got 2",
        ),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0), ValueError, "You must define either"),
        (
            lambda o: lr_scheduler.OneCycleLR(o, 1.0, -3),
            ValueError,
            "Expected positive integer total_steps, but got -3",
        ),
        (
            lambda o: lr_scheduler.OneCycleLR(o, 1.0, 10, pct_start=2),
            ValueError,
            "Expected float between 0 and 1 pct_start, but got 2",
        ),
        (
            lambda o: loose.OneCycleLR(o, 1.0, 10, anneal_strategy="x"),
            ValueError,
            "instead got x",
        ),
        (
            lambda o: lr_scheduler.OneCycleLR(o, [1.0, 2.0], 10),
            ValueError,
            "max_lr has 2 values, param_groups has 1.",
        ),
        (
            lambda o: lr_scheduler.OneCycleLR(optim.Adagrad([Parameter(torch.ones(1))]), 1.0, 10),
            ValueError,
            "optimizer must support momentum or beta1",
        ),
        (
            lambda o: loose.MultiplicativeLR(o, 3),
            TypeError,
            "lr_lambda should be a function, but got int",
        ),
        (lambda o: lr_scheduler.ConstantLR(o, 1.5), ValueError, "expected to be between 0 and 1"),
        (lambda o: lr_scheduler.LinearLR(o, 0), ValueError, "greater than 0 and less or equal to"),
        (lambda o: lr_scheduler.LinearLR(o, 1, 2), ValueError, "Ending multiplicative factor"),
        (
            lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0),
            ValueError,
            "Expected positive integer T_0, but got 0",
        ),
        (
            lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 0),
            ValueError,
            "Expected integer T_mult >= 1, but got 0",
        ),
        (
            lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3).step(-1),
            ValueError,
            "Expected non-negative epoch, but got -1",
        ),
        (
            lambda o: loose.CyclicLR(o, 0.1, 1.0, mode="x"),
            ValueError,
            "mode is invalid and scale_fn is None",
        ),
        (lambda o: loose.CyclicLR(3, 0.1, 1.0), TypeError, "int is not an Optimizer"),
        (
            lambda o: lr_scheduler.CyclicLR(optim.Adagrad([Parameter(torch.ones(1))]), 0.1, 1.0),
            ValueError,
            "optimizer must support momentum or beta1",
        ),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be"),
        (lambda o: loose.ReduceLROnPlateau(o, "mid"), ValueError, "mode mid is unknown!"),
        (
            lambda o: loose.ReduceLROnPlateau(o, threshold_mode="x"),
            ValueError,
            "threshold mode x is unknown!",
        ),
        (
            lambda o: lr_scheduler.ReduceLROnPlateau(o, min_lr=[0.1, 0.2]),
            ValueError,
            "expected 1 min_lrs, got 2",
        ),
        (
            lambda o: lr_scheduler.SequentialLR(o, [], []),
            ValueError,
            "expects at least one scheduler, but got no scheduler",
        ),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 2)], [3]),
            ValueError,
            "number of schedulers provided to be one more",
        ),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ReduceLROnPlateau(o)], []),
            ValueError,
            "does not support `ReduceLROnPlateau` scheduler",
        ),
        (
            lambda o: lr_scheduler.ChainedScheduler(
                [lr_scheduler.StepLR(o, 2), lr_scheduler.StepLR(sgd(), 2)]
            ),
            ValueError,
            "expects all schedulers to belong to the same optimizer",
        ),
        (
            lambda o: lr_scheduler.ChainedScheduler([]),
            ValueError,
            "expects at least one scheduler to be chained",
        ),
        (
            lambda o: loose.ChainedScheduler([3], o),
            TypeError,
            "should have `optimizer` as its attribute",
        ),
    ],
)
def test_wrong_arguments_raise_what_torch_raises(
    make: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        make(sgd())
    assert message in str(raised.value)


@pytest.mark.parametrize("name", list(scheduler_cases.SCHEDULERS))
def test_every_scheduler_goes_on_from_its_state(name: str) -> None:
    def made() -> tuple[optim.SGD, Any]:
        groups = [{"params": [Parameter(torch.ones(1))]} for _ in range(2)]
        optimizer = optim.SGD(groups, lr=0.1, momentum=0.9)
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return optimizer, scheduler_cases.SCHEDULERS[name](lr_scheduler, optimizer)

    def step(optimizer: optim.SGD, scheduler: Any, epochs: range) -> None:
        optimizer.step()
        for epoch in epochs:
            plateau = name.startswith("ReduceLROnPlateau")
            scheduler.step(*([scheduler_cases.metric(epoch)] if plateau else []))

    optimizer, scheduler = made()
    step(optimizer, scheduler, range(9))
    other, loaded = made()
    loaded.load_state_dict(scheduler.state_dict())
    other.load_state_dict(optimizer.state_dict())
    step(optimizer, scheduler, range(9, 20))
    step(other, loaded, range(9, 20))
    assert loaded.get_last_lr() == scheduler.get_last_lr()
    assert other.param_groups[0]["momentum"] == optimizer.param_groups[0]["momentum"]


def test_a_new_group_takes_part_in_plateaus() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.02)
    optimizer.add_param_group({"params": [Parameter(torch.ones(1))], "lr": 0.4})
    for _ in range(2):
        scheduler.step(1.0)
    assert scheduler.get_last_lr() == pytest.approx([0.02, 0.04])
    strict = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0, 0.0])
    optimizer.add_param_group({"params": [Parameter(torch.ones(1))]})
    strict.step(1.0)
    with pytest.raises(RuntimeError, match="The number of param groups in the `optimizer`"):
        strict.step(1.0)


def test_restarts_can_go_to_a_part_of_an_epoch() -> None:
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 4, T_mult=2)
    scheduler.step(13.5)
    assert (scheduler.T_i, scheduler.T_cur, scheduler.last_epoch) == (16, 1.5, 13)
    scheduler.step(2)
    assert scheduler.get_last_lr() == pytest.approx([0.05])


def test_one_cycle_ends() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=3)
    optimizer.step()
    for _ in range(3):
        scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        scheduler.step()


def test_one_cycle_turns_the_first_beta_of_adam() -> None:
    optimizer = optim.Adam([Parameter(torch.ones(1))])
    lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=10)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.999)
