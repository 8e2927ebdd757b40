"""Gavel: shares of time on each GPU type that are best by an objective, carried out round by round (Narayanan et al., OSDI 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.explain import Reasons
from maat.scheduling.linear_programme import LinearMethod
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.isolated import IsolatedRule, IsolatedTimes, Speeds, ThroughputUnit
from maat.scheduling.policies.ordering import Requests, grant_chosen, requests
from maat.scheduling.policies.share_programmes import ShareProblem, Shares
from maat.scheduling.policies.time_shares import Chosen, Ledger, candidates_of, choose
from maat.scheduling.rounds import Decision, PolicyState, RoundInput


class Objective(StrEnum):
    """What the shares maximise or minimise (Gavel section 4)."""

    MAX_SUM_THROUGHPUT = "max-sum-throughput"
    MAX_MIN = "max-min"
    FINISH_TIME_FAIRNESS = "finish-time-fairness"
    MAKESPAN = "makespan"


@dataclass(frozen=True)
class Gavel:
    """Shares of time by a linear programme over (job, GPU type); whoever is furthest behind its share runs next."""

    objective: Objective = knob(
        Objective.MAX_MIN, "What the shares of time are chosen for.", source="Gavel section 4; Sia's runs: max-sum-throughput"
    )
    throughput_unit: ThroughputUnit = knob(
        ThroughputUnit.STEPS, "What max-sum-throughput adds up.", source="Gavel's published code: steps per second, not normalised"
    )
    isolated_rule: IsolatedRule = knob(
        IsolatedRule.CUMULATIVE, "Isolated time in finish-time fairness.", source="Gavel's published code; Sia's port: whole-job"
    )
    reset_seconds: float | None = knob(
        1920.0,
        "Received time is forgotten when jobs came or went and this long has passed; none never forgets.",
        unit="s",
        source="Gavel's published code; Sia's port never does",
        minimum=0.0,
        maximum=1e7,
    )
    break_ties_by_owed: bool = knob(
        True,
        "Of equal priorities, the one that is owed most time goes first.",
        source="Gavel's published code; Sia's port: in order of jobs",
    )
    unfit_throughput: float = knob(
        0.0,
        "What a GPU type counts for on which a job cannot run.",
        unit="1/s",
        source="Sia's port: 0.1",
        minimum=0.0,
        maximum=1e6,
    )
    space_sharing: bool = knob(
        True,
        "Also offer shares to pairs of jobs on the same GPUs, where the cluster allows it and their slowdowns were measured.",
        source="Gavel section 3.1",
    )
    share_decimals: int | None = knob(
        5, "Decimals to which shares are rounded; none does not round.", source="Sia's port", minimum=1, maximum=12
    )
    linear_method: LinearMethod = knob(
        LinearMethod.INTERIOR_POINT,
        "Which of several equally good answers is taken: the middle, or a corner.",
        source="Gavel's published code: ECOS, an interior point",
    )
    round_seconds: float = knob(360.0, "Time between rounds.", unit="s", source="Gavel section 5", minimum=1.0, maximum=86400.0)
    name: str = "gavel"

    def allocate(self, round_input: RoundInput) -> Decision:
        """Every job what it asked for, on one type, or nothing; pinned jobs keep theirs."""
        state = round_input.state.for_owner(self.name, parameter_hash(self))
        wanted = requests(round_input)
        speeds = Speeds.of(round_input, wanted)
        isolated = IsolatedTimes.at(state, round_input, wanted, speeds.goodput)
        problem = self._problem(round_input, wanted, speeds)
        shares = self._shares(problem, isolated)
        if self.share_decimals is not None:
            shares = replace(shares, x=np.round(shares.x, self.share_decimals))
        ledger = Ledger.of(state).at(round_input, self.reset_seconds)
        chosen = choose(round_input, wanted, problem.candidates, shares.x, ledger, by_owed=self.break_ties_by_owed)
        kept = replace(state, data={"ledger": chosen.ledger.data(), "isolated": isolated.data()})
        return _decision(problem, wanted, shares, chosen, kept)

    def _problem(self, round_input: RoundInput, wanted: Requests, speeds: Speeds) -> ShareProblem:
        rate = speeds.in_unit(self.throughput_unit) if self.objective is Objective.MAX_SUM_THROUGHPUT else speeds.goodput
        sharing = self.space_sharing and round_input.cluster.jobs_per_gpu > 1
        candidates = candidates_of(round_input, wanted, rate, unfit_rate=self.unfit_throughput, sharing=sharing)
        return ShareProblem(round_input, candidates, self.linear_method)

    def _shares(self, problem: ShareProblem, isolated: IsolatedTimes) -> Shares:
        jobs = problem.round_input.jobs
        match self.objective:
            case Objective.MAX_SUM_THROUGHPUT:
                return problem.most_throughput()
            case Objective.MAX_MIN:
                weight = np.array([job.spec.weight / job.spec.requested_gpus for job in jobs], dtype=np.float64)
                return problem.largest_minimum(weight * isolated.equal_rate)
            case Objective.MAKESPAN:
                return problem.largest_minimum(isolated.remaining)
            case Objective.FINISH_TIME_FAIRNESS:
                return _fairest(problem, isolated.remaining, isolated.seconds(self.isolated_rule, jobs))


def _fairest(problem: ShareProblem, remaining: FloatArray, alone: FloatArray) -> Shares:
    """minimise max_j rho_j,  rho_j = (elapsed_j + remaining_j / sum_v rate_jv x_v) / alone_j  (Gavel section 4; Themis's measure).

    `remaining`: effective samples, `alone`: seconds; shapes (J,).
    """
    elapsed = np.array([job.age_seconds(problem.round_input.now) for job in problem.round_input.jobs], dtype=np.float64)
    counts = (remaining > 0) & (problem.fastest() > 0) & np.isfinite(alone)
    past = np.divide(elapsed, alone, out=np.zeros(len(elapsed)), where=counts & (alone > 0))

    def need_at(rho: float) -> FloatArray:
        """Effective samples/s that each job needs for this rho, shape (J,)."""
        left = rho * np.where(counts, alone, 1.0) - elapsed
        return np.divide(remaining, left, out=np.zeros(len(left)), where=counts & (left > 0))

    shares, rho = problem.least_ratio(need_at, above=float(past.max(initial=0.0)))
    return replace(shares, report=replace(shares.report, message=shares.report.message or f"least worst rho {rho:.4g}"))


def _decision(problem: ShareProblem, wanted: Requests, shares: Shares, chosen: Chosen, state: PolicyState) -> Decision:
    """The grants of the chosen candidates; what decided is told beside each."""
    candidates = problem.candidates
    singles = [(row, int(candidates.gpu_type[v])) for v in chosen.candidates for row in candidates.rows(v)]
    grants, reasons = grant_chosen(problem.round_input, wanted, singles)
    for v in chosen.candidates:
        ids = [wanted.jobs[row].id for row in candidates.rows(v)]
        told = {"time_share": float(shares.x[v]), "priority": float(chosen.priority[v])}
        for job_id in ids:
            grants[job_id] = replace(grants[job_id], share_with=tuple(other for other in ids if other != job_id))
            reasons[job_id] = Reasons(reasons[job_id].primary, {**reasons[job_id].evidence, **told})
    return Decision(grants, shares.report, reasons, state=state)
