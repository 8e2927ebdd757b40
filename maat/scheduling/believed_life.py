"""What was believed of a job over its life, and its JCT alone by that belief.

The live cluster's side of finish-time fairness: no truth is needed. isolation.py has the rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, GradientStatistics
from maat.scheduling.bootstrap import Projection, project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import (
    Configuration,
    ConfigurationTable,
    sia_configurations,
    with_counts,
)
from maat.scheduling.isolation import (
    fair_shares,
    is_allowed,
    of_type,
    seconds_alone,
    seconds_at_share,
    seconds_on_request,
)
from maat.scheduling.job import Job, JobSpec
from maat.scheduling.matrix import evaluate_pairs
from maat.vocabulary import FairnessRule


@dataclass(frozen=True, slots=True)
class GradientAt:
    """Gradient statistics that were measured once `work` effective samples were done."""

    work: float
    gradient: GradientStatistics


@dataclass(frozen=True)
class BelievedLife:
    """A job that has ended, as the scheduler knew it.

    `belief`: its step times, by GPU type. `gradients`: what was measured while it trained, in order
    of the work done; each holds until the next. Before the first a larger batch has no value.
    `work`: effective samples that it needed.
    """

    spec: JobSpec
    belief: Belief
    gradients: Sequence[GradientAt]
    work: float

    def jobs(self) -> list[Job]:
        """Return the job in each phase of its training, as a policy would see it."""
        unknown = replace(self.belief, gradient=None)
        known = [replace(self.belief, gradient=one.gradient) for one in self.gradients]
        return [Job(self.spec, belief, self.work) for belief in (unknown, *known)]

    def ends(self) -> list[float]:
        """Return the work done at the end of each phase, ascending; the last is all of it."""
        return [*(min(one.work, self.work) for one in self.gradients), self.work]


def believed_isolated_seconds(
    life: BelievedLife,
    cluster: Cluster,
    *,
    contention: float,
    rule: FairnessRule = FairnessRule.MEAN_OF_RATIOS,
    projection: Projection = project_by_profile,
    look: Callable[[], object] = lambda: None,
) -> Mapping[str, float]:
    """Return the JCT in seconds of a job alone on its fair share of each GPU type: JCT_g.

    Has every type on which it could run by what is believed of it. A job is compared with itself as
    its owner declared it: a rigid one runs alone on the GPUs that it asked for, and on a smaller
    share proportionally longer.

    `contention`: mean number of active jobs over its life. `look` is called between rounds; what it
    raises ends the computation.
    """
    gpus = dict(zip(cluster.type_names, cluster.usable_gpus.tolist(), strict=True))
    shares = fair_shares({g: int(n) for g, n in gpus.items()}, contention, rule)
    spec, table = life.spec, sia_configurations(cluster)
    if spec.is_rigid:
        table = with_counts(table, cluster, [spec.requested_gpus])
    offered = _offered(life, cluster, table, projection)
    found = {}
    for kind in cluster.type_names:
        usable = _usable(spec, table, kind, offered)
        if not usable:
            continue
        run = partial(_seconds, life, offered, look=look)
        found[kind] = (
            seconds_on_request(run(usable), spec.requested_gpus, shares[kind])
            if spec.is_rigid
            else seconds_at_share(run, usable, shares[kind])
        )
    return found


_Offered = Mapping[Configuration, FloatArray]


def _offered(
    life: BelievedLife, cluster: Cluster, table: ConfigurationTable, projection: Projection
) -> _Offered:
    """Goodput of every configuration in each phase of the training, shape (phases,) each.

    One broadcast over phases and configurations, by the same model as in rounds.
    """
    spec, jobs = life.spec, life.jobs()
    columns = [
        c
        for c, one in enumerate(table.configurations)
        if spec.may_use(one.gpu_type) and one.gpu_count % spec.replica_gpus(one.gpu_type) == 0
    ]
    at = np.array(columns, dtype=np.int64)
    phases = len(jobs)
    column = np.tile(at, phases)
    pairs = evaluate_pairs(
        jobs,
        cluster,
        job=np.repeat(np.arange(phases), len(at)),
        gpu_type=table.type_index[column],
        gpu_count=table.gpu_count[column],
        node_count=table.node_count[column],
        column=column,
        projection=projection,
    )
    goodput = pairs.goodput.reshape(phases, len(at))
    return {table.configurations[c]: goodput[:, i] for i, c in enumerate(columns)}


def _usable(
    spec: JobSpec, table: ConfigurationTable, kind: str, offered: _Offered
) -> list[Configuration]:
    """The configurations of a type in which the job makes progress, the fewest GPUs first."""
    exactly = spec.requested_gpus if spec.is_rigid else None
    return [
        c
        for c in of_type(table, kind)
        if c in offered
        and (exactly is not None or c not in table.requested_only)
        and is_allowed(
            c.gpu_count,
            least=exactly or spec.min_gpus,
            most=exactly or spec.max_gpus,
            replica_gpus=spec.replica_gpus(kind),
        )
        and bool((offered[c] > 0).all())
    ]


def _seconds(
    life: BelievedLife,
    offered: _Offered,
    usable: Sequence[Configuration],
    *,
    look: Callable[[], object],
) -> float:
    goodput = np.stack([offered[c] for c in usable], axis=1)
    return seconds_alone(_BelievedJob(life, usable, goodput), usable, look=look)


class _BelievedJob:
    """A lone job that trains at the goodput that was believed of it.

    `goodput`, shape (phases, C): of `usable`.
    """

    def __init__(
        self, life: BelievedLife, usable: Sequence[Configuration], goodput: FloatArray
    ) -> None:
        self._ends, self._usable, self._spec = life.ends(), list(usable), life.spec
        self._rows: list[FloatArray] = [row.copy() for row in goodput]
        self._at, self._done = 0, 0.0
        self._phase = self._next_phase()
        self._starts, self._restart_left = 0, 0.0
        self.finished_at: float | None = None

    @property
    def is_restarting(self) -> bool:
        return self._restart_left > 0

    @property
    def restarts(self) -> int:
        return max(self._starts - 1, 0)

    @property
    def restart_seconds(self) -> float:
        return self._spec.restart_seconds

    def move(self, to: Configuration, now: float) -> None:
        self._at, self._restart_left = self._usable.index(to), self._spec.restart_seconds
        self._starts += 1

    def goodput(self, usable: Sequence[Configuration]) -> FloatArray:  # of `_usable`
        return self._rows[self._phase]

    def steady_seconds(self) -> float:
        return self._restart_left + (self._ends[self._phase] - self._done) / self._rate

    def advance(self, now: float, until: float) -> None:
        pause = min(self._restart_left, until - now)
        self._restart_left -= pause
        now += pause
        while until - now > 1e-9 and self.finished_at is None:
            needed = (self._ends[self._phase] - self._done) / self._rate
            if needed > until - now:
                self._done += self._rate * (until - now)
                return
            now, self._done = now + needed, self._ends[self._phase]
            if self._phase + 1 == len(self._ends):
                self.finished_at = now
            else:
                self._phase = self._next_phase()

    def _next_phase(self) -> int:
        """The first later phase that has not ended yet: some may have no work of their own."""
        return min(bisect_right(self._ends, self._done), len(self._ends) - 1)

    @property
    def _rate(self) -> float:
        return float(self._rows[self._phase][self._at])
