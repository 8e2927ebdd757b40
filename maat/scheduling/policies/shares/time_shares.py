"""Gavel's round mechanism: turns shares of time into rounds.

The share x of a candidate (a job on a GPU type, or two jobs that share GPUs) is the fraction of
time that it should run. Candidates are ordered by x over the fraction received, and those that fit
run this round (Gavel section 5; the published simulator). The policy computes the shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.free_capacity import free_places
from maat.scheduling.job import JobId
from maat.scheduling.limits import LimitKind, membership
from maat.scheduling.policies.requests import Requests
from maat.scheduling.rounds import PolicyState, RoundInput

Key = tuple[tuple[JobId, ...], str]  # the jobs of a candidate, and its GPU type
START = 0.5  # of a round: time that each job has received when it comes (published simulator)


# ---- candidates


@dataclass(frozen=True)
class Candidates:
    """V ways to run a job, or two jobs of equal GPU count, on one type.

    `members`: (V, 2) rows of jobs, -1 for no second one; `gpu_type`, `gpu_count`, `runs`: (V,);
    `rate`: (V, 2), of each member, in any unit. `runs` is False for a candidate that has a rate but
    cannot be granted. `usage`: (V, R) and `free`: (R,), by limit of the round: GPUs under capacity
    limits, places under others.
    """

    members: IntArray
    gpu_type: IntArray
    gpu_count: IntArray
    rate: FloatArray
    runs: BoolArray
    usage: IntArray
    free: IntArray

    def __len__(self) -> int:
        return len(self.gpu_type)

    def rows(self, candidate: int) -> tuple[int, ...]:
        first, second = self.members[candidate].tolist()
        return (first,) if second < 0 else (first, second)

    def keep(self, mask: BoolArray) -> Candidates:
        """Return the candidates under `mask`, shape (V,)."""
        names = ("members", "gpu_type", "gpu_count", "rate", "runs", "usage")
        return replace(self, **{name: getattr(self, name)[mask] for name in names})


def candidates_of(
    round_input: RoundInput,
    wanted: Requests,
    rate: FloatArray,
    *,
    unfit_rate: float = 0.0,
    sharing: bool = False,
) -> Candidates:
    """Return each unpinned job on each type, and pairs that gain by sharing.

    Pairs have equal GPU counts and known slowdowns. A pair is left out if taking turns is no
    slower: 1/xi + 1/xi' <= 1.

    Args:
        rate: Rate of each job alone, shape (J, T), zero if it cannot run.
        unfit_rate: The rate that replaces such a zero.
        sharing: If True, pairs are candidates too.
    """
    can_run = wanted.goodput > 0
    unpinned = np.array([job.id not in round_input.pinned for job in wanted.jobs], dtype=bool)
    shown = (can_run | (unfit_rate > 0)) & unpinned[:, None] if len(wanted.jobs) else can_run
    row, kind = (axis.astype(np.int64) for axis in np.nonzero(shown))
    alone = np.where(can_run[row, kind], rate[row, kind], unfit_rate)
    members = np.stack((row, np.full(len(row), -1)), axis=1)
    rates = np.stack((alone, np.zeros(len(row))), axis=1)
    if sharing:
        pairs = [_pair_rates(round_input, wanted, rate, t) for t in range(can_run.shape[1])]
        members = np.concatenate((members, *(m for m, _ in pairs)))
        rates = np.concatenate((rates, *(r for _, r in pairs)))
        kind = np.concatenate((kind, *(np.full(len(m), t) for t, (m, _) in enumerate(pairs))))
    found = _with_usage(round_input, wanted, members, kind, rates)
    return found.keep(_has_room(found))


def _pair_rates(
    round_input: RoundInput, wanted: Requests, rate: FloatArray, t: int
) -> tuple[IntArray, FloatArray]:
    """Return the pairs that gain by sharing on type t: members and rates, (V, 2)."""
    members, rates = [], []
    rows = [
        r
        for r, job in enumerate(wanted.jobs)
        if wanted.goodput[r, t] > 0 and job.id not in round_input.pinned
    ]
    for i, a in enumerate(rows):
        for b in rows[i + 1 :]:
            slowed = slowdowns(round_input, wanted, a, b)
            if slowed is not None and 1 / slowed[0] + 1 / slowed[1] > 1:
                members.append((a, b))
                rates.append((rate[a, t] / slowed[0], rate[b, t] / slowed[1]))
    return np.array(members, dtype=np.int64).reshape(-1, 2), np.array(
        rates, dtype=np.float64
    ).reshape(-1, 2)


def slowdowns(
    round_input: RoundInput, wanted: Requests, a: int, b: int
) -> tuple[float, float] | None:
    """Return the slowdowns of two jobs on the same GPUs, or None.

    None if their GPU counts differ or a slowdown is unknown.
    """
    first, second = wanted.jobs[a].spec, wanted.jobs[b].spec
    count = first.requested_gpus
    if second.requested_gpus != count:
        return None
    mine = round_input.interference.get((first.interference_name, second.interference_name, count))
    theirs = round_input.interference.get(
        (second.interference_name, first.interference_name, count)
    )
    return None if mine is None or theirs is None else (mine, theirs)


def _with_usage(
    round_input: RoundInput, wanted: Requests, members: IntArray, kind: IntArray, rates: FloatArray
) -> Candidates:
    counts = np.array([job.spec.requested_gpus for job in wanted.jobs], dtype=np.int64)
    first, second = members.T
    count = counts[first] if len(first) else np.zeros(0, dtype=np.int64)
    names = round_input.cluster.type_names
    rows = membership(
        round_input.limits, wanted.jobs, names, job=first, gpu_type=kind, count=count
    ).astype(np.int64)
    second_rows = (
        membership(
            round_input.limits,
            wanted.jobs,
            names,
            job=np.maximum(second, 0),
            gpu_type=kind,
            count=count,
        )
        & (second >= 0)[:, None]
    )
    capacity = np.array(
        [limit.kind is LimitKind.CAPACITY for limit in round_input.limits], dtype=bool
    )
    usage = (rows + np.where(capacity, 0, second_rows)) * count[:, None]
    runs = np.array(
        [wanted.goodput[r, t] > 0 for r, t in zip(first, kind, strict=True)], dtype=bool
    )
    return Candidates(members, kind, count, rates, runs, usage, _free_room(round_input, capacity))


def _free_room(round_input: RoundInput, capacity: BoolArray) -> IntArray:
    """Return what each limit leaves beside the pinned jobs, shape (R,).

    GPUs that no pinned job holds under capacity limits, places under others.
    """
    cluster, free = round_input.cluster, free_places(round_input)
    held = {
        gpu
        for job in round_input.jobs
        if job.id in round_input.pinned and job.allocation is not None
        for gpu in job.allocation.gpus
    }
    for r in np.flatnonzero(capacity).tolist():
        name = str(round_input.limits[r].gpu_type)
        t = cluster.type_index[name]
        taken = sum(1 for gpu in held if cluster.gpu_type_of[gpu] == t)
        free[r] = max(int(cluster.usable_gpus[t]) - taken, 0)
    return free


def _has_room(candidates: Candidates) -> BoolArray:
    """Return whether every limit of a candidate has anything left, shape (V,).

    A candidate that can never run would hold all shares at zero.
    """
    roomy: BoolArray = ((candidates.usage == 0) | (candidates.free > 0)).all(axis=1)
    return roomy


# ---- time received


@dataclass(frozen=True)
class Ledger:
    """The seconds that candidates received since the last reset, and are owed.

    `received`: by candidate; one that is missing has START of a round. `owed`: due less received
    since it was first seen; breaks ties. `shares`: the last shares. `totals`: received by all
    candidates of a type. `stale`: jobs came or went since the last reset. `reset_at`: when that
    was, None before the first. `fresh`: it was in this round.
    """

    jobs: frozenset[JobId] = frozenset()
    received: Mapping[Key, float] = field(default_factory=dict)
    owed: Mapping[Key, float] = field(default_factory=dict)
    shares: Mapping[Key, float] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)
    reset_at: float | None = None
    stale: bool = False
    fresh: bool = False

    @classmethod
    def of(cls, state: PolicyState) -> Ledger:
        """Return the ledger that `data` wrote; empty if there is none."""
        data = state.data.get("ledger")
        if not isinstance(data, Mapping):
            return cls()
        received, owed, shares = {}, {}, {}
        for ids, gpu_type, seconds, due, share in data["rows"]:
            key = (tuple(ids), gpu_type)
            received[key], owed[key], shares[key] = seconds, due, share
        return cls(
            frozenset(data["jobs"]),
            received,
            owed,
            shares,
            dict(data["totals"]),
            data["reset_at"],
            data["stale"],
        )

    def data(self) -> dict[str, object]:
        """Return JSON data: a row per candidate that received or is owed something."""
        rows = [
            [list(key[0]), key[1], seconds, self.owed.get(key, 0.0), self.shares.get(key, 0.0)]
            for key, seconds in self.received.items()
        ]
        return {
            "jobs": sorted(self.jobs),
            "rows": rows,
            "totals": dict(self.totals),
            "reset_at": self.reset_at,
            "stale": self.stale,
        }

    def at(self, round_input: RoundInput, reset_seconds: float | None) -> Ledger:
        """Return the ledger with the jobs of this round, reset if it is due.

        A reset is due if jobs came or went and the last one is `reset_seconds` ago. If
        `reset_seconds` is None, received time is never forgotten, and the ledger is fresh whenever
        jobs came or went.
        """
        jobs, now = frozenset(round_input.job_by_id), round_input.now
        stale = self.stale or jobs != self.jobs
        known = replace(
            self,
            jobs=jobs,
            received=_with_jobs(jobs, self.received),
            owed=_with_jobs(jobs, self.owed),
            shares=_with_jobs(jobs, self.shares),
        )
        start, names = START * round_input.round_seconds, round_input.cluster.type_names
        fresh = stale and (
            self.reset_at is None or reset_seconds is None or now - self.reset_at >= reset_seconds
        )
        if fresh and reset_seconds is not None:
            received, totals = (
                dict.fromkeys(known.received, start),
                dict.fromkeys(names, start * len(jobs)),
            )
            return replace(
                known, received=received, totals=totals, reset_at=now, stale=False, fresh=True
            )
        totals = {
            name: self.totals.get(name, 0.0) + len(jobs - self.jobs) * start for name in names
        }
        return replace(known, totals=totals, stale=stale and not fresh, fresh=fresh)

    def held(self, keys: Sequence[Key]) -> FloatArray:
        """Return the last shares, shape (V,); zero if a candidate had none."""
        return np.array([self.shares.get(key, 0.0) for key in keys], dtype=np.float64)

    def fractions(self, keys: Sequence[Key], round_seconds: float) -> FloatArray:
        """Return received time over that of all on the type, shape (V,)."""
        start = START * round_seconds
        return np.array(
            [self.received.get(key, start) / self.totals[key[1]] for key in keys], dtype=np.float64
        )

    def after(
        self, keys: Sequence[Key], shares: FloatArray, chosen: Iterable[int], round_seconds: float
    ) -> Ledger:
        """Return the ledger after the chosen candidates have run for a round."""
        received, owed, totals, last = (
            dict(self.received),
            dict(self.owed),
            dict(self.totals),
            dict[Key, float](),
        )
        running = set(chosen)
        for v, (key, share) in enumerate(zip(keys, shares.tolist(), strict=True)):
            ran = v in running
            if (
                key in received or ran or (share > 0 and len(key[0]) == 1)
            ):  # there are too many pairs to remember those that never ran
                received[key] = received.get(key, START * round_seconds) + ran * round_seconds
                owed[key] = owed.get(key, 0.0) + (share - ran) * round_seconds
                last[key] = share
            totals[key[1]] += ran * round_seconds
        return replace(self, received=received, owed=owed, shares=last, totals=totals)


def _with_jobs(jobs: frozenset[JobId], values: Mapping[Key, float]) -> dict[Key, float]:
    """Return the values of candidates with these jobs only."""
    return {key: value for key, value in values.items() if jobs.issuperset(key[0])}


# ---- the candidates of this round


@dataclass(frozen=True)
class Chosen:
    """The candidates that run this round, in order of choice.

    `priority`: of all candidates, shape (V,). `ledger`: the ledger after the round.
    """

    candidates: tuple[int, ...]
    priority: FloatArray
    ledger: Ledger


def keys_of(round_input: RoundInput, candidates: Candidates) -> list[Key]:
    """Return the key of each candidate, by which rounds know it."""
    names, jobs = round_input.cluster.type_names, round_input.jobs
    return [
        (tuple(jobs[row].id for row in candidates.rows(v)), names[kind])
        for v, kind in enumerate(candidates.gpu_type.tolist())
    ]


def choose(
    round_input: RoundInput,
    candidates: Candidates,
    shares: FloatArray,
    ledger: Ledger,
    *,
    by_owed: bool = True,
) -> Chosen:
    """Choose the candidates that run: those that fit, by share over fraction.

    Ties are broken by what is owed, then by share, job and type. `shares`: shape (V,). A job with a
    zero share may take GPUs that are left, alone.
    """
    seconds, keys = round_input.round_seconds, keys_of(round_input, candidates)
    fraction = ledger.fractions(keys, seconds)
    priority = np.where(shares > 0, shares / np.maximum(fraction, 1e-12), 0.0)
    owed = np.array(
        [ledger.owed.get(key, 0.0) if by_owed else 0.0 for key in keys], dtype=np.float64
    )
    order = np.lexsort((np.arange(len(keys)), -shares, -owed, -priority))
    chosen = _fill(
        candidates, [v for v in order.tolist() if shares[v] > 0 or candidates.members[v, 1] < 0]
    )
    return Chosen(chosen, priority, ledger.after(keys, shares, chosen, seconds))


def _fill(candidates: Candidates, order: Sequence[int]) -> tuple[int, ...]:
    """Return the candidates that fit, in order, with each job once."""
    free, busy, chosen = candidates.free.copy(), set[int](), []
    for v in order:
        rows = candidates.rows(v)
        if candidates.runs[v] and busy.isdisjoint(rows) and (candidates.usage[v] <= free).all():
            free -= candidates.usage[v]
            busy.update(rows)
            chosen.append(v)
    return tuple(chosen)
