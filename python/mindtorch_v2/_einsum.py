"""`einsum`: sums of products in Einstein notation."""

from __future__ import annotations

from typing import Any

from mindprof._core import OperatorScope, Tensor

_OUTPUT = "->"


def einsum(equation: str, *operands: Any) -> Tensor:
    """Multiplies tensors and sums over the dimensions that the result does not name.

    Operands are combined from left to right, each pair by one batched matrix product.

    Args:
        equation: A letter for each dimension of each operand, and of the result after `->`.
        operands: The tensors, or one list of them.

    Example:
        >>> import mindtorch_v2 as torch
        >>> einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 2))
        tensor([[3., 3.],
                [3., 3.]])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    with OperatorScope("aten::einsum", equation, list(operands), None):
        return _contract(*_parse(equation, operands))


def _parse(equation: str, operands: tuple[Tensor, ...]) -> tuple[list[str], str, list[Tensor]]:
    given, arrow, wanted = equation.replace(" ", "").partition(_OUTPUT)
    terms = given.split(",")
    for place, term in enumerate(terms):
        _check_ellipsis(term, f"operand {place} for which", "an ellipsis", f"operand {place} that")
    _check_ellipsis(wanted, "output but", "an ellipsis (...)", "output that")
    if len(terms) != len(operands):
        raise ValueError(
            "einsum(): more operands were provided than specified in the equation"
            if len(terms) < len(operands)
            else "einsum(): fewer operands were provided than specified in the equation"
        )
    ranks = [
        operand.dim() - len(term.replace("...", ""))
        for term, operand in zip(terms, operands, strict=True)
    ]
    most = max((rank for term, rank in zip(terms, ranks, strict=True) if "..." in term), default=0)
    # Dimensions under an ellipsis get names that are not letters.
    hidden = [chr(ord("0") + number) for number in range(most)]
    named = []
    for term, rank in zip(terms, ranks, strict=True):
        if (rank != 0 and "..." not in term) or rank < 0:
            raise ValueError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match "
                f"the number of dimensions ({rank + len(term)}) for operand and no ellipsis was "
                "given"
            )
        named.append(term.replace("...", "".join(hidden[most - rank :])))
    if arrow:
        result = wanted.replace("...", "".join(hidden))
    else:
        letters = "".join(named)
        once = sorted(x for x in set(letters) if letters.count(x) == 1 and x not in hidden)
        result = "".join(hidden) + "".join(once)
    unknown = set(result) - set("".join(named))
    if unknown or len(set(result)) != len(result):
        raise ValueError(
            f"einsum(): output subscript {sorted(unknown or result)[0]} does not appear in the "
            "equation for any input operand or appears more than once"
        )
    return named, result, list(operands)


def _check_ellipsis(term: str, whose: str, ellipsis: str, stray: str) -> None:
    if "." in term.replace("...", "", 1):
        raise RuntimeError(
            f"einsum(): found '.' for {whose} {ellipsis} was already found"
            if "..." in term
            else f"einsum(): found '.' for {stray} is not part of any ellipsis"
        )


def _contract(terms: list[str], result: str, operands: list[Tensor]) -> Tensor:
    terms, operands = list(terms), list(operands)
    for place, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        terms[place], operands[place] = _take_diagonals(term, operand)
    term, left = terms[0], operands[0]
    for place in range(1, len(terms)):
        needed = set(result).union(*terms[place + 1 :])
        term, left = _multiply(term, left, terms[place], operands[place], needed)
    summed = [letter for letter in term if letter not in result]
    if summed:
        left = left.sum([term.index(letter) for letter in summed])
        term = "".join(letter for letter in term if letter in result)
    return left.permute([term.index(letter) for letter in result]) if term != result else left


def _take_diagonals(term: str, operand: Tensor) -> tuple[str, Tensor]:
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            size = operand.shape[first]
            strides, sizes = list(operand.stride()), list(operand.shape)
            strides[first] += strides[second]
            if sizes[second] != size:
                raise RuntimeError(
                    f"einsum(): subscript {letter} is repeated for operand but the sizes don't "
                    f"match, {sizes[second]} != {size}"
                )
            del strides[second], sizes[second]
            operand = operand.as_strided(sizes, strides, operand.storage_offset())
            term = term[:second] + term[second + 1 :]
    return term, operand


def _multiply(
    left_term: str, left: Tensor, right_term: str, right: Tensor, needed: set[str]
) -> tuple[str, Tensor]:
    """Multiplies two operands and sums over dimensions that nothing else needs."""
    left_term, left = _drop(left_term, left, needed | set(right_term))
    right_term, right = _drop(right_term, right, needed | set(left_term))
    sizes = _sizes((left_term, left), (right_term, right))
    both = [x for x in left_term if x in right_term]
    batch = [x for x in both if x in needed]
    summed = [x for x in both if x not in needed]
    rows = [x for x in left_term if x not in right_term]
    columns = [x for x in right_term if x not in left_term]
    first = _arranged(left_term, left, (batch, rows, summed), sizes)
    second = _arranged(right_term, right, (batch, summed, columns), sizes)
    product = first.bmm(second)
    order = [*batch, *rows, *columns]
    return "".join(order), product.view([sizes[letter] for letter in order])


def _drop(term: str, operand: Tensor, kept: set[str]) -> tuple[str, Tensor]:
    gone = [place for place, letter in enumerate(term) if letter not in kept]
    if not gone:
        return term, operand
    return "".join(letter for letter in term if letter in kept), operand.sum(gone)


def _sizes(*operands: tuple[str, Tensor]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, operand in operands:
        for letter, size in zip(term, operand.shape, strict=True):
            known = sizes.setdefault(letter, size)
            if 1 in (known, size):
                sizes[letter] = max(known, size)
            elif known != size:
                raise RuntimeError(
                    f"einsum(): operands do not broadcast with remapped shapes: subscript {letter} "
                    f"has size {size} for an operand which does not broadcast with previously "
                    f"seen size {known}"
                )
    return sizes


def _arranged(
    term: str, operand: Tensor, groups: tuple[list[str], ...], sizes: dict[str, int]
) -> Tensor:
    """Permutes the dimensions so that each group is adjacent, and merges each group into one."""
    order = [letter for group in groups for letter in group]
    arranged = operand.permute([term.index(letter) for letter in order])
    full = [sizes[letter] for letter in order]
    if list(arranged.shape) != full:
        arranged = arranged.expand(full)
    lengths = []
    for group in groups:
        length = 1
        for letter in group:
            length *= sizes[letter]
        lengths.append(length)
    return arranged.reshape(lengths)
