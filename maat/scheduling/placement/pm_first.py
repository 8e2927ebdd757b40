"""PM-First (PAL section III-B): the most sensitive jobs take the fastest GPUs.

Nodes do not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job, JobId
from maat.scheduling.parameters import knob
from maat.scheduling.placement.along import place_along
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput
from maat.scheduling.variability import BinRule, bins_of

Gpus = list[int] | None
ChooseByScores = Callable[[IntArray, FloatArray, Job, Grant], Gpus]
"""Returns GPUs of those offered, shape (F,), by scores of all GPUs, (G,); None: too few."""


@dataclass(frozen=True)
class PmFirst:
    """Place all jobs again each round, by class, A first.

    Within a class the policy's order holds. Each job takes the free GPUs of the lowest PM scores.
    """

    binning: BinRule = knob(
        BinRule.SILHOUETTE,
        "How many bins the scores of a class fall into.",
        source="PAL section III-B; its code: two",
    )
    name: str = "pm-first"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        node = round_input.cluster.gpu_node

        def choose(offered: IntArray, scores: FloatArray, _: Job, grant: Grant) -> Gpus:
            return fastest(offered, scores[offered], grant.gpu_count, node)

        return place_by_scores(decision, round_input, self.binning, choose)


def place_by_scores(
    decision: Decision, round_input: RoundInput, rule: BinRule, choose: ChooseByScores
) -> PlacementResult:
    """Place all jobs again, by class, by binned scores.

    Scores say which GPUs are better, never that a job has none: one that finds no place by them,
    though enough GPUs are free, is placed as if all GPUs were equal.
    """
    scores = Scores(round_input.cluster, rule)
    equal = np.ones(round_input.cluster.gpu_count)
    without_scores: set[JobId] = set()

    def chosen(free: FreeGpus, job: Job, grant: Grant) -> list[int] | None:
        offered = free.of_type(grant.gpu_type)
        gpus = choose(offered, scores.of(job, grant.gpu_type), job, grant)
        if gpus is None and len(offered) >= grant.gpu_count:
            gpus = choose(offered, equal, job, grant)
            without_scores.add(job.id)
        if gpus is not None:
            free.take(gpus)
        return gpus

    placed = place_along(
        decision, round_input, chosen, sticky=False, order=by_class(decision, round_input)
    )
    return replace(placed, without_scores=frozenset(without_scores - set(placed.unplaced)))


class Scores:
    """Binned PM scores of a cluster's GPUs by class of jobs and GPU type."""

    def __init__(self, cluster: Cluster, rule: BinRule) -> None:
        self._cluster, self._rule = cluster, rule
        self._by_class_and_type: dict[tuple[str | None, str], FloatArray] = {}

    def of(self, job: Job, gpu_type: str) -> FloatArray:
        """Return the score of every GPU of the type for the job, shape (G,).

        GPUs of other types score 1, and so do all GPUs if the job's class has no scores.
        """
        key = (job.spec.variability_class, gpu_type)
        if key not in self._by_class_and_type:
            self._by_class_and_type[key] = self._binned(*key)
        return self._by_class_and_type[key]

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
    """Return the granted jobs by class, jobs without one last; else in grant order."""

    def rank(job_id: JobId) -> tuple[bool, str]:
        name = round_input.job_by_id[job_id].spec.variability_class
        return name is None, name or ""

    return sorted(decision.grants, key=rank)


def fastest(gpus: IntArray, scores: FloatArray, count: int, node: IntArray) -> list[int] | None:
    """Return the `count` GPUs of lowest score; None if there are fewer.

    GPUs of one score are grouped by node; the groups of a size closest to `count` come first, as
    in the published code.

    Args:
        gpus: The GPUs to choose from, shape (F,).
        scores: Their scores, shape (F,).
        node: The node of every GPU of the cluster, shape (G,).
    """
    if len(gpus) < count:
        return None
    _, group, size = np.unique(
        np.stack((scores, node[gpus])), axis=1, return_inverse=True, return_counts=True
    )
    order = np.lexsort((gpus, np.abs(size[group.reshape(-1)] - count), scores))
    chosen: list[int] = gpus[order[:count]].tolist()
    return chosen
