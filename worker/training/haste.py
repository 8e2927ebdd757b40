"""In which order moves are made, as there may not be time for all. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from worker.training.attempts import Launch, Move, TakeGpus, Wait

Whose = TypeVar("Whose")


def by_haste(moves: Sequence[tuple[Whose, Move]], *, turn: int) -> list[tuple[Whose, Move]]:
    """Return the moves in their order, without those that do nothing.

    What ends or is to end comes first: others wait for its GPUs. Taking GPUs comes last, and begins
    with another attempt at each `turn`: GPUs that others hold cannot be taken.
    """
    hasty = [each for each in moves if not isinstance(each[1], Launch | TakeGpus | Wait)]
    launches = [each for each in moves if isinstance(each[1], Launch)]
    takes = [each for each in moves if isinstance(each[1], TakeGpus)]
    first = turn % len(takes) if takes else 0
    return [*hasty, *launches, *takes[first:], *takes[:first]]
