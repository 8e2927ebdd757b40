"""Shockwave (Zheng et al., NSDI 2023): plans a window of rounds.

The plan maximises social welfare over the predicted needs of jobs, with finish-time fairness as far
as possible. Every job gets the GPUs that it requests, or none. The cluster is planned as one pool;
on a mixed cluster a planned job takes the fastest type with room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.job import JobId
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.ordering import HeadOfLine, order_of, walk
from maat.scheduling.policies.requests import requests
from maat.scheduling.policies.shockwave.packing import earliest, share_packed
from maat.scheduling.policies.shockwave.regime_forecast import Forecast, forecast, longest_first
from maat.scheduling.policies.shockwave.stated_window import order_by_cvxpy, share_by_cvxpy
from maat.scheduling.policies.shockwave.window import (
    Window,
    fair_is_possible,
    order_rounds,
    share_rounds,
)
from maat.scheduling.rounds import Decision, PolicyState, RoundInput
from maat.scheduling.solving.engines import SOLVER_HELP, Solver, check_installed
from maat.scheduling.solving.mixed_programme import MixedOptions
from maat.scheduling.solving.report import SolveReport

_PAST_SHARE = 0.9  # weight of the past in a finish target; the rest is the last estimate (artifact)
_LAST_ROUND_POWER = 100.0  # power of rho for late jobs that need less than a round (artifact)
_MOST_WEIGHT = 1e6  # with a larger weight the solver's tolerance, 1e-6, loses the other jobs


class CountedFrom(StrEnum):
    """The origin of finish times in rho.

    SUBMISSION: the job's submission. ORIGIN: time 0, from which late jobs look less late.
    """

    SUBMISSION = "submission"
    ORIGIN = "origin"


@dataclass(frozen=True)
class Shockwave:
    """Maximise 1/(J T) sum_j w_j U_j - k max_j (remaining_j - planned_j)+ over T rounds.

    The plan is followed until jobs come or go, the GPUs change, or it is too old.
    """

    window_rounds: int = knob(
        20,
        "Rounds planned ahead, T.",
        source="Shockwave configuration files",
        minimum=1,
        maximum=50,
    )
    makespan_weight: float = knob(
        1e-3,
        "k: weight of a second of the longest job's remaining time.",
        unit="1/s",
        source="Shockwave, 32 GPUs",
        minimum=0.0,
        maximum=1e6,
    )
    fairness_power: float = knob(
        12.0,
        "lambda: a late job's utility is weighted by rho to this power.",
        source="Shockwave, 32 GPUs",
        minimum=0.0,
        maximum=100.0,
    )
    most_rho: float = knob(
        1.0,
        "Finish-time fairness rho that no job is to exceed.",
        source="Shockwave configuration files",
        minimum=0.1,
        maximum=100.0,
    )
    rho_from: CountedFrom = knob(
        CountedFrom.SUBMISSION,
        "What finish times in rho are counted from.",
        source="paper: submission; artifact: origin",
    )
    resolve_rounds: int = knob(
        8, "Most rounds between two plans.", source="Shockwave artifact", minimum=1, maximum=50
    )
    solver_gap: float = knob(
        1e-3,
        "Relative gap at which a plan is good enough.",
        source="Shockwave configuration files",
        minimum=0.0,
        maximum=1.0,
    )
    solver_nodes: int = knob(
        1_000,
        "Most branch-and-bound nodes of one programme: a limit of work, not time, so that a busy "
        "machine plans the same.",
        unit="nodes",
        source="chosen: the 120-job trace takes 144 at most",
        minimum=1,
        maximum=1_000_000,
    )
    solver_seconds: float = knob(
        300.0,
        "Most wall time of one programme: a last resort, after which a run notes that its result "
        "may differ on another machine.",
        unit="s",
        source="chosen: far beyond the nodes; Shockwave configuration files: 15",
        minimum=0.01,
        maximum=3600.0,
    )
    solver: Solver = knob(
        Solver.PRICES,
        f"What solves the programmes of a window. {SOLVER_HELP} It solves over the rounds "
        "themselves, which takes longer.",
    )
    default_round_seconds: ClassVar[float] = 120.0  # Shockwave artifact
    weighs_jobs: ClassVar[bool] = True
    name: str = "shockwave"

    def __post_init__(self) -> None:
        check_installed(self.solver)

    def allocate(self, round_input: RoundInput) -> Decision:
        expected = forecast(round_input).supposing(self.window_rounds * round_input.round_seconds)
        state = round_input.state.for_owner(self.name, parameter_hash(self))
        memory = _Memory.of(state)
        capacity = int(round_input.cluster.capacity.sum())
        changed = set(memory.plan) != set(round_input.job_by_id)
        if changed:
            memory = memory.with_estimates(
                _finish_estimates(round_input, expected), round_input.now
            )
        report = SolveReport()
        if (
            changed
            or memory.capacity != capacity
            or round_input.round_number - memory.first_round >= self._plan_lasts
        ):
            memory, report = self._plan(round_input, expected, memory, capacity)
        wanted, rows = requests(round_input), _order(round_input, expected, memory)
        decision = walk(
            round_input,
            wanted,
            order_of(wanted, rows, HeadOfLine.BACKFILL),
            held_by="jobs that the plan has in this round",
            state=replace(state, data=memory.data()),
        )
        return replace(decision, report=report)

    @property
    def _plan_lasts(self) -> int:
        return min(self.resolve_rounds, self.window_rounds)

    def _plan(
        self, round_input: RoundInput, expected: Forecast, memory: _Memory, capacity: int
    ) -> tuple[_Memory, SolveReport]:
        """Solve the window with the fairness rows if possible, then order its rounds.

        If the fairness rows cannot hold, late jobs are weighted instead.
        """
        ids = [job.id for job in round_input.jobs]
        rows = np.flatnonzero(np.isfinite(expected.remaining_seconds))
        blank = dict.fromkeys(ids, 0)
        memory = replace(
            memory, first_round=round_input.round_number, capacity=capacity, plan=blank
        )
        if not len(rows):
            return memory, SolveReport()
        view = _View.of(round_input, expected, memory, rows, self)
        table, priority, report = self._solve(view)
        if table is None:
            return memory, report
        table, ordering = self._ordered(view.window, table, priority)
        masks = {
            ids[row]: sum(1 << int(r) for r in np.flatnonzero(line))
            for row, line in zip(rows.tolist(), table, strict=True)
        }
        return replace(memory, plan={**blank, **masks}), report.after(ordering)

    def _solve(self, view: _View) -> tuple[IntArray | None, FloatArray, SolveReport]:
        fair = SolveReport()
        if fair_is_possible(view.window):
            table, fair = self._share(view.window)
            if table is not None:
                return table, view.job_weight, fair
        priority = view.priorities(self)
        relaxed = replace(
            view.window,
            weight=view.window.weight * priority,
            least_rounds=np.zeros(len(view.window)),
        )
        table, report = self._share(relaxed)
        return table, priority * view.job_weight, report.after(fair)

    def _share(self, window: Window) -> tuple[IntArray | None, SolveReport]:
        """Return which rounds each job gets, in any order.

        If the demands divide each other, a programme is solved; else counts are packed.
        """
        if self.solver is Solver.CVXPY:
            return share_by_cvxpy(window, self._options)
        return (share_rounds if window.demands_divide else share_packed)(window, self._options)

    def _ordered(
        self, window: Window, table: IntArray, priority: FloatArray
    ) -> tuple[IntArray, SolveReport]:
        if self.solver is Solver.CVXPY:
            return order_by_cvxpy(window, table, priority, self._options)
        if window.demands_divide:
            return order_rounds(window, table, priority, self._options)
        return earliest(window, table, priority), SolveReport()

    @property
    def _options(self) -> MixedOptions:
        return MixedOptions(
            gap=self.solver_gap, nodes=self.solver_nodes, seconds=self.solver_seconds
        )


# ---- what is remembered


@dataclass(frozen=True)
class _Estimates:
    """The estimates of when one job would finish on an equal share.

    An estimate is made whenever jobs come or go. `total`: sum of past estimates x the seconds that
    they held; `seconds`: the sum of these; `latest`: the last estimate, made at `at`.
    """

    total: float
    seconds: float
    latest: float
    at: float

    def then(self, estimate: float, now: float) -> _Estimates:
        stood = now - self.at
        return _Estimates(self.total + self.latest * stood, self.seconds + stood, estimate, now)

    def target(self, now: float) -> float:
        """Return 0.9 x the mean of the estimates over time + 0.1 x the latest."""
        seconds = self.seconds + now - self.at
        mean = (
            (self.total + self.latest * (now - self.at)) / seconds if seconds > 0 else self.latest
        )
        return _PAST_SHARE * mean + (1.0 - _PAST_SHARE) * self.latest


@dataclass(frozen=True)
class _Memory:
    """The plan, by job one bit per round from `first_round`, and the estimates."""

    first_round: int
    capacity: int
    plan: Mapping[JobId, int]
    estimates: Mapping[JobId, _Estimates]

    @classmethod
    def of(cls, state: PolicyState) -> _Memory:
        data: Mapping[str, Any] = state.data or {"first_round": 0, "capacity": 0, "jobs": {}}
        jobs: Mapping[JobId, Sequence[Any]] = data["jobs"]
        plan = {job_id: int(row[0]) for job_id, row in jobs.items()}
        return cls(
            data["first_round"],
            data["capacity"],
            plan,
            {job_id: _Estimates(*row[1:]) for job_id, row in jobs.items()},
        )

    def data(self) -> Mapping[str, object]:
        rows = {
            job_id: [mask, *vars(self.estimates[job_id]).values()]
            for job_id, mask in self.plan.items()
        }
        return {"first_round": self.first_round, "capacity": self.capacity, "jobs": rows}

    def with_estimates(self, estimates: Mapping[JobId, float], now: float) -> _Memory:
        """Return the memory with one more estimate of each present job.

        Jobs that have left are dropped.
        """
        known = {
            job_id: self.estimates[job_id].then(estimate, now)
            if job_id in self.estimates
            else _Estimates(0.0, 0.0, estimate, now)
            for job_id, estimate in estimates.items()
        }
        return replace(self, estimates=known)

    def is_planned(self, job_id: JobId, round_number: int) -> bool:
        return bool(self.plan.get(job_id, 0) >> max(round_number - self.first_round, 0) & 1)


# ---- what a plan is made from


def _share(round_input: RoundInput) -> float:
    """Return the equal share of the time that one of all jobs has."""
    return min(
        1.0, max(float(round_input.cluster.capacity.sum()), 1.0) / max(len(round_input.jobs), 1)
    )


def _finish_estimates(round_input: RoundInput, expected: Forecast) -> Mapping[JobId, float]:
    """Return submission + (seconds run + seconds left) / share, by job.

    The submission alone if the job can run on no type.
    """
    run = expected.spent_seconds + expected.remaining_seconds
    at = np.where(np.isfinite(run), run, 0.0) / _share(round_input)
    return {
        job.id: job.spec.submitted_at + float(at[row]) for row, job in enumerate(round_input.jobs)
    }


@dataclass(frozen=True)
class _View:
    """The planned jobs as arrays (J,): their window, weights and finish times.

    Finish times are seconds from the origin of rho.
    """

    window: Window
    job_weight: FloatArray
    projected: FloatArray
    target: FloatArray

    @classmethod
    def of(
        cls,
        round_input: RoundInput,
        expected: Forecast,
        memory: _Memory,
        rows: IntArray,
        policy: Shockwave,
    ) -> _View:
        jobs, now = [round_input.jobs[row] for row in rows], round_input.now
        length, ahead = round_input.round_seconds, policy.window_rounds
        remaining = expected.remaining_seconds[rows]
        since = np.array(
            [
                job.spec.submitted_at if policy.rho_from is CountedFrom.SUBMISSION else 0.0
                for job in jobs
            ]
        )
        target = np.array([memory.estimates[job.id].target(now) for job in jobs]) - since
        share = _share(round_input)
        unplanned = share * (policy.most_rho * target - (now + ahead * length - since))
        job_weight = np.array([job.spec.weight for job in jobs], dtype=np.float64)
        window = Window(
            demand=np.array([job.spec.requested_gpus for job in jobs], dtype=np.int64),
            done=expected.done[rows],
            paced_rounds=np.maximum(expected.paced_seconds[rows] / length, 1e-6),
            remaining_rounds=remaining / length,
            weight=job_weight * (1.0 / (len(jobs) * ahead)),
            least_rounds=np.where(
                unplanned < 0, np.inf, np.maximum(remaining - unplanned, 0.0) / length
            ),
            must_run=np.array(
                [job.id in round_input.pinned and not job.spec.preemptible for job in jobs],
                dtype=bool,
            ),
            free=memory.capacity,
            rounds=ahead,
            makespan_weight=policy.makespan_weight * length,
        )
        projected = now - since + remaining / share
        return cls(window, job_weight, projected, np.maximum(target, 1e-9))

    def priorities(self, policy: Shockwave) -> FloatArray:
        """Return the priority of each job, shape (J,).

        rho^lambda for jobs predicted to finish late, rho^100 if they need less than a round; else
        1.
        """
        rho = self.projected / self.target
        power = np.where(
            self.window.remaining_rounds < 1.0, _LAST_ROUND_POWER, policy.fairness_power
        )
        late: BoolArray = rho > policy.most_rho
        weight: FloatArray = np.exp(
            np.minimum(
                np.where(late, power * np.log(np.maximum(rho, 1e-300)), 0.0), np.log(_MOST_WEIGHT)
            )
        )
        return weight


def _order(round_input: RoundInput, expected: Forecast, memory: _Memory) -> list[int]:
    """Return planned jobs, largest first, then others by remaining time.

    The others come longest first. So no GPU stays idle.
    """
    planned = [
        row
        for row, job in enumerate(round_input.jobs)
        if memory.is_planned(job.id, round_input.round_number)
    ]
    planned.sort(key=lambda row: (-round_input.jobs[row].spec.requested_gpus, row))
    others = sorted(set(range(len(round_input.jobs))) - set(planned))
    return [*planned, *longest_first(expected.remaining_seconds, others).tolist()]
