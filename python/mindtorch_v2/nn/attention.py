"""`MultiheadAttention`: attention between the positions of sequences."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional, init
from mindtorch_v2.nn.linear import Linear
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.parameter import Parameter


class NonDynamicallyQuantizableLinear(Linear):
    """A linear layer under the name that torch gives to the output projection of attention."""


class MultiheadAttention(Module):
    """Weights values by how well their keys match the queries, in several heads at once.

    Args:
        embed_dim: The number of features, split among the heads.
        num_heads: The number of heads.
        dropout: The dropout probability of the attention weights, in training.
        bias: Whether the projections have biases.
        add_bias_kv: Not supported.
        add_zero_attn: Not supported.
        kdim: The number of key features; only `embed_dim` is supported.
        vdim: The number of value features; only `embed_dim` is supported.
        batch_first: Whether the batch dimension comes before the sequence dimension.
        device: The device of the parameters; only the CPU is supported.
        dtype: The dtype of the parameters.

    Example:
        >>> import mindtorch_v2 as torch
        >>> layer = MultiheadAttention(8, 2, batch_first=True)
        >>> x = torch.ones(3, 5, 8)
        >>> output, weights = layer(x, x, x)
        >>> output.shape == (3, 5, 8) and weights.shape == (3, 5, 5)
        True
    """

    in_proj_weight: Parameter
    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        if add_bias_kv or add_zero_attn or not {kdim, vdim} <= {None, embed_dim}:
            raise NotImplementedError(
                "add_bias_kv, add_zero_attn, and kdim and vdim other than embed_dim are not "
                "supported"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        assert self.head_dim * num_heads == embed_dim, "embed_dim must be divisible by num_heads"
        kind = {"device": device, "dtype": dtype}
        self.in_proj_weight = Parameter(torch.empty((3 * embed_dim, embed_dim), **kind))
        self.register_parameter(
            "in_proj_bias", Parameter(torch.empty(3 * embed_dim, **kind)) if bias else None
        )
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **kind)
        init.xavier_uniform_(self.in_proj_weight)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Returns the attended values, and the weights if requested."""
        if query.dim() == 2:
            given = [tensor.unsqueeze(0) for tensor in (query, key, value)]
        elif self.batch_first:
            given = [query, key, value]
        else:
            given = [tensor.transpose(0, 1) for tensor in (query, key, value)]
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        mask = self._mask(given[0].shape[0], attn_mask, key_padding_mask, query.dtype)
        heads = [self._heads(tensor) for tensor in self._projected(given)]
        output, weights = self._attend(heads, mask, need_weights)
        batch, length = given[0].shape[0], given[0].shape[1]
        output = self.out_proj(output.transpose(1, 2).reshape(batch, length, self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if query.dim() == 2:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return (output if self.batch_first else output.transpose(0, 1)), weights

    def _projected(self, given: list[torch.Tensor]) -> list[torch.Tensor]:
        bias = self.in_proj_bias
        if given[0] is given[1] is given[2]:
            return list(functional.linear(given[0], self.in_proj_weight, bias).chunk(3, -1))
        weights = self.in_proj_weight.chunk(3)
        biases = [None] * 3 if bias is None else bias.chunk(3)
        return [functional.linear(*each) for each in zip(given, weights, biases, strict=True)]

    def _heads(self, tensor: torch.Tensor) -> torch.Tensor:
        batch, length = tensor.shape[0], tensor.shape[1]
        return tensor.reshape(batch, length, self.num_heads, self.head_dim).transpose(1, 2)

    def _attend(
        self, heads: list[torch.Tensor], mask: torch.Tensor | None, need_weights: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        query, key, value = heads
        dropout = self.dropout if self.training else 0.0
        if not need_weights:
            output = functional.scaled_dot_product_attention(query, key, value, mask, dropout)
            return output, None
        scores = query.matmul(key.transpose(-2, -1)) * (1.0 / math.sqrt(self.head_dim))
        if mask is not None:
            scores = scores + mask
        weights = functional.dropout(functional.softmax(scores, dim=-1), dropout, dropout > 0)
        return weights.matmul(value), weights

    def _mask(
        self,
        batch: int,
        attention: torch.Tensor | None,
        padding: torch.Tensor | None,
        dtype: torch.dtype,
    ) -> torch.Tensor | None:
        if attention is not None:
            attention = _additive(attention, dtype)
            if attention.dim() == 3:
                attention = attention.reshape(batch, self.num_heads, *attention.shape[1:])
        if padding is None:
            return attention
        if padding.dim() == 1:
            padding = padding.unsqueeze(0)
        spread = _additive(padding, dtype).reshape(batch, 1, 1, -1)
        return spread if attention is None else attention + spread


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, float("-inf"))
