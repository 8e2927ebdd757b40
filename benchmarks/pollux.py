"""A round of Pollux at 64 GPUs: Maat's search and NSGA-II of the pymoo library.

Both use the same instances with the same fitness. NSGA-II runs as published with Pollux: 100
individuals, 100 generations, two objectives (fitness and cluster utility), its crossing, mutation
and repair; the winner is the individual with the highest fitness. Instances are rounds with catalog
models; this module does not simulate.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from benchmarks.table import Cell, Figures
from maat.scheduling.cluster import Cluster
from maat.scheduling.events import Event
from maat.scheduling.loop import RoundLoop
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies.pollux.memory import recalled
from maat.scheduling.policies.pollux.policy import Pollux, in_priority
from maat.scheduling.policies.pollux.problem import CountArray, SearchProblem, fitness
from maat.scheduling.policies.pollux.search import search
from maat.scheduling.policies.pollux.virtual_nodes import virtual_nodes
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, RoundInput, StoredState
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import fidelity
from maat.simulation.world_models import catalog_models
from maat.workloads.generators import generate

COLUMNS = {
    "round": "round",
    "jobs": "jobs",
    "maat_seconds": "Maat",
    "generations": "generations",
    "nsga2_seconds": "NSGA-II",
    "under_nsga2": "x under",
    "maat_fitness": "Maat's worst fitness",
    "nsga2_fitness": "NSGA-II's best",
    "present_fitness": "unchanged",
    "fitness_gain": "more than NSGA-II's best",
    "below": "searches below",
}
NOTES = [
    "CPU seconds of one search, the mean over the seeds, from the same start (what the round "
    "before left, and the present allocation).",
    "Fitness: more is better; Maat's of the seed that did worst, NSGA-II's of the one that did "
    "best. unchanged: every job kept where it is.",
    "searches below: Maat's of less fitness than NSGA-II's of the same seed. all: sums; of the "
    "shares by which our worst is more, the geometric mean.",
]
POPULATION = GENERATIONS = 100  # as published
EVERY = 10  # rounds between two instances
SEEDS = range(4)  # of the searches of one instance
SAME = 1e-9  # relative: fitness summed in another order
CLUSTER = "t4=16x4"


@dataclass(frozen=True)
class Instance:
    """One round's search: the problem, and the individuals that it starts from."""

    round_number: int
    problem: SearchProblem
    start: CountArray


def measure(*, rounds: int = 10) -> Figures:
    """Return `rounds` rounds of one busy simulated workload.

    Without pymoo, only Maat's search runs.
    """
    with_peer = importlib.util.find_spec("pymoo") is not None
    rows = [_row(instance, with_peer=with_peer) for instance in instances(rounds)]
    if with_peer:
        rows.append(_overall(rows))
    notes = (
        NOTES
        if with_peer
        else [*NOTES, "pymoo is not installed (extra `peers`): nothing to compare with."]
    )
    columns = {key: heading for key, heading in COLUMNS.items() if any(key in row for row in rows)}
    return Figures("pollux", f"A round of Pollux on {CLUSTER}: the search", columns, rows, notes)


def _row(instance: Instance, *, with_peer: bool) -> dict[str, Cell]:
    problem = instance.problem
    ours = [_ours(instance, seed) for seed in SEEDS]
    row: dict[str, Cell] = {
        "round": str(instance.round_number),
        "jobs": problem.jobs,
        "maat_seconds": fmean(one.seconds for one in ours),
        "generations": fmean(one.generations for one in ours),
        "maat_fitness": min(one.fitness for one in ours),
        "present_fitness": float(fitness(problem, problem.present[None])[0]),
    }
    return (
        {**row, **_beside(ours, [_theirs(instance, seed) for seed in SEEDS])} if with_peer else row
    )


@dataclass(frozen=True)
class Searched:
    """The time and the result of one search."""

    seconds: float
    fitness: float
    generations: int


def _ours(instance: Instance, seed: int) -> Searched:
    began = time.process_time()
    found = search(
        instance.problem,
        instance.start,
        options=Pollux().search_options(instance.problem),
        rng=np.random.default_rng(seed),
    )
    return Searched(time.process_time() - began, float(found.fitness[0]), found.generations)


def _theirs(instance: Instance, seed: int) -> Searched:
    from benchmarks.pollux_nsga2 import nsga2

    began = time.process_time()
    reached = nsga2(
        instance.problem, instance.start, population=POPULATION, generations=GENERATIONS, seed=seed
    )
    return Searched(time.process_time() - began, reached, GENERATIONS)


def _beside(ours: Sequence[Searched], theirs: Sequence[Searched]) -> dict[str, Cell]:
    """The mean time and best fitness of both, and their comparison."""
    spent, best = fmean(one.seconds for one in theirs), max(one.fitness for one in theirs)
    return {
        "nsga2_seconds": spent,
        "under_nsga2": spent / fmean(one.seconds for one in ours),
        "nsga2_fitness": best,
        "fitness_gain": min(one.fitness for one in ours) / best - 1,
        "below": sum(
            mine.fitness < other.fitness * (1 - SAME)
            for mine, other in zip(ours, theirs, strict=True)
        ),
    }


def _overall(rows: Sequence[Mapping[str, Cell]]) -> dict[str, Cell]:
    """Sum the seconds; take the geometric mean of the fitness ratios."""
    ours, theirs, gain = (
        np.array([row[key] for row in rows], dtype=np.float64)
        for key in ("maat_seconds", "nsga2_seconds", "fitness_gain")
    )
    return {
        "round": "all",
        "maat_seconds": float(ours.sum()),
        "nsga2_seconds": float(theirs.sum()),
        "under_nsga2": float(theirs.sum() / ours.sum()),
        "fitness_gain": float(np.exp(np.log1p(gain).mean()) - 1),
        "below": sum(int(row["below"] or 0) for row in rows),
    }


def instances(many: int) -> list[Instance]:
    """Return every tenth round of 160 jobs in five hours under Pollux."""
    models, preset, clock = catalog_models(), fidelity("paper"), JumpingClock()
    executor = SimulatedExecutor(Cluster.parse(CLUSTER), clock, preset)
    for job in generate("philly", jobs=160, hours=5.0, seed=1).jobs:
        model = models[job.model]
        executor.submit(
            model.job_spec(job, preset), model.truth, restart_seconds=model.restart_seconds
        )
    policy, store = Pollux(), _Rounds()
    loop = RoundLoop(
        policy=policy,
        placer=PLACERS.build("as-decided"),
        executor=executor,
        store=store,
        clock=clock,
    )
    loop.run(until=EVERY * many * policy.default_round_seconds)
    return [_instance(store.kept[EVERY * (number + 1)], policy) for number in range(many)]


def _instance(round_input: RoundInput, policy: Pollux) -> Instance:
    nodes = virtual_nodes(round_input.cluster)
    jobs = in_priority([job for job in round_input.jobs if job.id not in round_input.pinned])
    problem, _ = policy.problem(round_input, jobs, nodes)
    return Instance(round_input.round_number, problem, recalled(round_input.state, jobs, nodes))


class _Rounds:
    """A RoundStore that keeps the input of every round."""

    def __init__(self) -> None:
        self.kept: dict[int, RoundInput] = {}
        self._stored = StoredState()

    def load(self) -> StoredState:
        return self._stored

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        self.kept[result.round_number] = result.round_input
        self._stored = StoredState(
            result.round_number + 1, result.decision.state, result.placement.state
        )
        return True

    def unapplied(self) -> Sequence[Changes]:
        return ()

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        """Do nothing."""
