"""Random placement (PAL's baselines): any free GPUs alike; sticky keeps a job's GPUs, the other draws for everybody anew each round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.job import Job
from maat.scheduling.placement.along import Choose, place_along
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput


@dataclass(frozen=True)
class RandomSticky:
    """Free GPUs drawn uniformly; jobs keep them until they end or are preempted."""

    name: str = "random-sticky"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        return replace(place_along(decision, round_input, _drawing(round_input.rng), sticky=True), by_chance=True)


@dataclass(frozen=True)
class Random:
    """Free GPUs drawn uniformly for everybody anew each round."""

    name: str = "random"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        return replace(place_along(decision, round_input, _drawing(round_input.rng), sticky=False), by_chance=True)


def _drawing(rng: np.random.Generator) -> Choose:
    def draw(free: FreeGpus, _job: Job, grant: Grant) -> list[int] | None:
        offered = free.of_type(grant.gpu_type)
        if len(offered) < grant.gpu_count:
            return None
        drawn: list[int] = np.sort(rng.choice(offered, grant.gpu_count, replace=False)).tolist()
        free.take(drawn)
        return drawn

    return draw
