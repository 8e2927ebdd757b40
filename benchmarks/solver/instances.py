"""Assignment programmes as in Sia's rounds, at any cluster size.

They are seeded, synthetic and independent of the policies they measure. Nodes of 4 T4, 8 RTX and 8
A100 at 6:3:2; powers of two inside a node, then whole nodes; six families of jobs; scale-up by two;
restart factor; value = lambda - (restart factor x normalised goodput)^p. Warm-up rounds with 3 % of
the jobs replaced, then stored rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.restart import restart_factor
from maat.scheduling.solving.assignment.problem import AssignmentProblem

TYPES = ("t4", "rtx", "a100")
_NODES_PER_64 = np.array([6, 3, 2])
_GPUS_PER_NODE = np.array([4, 8, 8])
_MOST_GPUS = 64

FAIRNESS_POWER = -0.5
QUEUE_WEIGHT = 1.1  # lambda: above 1, so that any allocation beats none
ROUND_SECONDS = 60.0
WARM_UP_ROUNDS = 10
TURNOVER = 0.03


@dataclass(frozen=True, slots=True)
class Family:
    """Jobs of one kind.

    `speed`: of one GPU of each type, relative. `scaling`: exponent of goodput in GPUs, from the
    first stage of training to the last. `between_nodes`: factor on several nodes.
    """

    share: float
    speed: tuple[float, float, float]
    scaling: tuple[float, float]
    between_nodes: float
    fewest: int
    most: int
    restart_seconds: float


FAMILIES = (
    Family(0.30, (1.0, 1.7, 3.4), (0.45, 0.75), 0.80, 1, 4, 25.0),
    Family(0.22, (1.0, 2.1, 5.0), (0.60, 0.85), 0.90, 1, 16, 120.0),
    Family(0.18, (1.0, 1.9, 3.9), (0.55, 0.90), 0.75, 1, 16, 80.0),
    Family(0.15, (1.0, 2.4, 4.4), (0.65, 0.92), 0.85, 1, 32, 60.0),
    Family(0.10, (1.0, 2.2, 6.2), (0.75, 0.97), 0.92, 1, 64, 250.0),
    Family(0.05, (0.0, 1.0, 4.0), (0.80, 0.95), 0.85, 4, 64, 250.0),
)
_STAGES = 4


@dataclass(frozen=True)
class Columns:
    """Configurations of at most 64 GPUs. Shapes (C,)."""

    gpu_type: IntArray
    count: IntArray
    nodes: IntArray


@dataclass
class Population:
    """The jobs of one instance, as arrays of shape (J,).

    `held`: the column that each job holds, -1 for none.
    """

    family: IntArray
    stage: IntArray
    accuracy: FloatArray
    age: FloatArray
    restarts: FloatArray
    held: IntArray
    held_count: IntArray


@dataclass(frozen=True)
class Instance:
    """One stored round."""

    gpus: int
    jobs: int
    odd: bool
    problem: AssignmentProblem = field(repr=False)


def capacities(gpus: int, *, odd: bool, seed: int = 0) -> IntArray:
    """Return GPUs by type, shape (3,); `odd`: 1-7 of each type are missing."""
    intact = _NODES_PER_64 * _GPUS_PER_NODE * (gpus // 64)
    missing = (
        np.random.default_rng((seed, gpus)).integers(1, 8, 3)
        if odd
        else np.zeros(3, dtype=np.int64)
    )
    left: IntArray = intact - missing
    return left


def sia_columns(gpus: int) -> Columns:
    """Return the columns: powers of two inside a node, then whole nodes.

    They end at the most GPUs that any family uses.
    """
    nodes = _NODES_PER_64 * (gpus // 64)
    rows = []
    for t, (per_node, available) in enumerate(
        zip(_GPUS_PER_NODE.tolist(), nodes.tolist(), strict=True)
    ):
        rows += [(t, 1 << bit, 1) for bit in range(per_node.bit_length())]
        rows += [
            (t, k * per_node, k) for k in range(2, available + 1) if k * per_node <= _MOST_GPUS
        ]
    return Columns(*(np.array(axis, dtype=np.int64) for axis in zip(*rows, strict=True)))


def goodput(people: Population, columns: Columns) -> FloatArray:
    """Return the relative goodput of every job in every column, shape (J, C).

    It is zero on a type that the job's family cannot use.
    """
    speed = np.array([f.speed for f in FAMILIES])[people.family][:, columns.gpu_type]
    low, high = np.array([f.scaling for f in FAMILIES])[people.family].T
    exponent = low + (high - low) * people.stage / (_STAGES - 1)
    between = np.where(
        columns.nodes > 1,
        np.array([f.between_nodes for f in FAMILIES])[people.family][:, None],
        1.0,
    )
    relative: FloatArray = speed * columns.count ** (exponent * people.accuracy)[:, None] * between
    return relative


def feasible(people: Population, columns: Columns, capacity: IntArray) -> BoolArray:
    """Return which columns are allowed, shape (J, C).

    Limits: the job's own, the type's capacity, and twice the GPUs held.
    """
    fewest = np.array([f.fewest for f in FAMILIES])[people.family]
    most = np.minimum(
        np.array([f.most for f in FAMILIES])[people.family],
        np.maximum(2 * people.held_count, fewest),
    )
    usable = np.array([f.speed for f in FAMILIES])[people.family][:, columns.gpu_type] > 0
    count = columns.count
    mask: BoolArray = (
        usable
        & (count >= fewest[:, None])
        & (count <= most[:, None])
        & (count <= capacity[columns.gpu_type])
    )
    return mask


def programme(
    people: Population, columns: Columns, capacity: IntArray
) -> tuple[AssignmentProblem, IntArray]:
    """Return the round's programme, and the column of every pair."""
    mask = feasible(people, columns, capacity)
    useful = np.where(mask, goodput(people, columns), np.inf)
    normalised = useful / useful.min(axis=1, keepdims=True)
    cost = np.array([f.restart_seconds for f in FAMILIES])[people.family]
    factor = restart_factor(people.age, people.restarts, cost)
    held = people.held[:, None] == np.arange(len(columns.count))
    moved = (people.held >= 0)[:, None] & ~held
    job, column = (axis.astype(np.int64) for axis in np.nonzero(mask))
    kept = np.where(moved, factor[:, None], 1.0)[job, column]
    value = QUEUE_WEIGHT - np.maximum(kept * normalised[job, column], 1e-3) ** FAIRNESS_POWER
    membership = columns.gpu_type[column][:, None] == np.arange(len(TYPES))
    names = tuple(f"capacity:{name}" for name in TYPES)
    return AssignmentProblem(
        value, columns.count[column], job, membership, capacity, held[job, column], names
    ), column


