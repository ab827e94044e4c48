"""`LBFGS`: a quasi-Newton method that learns curvature from its recent iterations."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim._line_search import Point, strong_wolfe
from mindtorch_v2.optim._loop import require
from mindtorch_v2.optim.optimizer import Closure, Optimizer, Params

# The curvature below which an iteration is not added to the history.
_LEAST_CURVATURE = 1e-10
# The state kept between steps, except for the two counters.
_KEPT = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    """Runs several iterations per step, with directions from the estimated curvature.

    It treats all parameters as one long vector, so there is a single group, and its state is stored
    with the first parameter.

    Args:
        params: The parameters.
        lr: The learning rate, or the first length of a line search.
        max_iter: The maximum number of iterations per step.
        max_eval: The maximum number of evaluations per step; by default 1.25 times `max_iter`.
        tolerance_grad: The largest entry of the gradient at which to stop.
        tolerance_change: The largest change at which to stop.
        history_size: The number of iterations from which curvature is estimated.
        line_search_fn: `"strong_wolfe"`, or `None` for a fixed step size.
        maximize: Whether to maximize the objective.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        require(lr >= 0, f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        require(
            len(self.param_groups) == 1,
            "LBFGS doesn't support per-parameter options (parameter groups)",
        )
        self._params: list[torch.Tensor] = self.param_groups[0]["params"]

    def step(self, closure: Closure) -> Any:  # type: ignore[override]
        """Performs one step, which evaluates the loss several times.

        Args:
            closure: Recomputes the loss and its gradients, and returns the loss.

        Returns:
            The result of the first evaluation.
        """
        if len(self.param_groups) != 1:
            raise AssertionError(
                f"Expected exactly one param_group, but got {len(self.param_groups)}"
            )
        with torch.no_grad():
            if not self._params:
                return self._evaluate(closure)
            return self._go(closure)

    def _go(self, closure: Closure) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self._evaluate(closure)
        loss, evaluations = self._signed(first), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if _largest(gradient) <= group["tolerance_grad"]:
            return first
        kept: dict[str, Any] = {name: state.get(name) for name in _KEPT}
        goes = 0
        while goes < group["max_iter"]:
            goes += 1
            state["n_iter"] += 1
            self._turn(kept, gradient)
            kept["prev_loss"] = loss
            slope, is_done = gradient.dot(kept["d"]), False
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is not None:
                start = Point(0, loss, gradient, slope)
                found, used = self._search(closure, kept, start, group["max_eval"] - evaluations)
                loss, gradient, kept["t"] = found.loss, found.gradient, found.length
            self._move(kept["t"], kept["d"])
            if group["line_search_fn"] is None and goes != group["max_iter"]:
                loss, gradient, used = self._signed(self._evaluate(closure)), self._gradient(), 1
            if used:
                is_done = _largest(gradient) <= group["tolerance_grad"]
            evaluations += used
            state["func_evals"] += used
            if goes == group["max_iter"] or evaluations >= group["max_eval"] or is_done:
                break
            if _largest(kept["d"].mul(kept["t"])) <= group["tolerance_change"]:
                break
            if abs(loss - kept["prev_loss"]) < group["tolerance_change"]:
                break
        state.update(kept)
        return first

    def _turn(self, kept: dict[str, Any], gradient: torch.Tensor) -> None:
        """Chooses the direction and the length of the next iteration."""
        lr, is_first = self.param_groups[0]["lr"], self.state[self._params[0]]["n_iter"] == 1
        if is_first:
            kept.update(d=gradient.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
        else:
            self._learn(kept, gradient)
            kept["d"] = self._direction(kept, gradient)
        if kept["prev_flat_grad"] is None:
            kept["prev_flat_grad"] = gradient.clone(memory_format=torch.contiguous_format)
        else:
            kept["prev_flat_grad"].copy_(gradient)
        kept["t"] = min(1.0, 1.0 / gradient.abs().sum()) * lr if is_first else lr

    def _learn(self, kept: dict[str, Any], gradient: torch.Tensor) -> None:
        """Adds the last iteration to the curvature history."""
        change = gradient.sub(kept["prev_flat_grad"])
        went = kept["d"].mul(kept["t"])
        curvature = change.dot(went)
        if not curvature > _LEAST_CURVATURE:
            return
        history = (kept["old_dirs"], kept["old_stps"], kept["ro"])
        if len(history[0]) == self.param_groups[0]["history_size"]:
            for values in history:
                values.pop(0)
        for values, value in zip(history, (change, went, 1.0 / curvature), strict=True):
            values.append(value)
        kept["H_diag"] = curvature / change.dot(change)

    def _direction(self, kept: dict[str, Any], gradient: torch.Tensor) -> torch.Tensor:
        """Multiplies the gradient by the inverse curvature, from the last iteration backwards."""
        changes, wents, shares = kept["old_dirs"], kept["old_stps"], kept["ro"]
        state = self.state[self._params[0]]
        if "al" not in state:
            state["al"] = [None] * self.param_groups[0]["history_size"]
        parts = state["al"]
        direction = gradient.neg()
        for i in reversed(range(len(changes))):
            parts[i] = wents[i].dot(direction) * shares[i]
            direction.add_(changes[i], alpha=-parts[i])
        direction = direction.mul(kept["H_diag"])
        for i in range(len(changes)):
            part = changes[i].dot(direction) * shares[i]
            direction.add_(wents[i], alpha=parts[i] - part)
        return direction

    def _search(
        self, closure: Closure, kept: dict[str, Any], start: Point, most_evaluations: int
    ) -> tuple[Point, int]:
        if self.param_groups[0]["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        direction, before = (
            kept["d"],
            [parameter.clone(memory_format=torch.contiguous_format) for parameter in self._params],
        )

        def evaluate(length: Any) -> Point:
            self._move(length, direction)
            loss = self._signed(self._evaluate(closure))
            gradient = self._gradient()
            for parameter, value in zip(self._params, before, strict=True):
                parameter.copy_(value)
            return Point(length, loss, gradient, gradient.dot(direction))

        return strong_wolfe(evaluate, kept["t"], direction, start, most_evaluations)

    def _signed(self, loss: Any) -> float:
        return -float(loss) if self.param_groups[0]["maximize"] else float(loss)

    def _gradient(self) -> torch.Tensor:
        """Returns the gradients of all parameters as one vector, with zeros for missing ones."""
        gradients = [
            torch.zeros(parameter.numel(), dtype=parameter.dtype)
            if parameter.grad is None
            else parameter.grad.view(-1)
            for parameter in self._params
        ]
        vector = torch.cat(gradients, 0)
        return vector.neg_() if self.param_groups[0]["maximize"] else vector

    def _move(self, length: Any, direction: torch.Tensor) -> None:
        begin = 0
        for parameter in self._params:
            end = begin + parameter.numel()
            parameter.add_(direction[begin:end].view_as(parameter), alpha=length)
            begin = end


def _largest(vector: torch.Tensor) -> Any:
    return vector.abs().max()
