"""Gavel (Narayanan et al., OSDI 2020): shares of time on each GPU type.

The shares are the best by an objective; rounds carry them out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np

from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.isolated import IsolatedRule, IsolatedTimes, Speeds, ThroughputUnit
from maat.scheduling.policies.ordering import grant_chosen
from maat.scheduling.policies.requests import Requests, requests
from maat.scheduling.policies.shares.programmes import (
    Lateness,
    ShareProblem,
    ShareProgrammes,
    Shares,
)
from maat.scheduling.policies.shares.stated_shares import StatedShares
from maat.scheduling.policies.shares.time_shares import (
    Chosen,
    Ledger,
    candidates_of,
    choose,
    keys_of,
)
from maat.scheduling.protocols import GpuSharing
from maat.scheduling.rounds import Decision, PolicyState, RoundInput
from maat.scheduling.solving.engines import SOLVER_HELP, Solver, check_installed
from maat.scheduling.solving.linear_programme import LinearMethod
from maat.scheduling.solving.report import SolveReport


class Objective(StrEnum):
    """What the shares maximise or minimise (Gavel section 4)."""

    MAX_SUM_THROUGHPUT = "max-sum-throughput"
    MAX_MIN = "max-min"
    FINISH_TIME_FAIRNESS = "finish-time-fairness"
    MAKESPAN = "makespan"


@dataclass(frozen=True)
class Gavel:
    """Compute shares of time by a linear programme over (job, GPU type).

    The job furthest behind its share runs next.
    """

    objective: Objective = knob(
        Objective.MAX_SUM_THROUGHPUT,
        "What the shares of time are chosen for.",
        source="Gavel section 4; Sia section 4.3 takes max-sum-throughput for its low average JCT",
    )
    throughput_unit: ThroughputUnit = knob(
        ThroughputUnit.STEPS,
        "What max-sum-throughput adds up.",
        source="Gavel's published code: steps per second, not normalised",
    )
    isolated_rule: IsolatedRule = knob(
        IsolatedRule.CUMULATIVE,
        "Isolated time in finish-time fairness.",
        source="Gavel's published code; Sia's port: whole-job",
    )
    reset_seconds: float | None = knob(
        1920.0,
        "Received time is forgotten if jobs came or went and this time has passed; none: never.",
        unit="s",
        source="Gavel's published code; Sia's port never does",
        minimum=0.0,
        maximum=1e7,
    )
    hold_shares: bool = knob(
        False,
        "Keep shares until received time is forgotten; new jobs take GPUs that are left until "
        "then.",
        source="Gavel's published code; Sia's port computes them every round. Not kept if GPUs are "
        "shared",
    )
    break_ties_by_owed: bool = knob(
        True,
        "Of jobs with equal priority, the one that is owed most time goes first.",
        source="Gavel's published code; Sia's port: in order of jobs",
    )
    unfit_throughput: float = knob(
        0.0,
        "Throughput assumed on a GPU type that a job cannot run on.",
        unit="1/s",
        source="Sia's port: 0.1",
        minimum=0.0,
        maximum=1e6,
    )
    space_sharing: bool = knob(
        True,
        "Also give shares to pairs of jobs on the same GPUs, if the cluster allows it and their "
        "slowdowns are known.",
        source="Gavel section 3.1",
    )
    share_decimals: int | None = knob(
        5,
        "Decimals to which shares are rounded; none: not rounded.",
        source="Sia's port",
        minimum=1,
        maximum=12,
    )
    linear_method: LinearMethod = knob(
        LinearMethod.INTERIOR_POINT,
        "Which of several equally good answers is taken: the middle or a corner.",
        source="Gavel's published code: ECOS, an interior point",
    )
    solver: Solver = knob(
        Solver.PRICES,
        f"What solves the objective's programme. {SOLVER_HELP} Its answer is the middle of all "
        "equally good ones, whatever linear_method says.",
    )
    default_round_seconds: ClassVar[float] = 360.0  # Gavel section 5
    name: str = "gavel"

    def __post_init__(self) -> None:
        check_installed(self.solver)

    @property
    def weighs_jobs(self) -> bool:
        """Return whether jobs count by weight: not if each is to end, or to be as fast as alone."""
        return self.objective in (Objective.MAX_SUM_THROUGHPUT, Objective.MAX_MIN)

    @property
    def gpu_sharing(self) -> GpuSharing:
        """Return how it shares GPUs: in pairs of jobs, or never."""
        return GpuSharing.CHOSEN if self.space_sharing else GpuSharing.NEVER

    def allocate(self, round_input: RoundInput) -> Decision:
        """Grant each job its request on one type, or nothing; pinned jobs keep theirs."""
        state = round_input.state.for_owner(self.name, parameter_hash(self))
        wanted = requests(round_input)
        speeds = Speeds.of(round_input, wanted)
        isolated = IsolatedTimes.at(state, round_input, wanted, speeds.goodput)
        problem = self._problem(round_input, wanted, speeds)
        ledger = Ledger.of(state).at(round_input, self.reset_seconds)
        shares = self._shares(problem, isolated, ledger)
        chosen = choose(
            round_input, problem.candidates, shares.x, ledger, by_owed=self.break_ties_by_owed
        )
        kept = replace(state, data={"ledger": chosen.ledger.data(), "isolated": isolated.data()})
        return _decision(problem, wanted, shares, chosen, kept)

    def _problem(self, round_input: RoundInput, wanted: Requests, speeds: Speeds) -> ShareProblem:
        rate = (
            speeds.in_unit(self.throughput_unit)
            if self.objective is Objective.MAX_SUM_THROUGHPUT
            else speeds.goodput
        )
        candidates = candidates_of(
            round_input,
            wanted,
            rate,
            unfit_rate=self.unfit_throughput,
            sharing=self._shares_gpus(round_input),
        )
        return ShareProblem(round_input, candidates, self.linear_method)

    def _shares_gpus(self, round_input: RoundInput) -> bool:
        return self.space_sharing and round_input.cluster.jobs_per_gpu > 1

    def _shares(self, problem: ShareProblem, isolated: IsolatedTimes, ledger: Ledger) -> Shares:
        """Return last round's shares if they are held, else the best ones, rounded."""
        if self.hold_shares and not ledger.fresh and not self._shares_gpus(problem.round_input):
            return Shares(
                ledger.held(keys_of(problem.round_input, problem.candidates)), SolveReport()
            )
        best = self._best(problem, isolated)
        return (
            best
            if self.share_decimals is None
            else replace(best, x=np.round(best.x, self.share_decimals))
        )

    def _best(self, problem: ShareProblem, isolated: IsolatedTimes) -> Shares:
        def own() -> Shares:
            return self._by(problem, problem, isolated)

        if self.solver is Solver.PRICES:
            return own()
        return self._by(StatedShares(problem, otherwise=own), problem, isolated)

    def _by(
        self, programmes: ShareProgrammes, problem: ShareProblem, isolated: IsolatedTimes
    ) -> Shares:
        jobs = problem.round_input.jobs
        match self.objective:
            case Objective.MAX_SUM_THROUGHPUT:
                return programmes.most_throughput()
            case Objective.MAX_MIN:
                gpus = np.array([job.spec.requested_gpus for job in jobs], dtype=np.float64)
                return programmes.largest_minimum(problem.weight / gpus * isolated.equal_rate)
            case Objective.MAKESPAN:
                return programmes.shortest_makespan(isolated.remaining)
            case Objective.FINISH_TIME_FAIRNESS:
                lateness = Lateness.of(
                    problem, isolated.remaining, isolated.seconds(self.isolated_rule, jobs)
                )
                return programmes.fairest(lateness)


def _decision(
    problem: ShareProblem, wanted: Requests, shares: Shares, chosen: Chosen, state: PolicyState
) -> Decision:
    """Return the grants of the chosen candidates, with the evidence of each."""
    candidates = problem.candidates
    singles = [
        (row, int(candidates.gpu_type[v])) for v in chosen.candidates for row in candidates.rows(v)
    ]
    grants, reasons = grant_chosen(
        problem.round_input, wanted, singles, held_by="jobs that lack more of the time they are due"
    )
    for v in chosen.candidates:
        first, *second = (wanted.jobs[row].id for row in candidates.rows(v))
        evidence = {"time_share": float(shares.x[v]), "priority": float(chosen.priority[v])}
        for job_id in (first, *second):
            partner = {"shares_with": second[0] if job_id == first else first} if second else {}
            reasons.add(job_id, {**evidence, **partner})
        for job_id in second:
            grants[job_id] = replace(
                grants[job_id], share_with=(first,), shared_gpus=grants[job_id].gpu_count
            )
    return Decision(grants, shares.report, reasons, state=state)
