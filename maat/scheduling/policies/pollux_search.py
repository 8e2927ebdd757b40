"""Pollux's genetic search over allocation matrices (Pollux section 4.2), over arrays: knows no job, no cluster and no clock.

An individual is a matrix (J, N): GPUs of job j on node n, jobs in order of priority. A population has shape (P, J, N) and is never looped over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray

CountArray = NDArray[np.int32]

RESET_SHARE = 0.1  # published simulator: rows put back to what the job holds
EMPTIED_SHARE = 0.1  # published simulator: rows of which entries are emptied, and entries of those
CROSSED_SHARE = 0.9  # pairs that are crossed rather than copied
MOST_EXCHANGES = 10  # after evolution: improvements of the best individual
MOST_CELLS = 2_000_000  # of a population that is looked at at once


@dataclass(frozen=True)
class Quota:
    """Jobs under `jobs`, shape (J,), may hold at most `places` GPUs together on nodes under `nodes`, shape (N,)."""

    jobs: BoolArray
    nodes: BoolArray
    places: int


@dataclass(frozen=True)
class SearchProblem:
    """What is to be allocated. C is the most GPUs that any job may have.

    `room` (N,): GPUs to be had on each node. `most_on_node` (J, N): of them, what a job may take. `speedup` (J, C + 1, 2): of a job with so
    many GPUs on one node, and on several; zero where it may not or cannot have them. `allowed` (J, C + 1): counts that a job may have, nought
    among them. `present` (J, N): what jobs hold. `change_factor` (J,): what any other row is discounted by. `taken` (N,): nodes where a job
    outside this search spans several nodes.
    """

    room: IntArray
    most_on_node: CountArray
    speedup: FloatArray
    allowed: BoolArray
    present: CountArray
    change_factor: FloatArray
    taken: BoolArray
    quotas: tuple[Quota, ...] = ()
    p: float = -1.0
    least_speedup: float = 4e-3
    avoid_interference: bool = True
    most_nodes: int = 16

    @property
    def jobs(self) -> int:
        return len(self.present)

    @property
    def most(self) -> int:
        return int(self.allowed.shape[1]) - 1

    @cached_property
    def ceiling(self) -> float:
        """Fitness if every job had for itself what is best for it: no individual has more."""
        count = np.minimum(self.present.sum(axis=1), self.most)
        several = (np.count_nonzero(self.present, axis=1) > 1).astype(np.int64)
        stays = self.speedup[np.arange(self.jobs), count, several]
        reach = np.arange(self.most + 1) <= np.minimum(self.most_on_node.sum(axis=1), self.room.sum())[:, None]
        best = np.where(reach[:, :, None], self.speedup, 0.0).max(axis=(1, 2))
        return float(power_mean(np.maximum(stays, best * self.change_factor) + self.least_speedup, self.p))

    @cached_property
    def at_most(self) -> IntArray:
        """The largest allowed count that is no more than c, shape (J, C + 1)."""
        counts = np.where(self.allowed, np.arange(self.most + 1), 0)
        found: IntArray = np.maximum.accumulate(counts, axis=1)
        return found

    @cached_property
    def speedup_flat(self) -> FloatArray:
        return np.ascontiguousarray(self.speedup).reshape(-1)

    @cached_property
    def row_start(self) -> IntArray:
        """Where each job's speedups begin in `speedup_flat`, shape (J,)."""
        return np.arange(self.jobs) * (2 * (self.most + 1))


@dataclass(frozen=True)
class SearchOptions:
    """`population`, `generations`: as many at most. `patience`: generations without a better individual after which evolution ends."""

    population: int = 100
    generations: int = 100
    patience: int = 25


class Found(NamedTuple):
    """Distinct individuals, best first: shape (P, J, N), their fitness (P,), and how many generations it took."""

    population: CountArray
    fitness: FloatArray
    generations: int


