"""Tuned jobs: GPU counts and batch sizes of a well-informed owner.

They are for policies that adapt neither. A pair is valid if it reaches 50-80 % of the ideal
speed-up over one GPU at its best batch size: with less, GPUs are wasted; with more, the job could
use further ones (Pollux section 5.1, Sia section 4.3). The truth decides, since the owner has
measured. Models, lengths and submissions stay the trace's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maat.models.truth import Truth, gain
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, ParameterError
from maat.scheduling.goodput import plan_for_batch
from maat.simulation.world_models import Model
from maat.vocabulary import MAX_GPUS, Adaptivity, TuningRule, WorkloadKind
from maat.workloads.workloads import TraceJob

BATCH_SIZES = 20  # considered per GPU count, from the initial to the largest in equal ratios
EVERY_COUNT_TO = 16  # GPUs; beyond, whole eights
MOST_GPUS = 16  # of a tuned job, by default
NOT_TUNED = "none"  # in place of a rule
_STREAM = 17  # keeps these draws apart from others of the same seed


@dataclass(frozen=True, slots=True)
class TunedJobs:
    """How jobs are tuned. Shares are of the ideal speed-up.

    `most_gpus`: 64 on the homogeneous cluster of the Sia paper, 16 on its others. Raises
    ParameterError if no pair can be valid.
    """

    rule: TuningRule = TuningRule.BEST_BATCH
    most_gpus: int = MOST_GPUS
    least_share: float = 0.5
    most_share: float = 0.8

    def __post_init__(self) -> None:
        if self.most_gpus < 1:
            raise ParameterError(
                "must be at least 1",
                field="most_gpus",
                value=self.most_gpus,
                remedy="Give a whole number from 1 up.",
            )
        if not 0 < self.least_share <= self.most_share:
            raise ParameterError(
                "is not above 0 and up to most_share",
                field="least_share",
                value=self.least_share,
                remedy="Give for example 0.5 and 0.8.",
            )


def read_tuned(given: str, *, field: str = "tuned") -> TunedJobs | None:
    """Read a rule, `RULE:GPUS` with the most GPUs of a tuned job, or `none`.

    Raises ParameterError.
    """
    rule, colon, most = (part.strip() for part in given.partition(":"))
    if given == NOT_TUNED:
        return None
    rules = [each.value for each in TuningRule]
    usable = rule in rules and (not colon or (most.isdecimal() and 1 <= int(most) <= MAX_GPUS))
    if not usable:
        raise ParameterError(
            "is no rule by which jobs are tuned",
            field=field,
            value=given,
            remedy=f"Use one of: {', '.join(rules)}, {NOT_TUNED}; {rules[0]}:64 limits them to "
            "64 GPUs.",
        )
    return TunedJobs(TuningRule(rule), int(most)) if colon else TunedJobs(TuningRule(rule))


def shown_tuned(how: TunedJobs) -> str:
    """Return the text that `read_tuned` reads."""
    return how.rule.value if how.most_gpus == MOST_GPUS else f"{how.rule.value}:{how.most_gpus}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A GPU count and a total batch size, with their share of the ideal speed-up."""

    gpu_count: int
    batch_size: int
    share: float


def tuned(
    jobs: Sequence[TraceJob],
    models: Mapping[str, Model],
    cluster: Cluster,
    how: TunedJobs,
    *,
    seed: int,
    rounds_batch_up: bool = False,
) -> Mapping[str, TraceJob]:
    """Return the tuned jobs by name, each with a valid pair of its model.

    Pairs are drawn uniformly; the same seed gives the same pairs. Not tuned are jobs bound to their
    request, jobs of hybrid-parallel models, and jobs that the cluster cannot run.
    """
    valid = {
        name: valid_pairs(models[name], cluster, how, rounds_batch_up=rounds_batch_up)
        for name in dict.fromkeys(job.model for job in jobs)
    }
    rng = np.random.default_rng((seed, _STREAM))
    drawn = {}
    for job in jobs:
        pairs = [pair for pair in valid[job.model] if _is_allowed(pair, job)]
        at = int(rng.integers(max(len(pairs), 1)))
        if pairs and not is_bound(job):
            drawn[job.name] = replace(
                job, gpu_count=pairs[at].gpu_count, batch_size=pairs[at].batch_size
            )
    return drawn


def _is_allowed(pair: Pair, job: TraceJob) -> bool:
    """Whether the pair is within the limits that the job's owner declared."""
    counts = job.min_gpus <= pair.gpu_count and (
        job.max_gpus is None or pair.gpu_count <= job.max_gpus
    )
    return counts and (job.max_batch_size is None or pair.batch_size <= job.max_batch_size)


