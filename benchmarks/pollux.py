"""A round of Pollux at 64 GPUs: Maat's search beside NSGA-II of the pymoo library, on the same instances with the same fitness.

NSGA-II runs as published with Pollux: 100 individuals, 100 generations, two objectives (fitness and cluster utility), its crossing, mutation and
repair; the winner is the individual of most fitness. Not responsible for simulating: instances are rounds with catalog models.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.table import Cell, Figures
from maat.scheduling.arrays import FloatArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.pollux import Pollux
from maat.scheduling.policies.pollux_search import CountArray, SearchProblem, fitness, repair, search
from maat.scheduling.rounds import Policy, RoundInput
from maat.simulation.engine import Position, Scenario, simulate
from maat.simulation.generators import generate
from maat.simulation.models import catalog_models

COLUMNS = {
    "round": "round",
    "jobs": "jobs",
    "maat_seconds": "Maat",
    "generations": "generations",
    "nsga2_seconds": "NSGA-II",
    "under_nsga2": "x under",
    "maat_fitness": "Maat's fitness",
    "nsga2_fitness": "NSGA-II's",
    "present_fitness": "unchanged",
    "bound": "bound",
}
NOTES = [
    "CPU seconds of the search alone, from the same start (what the round before left, and the present allocation); fitness: more is better.",
    "unchanged: fitness of keeping every job where it is. bound: every job at its best count as if it were alone.",
]
POPULATION = GENERATIONS = 100
CLUSTER = "t4=16x4"


@dataclass(frozen=True)
class Instance:
    """One round's search: the problem, and the individuals that it starts from."""

    round_number: int
    problem: SearchProblem
    start: CountArray


def measure(*, rounds: int = 10) -> Figures:
    """`rounds` rounds of one simulated workload, spread over its busy hours. Without pymoo, Maat's search alone."""
    with_peer = importlib.util.find_spec("pymoo") is not None
    rows = [_row(instance, with_peer=with_peer) for instance in instances(rounds)]
    notes = NOTES if with_peer else [*NOTES, "pymoo is not installed (extra `bench`): nothing to compare with."]
    columns = {key: heading for key, heading in COLUMNS.items() if any(key in row for row in rows)}
    return Figures("pollux", f"A round of Pollux on {CLUSTER}", columns, rows, notes)


def _row(instance: Instance, *, with_peer: bool) -> dict[str, Cell]:
    problem, policy = instance.problem, Pollux()
    began = time.process_time()
    found = search(problem, instance.start, options=policy.search_options(problem), rng=np.random.default_rng(0))
    seconds = time.process_time() - began
    alone = problem.speedup.max(axis=(1, 2))[None, :, None]
    row: dict[str, Cell] = {
        "round": instance.round_number,
        "jobs": problem.jobs,
        "maat_seconds": seconds,
        "generations": found.generations,
        "maat_fitness": float(found.fitness[0]),
        "present_fitness": float(fitness(problem, problem.present[None])[0]),
        "bound": float(1 / (1 / (alone[0, :, 0] + problem.least_speedup)).mean()),
    }
    if with_peer:
        from benchmarks.pollux_nsga2 import nsga2

        began = time.process_time()
        theirs = nsga2(problem, instance.start, population=POPULATION, generations=GENERATIONS, seed=0)
        spent = time.process_time() - began
        row |= {"nsga2_seconds": spent, "under_nsga2": spent / seconds, "nsga2_fitness": theirs}
    return row


def instances(many: int) -> list[Instance]:
    """Rounds of a workload of 160 jobs in eight hours, as they stood under Pollux."""
    models = catalog_models()
    scenario = Scenario(generate("philly", jobs=80, hours=4.0, seed=1), models, Cluster.parse(CLUSTER), policy="pollux", placer="as-decided")
    seen: list[RoundInput] = []
    raise NotImplementedError
