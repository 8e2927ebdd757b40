"""From a goodput matrix and a value per pair to grants.

Builds the assignment programme around what is pinned, and reads its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.free_capacity import exceeds, free_places, never_fits, waiting_for
from maat.scheduling.job import Job, JobId
from maat.scheduling.limits import Limit, membership, places_taken
from maat.scheduling.matrix import GoodputMatrix
from maat.scheduling.rounds import Decision, Grant, RoundInput
from maat.scheduling.solving.assignment.problem import AssignmentProblem, SolveOptions
from maat.scheduling.solving.assignment.solver import solve
from maat.scheduling.solving.report import SolveReport


def assign(
    round_input: RoundInput,
    matrix: GoodputMatrix,
    value: FloatArray,
    *,
    idle_penalty: float,
    options: SolveOptions,
    with_batch: bool = True,
) -> Decision:
    """Return the grants that maximise the summed value of the chosen pairs.

    Pins and limits are kept.

    Args:
        value: Shape (P,), the value of each pair of the matrix above getting nothing. It includes
            `idle_penalty` times the job's weight.
        idle_penalty: What a job without GPUs costs the objective; only explains the answer.
        with_batch: Whether grants carry a batch plan.
    """
    pairs = matrix.pairs
    open_pairs = np.flatnonzero(~_pinned_rows(round_input)[pairs.job] & (pairs.gpu_count > 0))
    rows = membership(
        round_input.limits,
        round_input.jobs,
        round_input.cluster.type_names,
        job=pairs.job,
        gpu_type=pairs.gpu_type,
        count=pairs.gpu_count,
    )
    taken = places_taken(round_input.limits, rows, pairs.gpu_count)
    problem = AssignmentProblem(
        value=value[open_pairs],
        places=pairs.gpu_count[open_pairs],
        job=pairs.job[open_pairs],
        membership=rows[open_pairs],
        capacity=free_places(round_input),
        present=present_pairs(round_input, matrix)[open_pairs],
        limit_names=tuple(limit.name for limit in round_input.limits),
        taken=taken[open_pairs]
        if any(limit.places_by_count for limit in round_input.limits)
        else None,
    )
    answer = solve(problem, options)
    chosen = _grants(round_input, matrix, open_pairs[answer.chosen], with_batch=with_batch)
    grants = {**round_input.pinned, **chosen}
    reasons = AssignmentReasons(
        round_input, matrix, value, taken, grants, answer.report, idle_penalty
    )
    return Decision(grants, answer.report, reasons, matrix=matrix, utility=value)


def _grants(
    round_input: RoundInput, matrix: GoodputMatrix, chosen: IntArray, *, with_batch: bool
) -> dict[JobId, Grant]:
    """Return the grants of the chosen pairs, in their order."""
    pairs, names = matrix.pairs, round_input.cluster.type_names
    grants = {}
    for pair, j, t, count, nodes in zip(
        chosen.tolist(),
        pairs.job[chosen].tolist(),
        pairs.gpu_type[chosen].tolist(),
        pairs.gpu_count[chosen].tolist(),
        pairs.node_count[chosen].tolist(),
        strict=True,
    ):
        plan = pairs.plans.plan(pair) if with_batch and pairs.known[pair] else None
        grants[matrix.job_ids[j]] = Grant(names[t], count, node_count=nodes, batch=plan)
    return grants


def present_pairs(round_input: RoundInput, matrix: GoodputMatrix) -> BoolArray:
    """Return which pairs are what their job holds now, shape (P,)."""
    kind = np.full(len(round_input.jobs), -1, dtype=np.int64)
    count = np.zeros(len(round_input.jobs), dtype=np.int64)
    for j, job in enumerate(round_input.jobs):
        if job.allocation is not None:
            kind[j] = round_input.cluster.type_index[job.allocation.gpu_type]
            count[j] = job.allocation.gpu_count
    pairs = matrix.pairs
    present: BoolArray = (pairs.gpu_type == kind[pairs.job]) & (pairs.gpu_count == count[pairs.job])
    return present


def _pinned_rows(round_input: RoundInput) -> BoolArray:
    return np.array([job.id in round_input.pinned for job in round_input.jobs], dtype=bool)


@dataclass(frozen=True)
class AssignmentReasons(Mapping[JobId, Reasons]):
    """The reason of each job, from the values, prices and grants that decided.

    Each reason is computed when it is read.
    """

    round_input: RoundInput
    matrix: GoodputMatrix
    value: FloatArray
    taken: IntArray
    grants: Mapping[JobId, Grant]
    report: SolveReport
    idle_penalty: float

    @cached_property
    def _row_of(self) -> Mapping[JobId, int]:
        return {job_id: row for row, job_id in enumerate(self.matrix.job_ids)}

    @cached_property
    def _free_places(self) -> list[int]:
        free: list[int] = free_places(self.round_input).tolist()
        return free

    @cached_property
    def _prices(self) -> FloatArray:
        return np.array(
            [self.report.prices.get(limit.name, 0.0) for limit in self.round_input.limits]
        )

    def __iter__(self) -> Iterator[JobId]:
        return iter(self.round_input.job_by_id)

    def __len__(self) -> int:
        return len(self.round_input.jobs)

    def __getitem__(self, job_id: JobId) -> Reasons:
        job = self.round_input.job_by_id[job_id]
        if job_id in self.round_input.pinned and job.allocation is not None:
            return Reasons(
                ReasonCode.PINNED,
                {"restarting": int(job.restarting), "preemptible": int(job.spec.preemptible)},
            )
        row = self._row_of[job_id]
        start, end = np.searchsorted(self.matrix.pairs.job, (row, row + 1))
        if start == end:
            needed = job.spec.requested_gpus if job.spec.is_rigid else job.spec.min_gpus
            return never_fits(job, self.round_input, needed=needed)
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
        return Reasons(
            ReasonCode.GRANTED,
            {
                **self._described(mine, ""),
                **({} if runner_up is None else self._described(runner_up, "runner_up_")),
            },
        )

    def _waiting(self, job: Job, start: int, end: int) -> Reasons:
        """Return why a job got nothing.

        Either no GPUs have a value for it, or it is priced out: at the prices of this round even
        its best configuration is worth less than its GPUs are elsewhere.
        """
        places = np.array([limit.places for limit in self.round_input.limits], dtype=np.int64)
        used = self.taken[start:end]
        too_large = used > places
        if too_large.any(axis=1).all():
            return exceeds(
                [
                    limit
                    for limit, over in zip(self.round_input.limits, too_large[0], strict=True)
                    if over
                ]
            )
        most = float(self.value[start:end][~too_large.any(axis=1)].max())
        if most <= 0 and not self.report.fallback:
            return self._worth_nothing(job, most)
        net = np.where(too_large.any(axis=1), -np.inf, self._net(start, end))
        best = int(np.argmax(net))
        binding = self._binding(used[best])
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

        `most`: the value of its best configuration above getting nothing. A job without weight has
        no value at any penalty.
        """
        if not job.spec.weight:
            return Reasons(ReasonCode.IDLE_COSTS_LESS, {"weight": job.spec.weight})
        above = self.idle_penalty - most / job.spec.weight
        return Reasons(
            ReasonCode.IDLE_COSTS_LESS,
            {"value": most, "idle_penalty": self.idle_penalty, "idle_penalty_above": above},
        )

    def _binding(self, used: IntArray) -> Limit | None:
        """Return the limit of the highest price among those that lack places for a pair.

        `used`, (R,), is what the pair uses. If no limit lacks places, all its limits compete.
        """
        at = list(zip(self.round_input.limits, used.tolist(), self._free_places, strict=True))
        lacking = [limit for limit, count, free in at if count > free] or [
            limit for limit, count, _ in at if count
        ]
        return max(lacking, key=lambda limit: self.report.prices.get(limit.name, 0.0), default=None)

    def _net(self, start: int, end: int) -> FloatArray:
        """Return value less the price of the places taken, shape (end - start,)."""
        net: FloatArray = self.value[start:end] - self.taken[start:end] @ self._prices
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