def is_bound(job: TraceJob) -> bool:
    """Return whether the owner has already chosen GPU count or batch size.

    The trace binds them, the job sets its own batch sizes, it must not be moved, or it only infers.
    """
    chosen = job.adaptivity in (Adaptivity.RIGID, Adaptivity.STRONG_SCALING) or bool(job.regimes)
    return chosen or not job.preemptible or job.workload_kind is not WorkloadKind.TRAINING


def valid_pairs(
    model: Model, cluster: Cluster, how: TunedJobs, *, rounds_batch_up: bool = False
) -> tuple[Pair, ...]:
    """Return the valid pairs of a model, by GPU count and batch size.

    If none is within the band, the nearest one. Pairs run on the cluster's type whose GPUs hold
    least of the model, so that the batch fits all of them; nodes are filled one after the other.
    `rounds_batch_up`: whether whole samples per GPU are rounded up, as published simulators do.
    """
    kind = _reference_type(model, cluster)
    if kind is None:
        return ()
    runs = _Runs(model.truth, cluster, kind, rounds_batch_up=rounds_batch_up)
    alone = min((seconds for _, seconds in runs.on(1)), default=None)
    if alone is None:
        return ()
    found = []
    for count in _counts(min(how.most_gpus, int(cluster.usable_gpus[cluster.type_index[kind]]))):
        pairs = [Pair(count, batch, alone / seconds / count) for batch, seconds in runs.on(count)]
        best = max(pairs, key=lambda pair: pair.share, default=None)
        found += pairs if how.rule is TuningRule.ANY_PAIR or best is None else [best]
    inside = tuple(pair for pair in found if how.least_share <= pair.share <= how.most_share)
    return inside or (min(found, key=lambda pair: (_outside(pair.share, how), pair.gpu_count)),)


def _outside(share: float, how: TunedJobs) -> float:
    return max(how.least_share - share, share - how.most_share, 0.0)


def _counts(most: int) -> list[int]:
    return [count for count in range(1, most + 1) if count <= EVERY_COUNT_TO or count % 8 == 0]


def _reference_type(model: Model, cluster: Cluster) -> str | None:
    """The usable type that holds least, if a replica is one GPU there; else None."""
    usable = [
        t for t in cluster.type_names if t in model.memory and model.gpus_per_replica.get(t, 1) == 1
    ]
    usable = [t for t in usable if cluster.usable_gpus[cluster.type_index[t]] > 0]
    return min(usable, key=lambda t: model.memory[t].largest_per_gpu, default=None)


class _Runs:
    """Seconds of a whole training at a constant batch size, on one GPU type."""

    def __init__(self, truth: Truth, cluster: Cluster, kind: str, *, rounds_batch_up: bool) -> None:
        self._truth, self._kind, self._rounds_up = truth, kind, rounds_batch_up
        self._per_node = int(cluster.gpus_per_node[cluster.type_index[kind]])
        self._steps: dict[int, float] = {}

    def on(self, count: int) -> list[tuple[int, float]]:
        """Return (total batch size, seconds) of each measured run on this many GPUs."""
        truth = self._truth
        least, most = (
            max(truth.initial_batch_size, truth.smallest_per_gpu(self._kind) * count),
            truth.max_batch_size,
        )
        if least > most or not truth.largest_per_gpu(self._kind, count):
            return []
        sizes = np.unique(
            np.round(np.geomspace(least, most, BATCH_SIZES)).astype(np.int64)
        ).tolist()
        found = {total: self._seconds(total, count) for total in sizes}
        return [(total, seconds) for total, seconds in found.items() if seconds is not None]

    def _seconds(self, total: int, count: int) -> float | None:
        """The seconds as the job will run it; None if it cannot or was not measured.

        It takes the fewest accumulation steps that fit; at least one for a larger batch on one GPU.
        """
        truth, (whole, rest) = self._truth, divmod(count, self._per_node)
        plan = plan_for_batch(
            total,
            replicas=count,
            largest_per_gpu=truth.largest_per_gpu(self._kind, count),
            largest_total=truth.max_batch_size if self._rounds_up else total,
            accumulate_above=truth.initial_batch_size,
        )
        if plan.per_gpu_batch_size < truth.smallest_per_gpu(self._kind):
            return None
        try:
            time = truth.step(
                self._kind,
                (self._per_node,) * whole + ((rest,) if rest else ()),
                plan.per_gpu_batch_size,
            )
        except InputError:
            return None
        return (
            self._steps_of(plan.total_batch_size)
            * time.with_accumulation(plan.accumulation_steps)
            * truth.slowdown
        )

    def _steps_of(self, total: int) -> float:
        """The optimiser steps of the whole training at this total batch size."""
        if total not in self._steps:
            truth, initial = self._truth, self._truth.initial_batch_size
            work = np.diff(truth.epoch_ends, prepend=0.0)
            gains = np.array(
                [gain(truth.gradient(epoch, total), total / initial) for epoch in range(len(work))]
            )
            self._steps[total] = float((work / (initial * gains)).sum())
        return self._steps[total]