def search(problem: SearchProblem, start: CountArray, *, options: SearchOptions, rng: np.random.Generator) -> Found:
    """Evolve `start`, shape (P, J, N), and improve the best. The present allocation always takes part. Deterministic given `rng`."""
    population = repair(problem, np.concatenate((problem.present[None], start)), rng)
    population, value = _survivors(population, fitness(problem, population), options.population)
    best, since, generation = value[0], 0, 0
    while value[0] < problem.ceiling * (1 - 1e-12) and generation < options.generations and since < options.patience:
        children = repair(problem, offspring(problem, population, many=options.population, rng=rng), rng)
        population, value = _survivors(
            np.concatenate((population, children)), np.concatenate((value, fitness(problem, children))), options.population
        )
        generation += 1
        since = 0 if value[0] > best else since + 1
        best = value[0]
    last = improved(problem, population[0], rng)
    population, value = _survivors(
        np.concatenate((population, last[None])), np.concatenate((value, fitness(problem, last[None]))), options.population
    )
    return Found(population, value, generation)


def improved(problem: SearchProblem, individual: CountArray, rng: np.random.Generator) -> CountArray:
    """Steepest ascent from one individual, shape (J, N): as long as it helps, the best exchange between any two jobs."""
    value = float(fitness(problem, individual[None])[0])
    for _ in range(MOST_EXCHANGES):
        giver, taker, kept = _exchanges(problem, individual, rng)
        if not len(giver) or value >= problem.ceiling * (1 - 1e-12):
            break
        others = exchanged(problem, np.repeat(individual[None], len(giver), axis=0), giver, taker, kept)
        others = repair(problem, others, rng) if problem.quotas else others
        values = fitness(problem, others)
        best = int(np.argmax(values))
        if values[best] <= value * (1 + 1e-12):
            break
        individual, value = others[best], float(values[best])
    return individual


