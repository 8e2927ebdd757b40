"""The genetic search over allocation matrices (Pollux section 4.2).

Evolves a population, and improves its best individuals by exchanges. Knows no jobs, cluster or
clock: `problem.py` states what is searched, `moves.py` changes individuals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.policies.pollux.moves import exchanged, filled, made_room, offspring, repair
from maat.scheduling.policies.pollux.problem import CountArray, SearchProblem, fitness, speedups

MOST_EXCHANGES = 10  # improvements of one individual, before evolution and after
MOST_CELLS = 2_000_000  # entries of a population that is evaluated at once


@dataclass(frozen=True)
class SearchOptions:
    """The limits of a search.

    `population` and `generations` are upper bounds. Evolution ends after `patience` generations
    without a better individual.
    """

    population: int = 100
    generations: int = 100
    patience: int = 25


class Found(NamedTuple):
    """Distinct individuals, best first, and their fitness.

    `population` (P, J, N), `fitness` (P,), and the generations run.
    """

    population: CountArray
    fitness: FloatArray
    generations: int


def search(
    problem: SearchProblem, start: CountArray, *, options: SearchOptions, rng: np.random.Generator
) -> Found:
    """Evolve `start`, shape (P, J, N); deterministic given `rng`.

    The present allocation always takes part, and if jobs need several GPUs of one type, so does it
    with GPUs for those that have none. It and the best individual are improved by exchanges before
    evolution, since a good answer is often few changes away, and the best once more after it.
    """
    first = _first(problem, start, rng)
    population, value = _survivors(first, fitness(problem, first), options.population)
    for individual in (
        population[:1] if (population[0] == first[0]).all() else np.stack((population[0], first[0]))
    ):
        population, value = _joined(
            problem,
            population,
            value,
            improved(problem, individual, rng)[None],
            most=options.population,
        )
    best, since, generation = value[0], 0, 0
    while value[0] < problem.top and generation < options.generations and since < options.patience:
        children = repair(
            problem, offspring(problem, population, many=options.population, rng=rng), rng
        )
        population, value = _joined(problem, population, value, children, most=options.population)
        generation += 1
        since = 0 if value[0] > best else since + 1
        best = value[0]
    last = filled(problem, improved(problem, population[0], rng))[None]
    population, value = _joined(
        problem,
        population,
        value,
        repair(problem, last, rng) if problem.whole_types is not None else last,
        most=options.population,
    )
    return Found(population, value, generation)


def _first(problem: SearchProblem, start: CountArray, rng: np.random.Generator) -> CountArray:
    """Return the individuals that evolution starts from, the present allocation first."""
    first = repair(problem, np.concatenate((problem.present[None], start)), rng)
    if problem.whole_types is None:
        return first
    whole = repair(problem, filled(problem, first[0])[None], rng)
    return np.concatenate((first, whole))


def improved(
    problem: SearchProblem, individual: CountArray, rng: np.random.Generator
) -> CountArray:
    """Improve one individual, shape (J, N), by exchanges while any helps.

    Steepest ascent: take the best exchange between any two jobs, after which the worst-off job
    takes what it can of the rest. If none helps and a job has no GPUs, try exchanges in which a
    third job makes room first.
    """
    value = float(fitness(problem, individual[None])[0])
    for _ in range(MOST_EXCHANGES):
        if value >= problem.top:
            break
        better, reached = _best_exchange(problem, individual, rng, move=exchanged)
        if reached <= value * (1 + 1e-12) and not speedups(problem, individual[None]).all():
            better, reached = _best_exchange(problem, individual, rng, move=made_room)
        if reached <= value * (1 + 1e-12):
            break
        individual, value = better, reached
    return individual


class _Move(Protocol):
    """An exchange in each individual between a giver and a taker; arrays (P,).

    The giver keeps `kept` of its GPUs; the taker and the worst-off job take GPUs.
    """

    def __call__(
        self,
        problem: SearchProblem,
        population: CountArray,
        *,
        giver: IntArray,
        taker: IntArray,
        worst: IntArray,
        kept: IntArray,
    ) -> CountArray: ...


def _best_exchange(
    problem: SearchProblem, individual: CountArray, rng: np.random.Generator, *, move: _Move
) -> tuple[CountArray, float]:
    """Return the best individual one move away, and its fitness.

    Itself and zero if no job has GPUs to give.
    """
    giver, taker, kept = _exchanges(problem, individual, rng)
    if not len(giver):
        return individual, 0.0
    worst = np.full_like(taker, np.argmin(speedups(problem, individual[None])[0]))
    others = move(
        problem,
        np.repeat(individual[None], len(giver), axis=0),
        giver=giver,
        taker=taker,
        worst=worst,
        kept=kept,
    )
    others = repair(problem, others, rng) if problem.quotas else others
    values = fitness(problem, others)
    best = int(np.argmax(values))
    return others[best], float(values[best])


def _exchanges(
    problem: SearchProblem, individual: CountArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Return (giver, taker, GPUs that the giver keeps) of the moves to try.

    The giver keeps one GPU less, or none. All pairs of jobs are tried, or a random sample of as
    many as memory allows.
    """
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


def _joined(
    problem: SearchProblem,
    population: CountArray,
    value: FloatArray,
    others: CountArray,
    *,
    most: int,
) -> tuple[CountArray, FloatArray]:
    """Return the fittest of a population and of `others`."""
    return _survivors(
        np.concatenate((population, others)),
        np.concatenate((value, fitness(problem, others))),
        most,
    )


def _survivors(
    population: CountArray, value: FloatArray, most: int
) -> tuple[CountArray, FloatArray]:
    """Return the fittest, best first, one of each fitness.

    Individuals of equal fitness mostly differ only in the order of nodes.
    """
    _, first = np.unique(-value, return_index=True)
    kept = first[:most]
    return population[kept], value[kept]
