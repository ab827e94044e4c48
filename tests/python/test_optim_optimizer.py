"""What all optimizers share: groups, errors, hooks, closures, state."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import optim
from mindtorch_v2.nn import Parameter
from mindtorch_v2.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

loose: Any = optim  # for calls that the types forbid


def parameter(count: int = 2) -> Parameter:
    return Parameter(torch.ones(count))


def _sum_of_squares(param: Parameter) -> torch.Tensor:
    loss = (param * param).sum()
    loss.backward()
    return loss


def step_of_matrix(**options: Any) -> None:
    param = Parameter(torch.ones(2, 3))
    param.grad = torch.ones(2, 3)
    loose.Muon([param], **options).step()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: loose.SGD(p), TypeError, "but got torch.FloatTensor"),
        (lambda p: loose.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda p: loose.SGD([3]), TypeError, "one of the params is int"),
        (lambda p: loose.SGD([p * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: loose.SGD([{"params": {p}}]), TypeError, "ordered collections"),
        (lambda p: loose.SGD([("a", p), parameter()]), ValueError, "with/without names"),
        (
            lambda p: loose.SGD([{"params": [p]}, {"params": [p]}]),
            ValueError,
            "some parameters appear in more than one parameter group",
        ),
        (lambda p: loose.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: loose.SGD([p], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda p: loose.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda p: loose.SGD([p], differentiable=True), NotImplementedError, "differentiable"),
        (lambda p: loose.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (
            lambda p: loose.AdamW([p], betas=(0.1, 2.0)),
            ValueError,
            "Invalid beta parameter at index 1: 2.0",
        ),
        (lambda p: loose.RMSprop([p], alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda p: loose.Adagrad([p], lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
        (lambda p: loose.SGD([p]).add_param_group(3), TypeError, "param_group must be a dict"),
        (lambda p: loose.Adadelta([p], rho=1.1), ValueError, "Invalid rho value: 1.1"),
        (lambda p: loose.Adamax([p], betas=(0, 1)), ValueError, "at index 1: 1"),
        (lambda p: loose.NAdam([p], momentum_decay=-0.2), ValueError, "momentum_decay value: -0.2"),
        (lambda p: loose.RAdam([p], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda p: loose.ASGD([p], lambd=-1), ValueError, "Invalid lambd value: -1"),
        (lambda p: loose.Rprop([p], etas=(1.5, 2)), ValueError, "Invalid eta values: 1.5, 2"),
        (lambda p: loose.LBFGS([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (
            lambda p: loose.LBFGS([{"params": [p]}, {"params": [parameter()]}]),
            ValueError,
            "LBFGS doesn't support per-parameter options (parameter groups)",
        ),
        (
            lambda p: loose.LBFGS([p], line_search_fn="other").step(lambda: _sum_of_squares(p)),
            RuntimeError,
            "only 'strong_wolfe' is supported",
        ),
        (
            lambda p: loose.Adafactor([p], lr=-1),
            ValueError,
            "Learning rate should be >= 0 but is: -1",
        ),
        (
            lambda p: loose.Adafactor([p], beta2_decay=0.5),
            ValueError,
            "beta2_decay should be <= 0 but is: 0.5",
        ),
        (
            lambda p: loose.Adafactor([p], eps=(-1, 0)),
            ValueError,
            "epsilon1 should be >= 0 but is: -1",
        ),
        (
            lambda p: loose.Adafactor([p], eps=(None, -1)),
            ValueError,
            "epsilon2 should be >= 0 but is: -1",
        ),
        (
            lambda p: loose.Adafactor([p], d=0.5),
            ValueError,
            "Clipping threshold d should be >= 1 but is: 0.5",
        ),
        (
            lambda p: loose.Adafactor([p], weight_decay=-1),
            ValueError,
            "weight_decay should be >= 0 but is: -1",
        ),
        (lambda p: loose.Muon([p], lr=-1), ValueError, "Learning rate should be >= 0 but is: -1"),
        (lambda p: loose.Muon([p], momentum=-1), ValueError, "momentum should be >= 0 but is: -1"),
        (
            lambda p: loose.Muon([p], weight_decay=-1),
            ValueError,
            "weight decay should be >= 0 but is: -1",
        ),
        (
            lambda p: loose.Muon([p], adjust_lr_fn="other"),
            ValueError,
            "Adjust learning rate function other is not supported",
        ),
        (
            lambda p: loose.Muon([p]),
            ValueError,
            "Muon only supports 2D parameters whereas we found a parameter with size: "
            "torch.Size([2])",
        ),
        (
            lambda p: step_of_matrix(ns_steps=100),
            ValueError,
            "Number of steps must be less than 100 for computational efficiency",
        ),
        (
            lambda p: step_of_matrix(ns_coefficients=(1.0, 2.0)),
            ValueError,
            "Coefficients must be a tuple of exactly 3 values",
        ),
        (lambda p: loose.SparseAdam([p], eps=0), ValueError, "Invalid epsilon value: 0"),
        (
            lambda p: (_sum_of_squares(p), loose.SparseAdam([p]).step()),
            RuntimeError,
            "SparseAdam does not support dense gradients, please consider Adam instead",
        ),
    ],
)
def test_wrong_arguments_raise_what_torch_raises(
    make: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        make(parameter())
    assert message in str(raised.value)


def test_what_is_left_out_says_so() -> None:
    assert not hasattr(optim, "swa_utils")
    with pytest.raises(AttributeError, match="has no 'swa_utils', which torch has"):
        _ = loose.swa_utils
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = loose.other


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_adafactor_divides_by_no_less_than_the_spacing_of_the_dtype(dtype: Any) -> None:
    spacing = {torch.bfloat16: 2.0**-7, torch.float32: 2.0**-23, torch.float64: 2.0**-52}[dtype]
    param = Parameter(torch.ones(2).to(dtype))
    param.grad = torch.full((2,), spacing / 4).to(dtype)
    optim.Adafactor([param], lr=0.5).step()
    assert param.tolist() == [1 - 0.5 / 4] * 2


def test_groups_have_options_of_their_own() -> None:
    first, second, third = parameter(), parameter(), parameter()
    groups: list[dict[str, Any]] = [{"params": first}, {"params": [second], "lr": 0.5}]
    optimizer = optim.SGD(groups, lr=0.1)
    optimizer.add_param_group({"params": [third], "momentum": 0.9})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5, 0.1]
    assert [group["momentum"] for group in optimizer.param_groups] == [0, 0, 0.9]
    for param in (first, second, third):
        param.grad = torch.ones(2)
    optimizer.step()
    assert [param[0].item() for param in (first, second, third)] == pytest.approx([0.9, 0.5, 0.9])


def test_named_parameters_keep_their_names() -> None:
    optimizer = optim.SGD([("weight", parameter()), ("bias", parameter())])
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["params"] == [0, 1]


def test_a_parameter_given_twice_is_warned_about() -> None:
    param = parameter()
    with pytest.warns(UserWarning, match="a parameter group with duplicate parameters"):
        optim.SGD([param, param])


def test_a_set_of_parameters_is_warned_about() -> None:
    with pytest.warns(FutureWarning, match="organized in ordered collections"):
        optim.SGD({parameter()})


def test_parameters_without_gradient_are_left_alone() -> None:
    with_gradient, without = parameter(), parameter()
    optimizer = optim.Adam([with_gradient, without])
    with_gradient.grad = torch.ones(2)
    optimizer.step()
    assert without.tolist() == [1.0, 1.0]
    assert list(optimizer.state_dict()["state"]) == [0]


def test_a_closure_runs_with_gradients_and_its_result_is_returned() -> None:
    param = parameter()
    optimizer = optim.SGD([param], lr=0.5)

    def closure() -> Any:
        assert torch.is_grad_enabled()
        optimizer.zero_grad()
        loss = (param * 3).sum()
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    assert loss.item() == 6.0
    assert param.tolist() == [-0.5, -0.5]
    assert param.requires_grad


def test_hooks_see_each_step_and_can_be_removed() -> None:
    optimizer = optim.SGD([parameter()])
    seen: list[Any] = []
    before = optimizer.register_step_pre_hook(
        lambda own, args, kwargs: seen.append(("before", own is args[0], kwargs))
    )
    after = optimizer.register_step_post_hook(
        lambda own, args, kwargs: seen.append(("after", own is args[0], kwargs))
    )
    optimizer.step(closure=None)
    assert seen == [("before", True, {"closure": None}), ("after", True, {"closure": None})]
    before.remove()
    after.remove()
    optimizer.step()
    assert len(seen) == 2


def test_a_hook_may_change_the_arguments_of_a_step() -> None:
    optimizer = optim.SGD([parameter()])
    optimizer.register_step_pre_hook(lambda own, args, kwargs: ((own, lambda: 7), {}))
    assert optimizer.step() == 7


def test_a_hook_that_returns_something_else_is_refused() -> None:
    optimizer = optim.SGD([parameter()])
    optimizer.register_step_pre_hook(lambda own, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kw"):
        optimizer.step()


def test_hooks_run_once_when_a_subclass_calls_super() -> None:
    class Mine(optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    optimizer = Mine([parameter()])
    seen: list[str] = []
    optimizer.register_step_post_hook(lambda own, args, kwargs: seen.append(type(own).__name__))
    optimizer.step()
    assert seen == ["Mine"]


def test_hooks_of_every_optimizer_come_before_and_after_its_own() -> None:
    seen: list[str] = []
    optimizer = optim.SGD([parameter()])
    optimizer.register_step_pre_hook(lambda *given: seen.append("own pre"))
    optimizer.register_step_post_hook(lambda *given: seen.append("own post"))
    pre = register_optimizer_step_pre_hook(lambda *given: seen.append("pre"))
    post = register_optimizer_step_post_hook(lambda *given: seen.append("post"))
    with pre, post:
        optimizer.step()
    optimizer.step()
    assert seen == ["pre", "own pre", "own post", "post", "own pre", "own post"]


def test_hooks_see_and_change_the_state_that_is_saved() -> None:
    optimizer = optim.SGD([parameter()], lr=0.1)
    seen: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda own: seen.append("second"))
    first = optimizer.register_state_dict_pre_hook(lambda own: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda own, saved: saved.update(note=len(saved)))
    optimizer.register_state_dict_post_hook(lambda own, saved: {**saved, "more": 1})
    saved = optimizer.state_dict()
    assert seen == ["first", "second"]
    assert (saved["note"], saved["more"]) == (2, 1)
    first.remove()
    optimizer.state_dict()
    assert seen == ["first", "second", "second"]


def test_hooks_see_and_change_the_state_that_is_loaded() -> None:
    optimizer = optim.SGD([parameter()], lr=0.1)
    saved = optimizer.state_dict()

    def faster(own: optim.Optimizer, given: dict[str, Any]) -> dict[str, Any]:
        assert own is optimizer
        return {**given, "param_groups": [{**given["param_groups"][0], "lr": 0.7}]}

    seen: list[float] = []
    optimizer.register_load_state_dict_pre_hook(faster)
    optimizer.register_load_state_dict_post_hook(lambda own: seen.append(own.param_groups[0]["lr"]))
    optimizer.load_state_dict(saved)
    assert seen == [0.7]
    assert saved["param_groups"][0]["lr"] == 0.1


def test_names_stay_when_a_state_without_them_is_loaded() -> None:
    saved = optim.SGD([parameter()], lr=0.5).state_dict()
    optimizer = optim.SGD([("weight", parameter())])
    optimizer.load_state_dict({**saved, "state": {0: {}, 7: {"of": "another"}}})
    assert optimizer.param_groups[0]["param_names"] == ["weight"]
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.state_dict()["param_groups"][0]["params"] == [0]


def test_lbfgs_stops_where_the_gradient_vanishes() -> None:
    param = parameter()
    optimizer = optim.LBFGS([param], line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        return _sum_of_squares(param)

    assert float(optimizer.step(closure)) == 2.0
    evaluated = optimizer.state[param]["func_evals"]
    assert param.abs().max().item() < 1e-6
    optimizer.step(closure)
    assert optimizer.state[param]["func_evals"] == evaluated + 1


def test_a_state_dict_that_does_not_fit_is_refused() -> None:
    optimizer = optim.SGD([parameter()])
    with pytest.raises(ValueError, match="a different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})


def test_loading_copies_options_and_shares_state() -> None:
    param = parameter()
    saved_from = optim.SGD([param], lr=0.5, momentum=0.9)
    param.grad = torch.ones(2)
    saved_from.step()
    saved = saved_from.state_dict()
    optimizer = optim.SGD([param], lr=0.1)
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.param_groups[0]["params"][0] is param
    saved["param_groups"][0]["lr"] = 9
    saved["state"][0]["momentum_buffer"].zero_()
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.state[param]["momentum_buffer"].tolist() == [0.0, 0.0]


def test_the_base_class_does_not_step() -> None:
    with pytest.raises(NotImplementedError):
        optim.Optimizer([parameter()], {}).step()


def test_lbfgs_refuses_a_second_group_when_it_steps() -> None:
    first, second = parameter(), parameter()
    optimizer = optim.LBFGS([first])
    optimizer.add_param_group({"params": [second]})
    with pytest.raises(AssertionError, match="Expected exactly one param_group, but got 2"):
        optimizer.step(lambda: _sum_of_squares(first))


def test_groups_with_and_without_names_are_not_mixed() -> None:
    named: Any = [("name", parameter())]
    for first, second, manner in (
        (named, [parameter()], "without"),
        ([parameter()], named, "with"),
    ):
        optimizer = optim.SGD(first, lr=0.1)
        with pytest.raises(ValueError, match=f"cannot add param group {manner} names"):
            optimizer.add_param_group({"params": second})


def test_rprop_moves_a_parameter_without_dimensions() -> None:
    single = Parameter(torch.tensor(1.5))
    single.grad = torch.tensor(1.0)
    optim.Rprop([single], lr=0.1).step()
    assert single.item() == pytest.approx(1.4)