def _exchanges(problem: SearchProblem, individual: CountArray, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """(giver, taker, GPUs that the giver keeps): one less, or none; every pair of jobs, or as many drawn by chance as memory allows."""
    count = individual.sum(axis=1, dtype=np.int64)
    holders = np.flatnonzero(count)
    giver = np.repeat(holders, problem.jobs)
    taker = np.tile(np.arange(problem.jobs), len(holders))
    kept = np.concatenate((count[giver] - 1, np.zeros_like(giver)))
    giver, taker = np.tile(giver, 2), np.tile(taker, 2)
    most = max(MOST_CELLS // max(individual.size, 1), 1)
    if len(giver) > most:
        drawn = np.sort(rng.choice(len(giver), most, replace=False))
        giver, taker, kept = giver[drawn], taker[drawn], kept[drawn]
    return giver, taker, kept


def held_gpus(population: CountArray) -> CountArray:
    """GPUs of every job, shape (P, J). Einstein's sums cost a fifth of numpy's along an axis this short."""
    found: CountArray = np.einsum("pjn->pj", population)
    return found


def held_nodes(population: CountArray) -> CountArray:
    """Nodes of every job, shape (P, J)."""
    return held_gpus(np.minimum(population, 1))


def used_gpus(population: CountArray) -> CountArray:
    """GPUs in use on every node, shape (P, N)."""
    found: CountArray = np.einsum("pjn->pn", population)
    return found


def speedups(problem: SearchProblem, population: CountArray) -> FloatArray:
    """SPEEDUP of every job in every individual, a change discounted (Pollux eq. 15 and REALLOC_FACTOR), shape (P, J)."""
    spread = held_nodes(population) > 1
    found = problem.speedup_flat[problem.row_start + 2 * held_gpus(population) + spread]
    changed = held_gpus(np.abs(population - problem.present)) > 0
    discounted: FloatArray = np.where(changed, found * problem.change_factor, found)
    return discounted


def fitness(problem: SearchProblem, population: CountArray) -> FloatArray:
    """FITNESS_p: the power mean of the speedups (Pollux eq. 14), each raised by `least_speedup` so that one idle job is not all; shape (P,)."""
    return power_mean(speedups(problem, population) + problem.least_speedup, problem.p)


def power_mean(values: FloatArray, p: float) -> FloatArray:
    """(mean of values^p)^(1/p) over the last axis, the geometric mean at p = 0; 0 over no values. Values are above zero."""
    if values.shape[-1] == 0:
        return np.zeros(values.shape[:-1])
    if p == 0:
        geometric: FloatArray = np.exp(np.log(values).mean(axis=-1))
        return geometric
    scale = values.min(axis=-1, keepdims=True) if p < 0 else values.max(axis=-1, keepdims=True)
    mean: FloatArray = scale[..., 0] * ((values / scale) ** p).mean(axis=-1) ** (1.0 / p)
    return mean


def _survivors(population: CountArray, value: FloatArray, most: int) -> tuple[CountArray, FloatArray]:
    """The fittest, best first, one of each fitness: nodes are alike, so equals are mostly the same matrix with nodes exchanged."""
    _, first = np.unique(-value, return_index=True)
    kept = first[:most]
    return population[kept], value[kept]


# ---- repair ---------------------------------------------------------------------------------------------------------------------------


def repair(problem: SearchProblem, population: CountArray, rng: np.random.Generator) -> CountArray:
    """The nearest individuals that keep every rule: interference avoidance, caps, nodes per job, room, quotas, allowed counts.

    Where several jobs are too many for a node, those of higher priority keep what they have.
    """
    repaired = np.minimum(population, problem.most_on_node)
    if problem.avoid_interference:
        _one_distributed_job_per_node(problem, repaired)
    _within_counts(problem, repaired, rng)
    _within_room(problem, repaired)
    for quota in problem.quotas:
        _within_quota(quota, repaired)
    _within_counts(problem, repaired, rng)
    return repaired


def _one_distributed_job_per_node(problem: SearchProblem, population: CountArray) -> None:
    where = _distributed(population)
    individual, node = np.nonzero(used_gpus(where) + problem.taken > 1)
    column = where[individual, :, node] > 0
    others = np.cumsum(column, axis=1, dtype=np.int32) + problem.taken[node, None] > 1
    at = column & others
    m, job = np.nonzero(at)
    population[individual[m], job, node[m]] = 0


def _within_counts(problem: SearchProblem, population: CountArray, rng: np.random.Generator) -> None:
    """Take GPUs away, on nodes drawn by chance, from jobs that hold a count they may not have or on too many nodes."""
    count = held_gpus(population)
    allowed = problem.at_most[np.arange(problem.jobs), np.minimum(count, problem.most)]
    wide = held_nodes(population) > problem.most_nodes
    individual, job = np.nonzero((count != allowed) | wide)
    if not len(individual):
        return
    rows = population[individual, job]
    order = rng.random(rows.shape).argsort(axis=1)
    shuffled = np.take_along_axis(rows, order, axis=1)
    beyond = np.cumsum(shuffled > 0, axis=1) > problem.most_nodes
    shuffled[beyond] = 0
    total = shuffled.sum(axis=1, dtype=np.int64)
    reach = problem.at_most[job, np.minimum(total, problem.most)]
    running = np.minimum(np.cumsum(shuffled, axis=1), reach[:, None])
    np.put_along_axis(rows, order, np.diff(running, axis=1, prepend=0).astype(np.int32), axis=1)
    population[individual, job] = rows


def _within_room(problem: SearchProblem, population: CountArray) -> None:
    individual, node = np.nonzero(used_gpus(population) > problem.room)
    if not len(individual):
        return
    column = population[individual, :, node]
    running = np.minimum(np.cumsum(column, axis=1), problem.room[node, None])
    population[individual, :, node] = np.diff(running, axis=1, prepend=0)


def _within_quota(quota: Quota, population: CountArray) -> None:
    """Jobs of lower priority give up what a quota leaves no place for, on its later nodes."""
    part = population[:, quota.jobs][:, :, quota.nodes]
    flat = part.reshape(len(part), -1)
    over = np.flatnonzero(flat.sum(axis=1, dtype=np.int64) > quota.places)
    if not len(over):
        return
    running = np.minimum(np.cumsum(flat[over], axis=1), quota.places)
    flat[over] = np.diff(running, axis=1, prepend=0)
    jobs, nodes = np.flatnonzero(quota.jobs), np.flatnonzero(quota.nodes)
    population[np.ix_(np.arange(len(population)), jobs, nodes)] = flat.reshape(part.shape)


# ---- offspring ------------------------------------------------------------------------------------------------------------------------


def offspring(problem: SearchProblem, population: CountArray, *, many: int, rng: np.random.Generator) -> CountArray:
    """Half by crossing and mutation as published, half by handing GPUs from one job to another. To be repaired."""
    crossed = mutated(problem, crossed_over(_parents(population, many - many // 2, rng), rng), rng)
    return np.concatenate((crossed, handed_over(problem, _parents(population, many // 2, rng), rng)))


def _parents(population: CountArray, many: int, rng: np.random.Generator) -> CountArray:
    """Winners of tournaments of two; individuals stand best first."""
    winners: CountArray = population[rng.integers(len(population), size=(2, many)).min(axis=0)]
    return winners


def crossed_over(parents: CountArray, rng: np.random.Generator) -> CountArray:
    """Each individual takes its jobs before a random one from itself, the others from its neighbour."""
    many, jobs, _ = parents.shape
    point = np.where(rng.random(many) < CROSSED_SHARE, rng.integers(jobs, size=many), jobs)
    mine = np.arange(jobs) < point[:, None]
    return np.where(mine[:, :, None], parents, np.roll(parents, 1, axis=0))


def mutated(problem: SearchProblem, population: CountArray, rng: np.random.Generator) -> CountArray:
    """Rows put back to what is held, entries emptied, and entries raised on nodes with room, about one for a job there and one for any."""
    many, jobs, _ = population.shape
    changed = population.copy()
    individual, job = np.nonzero(rng.random((many, jobs)) < RESET_SHARE)
    changed[individual, job] = problem.present[job]
    individual, job = np.nonzero(rng.random((many, jobs)) < EMPTIED_SHARE)
    rows = changed[individual, job]
    rows[rng.random(rows.shape, dtype=np.float32) < EMPTIED_SHARE] = 0
    changed[individual, job] = rows
    has_room = used_gpus(changed) < problem.room
    anyone = 1.0 / jobs
    there = has_room / np.maximum(used_gpus(np.minimum(changed, 1)), 1)
    chance = np.where(changed > 0, (there * (1 - anyone))[:, None, :], 0.0) + (anyone * has_room)[:, None, :]
    at = np.nonzero(rng.random(changed.shape, dtype=np.float32) < chance)
    changed[at] = rng.integers(changed[at], np.maximum(problem.most_on_node[at[1], at[2]], changed[at]) + 1)
    return changed


def handed_over(problem: SearchProblem, population: CountArray, rng: np.random.Generator) -> CountArray:
    """One job of each individual gives up some GPUs, another takes what is best for it of what is free then."""
    many, jobs, _ = population.shape
    giver, taker = rng.integers(jobs, size=(2, many))
    count = population[np.arange(many), giver].sum(axis=1, dtype=np.int64)
    kept = np.choose(rng.integers(3, size=many), (np.maximum(count - 1, 0), count // 2, np.zeros_like(count)))
    return exchanged(problem, population, giver, taker, kept)


def exchanged(problem: SearchProblem, population: CountArray, giver: IntArray, taker: IntArray, kept: IntArray) -> CountArray:
    """In each individual, one job keeps `kept` of its GPUs, another takes its best row, and the first then its own. Arrays of shape (P,)."""
    work = _Workbench(problem, population)
    work.put(giver, _shrunk(problem, work.rows(giver), giver, kept))
    work.put(taker, work.best_rows(taker))
    work.put(giver, work.best_rows(giver))
    return work.population


def _shrunk(problem: SearchProblem, rows: CountArray, job: IntArray, kept: IntArray) -> CountArray:
    """Rows (M, N) with at most `kept` GPUs (M,); the nodes with fewest are given up first."""
    allowed = problem.at_most[job, np.minimum(kept, problem.most)]
    return _widest(rows, allowed)


class _Workbench:
    """A copy of a population in which one row of each individual is exchanged at a time; sums over jobs are kept up to date."""

    def __init__(self, problem: SearchProblem, population: CountArray) -> None:
        self._problem = problem
        self.population = population.copy()
        self._everyone = np.arange(len(population))
        self._free = problem.room - used_gpus(population)
        self._spanning = used_gpus(_distributed(population)) + problem.taken

    def rows(self, job: IntArray) -> CountArray:
        """The row of one job of each individual, job (P,) -> shape (P, N)."""
        rows: CountArray = self.population[self._everyone, job]
        return rows

    def put(self, job: IntArray, rows: CountArray) -> None:
        before = self.rows(job)
        self._free += before - rows
        self._spanning += _spans(rows) - _spans(before)
        self.population[self._everyone, job] = rows

    def best_rows(self, job: IntArray) -> CountArray:
        """For one job of each individual the row of most speedup while all others keep theirs, shape (P, N).

        On the tightest node that holds it, else over the nodes with most room; or what the job holds at present, if that is free.
        """
        problem, own = self._problem, self.rows(job)
        free = np.minimum(np.maximum(self._free + own, 0), problem.most_on_node[job])
        roomy = np.where(self._spanning - _spans(own) > 0, 0, free) if problem.avoid_interference else free
        on_one, on_many = self._worth(job, free, roomy)
        worth = np.maximum(on_one, on_many)
        chosen = np.argmax(worth, axis=1)
        most = worth[self._everyone, chosen]
        rows = np.where((on_one[self._everyone, chosen] >= most)[:, None], _tightest(free, chosen), _widest(roomy, chosen))
        keep = self._present_worth(job, free, roomy) >= most * problem.change_factor[job]
        return np.where(keep[:, None], problem.present[job], rows)

    def _worth(self, job: IntArray, free: CountArray, roomy: CountArray) -> tuple[FloatArray, FloatArray]:
        """Speedup of every count on one node and on several, nought where there is no room, shapes (P, C + 1)."""
        problem, count = self._problem, np.arange(self._problem.most + 1)
        wide = roomy.sum(axis=1) if roomy.shape[1] <= problem.most_nodes else -np.sort(-roomy, axis=1)[:, : problem.most_nodes].sum(axis=1)
        on_one = np.where(count <= free.max(axis=1)[:, None], problem.speedup[job, :, 0], 0.0)
        on_many = np.where(count <= wide[:, None], problem.speedup[job, :, 1], 0.0)
        return on_one, on_many

    def _present_worth(self, job: IntArray, free: CountArray, roomy: CountArray) -> FloatArray:
        """Speedup of what each job holds at present, below nought where it may not have that or it is not free; shape (P,)."""
        held = self._problem.present[job]
        several = np.count_nonzero(held, axis=1) > 1
        total = held.sum(axis=1)
        count = np.minimum(total, self._problem.most)
        fits = (held <= np.where(several[:, None], roomy, free)).all(axis=1)
        fits &= (total == count) & self._problem.allowed[job, count] & (np.count_nonzero(held, axis=1) <= self._problem.most_nodes)
        return np.where(fits, self._problem.speedup[job, count, several.astype(np.int64)], -1.0)


def _spans(rows: CountArray) -> CountArray:
    """1 on every node of a row that spans several, else 0; shape (P, N)."""
    held = np.minimum(rows, 1)
    spanning: CountArray = held * (held.sum(axis=1, keepdims=True) > 1)
    return spanning


def _distributed(population: CountArray) -> CountArray:
    """1 where a job that spans several nodes holds something, else 0; shape (P, J, N)."""
    found: CountArray = np.minimum(population, 1) * (held_nodes(population) > 1)[:, :, None]
    return found


def _tightest(free: CountArray, count: IntArray) -> CountArray:
    """`count` (P,) GPUs on the node with least room that holds them, shape (P, N)."""
    room = np.where(free >= count[:, None], free, np.iinfo(np.int64).max)
    node = np.argmin(room, axis=1)
    rows = np.zeros_like(free)
    rows[np.arange(len(free)), node] = count
    return rows


def _widest(free: CountArray, count: IntArray) -> CountArray:
    """`count` (P,) GPUs over as few nodes as hold them, those with most `free` first, shape (P, N)."""
    order = np.argsort(-free, axis=1, kind="stable")
    running = np.minimum(np.cumsum(np.take_along_axis(free, order, axis=1), axis=1), count[:, None])
    rows = np.empty_like(free)
    np.put_along_axis(rows, order, np.diff(running, axis=1, prepend=0).astype(rows.dtype), axis=1)
    return rows
