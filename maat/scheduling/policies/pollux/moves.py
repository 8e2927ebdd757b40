"""How one population of Pollux's search becomes another: repair, offspring, exchanges between jobs. Judges no fitness."""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.policies.pollux.problem import (
    CountArray,
    Quota,
    SearchProblem,
    held_gpus,
    held_nodes,
    used_gpus,
)

RESET_SHARE = 0.1  # published simulator: rows put back to what the job holds
EMPTIED_SHARE = 0.1  # published simulator: rows of which entries are emptied, and entries of those
CROSSED_SHARE = 0.9  # pairs that are crossed rather than copied


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


def _within_counts(
    problem: SearchProblem, population: CountArray, rng: np.random.Generator
) -> None:
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


def offspring(
    problem: SearchProblem, population: CountArray, *, many: int, rng: np.random.Generator
) -> CountArray:
    """Half by crossing and mutation as published, half by handing GPUs from one job to another. To be repaired."""
    crossed = mutated(problem, crossed_over(_parents(population, many - many // 2, rng), rng), rng)
    return np.concatenate(
        (crossed, handed_over(problem, _parents(population, many // 2, rng), rng))
    )


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
    chance = (
        np.where(changed > 0, (there * (1 - anyone))[:, None, :], 0.0)
        + (anyone * has_room)[:, None, :]
    )
    at = np.nonzero(rng.random(changed.shape, dtype=np.float32) < chance)
    changed[at] = rng.integers(
        changed[at], np.maximum(problem.most_on_node[at[1], at[2]], changed[at]) + 1
    )
    return changed


def handed_over(
    problem: SearchProblem, population: CountArray, rng: np.random.Generator
) -> CountArray:
    """One job of each individual gives up some GPUs, another takes what is best for it of what is free then."""
    many, jobs, _ = population.shape
    giver, taker = rng.integers(jobs, size=(2, many))
    count = population[np.arange(many), giver].sum(axis=1, dtype=np.int64)
    kept = np.choose(
        rng.integers(3, size=many), (np.maximum(count - 1, 0), count // 2, np.zeros_like(count))
    )
    return exchanged(problem, population, giver=giver, taker=taker, worst=taker, kept=kept)


def exchanged(
    problem: SearchProblem,
    population: CountArray,
    *,
    giver: IntArray,
    taker: IntArray,
    worst: IntArray,
    kept: IntArray,
) -> CountArray:
    """In each individual, one job keeps `kept` of its GPUs; the taker, the worst-off and the giver then take their best rows in turn."""
    work = _Workbench(problem, population)
    work.put(giver, _shrunk(problem, work.rows(giver), giver, kept))
    for job in (taker, worst, giver):
        work.put(job, work.best_rows(job))
    return work.population


def made_room(
    problem: SearchProblem,
    population: CountArray,
    *,
    giver: IntArray,
    taker: IntArray,
    worst: IntArray,
    kept: IntArray,
) -> CountArray:
    """In each individual, the taker leaves its GPUs to the worst-off before it takes, with the giver, what is best of what the giver left."""
    work = _Workbench(problem, population)
    work.put(taker, np.zeros_like(work.rows(taker)))
    work.put(worst, work.best_rows(worst))
    work.put(giver, _shrunk(problem, work.rows(giver), giver, kept))
    for job in (taker, giver):
        work.put(job, work.best_rows(job))
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
        roomy = (
            np.where(self._spanning - _spans(own) > 0, 0, free)
            if problem.avoid_interference
            else free
        )
        on_one, on_many = self._worth(job, free, roomy)
        worth = np.maximum(on_one, on_many)
        chosen = np.argmax(worth, axis=1)
        most = worth[self._everyone, chosen]
        rows = np.where(
            (on_one[self._everyone, chosen] >= most)[:, None],
            _tightest(free, chosen),
            _widest(roomy, chosen),
        )
        keep = self._present_worth(job, free, roomy) >= most * problem.change_factor[job]
        return np.where(keep[:, None], problem.present[job], rows)

    def _worth(
        self, job: IntArray, free: CountArray, roomy: CountArray
    ) -> tuple[FloatArray, FloatArray]:
        """Speedup of every count on one node and on several, zero where there is no room, shapes (P, C + 1)."""
        problem, count = self._problem, np.arange(self._problem.most + 1)
        wide = (
            roomy.sum(axis=1)
            if roomy.shape[1] <= problem.most_nodes
            else -np.sort(-roomy, axis=1)[:, : problem.most_nodes].sum(axis=1)
        )
        on_one = np.where(count <= free.max(axis=1)[:, None], problem.speedup[job, :, 0], 0.0)
        on_many = np.where(count <= wide[:, None], problem.speedup[job, :, 1], 0.0)
        return on_one, on_many

    def _present_worth(self, job: IntArray, free: CountArray, roomy: CountArray) -> FloatArray:
        """Speedup of what each job holds at present, below zero where it may not have that or it is not free; shape (P,)."""
        held = self._problem.present[job]
        several = np.count_nonzero(held, axis=1) > 1
        total = held.sum(axis=1)
        count = np.minimum(total, self._problem.most)
        fits = (held <= np.where(several[:, None], roomy, free)).all(axis=1)
        fits &= (
            (total == count)
            & self._problem.allowed[job, count]
            & (np.count_nonzero(held, axis=1) <= self._problem.most_nodes)
        )
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
