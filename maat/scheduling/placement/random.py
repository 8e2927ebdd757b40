"""Random placement: free GPUs drawn uniformly (PAL's baselines)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from maat.scheduling.job import Job
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.placement.along import place_along
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, PlacementResult, PolicyState, RoundInput

Sample = Callable[[list[int], int], Sequence[int]]


class Chance(StrEnum):
    """Where random numbers come from.

    ROUND: a generator for each round, so that a round planned twice is placed alike. RUN: one
    sequence of Python's `random` for the whole run, kept in the state, as in PAL's published code.
    """

    ROUND = "round"
    RUN = "run"


@dataclass(frozen=True)
class _Drawing:
    """The random numbers of both placers, and their state between rounds."""

    chance: Chance = knob(
        Chance.ROUND,
        "Random numbers: a new generator each round, or one sequence for the whole run.",
        source="PAL's code: run",
    )
    name: str = ""

    def state_after(self, sequence: random.Random) -> PolicyState:
        """Return the state that continues `sequence` next round; empty for ROUND."""
        if self.chance is Chance.ROUND:
            return PolicyState()
        version, words, gauss = sequence.getstate()
        return PolicyState(
            self.name,
            parameter_hash(self),
            {"version": version, "words": list(words), "gauss": gauss},
        )

    def _place(
        self, decision: Decision, round_input: RoundInput, *, sticky: bool
    ) -> PlacementResult:
        if self.chance is Chance.ROUND:
            rng = round_input.rng
            placed = place_along(
                decision,
                round_input,
                _choosing(lambda gpus, many: rng.choice(gpus, many, replace=False).tolist()),
                sticky=sticky,
            )
            return replace(placed, by_chance=True)
        sequence = _sequence(
            round_input.placer_state.for_owner(self.name, parameter_hash(self)), round_input.seed
        )
        placed = place_along(decision, round_input, _choosing(sequence.sample), sticky=sticky)
        return replace(placed, by_chance=True, state=self.state_after(sequence))


@dataclass(frozen=True)
class RandomSticky(_Drawing):
    """Draw free GPUs uniformly; jobs keep them until they end or are preempted."""

    name: str = "random-sticky"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        return self._place(decision, round_input, sticky=True)


@dataclass(frozen=True)
class Random(_Drawing):
    """Draw free GPUs uniformly for all jobs each round."""

    name: str = "random"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        return self._place(decision, round_input, sticky=False)


def _sequence(state: PolicyState, seed: int) -> random.Random:
    sequence = random.Random(seed)
    if state.data:
        remembered: dict[str, Any] = dict(state.data)
        sequence.setstate((remembered["version"], tuple(remembered["words"]), remembered["gauss"]))
    return sequence


def _choosing(sample: Sample) -> Callable[[FreeGpus, Job, Grant], list[int] | None]:
    def draw(free: FreeGpus, _job: Job, grant: Grant) -> list[int] | None:
        offered: list[int] = free.of_type(grant.gpu_type).tolist()
        if len(offered) < grant.gpu_count:
            return None
        drawn = sorted(sample(offered, grant.gpu_count))
        free.take(drawn)
        return drawn

    return draw
