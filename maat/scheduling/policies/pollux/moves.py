"""How the search changes individuals: repair, offspring, exchanges."""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.policies.pollux.problem import (
    CountArray,
    Quota,
    SearchProblem,
    WholeTypes,
    held_gpus,
    held_nodes,
    used_gpus,
)

RESET_SHARE = 0.1  # published simulator: rows reset to what the job holds
EMPTIED_SHARE = 0.1  # published simulator: rows that lose entries, and the entries that they lose
CROSSED_SHARE = 0.9  # pairs that are crossed, not copied


# ---- repair


def repair(problem: SearchProblem, population: CountArray, rng: np.random.Generator) -> CountArray:
    """Return individuals near the given ones that keep every rule.

    The rules are: whole types, interference avoidance, counts, nodes per job, room, quotas. If jobs
    need more than a node has, those of higher priority keep their GPUs.
    """
    repaired = np.minimum(population, problem.most_on_node)
    if problem.whole_types is not None:
        _to_one_type(problem.whole_types, repaired)
    if problem.avoid_interference:
        _one_distributed_job_per_node(problem, repaired)
    _within_counts(problem, repaired, rng)
    _within_room(problem, repaired)
    for quota in problem.quotas:
        _within_quota(quota, repaired)
    _within_counts(problem, repaired, rng)
    if problem.whole_types is not None:
        _to_one_type(problem.whole_types, repaired)
    return repaired


def filled(problem: SearchProblem, individual: CountArray) -> CountArray:
    """Give the jobs of `whole_types` that have no GPUs their best rows of what is free, (J, N).

    In order of priority. Chance alone seldom puts all the GPUs that such a job needs on one type.
    """
    if problem.whole_types is None:
        return individual
    work = _Workbench(problem, individual[None])
    for job in np.flatnonzero(problem.whole_types.jobs & (individual.sum(axis=1) == 0)):
        work.put(np.array([job]), work.best_rows(np.array([job])))
    whole: CountArray = work.population[0]
    return whole


def _to_one_type(whole: WholeTypes, population: CountArray) -> None:
    """Keep the GPUs of the type that a job of `whole` has most of, if they are enough for it."""
    jobs = np.flatnonzero(whole.jobs)
    rows = population[:, jobs]
    by_type = rows.astype(np.int64) @ whole.nodes.T.astype(np.int64)
    enough = np.where(by_type >= whole.fewest[jobs], by_type, 0)
    kept = whole.nodes[np.argmax(enough, axis=2)] & (enough.max(axis=2) > 0)[:, :, None]
    population[:, jobs] = np.where(kept, rows, 0)


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
    """Reduce jobs to allowed counts and node counts, on nodes drawn at random."""
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
    """Take GPUs above a quota from jobs of lower priority, on later nodes."""
    part = population[:, quota.jobs][:, :, quota.nodes]
    flat = part.reshape(len(part), -1)
    over = np.flatnonzero(flat.sum(axis=1, dtype=np.int64) > quota.places)
    if not len(over):
        return
    running = np.minimum(np.cumsum(flat[over], axis=1), quota.places)
    flat[over] = np.diff(running, axis=1, prepend=0)
    jobs, nodes = np.flatnonzero(quota.jobs), np.flatnonzero(quota.nodes)
    population[np.ix_(np.arange(len(population)), jobs, nodes)] = flat.reshape(part.shape)


# ---- offspring


