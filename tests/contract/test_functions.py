"""`autograd.Function` in a profile: inputs, sequence number, and the arrow to its backward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from host import export, profile, torch


class Scale(torch.autograd.Function):  # type: ignore[misc]
    """Multiplies by a number."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, other: Any = None) -> Any:  # noqa: ARG004
        """Returns the product."""
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Returns the gradient of the product."""
        return gradient * ctx.factor, None, None


def recorded(folder: Path, *arguments: Any, backward: bool = True) -> dict[str, Any]:
    with profile(record_shapes=True) as profiler:
        result = Scale.apply(*arguments)
        if backward:
            result.sum().backward()
    return export(profiler, folder)


def named(trace: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [event for event in trace["traceEvents"] if event.get("name") == name]
    return found


def test_a_function_of_the_user_has_the_shapes_of_its_inputs(tmp_path: Path) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    args = named(recorded(tmp_path, x, 2.0, torch.ones(4)), "Scale")["args"]
    assert args["Input Dims"] == [[2, 3], [], [4]]
    assert args["Input type"] == ["float", "Scalar", "float"]
    assert args["Input Strides"] == [[3, 1], [], [1]]


def test_what_is_absent_counts_and_a_text_does_not(tmp_path: Path) -> None:
    x = torch.ones(3)
    absent = named(recorded(tmp_path, x, 2.0, None, backward=False), "Scale")["args"]
    assert absent["Input Dims"] == [[3], [], []]
    text = named(recorded(tmp_path, x, 2.0, "text", backward=False), "Scale")["args"]
    assert text["Input Dims"] == [[3], []]


def test_forward_and_backward_have_one_number(tmp_path: Path) -> None:
    trace = recorded(tmp_path, torch.ones(2, requires_grad=True), 2.0)
    forward, backward = named(trace, "Scale"), named(trace, "ScaleBackward")
    assert forward["args"]["Sequence number"] == backward["args"]["Sequence number"]
    assert forward["args"]["Fwd thread id"] == 0
    assert backward["args"]["Fwd thread id"] != 0


def test_an_arrow_leads_from_the_forward_to_the_backward(tmp_path: Path) -> None:
    trace = recorded(tmp_path, torch.ones(2, requires_grad=True), 2.0)
    forward, backward = named(trace, "Scale"), named(trace, "ScaleBackward")
    arrows = [event for event in trace["traceEvents"] if event.get("cat") == "fwdbwd"]
    (tail,) = [arrow["id"] for arrow in arrows if arrow["ts"] == forward["ts"]]
    end = backward["ts"] + backward["dur"]
    (head,) = [a for a in arrows if a["ph"] == "f" and a["id"] == tail]
    wrapper = named(trace, "autograd::engine::evaluate_function: ScaleBackward")
    assert wrapper["ts"] <= head["ts"] <= end


def test_a_function_that_is_not_tracked_has_a_number_too(tmp_path: Path) -> None:
    trace = recorded(tmp_path, torch.ones(2), 2.0, backward=False)
    assert named(trace, "Scale")["args"]["Sequence number"] >= 0
