"""Modules: registering, walking, saving, loading, converting, printing."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.ones(1))
        self.register_buffer("scratch", torch.ones(1), persistent=False)
        self.note = 3

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.scale


class Early(nn.Module):
    def __init__(self, act: Any) -> None:
        act(self)
        super().__init__()


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda m: setattr(m, "p", nn.Parameter(torch.ones(1))), "parameters"),
        (lambda m: setattr(m, "p", nn.Linear(1, 1)), "module"),
        (lambda m: m.register_buffer("b", torch.ones(1)), "buffer"),
        (lambda m: m.register_parameter("p", None), "parameter"),
    ],
)
def test_nothing_is_registered_before_init(act: Any, what: str) -> None:
    with pytest.raises(AttributeError) as raised:
        Early(act)
    assert str(raised.value) == f"cannot assign {what} before Module.__init__() call"


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (
            lambda m: setattr(m, "scale", torch.ones(2)),
            TypeError,
            "cannot assign 'torch.FloatTensor' as parameter 'scale' "
            "(torch.nn.Parameter or None expected)",
        ),
        (
            lambda m: setattr(m, "layer", 3),
            TypeError,
            "cannot assign 'int' as child module 'layer' (torch.nn.Module or None expected)",
        ),
        (
            lambda m: setattr(m, "seen", 3),
            TypeError,
            "cannot assign 'int' as buffer 'seen' (torch.nn.Buffer, torch.Tensor or None expected)",
        ),
        (
            lambda m: m.register_parameter("other", torch.ones(1)),
            TypeError,
            "cannot assign 'torch.FloatTensor' object to parameter 'other' "
            "(torch.nn.Parameter or None required)",
        ),
        (
            lambda m: m.register_buffer("other", 3),
            TypeError,
            "cannot assign 'int' object to buffer 'other' (torch Tensor or None required)",
        ),
        (lambda m: m.add_module("other", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.register_buffer("note", None), KeyError, "attribute 'note' already exists"),
        (
            lambda m: m.register_parameter("a.b", None),
            KeyError,
            'parameter name can\'t contain "."',
        ),
        (
            lambda m: m.add_module("a.b", None),
            KeyError,
            'module name can\'t contain ".", got: a.b',
        ),
        (lambda m: m.register_buffer("", None), KeyError, 'buffer name can\'t be empty string ""'),
        (
            lambda m: m.register_parameter(3, None),
            TypeError,
            "parameter name should be a string. Got int",
        ),
        (lambda m: m.absent, AttributeError, "'Model' object has no attribute 'absent'"),
        (lambda m: delattr(m, "absent"), AttributeError, "has no attribute 'absent'"),
        (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
        (
            lambda m: m.to(torch.int64),
            TypeError,
            "nn.Module.to only accepts floating point or complex dtypes, "
            "but got desired dtype=torch.int64",
        ),
        (lambda m: m.get_submodule("layer.x"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda m: m.get_parameter("note"), AttributeError, "`note` is not an nn.Parameter"),
        (lambda m: m.get_buffer("note"), AttributeError, "`note` is not a buffer"),
        (
            lambda m: nn.Module()(1),
            NotImplementedError,
            'Module [Module] is missing the required "forward" function',
        ),
    ],
)
def test_errors_are_those_of_torch(act: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        act(Model())
    assert message in (raised.value.args[0])


def test_members_are_walked_in_order_with_dotted_names() -> None:
    model = Model()
    assert [name for name, _ in model.named_parameters()] == ["scale", "layer.weight", "layer.bias"]
    assert [name for name, _ in model.named_parameters(recurse=False)] == ["scale"]
    assert next(name for name, _ in model.named_parameters(prefix="net")) == "net.scale"
    assert [name for name, _ in model.named_buffers()] == ["seen", "scratch"]
    assert [name for name, _ in model.named_modules()] == ["", "layer"]
    assert [name for name, _ in model.named_children()] == ["layer"]
    assert len(list(model.parameters())) == 3
    assert len(list(model.buffers())) == 2
    assert list(model.modules()) == [model, *model.children()]
    assert model.get_parameter("layer.weight") is model.layer.weight
    assert model.get_submodule("") is model


def test_shared_members_are_walked_once() -> None:
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, layer)
    assert len(list(model.parameters())) == 2
    assert len(list(model.named_modules(remove_duplicate=False))) == 3
    assert len(list(model.children())) == 1
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_a_member_changes_its_kind_when_another_is_assigned() -> None:
    model: Any = Model()
    model.seen = nn.Parameter(torch.ones(1))
    assert "seen" in dict(model.named_parameters())
    assert "seen" not in dict(model.named_buffers())
    model.note = nn.ReLU()
    assert "note" in dict(model.named_children())
    model.layer = None
    assert [name for name, _ in model.named_modules()] == ["", "note"]
    del model.note
    assert not hasattr(model, "note")


def test_members_are_listed_by_dir() -> None:
    assert {"layer", "scale", "seen", "note"} <= set(dir(Model()))


def test_modes_reach_all_modules() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout()))
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.train()
    assert all(module.training for module in model.modules())


def test_apply_calls_children_first() -> None:
    names: list[str] = []
    nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda m: names.append(type(m).__name__))
    assert names == ["ReLU", "Tanh", "Sequential"]


def test_requires_grad_and_zero_grad_reach_all_parameters() -> None:
    model: Any = Model()
    model(torch.ones(1, 2)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.zero_grad(set_to_none=False)
    assert all(parameter.grad.sum().item() == 0 for parameter in model.parameters())
    model.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())
    model.requires_grad_(False)
    assert not model(torch.ones(1, 2)).requires_grad


def test_conversion_changes_floating_point_tensors_only() -> None:
    model = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))
    before = list(model.parameters())
    before[0].grad = torch.ones(1, 1, 1, 1)
    assert model.to("cpu", torch.float32) is model
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    model.double()
    assert model[0].weight.grad.dtype == torch.float64
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}
    assert model[1].running_mean.dtype == torch.float64
    assert model[1].num_batches_tracked.dtype == torch.int64
    model.to("cpu", torch.float32)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert all(parameter.requires_grad for parameter in model.parameters())
    model.to(device="cpu").cpu().float()


def test_conversion_leaves_shared_parameters_shared() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    nn.Sequential(first, second).double()
    assert first.weight is second.weight


def test_a_state_dict_shares_memory_and_can_be_loaded() -> None:
    model, other = Model(), Model()
    state = model.state_dict()
    assert list(state) == ["scale", "seen", "layer.weight", "layer.bias"]
    assert not any(tensor.requires_grad for tensor in state.values())
    assert model.state_dict(keep_vars=True)["scale"] is model.scale
    assert next(iter(model.state_dict(prefix="net."))) == "net.scale"
    state["scale"].fill_(5)
    assert model.scale.tolist() == [5.0, 5.0]
    assert repr(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert other.scale.tolist() == [5.0, 5.0]
    assert other.layer.weight.tolist() == model.layer.weight.tolist()
    assert other.scale.requires_grad


def test_loading_lists_all_that_does_not_fit() -> None:
    state: dict[str, Any] = dict(Model().state_dict())
    state.update({"extra": torch.ones(1), "layer.more": 3, "scale": torch.ones(3)})
    state["layer.bias"] = 3
    del state["seen"]
    with pytest.raises(RuntimeError) as raised:
        Model().load_state_dict(state)
    assert str(raised.value) == (
        "Error(s) in loading state_dict for Model:\n"
        '\tMissing key(s) in state_dict: "seen". \n'
        '\tUnexpected key(s) in state_dict: "extra", "layer.more". \n'
        "\tsize mismatch for scale: copying a param with shape torch.Size([3]) from checkpoint, "
        "the shape in current model is torch.Size([2]).\n"
        '\tWhile copying the parameter named "layer.bias", expected torch.Tensor or Tensor-like '
        "object from checkpoint but received <class 'int'>"
    )


def test_loading_can_be_lenient() -> None:
    model = Model()
    found = model.load_state_dict({"scale": torch.zeros(2), "extra": torch.ones(1)}, strict=False)
    assert found.missing_keys == ["seen", "layer.weight", "layer.bias"]
    assert found.unexpected_keys == ["extra"]
    assert model.scale.tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        model.load_state_dict(3)  # type: ignore[arg-type]


def test_loading_can_take_over_the_tensors() -> None:
    model, values = Model(), torch.zeros(2)
    model.load_state_dict({"scale": values}, strict=False, assign=True)
    values.fill_(4)
    assert model.scale.tolist() == [4.0, 4.0]
    assert isinstance(model.scale, nn.Parameter)


def test_a_deep_copy_has_its_own_parameters() -> None:
    model = Model()
    copied = copy.deepcopy(model)
    with torch.no_grad():
        model.scale.fill_(9)
        model.seen.fill_(9)
    assert copied.scale.tolist() == [1.0, 1.0]
    assert copied.seen.tolist() == [1.0]
    assert copied.layer is not model.layer
    assert copied.layer.weight.tolist() == model.layer.weight.tolist()
    assert isinstance(copied.scale, nn.Parameter)
    assert copied.scale.requires_grad


def test_own_facts_are_printed() -> None:
    class Noted(nn.Module):
        def __init__(self, *children: nn.Module) -> None:
            super().__init__()
            for number, child in enumerate(children):
                self.add_module(f"part{number}", child)

        def extra_repr(self) -> str:
            return "a=1"

    assert repr(Noted()) == "Noted(a=1)"
    assert repr(Noted(nn.ReLU())) == "Noted(\n  a=1\n  (part0): ReLU()\n)"


def test_a_parameter_is_printed_as_one() -> None:
    text = "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert repr(nn.Parameter(torch.ones(2))) == text


def test_a_parameter_shares_memory_and_asks_for_gradients() -> None:
    data = torch.ones(2)
    parameter = nn.Parameter(data)
    data.fill_(3)
    assert parameter.tolist() == [3.0, 3.0]
    assert isinstance(parameter, torch.Tensor)
    assert parameter.requires_grad
    assert parameter.is_leaf
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert type(parameter * 2) is torch.Tensor


def test_a_sequential_can_be_named() -> None:
    layers = OrderedDict([("first", nn.Linear(2, 2)), ("then", nn.ReLU())])
    model = nn.Sequential(layers)
    assert list(model.state_dict()) == ["first.weight", "first.bias"]
    assert model.first is layers["first"]
