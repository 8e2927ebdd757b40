"""Sia: heterogeneity-aware goodput as an integer programme (sections 3.1-3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.assignment.first_served import served_first
from maat.scheduling.assignment.objective import Objective
from maat.scheduling.assignment.programme import assign, present_pairs
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import ConfigurationTable, sia_configurations, with_counts
from maat.scheduling.errors import ParameterError
from maat.scheduling.job import Job
from maat.scheduling.limits import shape_limits
from maat.scheduling.matrix import GoodputMatrix, Pairs, goodput_matrix
from maat.scheduling.parameters import knob
from maat.scheduling.placeable import unplaceable
from maat.scheduling.restart import restart_factor
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.assignment.problem import SolveOptions
from maat.scheduling.solving.engines import SOLVER_HELP, Solver, check_installed
from maat.scheduling.solving.report import SolveReport
from maat.vocabulary import MAX_GPUS

SMALLEST_GOODPUT = 1e-4
MOST_REPAIRS = 20  # times that a round is solved again because nodes cannot hold its grants
LARGEST_COST = 3000.0


class RowUnit(StrEnum):
    """The unit of N_min, by which a row of the matrix is scaled.

    FEWEST_GPUS: the fewest GPUs that the job may have. REPLICA: the GPUs of one replica. For a
    rigid job both are what it requests.
    """

    FEWEST_GPUS = "fewest-gpus"
    REPLICA = "replica"


class ScaleUpBase(StrEnum):
    """What the scale-up factor multiplies.

    CURRENT: what the job holds. LARGEST: the most that it ever ran on.
    """

    CURRENT = "current"
    LARGEST = "largest"


@dataclass(frozen=True)
class Sia:
    """Maximise the summed goodput of the chosen configurations (eq. 4).

    Goodput is normalised by row and raised to the fairness power p.
    """

    p: float = knob(
        -0.5,
        "Fairness power: below zero favours the worst-off jobs.",
        source="Sia section 3.4",
        minimum=-10.0,
        maximum=10.0,
    )
    idle_penalty: float = knob(
        1.1,
        "lambda: what leaving a job without GPUs costs.",
        source="Sia section 4.3",
        minimum=0.0,
        maximum=1000.0,
    )
    default_round_seconds: ClassVar[float] = 60.0  # Sia section 4.3
    chooses_gpu_counts: ClassVar[bool] = True
    weighs_jobs: ClassVar[bool] = True
    scale_up_factor: float = knob(
        2.0,
        "A job's GPU count grows at most by this factor.",
        source="Sia section 3.1",
        minimum=1.0,
        maximum=64.0,
    )
    scale_up_base: ScaleUpBase = knob(
        ScaleUpBase.CURRENT, "What the factor multiplies.", source="Sia section 3.1"
    )
    row_unit: RowUnit = knob(
        RowUnit.FEWEST_GPUS,
        "N_min, the value of a row's least goodput.",
        source="Sia section 3.4; published simulator: replica",
    )
    only_placeable: bool = knob(
        True,
        "Grant only what nodes can hold together without spreading a job that fits one node; if "
        "not, count GPUs alone.",
        source="Sia sections 3.1 and 3.3: every allocation can be placed; published simulator: no, "
        "jobs of any count are spread",
    )
    utility_decimals: int | None = knob(
        None,
        "Decimals to which the powered matrix is rounded; none: not rounded.",
        source="published simulator: 2",
        minimum=0,
        maximum=12,
    )
    beyond_largest_batch: bool = knob(
        False,
        "Also offer GPU counts whose smallest per-GPU batches exceed the largest batch size.",
        source="published simulator",
    )
    random_ties: bool = knob(
        False,
        "Choose among equally good answers at random (by the run's seed), not by fewest GPUs.",
        source="published simulator",
    )
    young_move_freely: bool = knob(
        False,
        "Do not discount moves of a job that is younger than one restart (r = 1).",
        source="Sia eq. 3: no; published simulator: yes",
    )
    tolerance: float = knob(
        1e-4,
        "Relative gap at which the programme counts as solved.",
        source="Sia section 3.5",
        minimum=0.0,
        maximum=0.1,
    )
    solve_seconds: float = knob(
        0.15, "CPU time that closing the gap may take.", unit="s", minimum=0.0, maximum=600.0
    )
    solver: Solver = knob(
        Solver.PRICES,
        f"What solves the programme (eq. 4, 5). {SOLVER_HELP}",
        source="Sia section 3.5: CVXPY",
    )
    name: str = "sia"

    def __post_init__(self) -> None:
        check_installed(self.solver)
        if self.random_ties and self.solver is Solver.CVXPY:
            raise ParameterError(
                "cannot choose among equally good answers at random (random_ties)",
                field="solver",
                value=self.solver.value,
                remedy=f"Set random_ties to false, or use {Solver.PRICES.value}.",
            )
        if self.p == 0:
            raise ParameterError(
                "makes all configurations equal",
                field="p",
                value=self.p,
                remedy="Use a value below or above zero, such as -0.5.",
            )

    def allocate(self, round_input: RoundInput) -> Decision:
        """Return at most one configuration per job; pinned jobs keep theirs."""
        return self.decide(round_input, self._matrix_of(round_input))

    def useful_counts(self, round_input: RoundInput) -> list[list[list[int]]]:
        """Return the GPU counts that a job would take in this round, by job and type, ascending.

        Each is worth more than leaving the job idle, and more than any smaller one.
        """
        matrix = self._matrix_of(round_input)
        value, pairs = self._objective(round_input, matrix).value, matrix.pairs
        found: list[list[list[int]]] = [
            [[] for _ in round_input.cluster.type_names] for _ in round_input.jobs
        ]
        columns = (pairs.job, pairs.gpu_type, pairs.gpu_count, value)
        last, best = (-1, -1), 0.0
        for j, t, count, worth in zip(*(column.tolist() for column in columns), strict=True):
            if (j, t) != last:
                last, best = (j, t), 0.0
            if worth > best and count:
                found[j][t].append(count)
                best = worth
        return found

    def _matrix_of(self, round_input: RoundInput) -> GoodputMatrix:
        return round_input.once("sia", lambda: self._matrix(round_input))

    def _matrix(self, round_input: RoundInput) -> GoodputMatrix:
        table = table_for(round_input.cluster, round_input.jobs)
        matrix = goodput_matrix(
            round_input.jobs,
            round_input.cluster,
            table,
            scale_up=self._scale_up(round_input.jobs),
            projection=round_input.projection,
            beyond_largest_batch=self.beyond_largest_batch,
        )
        return without_unusable(matrix)

    def decide(self, round_input: RoundInput, matrix: GoodputMatrix) -> Decision:
        """Return the assignment of most utility (eq. 4) that nodes can hold.

        If nodes cannot hold the best assignment, a limit is added that it breaks and that every
        placeable assignment keeps, and the programme is solved again. If GPUs are shared, the
        shapes of uneven nodes are limits from the start instead.
        """
        if not self._repairs(round_input):
            round_input = replace(
                round_input, limits=round_input.limits + shape_limits(round_input.cluster)
            )
        objective = self._objective(round_input, matrix)
        options = SolveOptions(
            tolerance=self.tolerance,
            budget_seconds=self.solve_seconds,
            tie_seed=self._tie_seed(round_input),
        )
        earlier: list[SolveReport] = []
        while True:
            first = served_first(round_input, matrix, objective.value)
            decision = assign(
                replace(round_input, pinned={**round_input.pinned, **first}),
                matrix,
                objective,
                options=options,
                solver=self.solver,
                with_batch=False,
            )
            lacking = (
                unplaceable(round_input, decision.grants, matrix.table)
                if self._repairs(round_input)
                else ()
            )
            if not lacking or len(earlier) == MOST_REPAIRS:
                return replace(
                    decision, report=replace(decision.report.after(*earlier), repairs=len(earlier))
                )
            earlier.append(decision.report)
            round_input = replace(round_input, limits=round_input.limits + lacking)

    def _repairs(self, round_input: RoundInput) -> bool:
        return self.only_placeable and round_input.cluster.jobs_per_gpu == 1

    def _tie_seed(self, round_input: RoundInput) -> int | None:
        return int(round_input.rng.integers(1 << 62)) if self.random_ties else None

    def _scale_up(self, jobs: Sequence[Job]) -> IntArray:
        """Return the most replicas of each job this round, shape (J,).

        A job that promises a latency has no such limit: it keeps its latency at once or not at all.
        """
        bound = [job.spec.promised_seconds is not None for job in jobs]
        most = [
            MAX_GPUS if b else int(self.scale_up_factor * self._base(job))
            for job, b in zip(jobs, bound, strict=True)
        ]
        return np.array(most, dtype=np.int64)

    def _base(self, job: Job) -> int:
        held = job.allocation
        if held is None or self.scale_up_base is ScaleUpBase.LARGEST:
            return job.belief.peak_replica_count
        return held.gpu_count // job.spec.replica_gpus(held.gpu_type)

    def _objective(self, round_input: RoundInput, matrix: GoodputMatrix) -> Objective:
        """Return the objective (eq. 4) over the pairs."""
        pairs = matrix.pairs
        rows = normalised(pairs, round_input.jobs, matrix.table.type_names, self.row_unit)
        utility = rows * self._restart_factors(round_input, matrix)
        powered = np.minimum(np.maximum(utility, 1e-12) ** self.p, LARGEST_COST)
        if self.utility_decimals is not None:
            powered = np.round(powered, self.utility_decimals)
        weight = (
            np.array([job.spec.weight for job in round_input.jobs])[pairs.job]
            if len(pairs)
            else np.zeros(0)
        )
        return Objective(powered, weight, self.idle_penalty, minimised=self.p < 0)

    def _restart_factors(self, round_input: RoundInput, matrix: GoodputMatrix) -> FloatArray:
        """Return the restart factor (eq. 3) of each pair, shape (P,).

        It is 1 for what a job holds and for jobs that hold nothing.
        """
        jobs = round_input.jobs
        factor = restart_factor(
            np.array([job.age_seconds(round_input.now) for job in jobs]),
            np.array([float(job.restarts) for job in jobs]),
            np.array([job.spec.restart_seconds for job in jobs]),
            young_move_freely=self.young_move_freely,
        )
        holds = np.array([job.allocation is not None for job in jobs], dtype=bool)
        at = matrix.pairs.job
        return np.where(holds[at] & ~present_pairs(round_input, matrix), factor[at], 1.0)


def table_for(cluster: Cluster, jobs: Sequence[Job]) -> ConfigurationTable:
    """Return Sia's configurations, and the counts that other jobs request.

    The latter are the counts of rigid and hybrid-parallel jobs.
    """
    counts = {job.spec.requested_gpus for job in jobs if job.spec.is_rigid}
    for job in jobs:
        for unit in set(job.spec.gpus_per_replica.values()) - {1}:
            most = int(cluster.usable_gpus.max()) // unit
            counts |= {unit * (1 << bit) for bit in range(most.bit_length())}
    table = sia_configurations(cluster)
    return with_counts(table, cluster, sorted(counts)) if counts else table


def without_unusable(matrix: GoodputMatrix) -> GoodputMatrix:
    """Drop pairs without goodput, and most pairs of unknown jobs.

    Of a job without any model only the smallest count of each type is kept.
    """
    pairs = matrix.pairs
    anything = np.zeros(len(matrix.job_ids), dtype=bool)
    anything[pairs.job[pairs.known]] = True
    smallest = np.full((len(matrix.job_ids), len(matrix.table.type_names)), np.iinfo(np.int64).max)
    np.minimum.at(smallest, (pairs.job, pairs.gpu_type), pairs.gpu_count)
    keep = np.where(
        pairs.known,
        pairs.goodput > 0,
        ~anything[pairs.job] & (pairs.gpu_count == smallest[pairs.job, pairs.gpu_type]),
    )
    return matrix if keep.all() else matrix.keep(keep)


def normalised(
    pairs: Pairs, jobs: Sequence[Job], type_names: Sequence[str], unit: RowUnit
) -> FloatArray:
    """Return G_ij <- N_min G_ij / min_j G_ij (Sia section 3.4), shape (P,).

    N_min for a job without any model. If a job's replicas span different GPU counts, N_min is that
    of the type with its least goodput (of the last such type).
    """
    smallest = np.full(len(jobs), np.inf)
    np.minimum.at(smallest, pairs.job, np.where(pairs.known, pairs.goodput, np.inf))
    needed = _fewest_gpus(jobs, type_names, unit)[pairs.job, pairs.gpu_type]
    least = np.ones(len(jobs))
    at_least = pairs.known & (pairs.goodput == smallest[pairs.job])
    least[pairs.job[at_least]] = needed[at_least]
    measured = least[pairs.job] * (pairs.goodput / smallest[pairs.job])
    utility: FloatArray = np.maximum(np.where(pairs.known, measured, needed), SMALLEST_GOODPUT)
    return utility


def _fewest_gpus(jobs: Sequence[Job], type_names: Sequence[str], unit: RowUnit) -> FloatArray:
    """Return N_min of each job if its least goodput is on a type, shape (J, T)."""
    found = np.ones((len(jobs), len(type_names)))
    for j, job in enumerate(jobs):
        spec = job.spec
        if spec.is_rigid:
            found[j] = spec.requested_gpus
        else:
            declared = spec.min_gpus if unit is RowUnit.FEWEST_GPUS else 1
            found[j] = [max(declared, spec.replica_gpus(name)) for name in type_names]
    return found
