"""A whole round (Sia, whole nodes) split into its parts, through plan_round.

The simulator and the live cluster plan it in the same way. Jobs train the catalog's models and are
believed to follow them within a per cent; the cluster is complete, or has drained GPUs on some
nodes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.table import Cell, Figures, growth
from maat.models.catalog import CatalogModel, load_catalog
from maat.scheduling.belief import Belief, GradientStatistics, TypeBelief
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.fitting import Sample
from maat.scheduling.job import Allocation, Job, JobDeclaration
from maat.scheduling.limits import capacity_limits
from maat.scheduling.loop import plan_round
from maat.scheduling.pins import pinned_grants
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import RoundInput
from maat.scheduling.throughput import step_seconds

COLUMNS = {
    "gpus": "GPUs",
    "capacity": "capacity",
    "jobs": "jobs",
    "pairs": "pairs",
    "limits": "limits",
    "matrix_seconds": "matrix",
    "solve_seconds": "solve",
    "place_seconds": "place",
    "explain_seconds": "explain",
    "round_seconds": "round",
    "worst_round_seconds": "worst",
    "growth": "growth",
    "certified_gap": "certified gap",
    "running": "running",
}
NOTES = [
    "CPU seconds, medians over the stored rounds; 'round' is all of plan_round and every reason "
    "read, 'worst' the slowest of them.",
    "matrix: goodput of every pair, its worth and the programme around it. place: with the checks "
    "of the decision and the placement.",
    "explain: the reason of every job, and what changes. growth: exponent of a round's cost in "
    "pairs from the size before.",
]
NODES_PER_64 = {"t4": (6, 4), "rtx": (3, 8), "a100": (2, 8)}
SHARES = {
    "cifar10": 0.3,
    "ncf": 0.15,
    "bert": 0.2,
    "deepspeech2": 0.15,
    "yolov3": 0.12,
    "imagenet": 0.08,
}
WARM_UP_ROUNDS = 7  # from nothing, allocations double each round
TURNOVER = 0.03
ROUND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Timed:
    """One planned round, and its total CPU seconds."""

    result: RoundResult
    seconds: float


def measure(sizes: Sequence[int], large: Sequence[int], *, stored: int) -> Figures:
    rows: list[dict[str, Cell]] = []
    for odd in (False, True):
        found = [_row(gpus, 0.5, odd=odd, stored=stored) for gpus in sizes] + [
            _row(gpus, 1.2, odd=odd, stored=2) for gpus in large
        ]
        exponents = growth(
            [float(row["pairs"] or 0) for row in found],
            [float(row["round_seconds"] or 0) for row in found],
        )
        rows += [
            {**row, "growth": exponent} for row, exponent in zip(found, exponents, strict=True)
        ]
    return Figures(
        "round", "A whole round of Sia with whole-node placement", COLUMNS, rows, list(NOTES)
    )


def _row(gpus: int, jobs_per_gpu: float, *, odd: bool, stored: int) -> dict[str, Cell]:
    timed = planned_rounds(gpus, int(gpus * jobs_per_gpu), odd=odd, stored=stored)
    parts = np.median([_parts(one) for one in timed], axis=0)
    last = timed[-1].result
    return {
        "gpus": gpus,
        "capacity": "odd" if odd else "intact",
        "jobs": len(last.round_input.jobs),
        "pairs": 0 if last.decision.matrix is None else len(last.decision.matrix.pairs),
        "limits": len(last.round_input.limits),
        **dict(
            zip(
                ("matrix_seconds", "solve_seconds", "place_seconds", "explain_seconds"),
                parts.tolist(),
                strict=True,
            )
        ),
        "round_seconds": float(np.median([one.seconds for one in timed])),
        "worst_round_seconds": max(one.seconds for one in timed),
        "certified_gap": max(one.result.decision.report.gap for one in timed),
        "running": len(last.placement.placement.job_ids),
    }


def _parts(timed: Timed) -> tuple[float, float, float, float]:
    spent, solve = timed.result.seconds, timed.result.decision.report.seconds
    return spent.policy - solve, solve, spent.place, timed.seconds - spent.total


def planned_rounds(gpus: int, jobs: int, *, odd: bool, stored: int, seed: int = 0) -> list[Timed]:
    """Yield consecutive rounds after a warm-up in which the cluster filled."""
    rng = np.random.default_rng((seed, gpus))
    cluster = cluster_of(gpus, odd=odd, rng=rng)
    population = [_newcomer(rng, number, cluster, now=0.0) for number in range(jobs)]
    policy, placer, limits = (
        POLICIES.build("sia"),
        PLACERS.build("whole-node"),
        capacity_limits(cluster),
    )
    timed: list[Timed] = []
    for number in range(WARM_UP_ROUNDS + stored):
        now = number * ROUND_SECONDS
        pins = pinned_grants(population, cluster)
        round_input = RoundInput(
            now, number, ROUND_SECONDS, tuple(population), cluster, limits, pins, seed=seed
        )
        gc.collect()
        began = time.process_time()
        result = plan_round(round_input, policy, placer)
        dict(result.reasons)  # reasons may be computed only when they are read: read them all
        if number >= WARM_UP_ROUNDS:
            timed.append(Timed(result, time.process_time() - began))
        population = [_after(job, result, cluster, now) for job in population]
        for place in np.flatnonzero(rng.random(jobs) < TURNOVER).tolist():
            population[place] = _newcomer(rng, (number + 1) * jobs + place, cluster, now=now)
    return timed


def cluster_of(gpus: int, *, odd: bool, rng: np.random.Generator) -> Cluster:
    """Return T4, RTX and A100 nodes at 6:3:2.

    `odd`: 1-7 GPUs of each type are drained, each on some node.
    """
    nodes: list[Node] = []
    for name, (per_64, size) in NODES_PER_64.items():
        count = per_64 * gpus // 64
        drained: list[set[int]] = [set() for _ in range(count)]
        if odd:
            for gpu in rng.choice(
                count * size, min(int(rng.integers(1, 8)), count * size - 1), replace=False
            ).tolist():
                drained[gpu // size].add(gpu % size)
        nodes += [
            Node(f"{name}-{i}", name, size, frozenset(missing)) for i, missing in enumerate(drained)
        ]
    return Cluster.of(nodes)


def _newcomer(rng: np.random.Generator, number: int, cluster: Cluster, *, now: float) -> Job:
    """Return a job somewhere in its training.

    It is known on every type as the catalog knows its model, within a per cent.
    """
    catalog = load_catalog()
    names = [name for name in SHARES if name in catalog]
    shares = np.array([SHARES[name] for name in names])
    model = catalog[names[int(rng.choice(len(names), p=shares / shares.sum()))]]
    asked = JobDeclaration(model=model.name, max_gpus=int(rng.choice([4, 16, 64])))
    spec = model.job_spec(asked, id=f"job-{number}", submitted_at=now)
    phi = model.noise_scale_at(float(rng.random()))
    believed = {
        name: _believed(model, name, float(rng.uniform(0.99, 1.01)))
        for name in cluster.type_names
        if name in model.fits
    }
    belief = Belief(
        believed, GradientStatistics(1.0, phi / spec.initial_batch_size), peak_replica_count=1
    )
    return Job(spec, belief, remaining_work=spec.work)


def _believed(model: CatalogModel, gpu_type: str, factor: float) -> TypeBelief:
    parameters = model.fits[gpu_type].parameters * np.array([factor, factor, 1, 1, 1, 1, 1])
    batch = model.fits[gpu_type].smallest_per_gpu_batch_size
    shapes = ((1, 1), (1, 4), (2, 8))
    nodes, replicas = np.array(shapes, dtype=np.float64).T
    steps = step_seconds(
        parameters, np.full(len(shapes), float(batch)), node_count=nodes, replica_count=replicas
    )
    return TypeBelief(
        tuple(
            Sample(n, k, batch, step, 0.0)
            for (n, k), step in zip(shapes, steps.tolist(), strict=True)
        ),
        parameters,
    )


def _after(job: Job, result: RoundResult, cluster: Cluster, now: float) -> Job:
    """Return the job as the next round finds it: on the GPUs that it was given."""
    gpus = result.placement.placement.by_job.get(job.id, ())
    held = Allocation(cluster.type_names[cluster.gpu_type_of[gpus[0]]], gpus) if gpus else None
    if held is None:
        return replace(job, allocation=None)
    moved = job.allocation is not None and job.allocation != held
    peak = max(job.belief.peak_replica_count, held.gpu_count)
    started = now if job.started_at is None else job.started_at
    belief = replace(job.belief, peak_replica_count=peak)
    return replace(
        job, allocation=held, restarts=job.restarts + moved, started_at=started, belief=belief
    )
