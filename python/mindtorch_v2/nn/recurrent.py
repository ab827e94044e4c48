"""`LSTM` and `GRU`: recurrent layers that process sequences step by step."""

from __future__ import annotations

import math
import warnings
from typing import Any

from mindprof._core import OperatorScope

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional, init
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.parameter import Parameter

_Weights = tuple[torch.Tensor, torch.Tensor, "torch.Tensor | None", "torch.Tensor | None"]


class RNNBase(Module):
    """The common base of `LSTM` and `GRU`: weights, layers and directions.

    Args:
        mode: `"LSTM"` or `"GRU"`.
        input_size: The number of input features.
        hidden_size: The number of state features.
        num_layers: The number of stacked layers.
        bias: Whether to add learned biases.
        batch_first: Whether the batch dimension comes before the sequence dimension.
        dropout: The dropout probability between layers, in training.
        bidirectional: Whether a second set of weights processes the sequence backwards.
        device: The device of the parameters; only the CPU is supported.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        gates = hidden_size * (4 if mode == "LSTM" else 3)
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            fed = input_size if layer == 0 else hidden_size * directions
            for suffix in ("", "_reverse")[:directions]:
                shapes = {"weight_ih": (gates, fed), "weight_hh": (gates, hidden_size)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}  # type: ignore[dict-item]
                for name, shape in shapes.items():
                    values = torch.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(f"{name}_l{layer}{suffix}", Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initializes all weights uniformly within `1 / sqrt(hidden_size)` of zero."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def all_weights(self) -> list[list[torch.Tensor]]:
        """The parameters of each layer and direction."""
        return [[weight for weight in group if weight is not None] for group in self._weights()]

    def extra_repr(self) -> str:
        """Returns the sizes, and the options that differ from their defaults."""
        facts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0}
        for name, default in {**defaults, "bidirectional": False}.items():
            if getattr(self, name) != default:
                facts.append(f"{name}={getattr(self, name)}")
        return ", ".join(facts)

    def _weights(self) -> list[_Weights]:
        groups: list[_Weights] = []
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse")[: 2 if self.bidirectional else 1]:
                end = f"_l{layer}{suffix}"
                weight_ih, weight_hh = (getattr(self, name + end) for name in _WEIGHTS)
                biases = [getattr(self, name + end) if self.bias else None for name in _BIASES]
                groups.append((weight_ih, weight_hh, biases[0], biases[1]))
        return groups

    def _run(
        self, input: torch.Tensor, states: list[list[torch.Tensor]]
    ) -> tuple[torch.Tensor, list[list[torch.Tensor]]]:
        """Runs all layers. Each kind of state is a list with one entry per layer."""
        step = _lstm_step if self.mode == "LSTM" else _gru_step
        weights = self._weights()
        directions = 2 if self.bidirectional else 1
        last: list[list[torch.Tensor]] = [[] for _ in states]
        outputs = input
        for layer in range(self.num_layers):
            sides = []
            for direction in range(directions):
                number = layer * directions + direction
                state = [kind[number] for kind in states]
                side, state = _go_through(step, outputs, state, weights[number], direction == 1)
                sides.append(side)
                for kind, value in zip(last, state, strict=True):
                    kind.append(value)
            outputs = sides[0] if directions == 1 else torch.cat(sides, -1)
            if self.dropout and layer < self.num_layers - 1:
                outputs = functional.dropout(outputs, self.dropout, self.training)
        return outputs, last

    def _begin(self, input: torch.Tensor, states: Any) -> tuple[torch.Tensor, list[torch.Tensor]]:
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self.mode}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )
        kinds = 2 if self.mode == "LSTM" else 1
        is_single = input.dim() == 2
        batch_dim = 0 if self.batch_first else 1
        if is_single:
            input = input.unsqueeze(batch_dim)
        count = self.num_layers * (2 if self.bidirectional else 1)
        shape = (count, input.shape[batch_dim], self.hidden_size)
        if states is None:
            given = [torch.zeros(shape, dtype=input.dtype) for _ in range(kinds)]
        else:
            given = list(states) if kinds == 2 else [states]
            given = [state.unsqueeze(1) if is_single else state for state in given]
        for state in given:
            if tuple(state.shape) != shape:
                raise RuntimeError(f"Expected hidden size {shape}, got {list(state.shape)}")
        return input, given

    def _forward(self, input: torch.Tensor, states: Any) -> tuple[torch.Tensor, list[torch.Tensor]]:
        is_single = input.dim() == 2
        batched, given = self._begin(input, states)
        weights = [weight for group in self.all_weights for weight in group]
        arguments = (
            batched,
            given if self.mode == "LSTM" else given[0],
            weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        with OperatorScope(f"aten::{self.mode.lower()}", *arguments):
            sequence = batched.transpose(0, 1) if self.batch_first else batched
            layers = [list(state.unbind(0)) for state in given]
            outputs, last = self._run(sequence, layers)
            finals = [torch.stack(kind, 0) for kind in last]
            if self.batch_first:
                outputs = outputs.transpose(0, 1)
        if is_single:
            outputs = outputs.squeeze(0 if self.batch_first else 1)
            finals = [final.squeeze(1) for final in finals]
        return outputs, finals


_WEIGHTS = ("weight_ih", "weight_hh")
_BIASES = ("bias_ih", "bias_hh")


class LSTM(RNNBase):
    """Processes a sequence with long short-term memory cells.

    Args:
        args: The arguments of `RNNBase`, except `mode`.
        kwargs: The keyword arguments of `RNNBase`, except `mode`.

    Example:
        >>> import mindtorch_v2 as torch
        >>> output, (h, c) = LSTM(4, 5)(torch.ones(7, 2, 4))
        >>> output.shape == (7, 2, 5) and h.shape == c.shape == (1, 2, 5)
        True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.pop("proj_size", 0):
            raise NotImplementedError("proj_size is not supported")
        super().__init__("LSTM", *args, **kwargs)

    def forward(
        self, input: torch.Tensor, hx: tuple[torch.Tensor, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Returns the states of every step, and the final ones of each layer."""
        outputs, (hidden, cell) = self._forward(input, hx)
        return outputs, (hidden, cell)


class GRU(RNNBase):
    """Processes a sequence with gated recurrent units.

    Args:
        args: The arguments of `RNNBase`, except `mode`.
        kwargs: The keyword arguments of `RNNBase`, except `mode`.

    Example:
        >>> import mindtorch_v2 as torch
        >>> output, h = GRU(4, 5, batch_first=True)(torch.ones(2, 7, 4))
        >>> output.shape == (2, 7, 5) and h.shape == (1, 2, 5)
        True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)

    def forward(
        self, input: torch.Tensor, hx: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the states of every step, and the final ones of each layer."""
        outputs, (hidden,) = self._forward(input, hx)
        return outputs, hidden


def _go_through(
    step: Any,
    sequence: torch.Tensor,
    state: list[torch.Tensor],
    weights: _Weights,
    is_backward: bool,
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    fed = functional.linear(sequence, weights[0], weights[2]).unbind(0)
    outputs = []
    for now in reversed(fed) if is_backward else fed:
        state = step(now, state, functional.linear(state[0], weights[1], weights[3]))
        outputs.append(state[0])
    if is_backward:
        outputs.reverse()
    return torch.stack(outputs, 0), state


def _lstm_step(
    fed: torch.Tensor, state: list[torch.Tensor], kept: torch.Tensor
) -> list[torch.Tensor]:
    into, forget, new, out = (fed + kept).chunk(4, 1)
    cell = forget.sigmoid() * state[1] + into.sigmoid() * new.tanh()
    return [out.sigmoid() * cell.tanh(), cell]


def _gru_step(
    fed: torch.Tensor, state: list[torch.Tensor], kept: torch.Tensor
) -> list[torch.Tensor]:
    fed_reset, fed_update, fed_new = fed.chunk(3, 1)
    reset, update, new = kept.chunk(3, 1)
    reset = (fed_reset + reset).sigmoid()
    update = (fed_update + update).sigmoid()
    new = (fed_new + reset * new).tanh()
    return [(state[0] - new) * update + new]
