"""Gavel's round mechanism: shares of time become rounds. Which shares are best is the policy's affair (share_programmes.py).

A share x of a candidate (a job on a GPU type, or two jobs that share GPUs) is the fraction of the
time that it should run so. Who got least of what is due, by x over the fraction received, goes
first; whoever fits runs this round (Gavel section 5; the published simulator).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.free_capacity import free_places
from maat.scheduling.job import JobId
from maat.scheduling.limits import LimitKind, membership
from maat.scheduling.policies.ordering import Requests
from maat.scheduling.rounds import PolicyState, RoundInput

Key = tuple[tuple[JobId, ...], str]  # the jobs of a candidate, and its GPU type
START = 0.5  # of a round: what every job counts as having received from the beginning (published simulator)


# ---- who could run where


@dataclass(frozen=True)
class Candidates:
    """V ways in which a job, or two of equal GPU count on the same GPUs, may run on one type.

    members: (V, 2) rows of jobs, -1 for no second one; gpu_type, gpu_count, runs: (V,); rate: (V,
    2), of each member there, in any unit. `runs` is False where a rate stands for something that no
    round can grant. usage: (V, R) and free: (R,), of the round's limits in their order: GPUs under
    capacity, places under every other limit.
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
        """Only those under `mask`, shape (V,)."""
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
    """Every job that is not pinned on every type, and with `sharing` every pair of them that gains by sharing.

    `rate`: shape (J, T), of each job alone, zero where it cannot run; `unfit_rate` stands in for
    that zero. A pair needs equal GPU counts and a known slowdown of both, and is left out where
    taking turns is no slower: 1/xi + 1/xi' <= 1.
    """
    can = wanted.goodput > 0
    loose = np.array([job.id not in round_input.pinned for job in wanted.jobs], dtype=bool)
    shown = (can | (unfit_rate > 0)) & loose[:, None] if len(wanted.jobs) else can
    row, kind = (axis.astype(np.int64) for axis in np.nonzero(shown))
    alone = np.where(can[row, kind], rate[row, kind], unfit_rate)
    members = np.stack((row, np.full(len(row), -1)), axis=1)
    rates = np.stack((alone, np.zeros(len(row))), axis=1)
    if sharing:
        pairs = [_pair_rates(round_input, wanted, rate, t) for t in range(can.shape[1])]
        members = np.concatenate((members, *(m for m, _ in pairs)))
        rates = np.concatenate((rates, *(r for _, r in pairs)))
        kind = np.concatenate((kind, *(np.full(len(m), t) for t, (m, _) in enumerate(pairs))))
    found = _with_usage(round_input, wanted, members, kind, rates)
    return found.keep(_has_room(found))


def _pair_rates(
    round_input: RoundInput, wanted: Requests, rate: FloatArray, t: int
) -> tuple[IntArray, FloatArray]:
    """Pairs that gain by sharing on type t: members and rates, shapes (V, 2)."""
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
    """How much two jobs slow each other on the same GPUs; None where their counts differ or nobody measured it."""
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
    beside = (
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
    usage = (rows + np.where(capacity, 0, beside)) * count[:, None]
    runs = np.array(
        [wanted.goodput[r, t] > 0 for r, t in zip(first, kind, strict=True)], dtype=bool
    )
    return Candidates(members, kind, count, rates, runs, usage, _free_room(round_input, capacity))


def _free_room(round_input: RoundInput, capacity: BoolArray) -> IntArray:
    """What each limit has left beside the pinned jobs, shape (R,): GPUs that nobody pinned holds, or places."""
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
    """Whether there is anything left under every limit that a candidate falls under: a share of nothing would hold everybody at zero."""
    roomy: BoolArray = ((candidates.usage == 0) | (candidates.free > 0)).all(axis=1)
    return roomy


# ---- what everybody received


@dataclass(frozen=True)
class Ledger:
    """Seconds received since the last reset, by candidate, and by everybody together on each type; and what is still owed.

    A candidate that is not in `received` has START of a round. `owed`: due less received since it
    was first seen; breaks ties. `shares`: the last ones. `stale`: jobs came or went since the last
    reset; `reset_at`: when that was, None before the first; `fresh`: in this round.
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
        """What `data` wrote; empty where there is none."""
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
        """As JSON data: a row per candidate that received something or is owed something."""
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
        """With the jobs of this round. Once jobs came or went and the last reset is long enough ago, what was received is forgotten.

        `reset_seconds` None: it never is; the ledger is fresh whenever jobs came or went.
        """
        jobs, now = frozenset(round_input.job_by_id), round_input.now
        stale = self.stale or jobs != self.jobs
        known = replace(
            self,
            jobs=jobs,
            received=_of(jobs, self.received),
            owed=_of(jobs, self.owed),
            shares=_of(jobs, self.shares),
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
        """The last shares, shape (V,); zero for who had none."""
        return np.array([self.shares.get(key, 0.0) for key in keys], dtype=np.float64)

    def fractions(self, keys: Sequence[Key], round_seconds: float) -> FloatArray:
        """Time of each candidate over everybody's on its type, shape (V,)."""
        start = START * round_seconds
        return np.array(
            [self.received.get(key, start) / self.totals[key[1]] for key in keys], dtype=np.float64
        )

    def after(
        self, keys: Sequence[Key], shares: FloatArray, chosen: Iterable[int], round_seconds: float
    ) -> Ledger:
        """Once the chosen candidates have run for a round."""
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
            ):  # of pairs there are too many to remember who never ran
                received[key] = received.get(key, START * round_seconds) + ran * round_seconds
                owed[key] = owed.get(key, 0.0) + (share - ran) * round_seconds
                last[key] = share
            totals[key[1]] += ran * round_seconds
        return replace(self, received=received, owed=owed, shares=last, totals=totals)


def _of(jobs: frozenset[JobId], values: Mapping[Key, float]) -> dict[Key, float]:
    """Only what belongs to these jobs."""
    return {key: value for key, value in values.items() if jobs.issuperset(key[0])}


# ---- who runs this round


@dataclass(frozen=True)
class Chosen:
    """The candidates that run this round, in the order in which they were chosen; priorities of all, shape (V,); the ledger afterwards."""

    candidates: tuple[int, ...]
    priority: FloatArray
    ledger: Ledger


def keys_of(round_input: RoundInput, candidates: Candidates) -> list[Key]:
    """What each candidate is known by from round to round."""
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
    """Candidates by share over fraction received, most first; ties by what is owed, then by share, job and type. Whoever fits runs.

    `shares`: shape (V,). A job whose share is zero may still take what nobody else does, alone.
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
    """Along the order, every candidate that fits and whose jobs do not run yet."""
    free, busy, chosen = candidates.free.copy(), set[int](), []
    for v in order:
        rows = candidates.rows(v)
        if candidates.runs[v] and busy.isdisjoint(rows) and (candidates.usage[v] <= free).all():
            free -= candidates.usage[v]
            busy.update(rows)
            chosen.append(v)
    return tuple(chosen)
