"""PAL (section III-C): weighs locality penalty against PM score.

A job gets the GPUs with the smallest product of the two, found by walking the L x V matrix of its
class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job
from maat.scheduling.parameters import knob
from maat.scheduling.placement.pm_first import Gpus, fastest, place_by_scores
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput
from maat.scheduling.variability import BinRule, Entry, Locality, traversal


@dataclass(frozen=True)
class Pal:
    """Place all jobs again each round, by class, A first.

    Each job takes the GPUs of the first entry of its L x V matrix that has enough. A job of one
    GPU, or one that fits no node, is placed as by PM-First; where racks cost something, one that
    fits no node is placed by the rows of racks.
    """

    binning: BinRule = knob(
        BinRule.SILHOUETTE,
        "How many bins the scores of a class fall into.",
        source="PAL section III-B; its code: two",
    )
    name: str = "pal"
    weighs_locality: ClassVar[bool] = True

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        cluster = round_input.cluster
        room = dict(zip(cluster.type_names, cluster.gpus_per_node.tolist(), strict=True))

        def choose(offered: IntArray, scores: FloatArray, job: Job, grant: Grant) -> Gpus:
            count, spec, score = grant.gpu_count, job.spec, scores[offered]
            by_racks = spec.rack_penalty > 1 and cluster.rack_count > 1
            if count == 1 or (count > room[grant.gpu_type] and not by_racks):
                return fastest(offered, score, count, cluster.gpu_node)
            of_type = cluster.gpu_type_of == cluster.type_index[grant.gpu_type]
            for entry in traversal(
                tuple(np.unique(scores[of_type]).tolist()),
                spec.penalty_across_nodes(grant.gpu_type),
                spec.rack_penalty if by_racks else 1.0,
            ):
                found = _at(entry, offered, score, count, cluster)
                if found is not None:
                    return found
            return None

        return place_by_scores(decision, round_input, self.binning, choose)


def _at(
    entry: Entry, gpus: IntArray, scores: FloatArray, count: int, cluster: Cluster
) -> list[int] | None:
    """Return GPUs of at most the entry's score: on one node, in one rack, or the fastest of all."""
    good = scores <= entry.score
    if np.count_nonzero(good) < count:
        return None
    match entry.locality:
        case Locality.NODE:
            return _together(gpus[good], scores[good], count, cluster.gpu_node)
        case Locality.RACK:
            return _together(gpus[good], scores[good], count, cluster.gpu_rack)
        case Locality.ANYWHERE:
            return fastest(gpus[good], scores[good], count, cluster.gpu_node)


def _together(gpus: IntArray, scores: FloatArray, count: int, group: IntArray) -> list[int] | None:
    """Return `count` GPUs of the node (or rack) that offers the lowest worst score.

    Of equal ones the one with most of `gpus` is taken, and of these the last, as the published
    code does with the library versions that it pins. None if none has `count` of `gpus`.

    `group`: the node (or rack) of every GPU of the cluster, shape (G,).
    """
    best: tuple[float, int, list[int]] | None = None
    at = group[gpus]
    for one in np.unique(at).tolist():
        here = at == one
        if (many := int(np.count_nonzero(here))) >= count:
            worst = float(np.partition(scores[here], count - 1)[count - 1])
            if best is None or (worst, -many) <= best[:2]:
                best = (worst, -many, gpus[here & (scores <= worst)][:count].tolist())
    return None if best is None else best[2]
