"""Pollux: a genetic search for the allocation matrix of most fitness (Pollux section 4.2). pollux_view says of what, pollux_search how."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.free_capacity import exceeds, free_places, never_fits, waiting_for
from maat.scheduling.job import Job, JobId
from maat.scheduling.limits import Limit
from maat.scheduling.matrix import evaluate_pairs
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.pollux.homogeneous_view import (
    Options,
    VirtualNodes,
    is_legal,
    keeping,
    options,
    quotas,
    usable,
    virtual_nodes,
)
from maat.scheduling.policies.pollux.problem import CountArray, SearchProblem
from maat.scheduling.policies.pollux.search import MOST_CELLS, Found, SearchOptions, search
from maat.scheduling.restart import restart_factor
from maat.scheduling.rounds import Decision, Grant, PolicyState, RoundInput
from maat.scheduling.solving.report import SolveReport, SolveStatus

LEAST_START = 1e-6  # of its speedup: a start from nothing loses no work, so that of the youngest job is worth something
LEAST_PATIENCE = 5  # generations, and one more for every job, up to the parameter
MOST_STATE_NUMBERS = 100_000  # of at most nine characters each: a state stays below 1 MB


@dataclass(frozen=True)
class Pollux:
    """Maximise the power mean of all jobs' speedups over an equal share, re-allocations discounted (Pollux eq. 14, 15)."""

    p: float = knob(
        -1.0,
        "Power of the mean: lower favours the worst-off jobs.",
        source="Pollux section 4.2",
        minimum=-10.0,
        maximum=10.0,
    )
    round_seconds: float = knob(
        60.0,
        "Time between rounds.",
        unit="s",
        source="Pollux section 5.1",
        minimum=1.0,
        maximum=86400.0,
    )
    reallocation_seconds: float = knob(
        30.0,
        "delta: what a re-allocation is reckoned to cost a job.",
        unit="s",
        source="published simulator",
        minimum=0.0,
        maximum=3600.0,
    )
    scale_up_factor: float = knob(
        2.0,
        "A job gets at most this many times the most GPUs that it ever had.",
        source="Pollux section 4.1",
        minimum=1.0,
        maximum=64.0,
    )
    avoid_interference: bool = knob(
        True, "At most one job that spans several nodes on each node.", source="Pollux section 4.2"
    )
    most_nodes: int = knob(
        16, "Nodes that one job may span.", source="published simulator", minimum=1, maximum=1024
    )
    idle_speedup: float = knob(
        1e-3,
        "Added to every speedup, in nodes, so that one job without GPUs does not make all fitness nought.",
        source="published simulator",
        minimum=1e-9,
        maximum=1.0,
    )
    population: int = knob(
        100, "Individuals of a generation.", source="published simulator", minimum=2, maximum=1000
    )
    generations: int = knob(
        100,
        "Generations of a round at most.",
        source="published simulator",
        minimum=0,
        maximum=10000,
    )
    patience: int = knob(
        25,
        "Generations without a better individual after which evolution ends.",
        minimum=1,
        maximum=10000,
    )
    remembered: int = knob(
        20, "Best individuals that the next round starts from.", minimum=0, maximum=1000
    )
    name: str = "pollux"

    def allocate(self, round_input: RoundInput) -> Decision:
        """GPUs by node for every job, within the limits; pinned jobs keep theirs."""
        began = time.process_time()
        nodes = virtual_nodes(round_input.cluster)
        jobs = keeping(
            in_priority([job for job in round_input.jobs if job.id not in round_input.pinned]),
            round_input,
        )
        problem, known = self.problem(round_input, jobs, nodes)
        state = round_input.state.for_owner(self.name, parameter_hash(self))
        start = recalled(state, jobs, nodes)
        found = search(problem, start, options=self.search_options(problem), rng=round_input.rng)
        grants, goodput = _granted(round_input, jobs, nodes, found.population[0])
        remembered = PolicyState(
            state.owner,
            state.parameter_hash,
            _remembered(found.population[: self.remembered], jobs, nodes),
        )
        report = _report(problem, found, time.process_time() - began)
        reasons = _reasons(round_input, jobs, known, grants, goodput, evolved=self.generations > 0)
        return Decision(grants, report, reasons, remembered)

    def search_options(self, problem: SearchProblem) -> SearchOptions:
        """As many individuals as were asked for, fewer on a large cluster; the less patience, the fewer jobs there are."""
        fitting = MOST_CELLS // max(problem.present.size, 1)
        return SearchOptions(
            max(min(self.population, fitting), 2),
            self.generations,
            min(self.patience, LEAST_PATIENCE + problem.jobs),
        )

    def problem(
        self, round_input: RoundInput, jobs: Sequence[Job], nodes: VirtualNodes
    ) -> tuple[SearchProblem, Options]:
        """What this round searches for `jobs`, in order of priority, and what it is made from."""
        room, taken = _room(round_input, nodes)
        total = max(int(nodes.size.sum()), 1)
        share = -(-total // max(len(round_input.jobs), 1))
        known = options(jobs, round_input, room=room, scale_up=self.scale_up_factor, share=share)
        problem = SearchProblem(
            room=room,
            most_on_node=np.where(usable(jobs, nodes), room, 0).astype(np.int32),
            speedup=known.speedup(),
            allowed=known.allowed,
            present=_present(jobs, nodes),
            change_factor=self._change_factor(jobs, round_input.now),
            taken=taken,
            quotas=quotas(jobs, round_input, nodes),
            p=self.p,
            least_speedup=self.idle_speedup * total / max(len(nodes.size), 1),
            avoid_interference=self.avoid_interference,
            most_nodes=self.most_nodes,
        )
        return problem, known

    def _change_factor(self, jobs: Sequence[Job], now: float) -> FloatArray:
        """Return REALLOC_FACTOR (Sia eq. 3 with S = delta) of each job, shape (J,).

        A start counts for at least `LEAST_START`.
        """
        factor = restart_factor(
            np.array([job.age_seconds(now) for job in jobs]),
            np.array([float(job.restarts) for job in jobs]),
            np.asarray(self.reallocation_seconds),
        )
        starts = np.array([job.allocation is None for job in jobs], dtype=bool)
        return np.maximum(factor, np.where(starts, LEAST_START, 0.0))


def in_priority(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Least served first, then first come: who keeps a node's GPUs when a search has put too many jobs there."""
    return tuple(
        sorted(
            jobs, key=lambda job: (sum(job.attained_gpu_seconds.values()), job.spec.submitted_at)
        )
    )


def _room(
    round_input: RoundInput, nodes: VirtualNodes
) -> tuple[IntArray, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """GPUs beside the pinned jobs' on each node, and the nodes on which one of these spans several, shapes (N,)."""
    held: set[int] = set()
    taken = np.zeros(len(nodes.size), dtype=bool)
    for job_id in round_input.pinned:
        allocation = round_input.job_by_id[job_id].allocation
        gpus = () if allocation is None else allocation.gpus
        held.update(gpus)
        row = nodes.row(gpus)
        if np.count_nonzero(row) > 1:
            taken |= row > 0
    return np.maximum(nodes.size - nodes.row(sorted(held)), 0), taken


def _present(jobs: Sequence[Job], nodes: VirtualNodes) -> CountArray:
    """What jobs hold on nodes in service, shape (J, N)."""
    present = np.zeros((len(jobs), len(nodes.size)), dtype=np.int32)
    for row, job in enumerate(jobs):
        if job.allocation is not None:
            present[row] = nodes.row(job.allocation.gpus)
    return present


# ---- what is remembered -----------------------------------------------------------------------------------------------------------------


def _remembered(
    population: CountArray, jobs: Sequence[Job], nodes: VirtualNodes
) -> Mapping[str, object]:
    """The best individuals: of every job, for each, node numbers and GPU counts in turn; nodes by name."""
    numbers = 2 * np.count_nonzero(population, axis=(1, 2)) + len(jobs)
    kept = population[np.cumsum(numbers) <= MOST_STATE_NUMBERS]
    rows: dict[str, list[list[int]]] = {job.id: [[] for _ in range(len(kept))] for job in jobs}
    names = [job.id for job in jobs]
    individual, job, node = (axis.tolist() for axis in np.nonzero(kept))
    for i, j, n, count in zip(individual, job, node, kept[kept > 0].tolist(), strict=True):
        rows[names[j]][i] += (n, count)
    return {"nodes": list(nodes.names), "individuals": len(kept), "rows": rows}


def recalled(state: PolicyState, jobs: Sequence[Job], nodes: VirtualNodes) -> CountArray:
    """The individuals of the last round for the jobs and nodes that are still there, shape (P, J, N)."""
    data = state.data
    individuals = int(data.get("individuals", 0))  # type: ignore[call-overload]  # as _remembered wrote it, here and below
    population = np.zeros((individuals, len(jobs), len(nodes.size)), dtype=np.int32)
    where = {name: n for n, name in enumerate(nodes.names)}
    column = [where.get(name, -1) for name in data.get("nodes", ())]  # type: ignore[attr-defined]
    rows: Mapping[JobId, Sequence[Sequence[int]]] = data.get("rows", {})  # type: ignore[assignment]
    for j, job in enumerate(jobs):
        for i, row in enumerate(rows.get(job.id, ())):
            for n, count in zip(row[::2], row[1::2], strict=True):
                if column[n] >= 0:
                    population[i, j, column[n]] = count
    return population


# ---- from an individual to grants -------------------------------------------------------------------------------------------------------


def _granted(
    round_input: RoundInput, jobs: Sequence[Job], nodes: VirtualNodes, individual: CountArray
) -> tuple[dict[JobId, Grant], Mapping[JobId, float | None]]:
    """Grants of one individual, in order of priority, and what each job is believed to make of its own.

    A job keeps its GPUs of one type: that of which it has most, at a tie the one on which it is believed to do best (Sia section 4.3); of
    those, as many as it may have of that type and as every limit leaves room for.
    """
    cluster = round_input.cluster
    by_node = individual.astype(np.int64) @ (
        nodes.node[:, None] == np.arange(len(cluster.nodes))
    ).astype(np.int64)
    rows = _Rows(round_input, jobs, by_node)
    grants: dict[JobId, Grant] = dict(round_input.pinned)
    goodput: dict[JobId, float | None] = {}
    free = free_places(round_input)
    for j, job in enumerate(jobs):
        t = rows.chosen_type(j)
        under = [
            r
            for r, limit in enumerate(round_input.limits)
            if limit.counts(job.spec, cluster.type_names[t], 1)
        ]
        within = min((int(free[r]) for r in under), default=cluster.gpu_count)
        count = rows.most_usable(j, t, within)
        if count == 0:
            continue
        free[under] -= count
        gpus_by_node = rows.kept(j, t, count)
        grants[job.id] = Grant(
            cluster.type_names[t], count, node_count=len(gpus_by_node), gpus_by_node=gpus_by_node
        )
        goodput[job.id] = rows.goodput(j, t, count)
    return grants, goodput


class _Rows:
    """Rows of an individual over real nodes, and what their jobs are believed to make of every part of them on each single type."""

    def __init__(self, round_input: RoundInput, jobs: Sequence[Job], by_node: IntArray) -> None:
        self._cluster, self._jobs = round_input.cluster, jobs
        types = self._cluster.node_type
        self._sorted = [self._by_size(row, types) for row in by_node]
        parts = [
            (j, t, c)
            for j, of_type in enumerate(self._sorted)
            for t, at in of_type.items()
            for c in range(1, sum(n for _, n in at) + 1)
        ]
        job, kind, count = (
            (np.array(axis, dtype=np.int64) for axis in zip(*parts, strict=True))
            if parts
            else (np.zeros(0, np.int64),) * 3
        )
        legal = np.array(
            [is_legal(jobs[j].spec, self._cluster.type_names[t], c) for j, t, c in parts],
            dtype=bool,
        )
        spans = np.array([len(self.kept(j, t, c)) for j, t, c in parts], dtype=np.int64)
        job, kind, count, spans = job[legal], kind[legal], count[legal], spans[legal]
        pairs = evaluate_pairs(
            jobs,
            self._cluster,
            job=job,
            gpu_type=kind,
            gpu_count=count,
            node_count=spans,
            column=np.zeros_like(job),
            projection=round_input.projection,
        )
        keys = zip(job.tolist(), kind.tolist(), count.tolist(), strict=True)
        self._goodput = {
            key: value if known else None
            for key, value, known in zip(
                keys, pairs.goodput.tolist(), pairs.known.tolist(), strict=True
            )
        }

    @staticmethod
    def _by_size(row: IntArray, types: IntArray) -> dict[int, list[tuple[int, int]]]:
        """(node, GPUs) by type, largest first."""
        found: dict[int, list[tuple[int, int]]] = {}
        for node in np.flatnonzero(row).tolist():
            found.setdefault(int(types[node]), []).append((node, int(row[node])))
        return {t: sorted(at, key=lambda one: (-one[1], one[0])) for t, at in found.items()}

    def chosen_type(self, j: int) -> int:
        """The type of which the row has most, of those of which it has something that is of use."""
        of_type = self._sorted[j]
        sums = {t: sum(n for _, n in at) for t, at in of_type.items()}
        return max(
            sums,
            key=lambda t: (
                self.most_usable(j, t, sums[t]) > 0,
                sums[t],
                self._goodput.get((j, t, sums[t])) or 0.0,
                -t,
            ),
            default=0,
        )

    def most_usable(self, j: int, t: int, within: int) -> int:
        """The largest legal part of at most so many GPUs that the job is not known to be unable to use; 0 where there is none.

        The smallest of a job that keeps a promise: with more, it would do no more than keep it.
        """
        total = sum(n for _, n in self._sorted[j].get(t, ()))
        counts = [
            c
            for c in range(1, min(total, within) + 1)
            if (j, t, c) in self._goodput and self._goodput[j, t, c] != 0
        ]
        choose = max if self._jobs[j].spec.promised_seconds is None else min
        return choose(counts, default=0)

    def kept(self, j: int, t: int, count: int) -> dict[str, int]:
        """The first `count` GPUs of the row, from the nodes with most of them."""
        found: dict[str, int] = {}
        for node, many in self._sorted[j].get(t, ()):
            if count > 0:
                found[self._cluster.nodes[node].id] = min(many, count)
                count -= many
        return found

    def goodput(self, j: int, t: int, count: int) -> float | None:
        return self._goodput[j, t, count]


# ---- why --------------------------------------------------------------------------------------------------------------------------------


def _report(problem: SearchProblem, found: Found, seconds: float) -> SolveReport:
    """The fitness reached, and as bound what it would be if every job had for itself what is best for it."""
    objective = float(found.fitness[0])
    bound = max(problem.ceiling, objective)
    gap = (bound - objective) / bound if bound > 0 else 0.0
    return SolveReport(
        SolveStatus.WITHIN_GAP,
        f"genetic, {found.generations} generations",
        objective,
        bound,
        gap,
        seconds,
    )


def _reasons(
    round_input: RoundInput,
    jobs: Sequence[Job],
    known: Options,
    grants: Mapping[JobId, Grant],
    goodput: Mapping[JobId, float | None],
    *,
    evolved: bool,
) -> dict[JobId, Reasons]:
    """`evolved`: whether the search might run any generation; exchanges alone find nothing where nobody holds anything."""
    reasons = {
        job_id: Reasons(
            ReasonCode.PINNED, {"restarting": int(round_input.job_by_id[job_id].restarting)}
        )
        for job_id in round_input.pinned
    }
    speedup = known.speedup()
    for j, job in enumerate(jobs):
        grant = grants.get(job.id)
        if grant is None:
            reasons[job.id] = _waiting(
                round_input, job, grants, promise_broken=not speedup[j].any(), evolved=evolved
            )
            continue
        spread = int((grant.node_count or 1) > 1)
        evidence: dict[str, float | int | str | None] = {
            "gpu_type": grant.gpu_type,
            "gpu_count": grant.gpu_count,
            "goodput_samples_per_second": goodput[job.id],
            "speedup_over_fair_share": float(
                speedup[j, min(grant.gpu_count, speedup.shape[1] - 1), spread]
            ),
        }
        reasons[job.id] = Reasons(ReasonCode.GRANTED, evidence)
    return reasons


def _waiting(
    round_input: RoundInput,
    job: Job,
    grants: Mapping[JobId, Grant],
    *,
    promise_broken: bool,
    evolved: bool,
) -> Reasons:
    """Why a job got nothing: it never fits, a limit has no place for its smallest count, nothing was searched, or others gain more.

    `promise_broken`: nothing here would keep what the job promises, if it promises anything.
    """
    needed = job.spec.requested_gpus if job.spec.is_rigid else job.spec.min_gpus
    cluster = round_input.cluster
    smallest = {
        name: least
        for t, name in enumerate(cluster.type_names)
        if (least := _least(job, name)) is not None
        and least <= cluster.usable_gpus[t]
        and job.spec.may_use(name)
    }
    if not smallest or (promise_broken and job.spec.promised_seconds is not None):
        return never_fits(job, round_input, needed=needed)
    rows = {
        name: [limit for limit in round_input.limits if limit.counts(job.spec, name, least)]
        for name, least in smallest.items()
    }
    too_small = {
        name: [limit for limit in rows[name] if limit.places < smallest[name]] for name in smallest
    }
    if all(too_small.values()):
        return exceeds(next(iter(too_small.values())))
    name = next(name for name in smallest if not too_small[name])
    lacking = next(
        (
            limit
            for limit in rows[name]
            if limit.places - _used(limit, round_input, grants) < smallest[name]
        ),
        None,
    )
    if lacking is None:
        why = ReasonCode.LOWER_GOODPUT_GAIN if evolved else ReasonCode.NOT_SEARCHED
        return Reasons(why, {"needed_gpus": smallest[name], "gpu_type": name})
    return Reasons(
        waiting_for(lacking),
        {"needed_gpus": smallest[name], "gpu_type": name, "binding_limit": lacking.name},
    )


def _least(job: Job, name: str) -> int | None:
    """The fewest GPUs of a type that the job can have by its declaration, None where it can have none."""
    spec, unit = job.spec, job.spec.replica_gpus(name)
    least = spec.requested_gpus if spec.is_rigid else -(-spec.min_gpus // unit) * unit
    fits = least % unit == 0 and (spec.max_gpus is None or least <= spec.max_gpus)
    return least if fits else None


def _used(limit: Limit, round_input: RoundInput, grants: Mapping[JobId, Grant]) -> int:
    counted = ((round_input.job_by_id[job_id].spec, grant) for job_id, grant in grants.items())
    return sum(
        grant.gpu_count
        for spec, grant in counted
        if limit.counts(spec, grant.gpu_type, grant.gpu_count)
    )
