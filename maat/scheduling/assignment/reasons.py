"""Why each job got what it got, of a decision by the assignment programme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.assignment.limit_columns import LimitColumns, limit_columns
from maat.scheduling.configuration import ConfigurationTable
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.free_capacity import exceeds, free_places, never_fits, waiting_for
from maat.scheduling.job import Job, JobId, JobSpec
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.matrix import GoodputMatrix
from maat.scheduling.moving import with_moves
from maat.scheduling.pins import why_pinned
from maat.scheduling.rounds import Grant, RoundInput
from maat.scheduling.solving.report import SolveReport


@dataclass(frozen=True)
class AssignmentReasons(Mapping[JobId, Reasons]):
    """The reason of each job, from the values, prices and grants that decided.

    Each reason is computed when it is read.
    """

    round_input: RoundInput
    matrix: GoodputMatrix
    value: FloatArray
    grants: Mapping[JobId, Grant]
    report: SolveReport
    idle_penalty: float

    @cached_property
    def _row_of(self) -> Mapping[JobId, int]:
        return {job_id: row for row, job_id in enumerate(self.matrix.job_ids)}

    @cached_property
    def _columns(self) -> LimitColumns:
        pairs = self.matrix.pairs
        return limit_columns(
            self.round_input.limits,
            self.round_input.jobs,
            self.round_input.cluster.type_names,
            job=pairs.job,
            gpu_type=pairs.gpu_type,
            count=pairs.gpu_count,
        )

    @cached_property
    def _places(self) -> IntArray:
        """The places of every limit, and of none at the end."""
        places = [limit.places for limit in self.round_input.limits]
        return np.array([*places, np.iinfo(np.int64).max], dtype=np.int64)

    @cached_property
    def _free(self) -> IntArray:
        """The places that every limit has left beside pinned grants; and of none at the end."""
        return np.append(free_places(self.round_input), np.iinfo(np.int64).max)

    @cached_property
    def _prices(self) -> FloatArray:
        """The price of every limit, and of none at the end."""
        prices = self.report.prices
        return np.array([*(prices.get(limit.name, 0.0) for limit in self.round_input.limits), 0.0])

    def __iter__(self) -> Iterator[JobId]:
        return iter(self.round_input.job_by_id)

    def __len__(self) -> int:
        return len(self.round_input.jobs)

    def __getitem__(self, job_id: JobId) -> Reasons:
        job = self.round_input.job_by_id[job_id]
        if job_id in self.round_input.pinned and job.allocation is not None:
            return why_pinned(job)
        row = self._row_of[job_id]
        start, end = np.searchsorted(self.matrix.pairs.job, (row, row + 1))
        if start == end:
            needed = job.spec.requested_gpus if job.spec.is_rigid else job.spec.min_gpus
            why = never_fits(job, self.round_input, needed=needed)
            if why.primary is not ReasonCode.NO_CONFIGURATION:
                return why
            counts = _counts_not_offered(job.spec, self.matrix.table)
            return Reasons(why.primary, {**why.evidence, **counts})
        return (
            self._chosen(job, int(start), int(end))
            if job_id in self.grants
            else self._waiting(job, int(start), int(end))
        )

    def _chosen(self, job: Job, start: int, end: int) -> Reasons:
        grant, pairs = self.grants[job.id], self.matrix.pairs
        t = self.round_input.cluster.type_index[grant.gpu_type]
        mine = start + int(
            np.flatnonzero(
                (pairs.gpu_type[start:end] == t) & (pairs.gpu_count[start:end] == grant.gpu_count)
            )[0]
        )
        net = self._net(start, end)
        others = [i for i in range(end - start) if start + i != mine]
        runner_up = start + max(others, key=lambda i: net[i]) if others else None
        evidence = {
            **self._described(mine, ""),
            "best_batch_size": int(pairs.plans.total_batch_size[mine]),
            **({} if runner_up is None else self._beside(runner_up, "runner_up_")),
            **self._beside(self._alone(start, end), "alone_"),
        }
        return Reasons(ReasonCode.GRANTED, with_moves(job, evidence))

    def _alone(self, start: int, end: int) -> int:
        """Return the pair of most value to a job among those that no limit forbids by itself."""
        columns = self._columns.limit[int(self.matrix.pairs.job[start])]
        too_large = (self._columns.taken[start:end] > self._places[columns]).any(axis=1)
        return start + int(np.argmax(np.where(too_large, -np.inf, self.value[start:end])))

    def _beside(self, pair: int, prefix: str) -> dict[str, float | int | str | None]:
        """Describe a pair that a job did not get, and name the limit whose price counts most."""
        columns = self._columns.limit[int(self.matrix.pairs.job[pair])]
        paid = self._columns.taken[pair] * self._prices[columns]
        dearest = int(np.argmax(paid)) if len(paid) else 0
        described = self._described(pair, prefix)
        if len(paid) and paid[dearest] > 0:
            described[f"{prefix}limit"] = self.round_input.limits[int(columns[dearest])].name
        return described

    def _waiting(self, job: Job, start: int, end: int) -> Reasons:
        """Return why a job got nothing.

        Either no GPUs have a value for it, or it is priced out: at the prices of this round even
        its best configuration is worth less than its GPUs are elsewhere.
        """
        columns = self._columns.limit[self._row_of[job.id]]
        used = self._columns.taken[start:end]
        too_large = used > self._places[columns]
        if too_large.any(axis=1).all():
            return exceeds([self.round_input.limits[r] for r in columns[too_large[0]].tolist()])
        most = float(self.value[start:end][~too_large.any(axis=1)].max())
        if most <= 0 and not self.report.fallback:
            return self._worth_nothing(job, most)
        net = np.where(too_large.any(axis=1), -np.inf, self._net(start, end))
        best = int(np.argmax(net))
        binding = self._binding(columns, used[best])
        code = ReasonCode.SOLVER_FALLBACK if self.report.fallback else waiting_for(binding)
        return Reasons(
            code,
            {
                **self._described(start + best, ""),
                "binding_limit": None if binding is None else binding.name,
            },
        )

    def _worth_nothing(self, job: Job, most: float) -> Reasons:
        """Return the reason of a job for which no GPUs have a value.

        `most`: the value of its best configuration above getting nothing.
        """
        above = self.idle_penalty - most / job.spec.weight
        return Reasons(
            ReasonCode.IDLE_COSTS_LESS,
            {"value": most, "idle_penalty": self.idle_penalty, "idle_penalty_above": above},
        )

    def _binding(self, columns: IntArray, used: IntArray) -> Limit | None:
        """Return the limit of the highest price among those that lack places for a pair.

        `columns`, (M,): the limits of its job. `used`, (M,): what the pair uses of them. If no
        limit lacks places, all its limits compete. A full quota comes before what all share.
        """
        lacking = columns[used > self._free[columns]]
        compete = lacking if len(lacking) else columns[used > 0]
        limits = [self.round_input.limits[r] for r in np.sort(compete).tolist()]
        prices = self.report.prices
        return max(
            limits,
            key=lambda limit: (limit.name in self._full_quotas, prices.get(limit.name, 0.0)),
            default=None,
        )

    @cached_property
    def _full_quotas(self) -> set[str]:
        """The names of the quotas that the grants use up."""
        used: Counter[int] = Counter()
        for job_id, grant in self.grants.items():
            spec = self.round_input.job_by_id[job_id].spec
            for r in self.round_input.limit_index.of(spec, grant.gpu_type, grant.gpu_count):
                used[r] += self.round_input.limits[r].places_of(grant.gpu_count)
        return {
            limit.name
            for r, limit in enumerate(self.round_input.limits)
            if limit.kind is LimitKind.QUOTA and used[r] >= limit.places
        }

    def _net(self, start: int, end: int) -> FloatArray:
        """Return value less the price of the places taken, of the pairs of one job.

        Shape (end - start,).
        """
        columns = self._columns.limit[int(self.matrix.pairs.job[start])]
        taken = self._columns.taken[start:end]
        net: FloatArray = self.value[start:end] - taken @ self._prices[columns]
        return net

    def _described(self, pair: int, prefix: str) -> dict[str, float | int | str | None]:
        pairs = self.matrix.pairs
        return {
            f"{prefix}gpu_type": self.round_input.cluster.type_names[pairs.gpu_type[pair]],
            f"{prefix}gpu_count": int(pairs.gpu_count[pair]),
            f"{prefix}goodput_samples_per_second": float(pairs.goodput[pair])
            if pairs.known[pair]
            else None,
            f"{prefix}value": float(self.value[pair]),
            f"{prefix}price": float(self.value[pair] - self._net(pair, pair + 1)[0]),
        }


def _counts_not_offered(spec: JobSpec, table: ConfigurationTable) -> dict[str, str]:
    """Return the counts that a job asks for and those that the table has, if none are the same."""
    offered: dict[str, list[int]] = {}
    for configuration, elastic in zip(table.configurations, table.elastic.tolist(), strict=True):
        if elastic and spec.may_use(configuration.gpu_type):
            offered.setdefault(configuration.gpu_type, []).append(configuration.gpu_count)
    most = spec.max_gpus
    within = any(
        count >= spec.min_gpus and (most is None or count <= most)
        for counts in offered.values()
        for count in counts
    )
    if within or spec.is_rigid or not offered:
        return {}
    asked = f"{spec.min_gpus} or more" if most is None else f"{spec.min_gpus} to {most}"
    asked = str(most) if most == spec.min_gpus else asked
    by_type = [f"{', '.join(map(str, counts))} of {name}" for name, counts in offered.items()]
    return {"asked_gpus": asked, "offered_gpus": "; ".join(by_type)}