def rounds(
    gpus: int,
    *,
    jobs_per_gpu: float = 0.5,
    odd: bool = False,
    seed: int = 0,
    stored: int = 5,
    choose: Callable[[AssignmentProblem], IntArray],
) -> Iterator[Instance]:
    """Yield consecutive rounds after the warm-up.

    `choose`: returns the pairs that the jobs hold in the next round.
    """
    rng = np.random.default_rng((seed, gpus))
    jobs = max(1, int(gpus * jobs_per_gpu))
    columns, capacity = sia_columns(gpus), capacities(gpus, odd=odd, seed=seed)
    people = _newcomers(rng, jobs)
    for number in range(WARM_UP_ROUNDS + stored):
        problem, column = programme(people, columns, capacity)
        if number >= WARM_UP_ROUNDS:
            yield Instance(gpus, jobs, odd, problem)
        chosen = choose(problem)
        _advance(people, columns, problem.job[chosen], column[chosen], rng)


def _newcomers(rng: np.random.Generator, jobs: int) -> Population:
    return Population(
        family=rng.choice(len(FAMILIES), jobs, p=[f.share for f in FAMILIES]),
        stage=rng.integers(0, _STAGES, jobs),
        accuracy=np.ones(jobs),
        age=np.zeros(jobs),
        restarts=np.zeros(jobs),
        held=np.full(jobs, -1),
        held_count=np.zeros(jobs, dtype=np.int64),
    )


def _advance(
    people: Population, columns: Columns, job: IntArray, column: IntArray, rng: np.random.Generator
) -> None:
    """Allocate the chosen columns, let a round pass, and replace a few jobs.

    A job that has run has a fitted model of its own: no exact ties.
    """
    held = np.full(len(people.held), -1)
    held[job] = column
    people.restarts += (people.held >= 0) & (held >= 0) & (held != people.held)
    people.accuracy = np.where(
        (people.held < 0) & (held >= 0), rng.uniform(0.99, 1.01, len(held)), people.accuracy
    )
    people.held, people.age = held, people.age + ROUND_SECONDS
    people.held_count = np.where(held >= 0, columns.count[held], 0)
    leaving = np.flatnonzero(rng.random(len(held)) < TURNOVER)
    fresh = _newcomers(rng, len(leaving))
    for name, values in vars(fresh).items():
        getattr(people, name)[leaving] = values
