"""PAL (section III-C): weighs locality penalty against PM score.

A job gets the GPUs with the smallest product of the two, found by walking the L x V matrix of its
class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.job import Job
from maat.scheduling.parameters import knob
from maat.scheduling.placement.along import place_along
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.pm_first import Scores, by_class, fastest, taken
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput
from maat.scheduling.variability import BinRule, Entry, traversal


@dataclass(frozen=True)
class Pal:
    """Place all jobs again each round, by class, A first.

    Each job takes the GPUs of the first entry of its L x V matrix that has enough. A job of one
    GPU, or one that fits no node, is placed as by PM-First.
    """

    binning: BinRule = knob(
        BinRule.SILHOUETTE,
        "How many bins the scores of a class fall into.",
        source="PAL section III-B; its code: two",
    )
    name: str = "pal"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        scores = Scores(round_input.cluster, self.binning)
        room = dict(
            zip(
                round_input.cluster.type_names,
                round_input.cluster.gpus_per_node.tolist(),
                strict=True,
            )
        )

        def choose(free: FreeGpus, job: Job, grant: Grant) -> list[int] | None:
            offered, count = free.of_type(grant.gpu_type), grant.gpu_count
            score = scores.of(job, grant.gpu_type)[offered]
            if not 1 < count <= room[grant.gpu_type]:
                return taken(free, fastest(offered, score, count, scores.node))
            for entry in traversal(scores.distinct(job, grant.gpu_type), job.spec.locality_penalty):
                found = _at(entry, offered, score, count, scores.node)
                if found is not None:
                    return taken(free, found)
            return None

        return place_along(
            decision, round_input, choose, sticky=False, order=by_class(decision, round_input)
        )


def _at(
    entry: Entry, gpus: IntArray, scores: FloatArray, count: int, node: IntArray
) -> list[int] | None:
    """Return GPUs of at most the entry's score, on one node or the fastest on any."""
    good = scores <= entry.score
    if np.count_nonzero(good) < count:
        return None
    choose = _together if entry.within_node else fastest
    return choose(gpus[good], scores[good], count, node)


def _together(gpus: IntArray, scores: FloatArray, count: int, node: IntArray) -> list[int] | None:
    """Return `count` GPUs of the node that offers the lowest worst score.

    Of equal nodes the one with most of `gpus` is taken, and of these the last, as the published
    code does with the library versions that it pins. None if no node has `count` of `gpus`.
    """
    best: tuple[float, int, list[int]] | None = None
    at = node[gpus]
    for one in np.unique(at).tolist():
        here = at == one
        if (many := int(np.count_nonzero(here))) >= count:
            worst = float(np.partition(scores[here], count - 1)[count - 1])
            if best is None or (worst, -many) <= best[:2]:
                best = (worst, -many, gpus[here & (scores <= worst)][:count].tolist())
    return None if best is None else best[2]