def offspring(
    problem: SearchProblem, population: CountArray, *, many: int, rng: np.random.Generator
) -> CountArray:
    """Return offspring: half by crossing and mutation, half by handing over."""
    crossed = mutated(problem, crossed_over(_parents(population, many - many // 2, rng), rng), rng)
    return np.concatenate(
        (crossed, handed_over(problem, _parents(population, many // 2, rng), rng))
    )


def _parents(population: CountArray, many: int, rng: np.random.Generator) -> CountArray:
    """Return the winners of tournaments of two; individuals are best first."""
    winners: CountArray = population[rng.integers(len(population), size=(2, many)).min(axis=0)]
    return winners


def crossed_over(parents: CountArray, rng: np.random.Generator) -> CountArray:
    """Cross each individual with its neighbour at a random job.

    It keeps its own jobs before that job, and takes the others from its neighbour.
    """
    many, jobs, _ = parents.shape
    point = np.where(rng.random(many) < CROSSED_SHARE, rng.integers(jobs, size=many), jobs)
    mine = np.arange(jobs) < point[:, None]
    return np.where(mine[:, :, None], parents, np.roll(parents, 1, axis=0))


def mutated(problem: SearchProblem, population: CountArray, rng: np.random.Generator) -> CountArray:
    """Mutate: reset rows, empty entries, and raise entries where nodes have room.

    A reset row is what the job holds at present. About one entry is raised for a job on the node,
    and one for any job.
    """
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
    """In each individual, one job gives up GPUs and another takes its best row.

    The giver keeps one GPU less, half, or none.
    """
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
    """Reduce the giver; then taker, worst-off and giver take their best rows.

    The giver keeps `kept` GPUs (P,). Each row is the best for its job of what is free then.
    """
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
    """Empty the taker for the worst-off; then the taker and giver take rows.

    The worst-off job takes its best row of the GPUs that the taker leaves. Then the giver is
    reduced to `kept` GPUs (P,), and taker and giver take their best rows of what is free.
    """
    work = _Workbench(problem, population)
    work.put(taker, np.zeros_like(work.rows(taker)))
    work.put(worst, work.best_rows(worst))
    work.put(giver, _shrunk(problem, work.rows(giver), giver, kept))
    for job in (taker, giver):
        work.put(job, work.best_rows(job))
    return work.population


def _shrunk(problem: SearchProblem, rows: CountArray, job: IntArray, kept: IntArray) -> CountArray:
    """Return rows (M, N) with at most `kept` GPUs (M,).

    The nodes with fewest GPUs are given up first.
    """
    allowed = problem.at_most[job, np.minimum(kept, problem.most)]
    return _widest(rows, allowed)


class _Workbench:
    """A population copy in which one row per individual changes at a time.

    Sums over jobs are kept up to date.
    """

    def __init__(self, problem: SearchProblem, population: CountArray) -> None:
        self._problem = problem
        self.population = population.copy()
        self._everyone = np.arange(len(population))
        self._free = problem.room - used_gpus(population)
        self._spanning = used_gpus(_distributed(population)) + problem.taken

    def rows(self, job: IntArray) -> CountArray:
        """Return the row of one job of each individual, job (P,) -> shape (P, N)."""
        rows: CountArray = self.population[self._everyone, job]
        return rows

    def put(self, job: IntArray, rows: CountArray) -> None:
        before = self.rows(job)
        self._free += before - rows
        self._spanning += _spans(rows) - _spans(before)
        self.population[self._everyone, job] = rows

    def best_rows(self, job: IntArray) -> CountArray:
        """Return one job's best row if all others keep theirs, shape (P, N).

        The GPUs are on the tightest node that has enough, else on the nodes with most room. What
        the job holds at present is kept if it is free and worth as much after the discount of a
        change.
        """
        problem, own = self._problem, self.rows(job)
        free = np.minimum(np.maximum(self._free + own, 0), problem.most_on_node[job])
        roomy = (
            np.where(self._spanning - _spans(own) > 0, 0, free)
            if problem.avoid_interference
            else free
        )
        keep_worth = self._present_worth(job, free, roomy)
        if problem.whole_types is not None:
            free, roomy = self._of_best_type(problem.whole_types, job, free, roomy)
        on_one, on_many = self._worth(job, free, roomy)
        worth = np.maximum(on_one, on_many)
        chosen = np.argmax(worth, axis=1)
        most = worth[self._everyone, chosen]
        rows = np.where(
            (on_one[self._everyone, chosen] >= most)[:, None],
            _tightest(free, chosen),
            _widest(roomy, chosen),
        )
        keep = keep_worth >= most * problem.change_factor[job]
        return np.where(keep[:, None], problem.present[job], rows)

    def _worth(
        self, job: IntArray, free: CountArray, roomy: CountArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return speedup by count, on one node and on several, shapes (P, C + 1).

        Zero where there is no room.
        """
        problem, count = self._problem, np.arange(self._problem.most + 1)
        wide = (
            roomy.sum(axis=1)
            if roomy.shape[1] <= problem.most_nodes
            else -np.sort(-roomy, axis=1)[:, : problem.most_nodes].sum(axis=1)
        )
        on_one = np.where(count <= free.max(axis=1)[:, None], problem.speedup[job, :, 0], 0.0)
        on_many = np.where(count <= wide[:, None], problem.speedup[job, :, 1], 0.0)
        return on_one, on_many

    def _of_best_type(
        self, whole: WholeTypes, job: IntArray, free: CountArray, roomy: CountArray
    ) -> tuple[CountArray, CountArray]:
        """Return what is free (P, N), for jobs of `whole` on the type where they gain most alone.

        The first of equal types; nothing where no type has enough.
        """
        best = np.where(whole.jobs[job], 0.0, np.inf)
        inside = np.repeat(~whole.jobs[job][:, None], free.shape[1], axis=1)
        for t, nodes in enumerate(whole.nodes):
            on_one, on_many = self._worth(job, free * nodes, roomy * nodes)
            worth = np.where(whole.legal[job, t], np.maximum(on_one, on_many), 0.0).max(axis=1)
            inside[worth > best] = nodes
            best = np.maximum(best, worth)
        return free * inside, roomy * inside

    def _present_worth(self, job: IntArray, free: CountArray, roomy: CountArray) -> FloatArray:
        """Return the speedup of each job's present row, shape (P,).

        -1 if the row is not allowed or not free.
        """
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
    """Return 1 on every node of rows that span several, else 0; shape (P, N)."""
    held = np.minimum(rows, 1)
    spanning: CountArray = held * (held.sum(axis=1, keepdims=True) > 1)
    return spanning


def _distributed(population: CountArray) -> CountArray:
    """Return 1 where a job that spans nodes holds GPUs, else 0; (P, J, N)."""
    found: CountArray = np.minimum(population, 1) * (held_nodes(population) > 1)[:, :, None]
    return found


def _tightest(free: CountArray, count: IntArray) -> CountArray:
    """Put `count` (P,) GPUs on the tightest node that fits, shape (P, N)."""
    room = np.where(free >= count[:, None], free, np.iinfo(np.int64).max)
    node = np.argmin(room, axis=1)
    rows = np.zeros_like(free)
    rows[np.arange(len(free)), node] = count
    return rows


def _widest(free: CountArray, count: IntArray) -> CountArray:
    """Put `count` (P,) GPUs on as few nodes as possible, shape (P, N)."""
    order = np.argsort(-free, axis=1, kind="stable")
    running = np.minimum(np.cumsum(np.take_along_axis(free, order, axis=1), axis=1), count[:, None])
    rows = np.empty_like(free)
    np.put_along_axis(rows, order, np.diff(running, axis=1, prepend=0).astype(rows.dtype), axis=1)
    return rows
