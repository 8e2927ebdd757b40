"""Pollux: a genetic search for the allocations of most fitness (section 4.2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.job import Job
from maat.scheduling.parameters import knob, parameter_hash
from maat.scheduling.policies.pollux.grants import grants_of
from maat.scheduling.policies.pollux.homogeneous_view import AllocationOptions, allocation_options
from maat.scheduling.policies.pollux.memory import recalled, state_data
from maat.scheduling.policies.pollux.problem import CountArray, SearchProblem
from maat.scheduling.policies.pollux.reasons import reasons_of
from maat.scheduling.policies.pollux.search import MOST_CELLS, Found, SearchOptions, search
from maat.scheduling.policies.pollux.useful_types import restrict_to_useful_types
from maat.scheduling.policies.pollux.virtual_nodes import (
    VirtualNodes,
    quotas,
    usable_nodes,
    virtual_nodes,
    whole_types,
)
from maat.scheduling.protocols import GpuSharing
from maat.scheduling.restart import restart_factor
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.report import SolveReport, SolveStatus

LEAST_START = 1e-6  # discount of a start at least: a start loses no work, even of a new job
LEAST_PATIENCE = 5  # generations, plus one for every job, up to the parameter


@dataclass(frozen=True)
class Pollux:
    """Maximise the weighted power mean of all jobs' speedups (Pollux eq. 14, 15)."""

    p: float = knob(
        -1.0,
        "Power of the mean: lower favours the worst-off jobs.",
        source="Pollux section 4.2",
        minimum=-10.0,
        maximum=10.0,
    )
    default_round_seconds: ClassVar[float] = 60.0  # Pollux section 5.1
    chooses_gpu_counts: ClassVar[bool] = True
    weighs_jobs: ClassVar[bool] = True
    gpu_sharing: ClassVar[GpuSharing] = GpuSharing.NEVER
    reallocation_seconds: float = knob(
        30.0,
        "delta: assumed cost of a re-allocation.",
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
        "Added to every speedup, in nodes: keeps fitness above zero when a job has no GPUs.",
        source="published simulator",
        minimum=1e-9,
        maximum=1.0,
    )
    population: int = knob(
        100, "Individuals of a generation.", source="published simulator", minimum=2, maximum=1000
    )
    generations: int = knob(
        100,
        "Most generations of a round.",
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
        """Return GPUs by node for each job, within limits; pinned jobs keep theirs."""
        began = time.process_time()
        nodes = virtual_nodes(round_input.cluster)
        jobs = restrict_to_useful_types(
            in_priority([job for job in round_input.jobs if job.id not in round_input.pinned]),
            round_input,
        )
        problem, known = self.problem(round_input, jobs, nodes)
        state = round_input.state.for_owner(self.name, parameter_hash(self))
        start = recalled(state, jobs, nodes)
        found = search(problem, start, options=self.search_options(problem), rng=round_input.rng)
        grants, goodput = grants_of(round_input, jobs, nodes, found.population[0])
        memory = state_data(found.population[: self.remembered], jobs, nodes)
        state = replace(state, data=memory)
        report = _report(problem, found, time.process_time() - began)
        reasons = reasons_of(
            round_input, jobs, known, grants, goodput, evolved=self.generations > 0
        )
        return Decision(grants, report, reasons, state)

    def search_options(self, problem: SearchProblem) -> SearchOptions:
        """Return the size of the search: smaller for large clusters and few jobs."""
        fitting = MOST_CELLS // max(problem.present.size, 1)
        return SearchOptions(
            max(min(self.population, fitting), 2),
            self.generations,
            min(self.patience, LEAST_PATIENCE + problem.jobs),
        )

    def problem(
        self, round_input: RoundInput, jobs: Sequence[Job], nodes: VirtualNodes
    ) -> tuple[SearchProblem, AllocationOptions]:
        """Return the search problem of `jobs`, in order of priority, and its data.

        The data is the options from which the problem is made.
        """
        free, taken = _free_gpus(round_input, nodes)
        total = max(int(nodes.size.sum()), 1)
        share = -(-total // max(len(round_input.jobs), 1))
        known = allocation_options(
            jobs, round_input, room=free, scale_up=self.scale_up_factor, share=share
        )
        problem = SearchProblem(
            room=free,
            most_on_node=np.where(usable_nodes(jobs, nodes), free, 0).astype(np.int32),
            speedup=known.speedup(),
            allowed=known.allowed,
            present=_present(jobs, nodes),
            change_factor=self._change_factor(jobs, round_input.now),
            weight=np.array([job.spec.weight for job in jobs], dtype=np.float64),
            taken=taken,
            quotas=quotas(jobs, round_input, nodes),
            whole_types=whole_types(jobs, known.allowed, nodes),
            p=self.p,
            least_speedup=self.idle_speedup * total / max(len(nodes.size), 1),
            avoid_interference=self.avoid_interference,
            most_nodes=self.most_nodes,
        )
        return problem, known

    def _change_factor(self, jobs: Sequence[Job], now: float) -> FloatArray:
        """Return REALLOC_FACTOR (Sia eq. 3 with S = delta) of each job, shape (J,).

        A start is worth at least `LEAST_START`.
        """
        factor = restart_factor(
            np.array([job.age_seconds(now) for job in jobs]),
            np.array([float(job.restarts) for job in jobs]),
            np.asarray(self.reallocation_seconds),
        )
        starts = np.array([job.allocation is None for job in jobs], dtype=bool)
        return np.maximum(factor, np.where(starts, LEAST_START, 0.0))


def in_priority(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return the least served jobs first, then by submission.

    If a search puts too many jobs on a node, the first ones keep their GPUs.
    """
    return tuple(
        sorted(
            jobs, key=lambda job: (sum(job.attained_gpu_seconds.values()), job.spec.submitted_at)
        )
    )


def _free_gpus(
    round_input: RoundInput, nodes: VirtualNodes
) -> tuple[IntArray, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """Return the GPUs not pinned on each node, and nodes of spanning pins.

    Shapes (N,): the GPUs that no pinned job holds, and True where a pinned job spans several nodes.
    """
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
    """Return what jobs hold on usable GPUs, shape (J, N)."""
    present = np.zeros((len(jobs), len(nodes.size)), dtype=np.int32)
    for row, job in enumerate(jobs):
        if job.allocation is not None:
            present[row] = nodes.row(job.allocation.gpus)
    return present


def _report(problem: SearchProblem, found: Found, seconds: float) -> SolveReport:
    """Return the fitness reached, and its bound: the best for each job alone."""
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
