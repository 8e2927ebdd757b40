"""Rounds that need not be played, because what was decided stands: which they are. Plays none, and knows nothing of who passes over them.

A round's answer follows from its input. Where nobody came, ended, moved or began to train, the next input differs in the time, the round's
number and the progress of the jobs alone; a round that changed nothing is then repeated by the next one, for as long as its decision does
not depend on these three.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from maat.scheduling.reservations import Reservation, next_boundary
from maat.scheduling.rounds import RoundResult


@dataclass(frozen=True, slots=True)
class RoundGrid:
    """The times of rounds: number 0 at `begin`, then one every `round_seconds`."""

    begin: float
    round_seconds: float

    def time(self, number: int) -> float:
        return self.begin + number * self.round_seconds

    def first_from(self, time: float) -> int:
        """The number of the first round at `time`, which is finite, or later."""
        number = max(math.ceil((time - self.begin) / self.round_seconds), 0)
        while number > 0 and self.time(number - 1) >= time:
            number -= 1
        while self.time(number) < time:
            number += 1
        return number


@dataclass(frozen=True, slots=True)
class RoundsAhead:
    """Rounds from number `first` on that lie before `end` (cluster time): what was decided stands in them unless something happens."""

    grid: RoundGrid
    first: int
    end: float

    def time(self, index: int) -> float:
        """Of the round that is `index` rounds after the first."""
        return self.grid.time(self.first + index)

    def before(self, time: float) -> RoundsAhead:
        """Those of them that lie before `time` too."""
        return replace(self, end=min(self.end, time))

    def __len__(self) -> int:
        """How many they are, where they end at all."""
        return max(self.grid.first_from(self.end) - self.first, 0)

    def __iter__(self) -> Iterator[float]:
        """Their times."""
        number = self.first
        while (time := self.grid.time(number)) < self.end:
            yield time
            number += 1


def stands_until(result: RoundResult, reservations: Sequence[Reservation]) -> float:
    """Cluster time before which every round would repeat this one if nothing happened; minus infinity where the next one may differ.

    It has to have changed nothing: no GPUs, nothing that policy or placer remember. With no job there is nothing to decide.
    """
    round_input = result.round_input
    moved = any(change.after != change.before for change in result.changes.items)
    remembered = (result.decision.state, result.placement.state) != (
        round_input.state,
        round_input.placer_state,
    )
    if moved or remembered or result.placement.by_chance:
        return -math.inf
    word = result.decision.stands_until if round_input.jobs else math.inf
    return min(word, next_boundary(reservations, round_input.now))
