"""`Embedding`: a table of vectors, looked up by index."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional, init
from mindtorch_v2.nn.module import Module
from mindtorch_v2.nn.parameter import Parameter


class Embedding(Module):
    """Looks up one row of its table for each index of the input.

    The table is initialized from the standard normal distribution.

    Args:
        num_embeddings: The number of rows.
        embedding_dim: The length of a row.
        padding_idx: A row that is initialized to zeros and never trained.
        max_norm: Must be `None`; not supported.
        norm_type: The norm that `max_norm` limits.
        scale_grad_by_freq: Must be `False`; not supported.
        sparse: Must be `False`; not supported.
        _weight: The table itself, instead of a new one.
        _freeze: Whether to exclude the table from training.
        device: The device of the table; only the CPU is supported.
        dtype: The dtype of the table.

    Example:
        >>> import mindtorch_v2 as torch
        >>> Embedding(10, 4)(torch.tensor([[1, 2, 3]])).shape == (1, 3, 4)
        True
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: torch.Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if max_norm is not None or scale_grad_by_freq or sparse:
            raise NotImplementedError(
                "Embedding does not support max_norm, scale_grad_by_freq and sparse"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            table = torch.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            assert tuple(_weight.shape) == shape, (
                "Shape of weight does not match num_embeddings and embedding_dim"
            )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: torch.Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Creates an embedding from an existing table.

        Args:
            embeddings: The table, a matrix.
            freeze: Whether to exclude it from training.
            padding_idx: See the class.
            max_norm: See the class.
            norm_type: See the class.
            scale_grad_by_freq: See the class.
            sparse: See the class.
        """
        assert embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional"
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def reset_parameters(self) -> None:
        """Reinitializes the table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with torch.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Looks up the rows."""
        return functional.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Returns the size of the table."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _row(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    assert -rows <= padding_idx < rows, "Padding_idx must be within num_embeddings"
    return padding_idx % rows
