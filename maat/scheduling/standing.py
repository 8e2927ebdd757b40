"""Finds rounds that can be skipped: their decision would equal the last one.

Does not run or skip them. A round's answer follows from its input. If no job arrived, ended, moved
or began to train, the next input differs only in the time, the round number and the progress of
the jobs. If a round changed nothing, the next one repeats it, for as long as its decision does not
depend on these three.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from maat.scheduling.reservations import Reservation, next_boundary
from maat.scheduling.round_result import RoundResult


@dataclass(frozen=True, slots=True)
class RoundGrid:
    """The times of rounds: number 0 at `begin`, then one every `round_seconds`."""

    begin: float
    round_seconds: float

    def time(self, number: int) -> float:
        return self.begin + number * self.round_seconds

    def first_from(self, time: float) -> int:
        """Return the number of the first round at or after `time`, which is finite."""
        number = max(math.ceil((time - self.begin) / self.round_seconds), 0)
        while number > 0 and self.time(number - 1) >= time:
            number -= 1
        while self.time(number) < time:
            number += 1
        return number


@dataclass(frozen=True, slots=True)
class RoundsAhead:
    """The rounds from number `first` on that lie before `end` (cluster time).

    The last decision stands in them unless something happens.
    """

    grid: RoundGrid
    first: int
    end: float

    def time(self, index: int) -> float:
        """Return the time of the round that is `index` rounds after the first."""
        return self.grid.time(self.first + index)

    def before(self, time: float) -> RoundsAhead:
        """Return those of them that also lie before `time`."""
        return replace(self, end=min(self.end, time))

    def __len__(self) -> int:
        """Return how many there are; `end` must be finite."""
        return max(self.grid.first_from(self.end) - self.first, 0)

    def __iter__(self) -> Iterator[float]:
        """Yield their times."""
        number = self.first
        while (time := self.grid.time(number)) < self.end:
            yield time
            number += 1


def stands_until(result: RoundResult, reservations: Sequence[Reservation]) -> float:
    """Return the cluster time before which every round would repeat this one.

    That holds if nothing happens meanwhile. A job that must stay is free to move at the end of its
    stay. Minus infinity if the next round may differ: this one
    changed GPUs or the state of policy or placer, or placed at random. With no jobs there is
    nothing to decide.
    """
    round_input = result.round_input
    moved = any(change.after != change.before for change in result.changes.items)
    remembered = (result.decision.state, result.placement.state) != (
        round_input.state,
        round_input.placer_state,
    )
    if moved or remembered or result.placement.by_chance:
        return -math.inf
    decision_stands_until = result.decision.stands_until if round_input.jobs else math.inf
    first_stay_ends = min((stay.until for stay in round_input.stays.values()), default=math.inf)
    return min(decision_stands_until, first_stay_ends, next_boundary(reservations, round_input.now))
