"""Solves the assignment programme tenant by tenant, where quotas leave nothing to share.

If the rows of tenants add up to no more than what they have in common, such as the capacity of a
type, then the programme falls apart into one of each tenant. Small ones are solved together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.free_capacity import free_places
from maat.scheduling.limits import Limit, membership, places_taken
from maat.scheduling.matrix import Pairs
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.assignment.problem import (
    EXACT,
    Assignment,
    AssignmentProblem,
    SolveOptions,
)
from maat.scheduling.solving.assignment.small_parts import SmallParts, solve_small, states
from maat.scheduling.solving.assignment.solver import solve
from maat.scheduling.solving.report import SolveReport, SolveStatus

_MOST_STATES = 4096  # combinations of places of a tenant that is solved together with others
_PREFERENCE = 1e-9  # share of the largest value that the least preferred of equal pairs loses


def solve_by_tenant(
    round_input: RoundInput,
    pairs: Pairs,
    open_pairs: IntArray,
    value: FloatArray,
    present: BoolArray,
    options: SolveOptions,
) -> Assignment | None:
    """Return the best answer; None if tenants have no rows, or must be solved together.

    `open_pairs`: the pairs that may be chosen; those chosen are numbers in it. `value`, `present`:
    of these, shape (P,).
    """
    if not any(limit.tenant is not None for limit in round_input.limits):
        return None
    began = time.process_time()
    split = _Split(round_input, pairs, open_pairs, value, present)
    if not split.is_complete:
        return None
    small = split.small
    answers = [split.solved(k, options) for k in np.flatnonzero(~small & split.has_pairs).tolist()]
    chosen = [answer.chosen for answer in answers]
    prices = dict[str, float]()
    for answer in answers:
        prices |= answer.report.prices
    if small.any():
        together, of_small = split.solved_together(small, options)
        chosen.append(together)
        prices |= of_small
    every = np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)
    objective = float(value[every].sum())
    lost = sum(answer.report.bound - answer.report.objective for answer in answers)
    preferred = _PREFERENCE * float(value.max(initial=0.0)) * int(split.has_pairs.sum())
    bound = objective + lost + (preferred if small.any() else 0.0)
    gap = (bound - objective) / bound if bound > 0 else 0.0
    proved = gap <= max(options.tolerance, EXACT)
    report = SolveReport(
        status=SolveStatus.OPTIMAL if proved else SolveStatus.WITHIN_GAP,
        method="by tenant",
        objective=objective,
        bound=bound,
        gap=gap,
        seconds=time.process_time() - began,
        fallback=any(answer.report.fallback for answer in answers),
        out_of_time=any(answer.report.out_of_time for answer in answers),
        message="; ".join(a.report.message for a in answers if a.report.message),
        prices=split.all_prices(prices),
    )
    return Assignment(every, report)


class _Rows(NamedTuple):
    """The rows of tenants.

    `places`, (K, T): what they leave each tenant of each type. `has_other`, (K,): tenants with rows
    that are not plain ones of a type. `of_tenant`: numbers of limits by tenant; `plain`: by tenant
    and type.
    """

    places: IntArray
    has_other: BoolArray
    of_tenant: dict[int, list[int]]
    plain: dict[tuple[int, int], int]


class _Tenants(NamedTuple):
    """Names of K tenants, and the tenant of each job, (J,)."""

    names: list[str]
    of_job: IntArray


@dataclass(frozen=True)
class _Split:
    """The programme by tenant: K tenants, T types, P open pairs."""

    round_input: RoundInput
    pairs: Pairs
    open_pairs: IntArray
    value: FloatArray
    present: BoolArray

    @cached_property
    def _tenants(self) -> _Tenants:
        names = [job.spec.tenant for job in self.round_input.jobs]
        found = sorted(set(names))
        number = {name: k for k, name in enumerate(found)}
        return _Tenants(found, np.array([number[name] for name in names], dtype=np.int64))

    @cached_property
    def _team(self) -> IntArray:
        """The tenant of each pair, shape (P,)."""
        return self._tenants.of_job[self._job]

    @cached_property
    def _job(self) -> IntArray:
        return self.pairs.job[self.open_pairs]

    @cached_property
    def _type(self) -> IntArray:
        return self.pairs.gpu_type[self.open_pairs]

    @cached_property
    def _count(self) -> IntArray:
        return self.pairs.gpu_count[self.open_pairs]

    @cached_property
    def _free(self) -> IntArray:
        return free_places(self.round_input)

    @cached_property
    def _shape(self) -> tuple[int, int]:
        return len(self._tenants.names), len(self.round_input.cluster.type_names)

    @cached_property
    def has_pairs(self) -> BoolArray:
        """Which tenants have a pair worth something, shape (K,)."""
        found = np.zeros(self._shape[0], dtype=bool)
        found[self._team[self.value > 0]] = True
        return found

    @cached_property
    def _could_use(self) -> IntArray:
        """The most that each tenant's pairs can take of each type, without limits, (K, T)."""
        most = np.zeros((len(self.round_input.jobs), self._shape[1]), dtype=np.int64)
        useful = self.value > 0
        np.maximum.at(most, (self._job[useful], self._type[useful]), self._count[useful])
        found = np.zeros(self._shape, dtype=np.int64)
        np.add.at(found, self._tenants.of_job, most)
        return found

    @cached_property
    def _rows(self) -> _Rows:
        places, other = self._could_use.copy(), np.zeros(self._shape[0], dtype=bool)
        number = {name: k for k, name in enumerate(self._tenants.names)}
        index = self.round_input.cluster.type_index
        of_tenant: dict[int, list[int]] = {}
        plain: dict[tuple[int, int], int] = {}
        for r, limit in enumerate(self.round_input.limits):
            k = number.get(limit.tenant or "") if limit.tenant is not None else None
            if k is None:
                continue
            of_tenant.setdefault(k, []).append(r)
            t = index.get(limit.gpu_type or "")
            if t is None or (k, t) in plain or not _is_plain(limit):
                other[k] = True
            else:
                plain[k, t] = r
                places[k, t] = min(int(places[k, t]), int(self._free[r]))
        return _Rows(places, other, of_tenant, plain)

    @property
    def is_complete(self) -> bool:
        """Whether what tenants have in common is enough for all that their rows allow."""
        most = self._rows.places.sum(axis=0)
        index = self.round_input.cluster.type_index
        for r, limit in enumerate(self.round_input.limits):
            if limit.tenant is not None:
                continue
            if limit.places_by_count:
                return False
            kinds = [t for name, t in index.items() if limit.gpu_type in (None, name)]
            if most[kinds].sum() > self._free[r]:
                return False
        return True

    @cached_property
    def small(self) -> BoolArray:
        """Which tenants are solved together, shape (K,)."""
        few = states(self._rows.places) <= _MOST_STATES
        return ~self._rows.has_other & self.has_pairs & few

    def solved(self, k: int, options: SolveOptions) -> Assignment:
        """Return the answer of one tenant, by its rows alone."""
        mine = np.flatnonzero(self._team == k)
        rows = self._rows.of_tenant.get(k, [])
        limits = [self.round_input.limits[r] for r in rows]
        chosen = self._problem(mine, limits, self._free[rows])
        answer = solve(chosen, options)
        return replace(answer, chosen=mine[answer.chosen])

    def _problem(
        self, mine: IntArray, limits: Sequence[Limit], capacity: IntArray
    ) -> AssignmentProblem:
        at = self.open_pairs[mine]
        counted = membership(
            limits,
            self.round_input.jobs,
            self.round_input.cluster.type_names,
            job=self.pairs.job[at],
            gpu_type=self.pairs.gpu_type[at],
            count=self.pairs.gpu_count[at],
        )
        return AssignmentProblem(
            value=self.value[mine],
            places=self.pairs.gpu_count[at],
            job=self.pairs.job[at],
            membership=counted,
            capacity=capacity,
            present=self.present[mine],
            limit_names=tuple(limit.name for limit in limits),
            taken=places_taken(limits, counted, self.pairs.gpu_count[at])
            if any(limit.places_by_count for limit in limits)
            else None,
        )

    def solved_together(
        self, small: BoolArray, options: SolveOptions
    ) -> tuple[IntArray, dict[str, float]]:
        """Return the chosen pairs of the small tenants, and the prices of their rows."""
        places, plain = self._rows.places, self._rows.plain
        number = np.cumsum(small) - 1
        fits = self._count <= places[self._team, self._type]
        mine = self._best_of_equals(np.flatnonzero(small[self._team] & (self.value > 0) & fits))
        answers = solve_small(
            SmallParts(
                part=number[self._team[mine]],
                job=_within_part(self._team[mine], self._job[mine]),
                row=self._type[mine],
                places=self._count[mine],
                value=self._preferred(mine, options),
                capacity=places[small],
            )
        )
        prices = {
            self.round_input.limits[r].name: float(answers.prices[number[k], t])
            for (k, t), r in plain.items()
            if small[k]
        }
        return mine[answers.chosen], prices

    def _best_of_equals(self, mine: IntArray) -> IntArray:
        """Keep, of a job's pairs of one type and count, the one of most value."""
        keys = (-self.value[mine], self._count[mine], self._type[mine], self._job[mine])
        order = mine[np.lexsort(keys)]
        found = np.stack((self._job[order], self._type[order], self._count[order]))
        other = np.ones(len(order), dtype=bool)
        other[1:] = np.diff(found, axis=1).any(axis=0)
        return np.sort(order[other])

    def _preferred(self, mine: IntArray, options: SolveOptions) -> FloatArray:
        """Return values that break ties: fewer places, or by chance."""
        rank = self._count[mine] / (self._count[mine].max(initial=0) + 1)
        if options.tie_seed is not None:
            rank = np.random.default_rng(options.tie_seed).random(len(mine))
        scale = float(self.value[mine].max(initial=0.0))
        found: FloatArray = self.value[mine] - _PREFERENCE * scale * rank
        return found

    def all_prices(self, of_rows: dict[str, float]) -> dict[str, float]:
        """Return a price of every limit.

        If tenants' rows of a type use its capacity up, its price is the least that a row of it
        has, and the row's is what remains: together they are what a place is worth to the tenant.
        """
        prices = {limit.name: of_rows.get(limit.name, 0.0) for limit in self.round_input.limits}
        plain, names = self._rows.plain, self.round_input.cluster.type_names
        for limit in self.round_input.limits:
            if limit.tenant is not None or limit.gpu_type is None or not _is_plain(limit):
                continue
            kind = names.index(limit.gpu_type) if limit.gpu_type in names else -1
            rows = [
                self.round_input.limits[r].name
                for (k, t), r in plain.items()
                if t == kind and self._could_use[k, t]
            ]
            users = int((self._could_use[:, kind] > 0).sum())
            dealt = int(self._rows.places[:, kind].sum()) if kind >= 0 else 0
            used_up = dealt >= int(self._free[self.round_input.limits.index(limit)])
            if kind >= 0 and rows and len(rows) == users and used_up:
                common = min(prices[name] for name in rows)
                prices[limit.name] = common
                for name in rows:
                    prices[name] -= common
        return prices


def _is_plain(limit: Limit) -> bool:
    """Return whether the limit counts every place of its tenant and type alike."""
    return limit.counts_every_grant and not limit.places_by_count


def _within_part(part: IntArray, job: IntArray) -> IntArray:
    """Return the number of each pair's job within its part, shape (P,).

    Jobs of a part need not be next to each other.
    """
    jobs, of_pair = np.unique(job, return_inverse=True)
    of_job = np.zeros(len(jobs), dtype=np.int64)
    of_job[of_pair] = part
    order = np.argsort(of_job, kind="stable")
    first = np.searchsorted(of_job[order], of_job[order])
    number = np.empty(len(jobs), dtype=np.int64)
    number[order] = np.arange(len(jobs)) - first
    return number[of_pair.reshape(-1)]
