"""PM-First (PAL section III-B): who suffers most from slow GPUs chooses first, and takes the fastest. Where they are does not matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job, JobId
from maat.scheduling.parameters import knob
from maat.scheduling.placement.along import place_along
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput
from maat.scheduling.variability import BinRule, bins_of


@dataclass(frozen=True)
class PmFirst:
    """Jobs by class, A first, in the policy's order within a class; each takes the free GPUs of the lowest PM scores, everybody again each round."""

    binning: BinRule = knob(
        BinRule.SILHOUETTE,
        "How many bins the scores of a class fall into.",
        source="PAL section III-B; its code: two",
    )
    name: str = "pm-first"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        scores = Scores(round_input.cluster, self.binning)

        def choose(free: FreeGpus, job: Job, grant: Grant) -> list[int] | None:
            offered = free.of_type(grant.gpu_type)
            return taken(
                free,
                fastest(
                    offered, scores.of(job, grant.gpu_type)[offered], grant.gpu_count, scores.node
                ),
            )

        return place_along(
            decision, round_input, choose, sticky=False, order=by_class(decision, round_input)
        )


class Scores:
    """Binned PM scores of a cluster's GPUs for a class of jobs, computed type by type."""

    def __init__(self, cluster: Cluster, rule: BinRule) -> None:
        self._cluster, self._rule = cluster, rule
        self._known: dict[tuple[str | None, str], FloatArray] = {}
        self.node = cluster.gpu_node

    def of(self, job: Job, gpu_type: str) -> FloatArray:
        """Shape (G,): the score of every GPU of the type for the job; 1 for those of other types, and for all where its class has no scores."""
        key = (job.spec.variability_class, gpu_type)
        if key not in self._known:
            self._known[key] = self._binned(*key)
        return self._known[key]

    def distinct(self, job: Job, gpu_type: str) -> tuple[float, ...]:
        """The scores that the type's GPUs have, ascending."""
        mine = self._cluster.gpu_type_of == self._cluster.type_index[gpu_type]
        return tuple(np.unique(self.of(job, gpu_type)[mine]).tolist())

    def _binned(self, variability_class: str | None, gpu_type: str) -> FloatArray:
        found = np.ones(self._cluster.gpu_count)
        measured = (
            None if variability_class is None else self._cluster.scores.get(variability_class)
        )
        if measured is not None:
            mine = np.flatnonzero(self._cluster.gpu_type_of == self._cluster.type_index[gpu_type])
            found[mine] = bins_of(tuple(measured[gpu] for gpu in mine.tolist()), self._rule)
        return found


def by_class(decision: Decision, round_input: RoundInput) -> list[JobId]:
    """Granted jobs by class, those of none last, in the decision's order within a class."""

    def rank(job_id: JobId) -> tuple[bool, str]:
        name = round_input.job_by_id[job_id].spec.variability_class
        return name is None, name or ""

    return sorted(decision.grants, key=rank)


def fastest(gpus: IntArray, scores: FloatArray, count: int, node: IntArray) -> list[int] | None:
    """The `count` of the lowest scores among `gpus` (F,), whose scores are `scores` (F,); None where there are fewer.

    Of equal ones those first that stand in a group of that score and node whose size is closest to `count`, as in the published code.
    """
    if len(gpus) < count:
        return None
    _, group, size = np.unique(
        np.stack((scores, node[gpus])), axis=1, return_inverse=True, return_counts=True
    )
    order = np.lexsort((gpus, np.abs(size[group.reshape(-1)] - count), scores))
    chosen: list[int] = gpus[order[:count]].tolist()
    return chosen


def taken(free: FreeGpus, gpus: list[int] | None) -> list[int] | None:
    if gpus is not None:
        free.take(gpus)
    return gpus
