"""Packed placement on as few nodes as possible (PAL's baselines)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maat.scheduling.job import Job
from maat.scheduling.placement.along import place_along
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput


@dataclass(frozen=True)
class PackedSticky:
    """Pack new jobs; jobs keep their GPUs until they end or are preempted.

    A job goes to the node that it fits most tightly, else to the nodes with most free GPUs.
    """

    name: str = "packed-sticky"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        return place_along(decision, round_input, _pack, sticky=True)


@dataclass(frozen=True)
class Packed:
    """Pack all jobs again each round, by the rule of `PackedSticky`."""

    name: str = "packed"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        return place_along(decision, round_input, _pack, sticky=False)


def _pack(free: FreeGpus, _job: Job, grant: Grant) -> list[int] | None:
    return pack(free, grant)


def pack(free: FreeGpus, grant: Grant) -> list[int] | None:
    """Take GPUs for a grant on as few nodes as possible; None if there are too few."""
    node = free.tightest(grant.gpu_type, grant.gpu_count)
    if node is not None:
        return free.take_from(node, grant.gpu_count)
    nodes = free.nodes_of_type(grant.gpu_type)
    if free.counts[nodes].sum() < grant.gpu_count:
        return None
    taken: list[int] = []
    for roomiest in nodes[np.argsort(-free.counts[nodes], kind="stable")].tolist():
        taken += free.take_from(roomiest, grant.gpu_count - len(taken))
    return taken
