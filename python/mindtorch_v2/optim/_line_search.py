"""A line search for a point that satisfies the strong Wolfe conditions.

Such a point lies sufficiently below the start, and the slope there is sufficiently flatter:

```text
loss   |
       '.
         '.           .-'
           '--.....--'
       start    ^ found
```

Lengths and slopes are numbers or zero-dimensional tensors, as the optimizer has them. They are read
as often as torch reads them, because a profile shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mindtorch_v2 as torch

# The required decrease as a fraction of the first slope, and the slope that may remain.
_ENOUGH_FALL = 1e-4
_SLOPE_LEFT = 0.9
# A bracket that moves no parameter by more than this is not divided further.
_SMALLEST = 1e-9


@dataclass(frozen=True)
class Point:
    """A point on the line: its distance, with the loss, the gradient and the slope there."""

    length: Any
    loss: Any
    gradient: torch.Tensor
    slope: Any

    def kept(self) -> Point:
        """Returns the point with a copy of its gradient, which later evaluations do not change."""
        return replace(self, gradient=self.gradient.clone(memory_format=torch.contiguous_format))


def strong_wolfe(
    evaluate: Callable[[Any], Point],
    length: Any,
    direction: torch.Tensor,
    start: Point,
    most_evaluations: int,
) -> tuple[Point, int]:
    """Searches along the line, starting at `length`.

    Args:
        evaluate: Computes the point at a length.
        length: The first length to try.
        direction: The direction of the line.
        start: The point at length zero.
        most_evaluations: The maximum number of evaluations after the first one.

    Returns:
        The point that was found, or the best one, and the number of evaluations.
    """
    largest = direction.abs().max()
    start = start.kept()
    before, point, rounds = start, evaluate(length), 0
    while rounds < most_evaluations:
        if _is_too_high(point, start) or (rounds > 1 and point.loss >= before.loss):
            bracket = [before, point.kept()]
            break
        if _is_flat(point, start):
            return point, rounds + 1
        if point.slope >= 0:
            bracket = [before, point.kept()]
            break
        shortest = point.length + 0.01 * (point.length - before.length)
        length = _lowest_of_cubic(before, point, (shortest, point.length * 10))
        before = point.kept()
        point, rounds = evaluate(length), rounds + 1
    else:
        return min(start, point, key=lambda end: end.loss), rounds + 1
    return _divide(evaluate, bracket, largest, start, (rounds, most_evaluations))


def _divide(
    evaluate: Callable[[Any], Point],
    bracket: list[Point],
    largest: torch.Tensor,
    start: Point,
    rounds: tuple[int, int],
) -> tuple[Point, int]:
    """Narrows a bracket until it contains only a point that satisfies the conditions."""
    done, most = rounds
    was_near_end = False
    low, high = _by_loss(bracket)
    while done < most:
        lengths = [end.length for end in bracket]
        if abs(lengths[1] - lengths[0]) * largest < _SMALLEST:
            break
        length = _lowest_of_cubic(bracket[0], bracket[1])
        length, was_near_end = _away_from_ends(length, lengths, was_near_end)
        point, done = evaluate(length), done + 1
        if _is_too_high(point, start) or point.loss >= bracket[low].loss:
            bracket[high] = point.kept()
            low, high = _by_loss(bracket)
            continue
        is_found = _is_flat(point, start)
        if not is_found and point.slope * (bracket[high].length - bracket[low].length) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point.kept()
        if is_found:
            break
    return bracket[low], done + 1


def _is_too_high(point: Point, start: Point) -> bool:
    return bool(point.loss > (start.loss + _ENOUGH_FALL * point.length * start.slope))


def _is_flat(point: Point, start: Point) -> bool:
    return bool(abs(point.slope) <= -_SLOPE_LEFT * start.slope)


def _by_loss(bracket: list[Point]) -> tuple[int, int]:
    return (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)


def _away_from_ends(length: Any, ends: list[Any], was_near: bool) -> tuple[Any, bool]:
    """Moves a length away from the ends of the bracket if it is too close to them.

    Returns:
        The length, and whether it is close to an end and was left there.
    """
    margin = 0.1 * (max(ends) - min(ends))
    if not min(max(ends) - length, length - min(ends)) < margin:
        return length, False
    if not (was_near or length >= max(ends) or length <= min(ends)):
        return length, True
    if abs(length - max(ends)) < abs(length - min(ends)):
        return max(ends) - margin, False
    return min(ends) + margin, False


def _lowest_of_cubic(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Returns the minimum of the cubic through two points and their slopes, within bounds."""
    if bounds is None:
        bounds = (a.length, b.length) if a.length <= b.length else (b.length, a.length)
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = bend**2 - a.slope * b.slope
    if not square >= 0:
        return (bounds[0] + bounds[1]) / 2.0
    root = square.sqrt()
    near, far = (a, b) if a.length <= b.length else (b, a)
    lowest = far.length - (far.length - near.length) * (
        (far.slope + root - bend) / (far.slope - near.slope + 2 * root)
    )
    return min(max(lowest, bounds[0]), bounds[1])
