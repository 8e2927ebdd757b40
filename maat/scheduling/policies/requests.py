"""What each job requests, and what it would make of it on every GPU type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.goodput import BatchPlan, plan_for_batch
from maat.scheduling.job import Job, JobSpec
from maat.scheduling.matrix import Pairs, evaluate_pairs
from maat.scheduling.rounds import RoundInput
from maat.vocabulary import Adaptivity

UNKNOWN = 1e-9  # goodput of a job that can run, and of which no more is known


def requested_gpus_of(spec: JobSpec, _gpu_type: str, /) -> int:
    """Return the GPUs that a job requests, of any type."""
    return spec.requested_gpus


@dataclass(frozen=True, eq=False)
class Requests:
    """What J jobs would make of the GPUs that they request, on T types.

    Goodput is computed when it is first read: most orders do not need it. `gpus_of`: how many GPUs
    of a type a job is to have, if not what it requests.
    """

    round_input: RoundInput
    gpus_of: Callable[[JobSpec, str], int] = requested_gpus_of
    _declared: dict[tuple[int, int], BatchPlan | None] = field(default_factory=dict)
    _counts: dict[tuple[int, int], int] = field(default_factory=dict)
    _types: dict[int, list[int]] = field(default_factory=dict)

    def gpu_count(self, row: int, t: int) -> int:
        """Return the GPUs that a job is to have on a type."""
        count = self._counts.get((row, t))
        if count is None:
            count = self._counts[row, t] = self.gpus_of(
                self.round_input.jobs[row].spec, self.round_input.cluster.type_names[t]
            )
        return count

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs, bound to their batch size if they declared one."""
        return tuple(replace(job, spec=_as_requested(job)) for job in self.round_input.jobs)

    @cached_property
    def usable(self) -> tuple[tuple[int, ...], ...]:
        """The types on which each job can run."""
        many = range(len(self.round_input.cluster.type_names))
        return tuple(
            tuple(t for t in many if self._can_run(row, t))
            for row in range(len(self.round_input.jobs))
        )

    def _can_run(self, row: int, t: int) -> bool:
        cluster, spec = self.round_input.cluster, self.round_input.jobs[row].spec
        name = cluster.type_names[t]
        if not spec.may_use(name):
            return False
        count = self.gpu_count(row, t)
        allowed = spec.max_gpus is None or count <= spec.max_gpus
        return allowed and count <= cluster.usable_gpus[t] and count % spec.replica_gpus(name) == 0

    @cached_property
    def pair_of(self) -> IntArray:
        """The number of each job's pair on a type, shape (J, T); -1 for none."""
        pair_of = np.full(
            (len(self.usable), len(self.round_input.cluster.type_names)), -1, dtype=np.int64
        )
        for pair, (row, t) in enumerate(
            (row, t) for row, types in enumerate(self.usable) for t in types
        ):
            pair_of[row, t] = pair
        return pair_of

    @cached_property
    def pairs(self) -> Pairs:
        cluster = self.round_input.cluster
        rows, kinds = (axis.astype(np.int64) for axis in np.nonzero(self.pair_of >= 0))
        count = np.array(
            [self.gpu_count(row, t) for row, t in zip(rows.tolist(), kinds.tolist(), strict=True)],
            dtype=np.int64,
        )
        nodes = -(-count // np.maximum(cluster.gpus_per_node[kinds], 1))
        pairs = evaluate_pairs(
            self.jobs,
            cluster,
            job=rows,
            gpu_type=kinds,
            gpu_count=count,
            node_count=nodes,
            column=np.zeros_like(rows),
            projection=self.round_input.projection,
        )
        # A declared batch that fits runs. If the model says that it does not, it is that of another
        # type, which cannot hold the batch, and says nothing of this one.
        known = pairs.known.copy()
        for pair in np.flatnonzero(known & (pairs.goodput == 0)).tolist():
            known[pair] = not self._surely_runs(int(rows[pair]), int(kinds[pair]))
        return replace(pairs, known=known)

    @cached_property
    def goodput(self) -> FloatArray:
        """Effective samples per second, shape (J, T).

        UNKNOWN if nothing is known, zero if the job cannot run on the type.
        """
        goodput = np.zeros(self.pair_of.shape)
        goodput[self.pairs.job, self.pairs.gpu_type] = np.where(
            self.pairs.known, self.pairs.goodput, UNKNOWN
        )
        return goodput

    @property
    def evaluated(self) -> bool:
        """Whether goodput has been computed."""
        return "goodput" in self.__dict__

    def remaining_seconds(self) -> FloatArray:
        """Return the seconds to the end on the fastest type, shape (J,).

        Infinite if a job can run on no type.
        """
        best = self.goodput.max(axis=1, initial=0.0)
        work = np.array([job.remaining_work for job in self.round_input.jobs])
        seconds: FloatArray = np.divide(work, best, out=np.full(len(work), np.inf), where=best > 0)
        return seconds

    def fastest_types(self, row: int) -> list[int]:
        """Return the types on which a job can run, fastest first.

        Does not compute goodput if the job has one type and its declared batch fits there.
        """
        only = self.usable[row]
        if not self.evaluated and (
            not only or (len(only) == 1 and self._surely_runs(row, only[0]))
        ):
            return list(only)
        return [t for t in self._order[row] if t >= 0]

    @cached_property
    def _order(self) -> list[list[int]]:
        """The types of each job, fastest first; -1 in place of those on which it cannot run."""
        order = np.argsort(-self.goodput, axis=1, kind="stable")
        runs = np.take_along_axis(self.goodput, order, axis=1) > 0
        found: list[list[int]] = np.where(runs, order, -1).tolist()
        return found

    def types_in_order(self, row: int) -> list[int]:
        """Return the type that the job holds, then the others, fastest first."""
        if row not in self._types:
            fastest, held = self.fastest_types(row), self.round_input.jobs[row].allocation
            if held is not None and len(fastest) > 1:
                present = self.round_input.cluster.type_index[held.gpu_type]
                fastest.sort(key=lambda t: t != present)
            self._types[row] = fastest
        return self._types[row]

    def _surely_runs(self, row: int, t: int) -> bool:
        return (
            self.round_input.jobs[row].spec.promised_seconds is None
            and self._declared_plan(row, t) is not None
        )

    def plan(self, row: int, t: int) -> BatchPlan | None:
        """Return the declared batch, else the best one known; None if unknown."""
        declared = self._declared_plan(row, t)
        if declared is not None:
            return declared
        pair = int(self.pair_of[row, t])
        return self.pairs.plans.plan(pair) if self.pairs.known[pair] else None

    def _declared_plan(self, row: int, t: int) -> BatchPlan | None:
        if (row, t) not in self._declared:
            self._declared[row, t] = self._work_out_declared(row, t)
        return self._declared[row, t]

    def _work_out_declared(self, row: int, t: int) -> BatchPlan | None:
        spec, name = self.round_input.jobs[row].spec, self.round_input.cluster.type_names[t]
        if spec.batch_size is None:
            return None
        return declared_plan(spec, name, replicas=self.gpu_count(row, t) // spec.replica_gpus(name))


def requests(round_input: RoundInput) -> Requests:
    """Return every job with its own request: GPU count and declared batch size."""
    return round_input.once("requests", lambda: Requests(round_input))


def declared_plan(spec: JobSpec, gpu_type: str, *, replicas: int) -> BatchPlan | None:
    """Return the requested batch with the fewest accumulation steps, or None.

    None if no per-GPU batch size within the job's limits gives that total.
    """
    return declared_plans(spec, gpu_type)(replicas)


def declared_plans(spec: JobSpec, gpu_type: str) -> Callable[[int], BatchPlan | None]:
    """Return a function from replica count to the declared plan."""
    total, memory = spec.requested_batch_size, spec.memory[gpu_type]
    most, above = spec.most_samples(total), spec.initial_batch_size if spec.learns else total
    return partial(
        _plan_within, total, memory.smallest_per_gpu, memory.largest_per_gpu, most, above
    )


@lru_cache(maxsize=1 << 16)
def _plan_within(
    total: int,
    smallest_per_gpu: int,
    largest_per_gpu: int,
    largest_total: int,
    accumulate_above: int,
    replicas: int,
    /,
) -> BatchPlan | None:
    if total < replicas * smallest_per_gpu:
        return None
    plan = plan_for_batch(
        total,
        replicas=replicas,
        largest_per_gpu=largest_per_gpu,
        largest_total=largest_total,
        accumulate_above=accumulate_above,
    )
    return plan if plan.per_gpu_batch_size >= smallest_per_gpu else None


def _as_requested(job: Job) -> JobSpec:
    """Return the spec with its batch size fixed, if it declared one."""
    if job.spec.batch_size is None:
        return job.spec
    return replace(job.spec, adaptivity=Adaptivity.RIGID, gpu_count=job.spec.requested_gpus)
