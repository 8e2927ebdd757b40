"""Pollux's genetic search over allocation matrices (Pollux section 4.2): evolves a population, and improves its best by exchanges.

Knows no job, no cluster and no clock; what is searched is pollux_problem's, how individuals change pollux_moves'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.policies.pollux.moves import exchanged, made_room, offspring, repair
from maat.scheduling.policies.pollux.problem import CountArray, SearchProblem, fitness, speedups

MOST_EXCHANGES = 10  # improvements of one individual, before evolution and after
MOST_CELLS = 2_000_000  # of a population that is looked at at once


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


def search(
    problem: SearchProblem, start: CountArray, *, options: SearchOptions, rng: np.random.Generator
) -> Found:
    """Evolve `start`, shape (P, J, N), with the best improved by exchanges before and after. The present allocation always takes part, and is
    improved too: what is best often lies few changes away from it. Deterministic given `rng`.
    """
    first = repair(problem, np.concatenate((problem.present[None], start)), rng)
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
    population, value = _joined(
        problem,
        population,
        value,
        improved(problem, population[0], rng)[None],
        most=options.population,
    )
    return Found(population, value, generation)


def improved(
    problem: SearchProblem, individual: CountArray, rng: np.random.Generator
) -> CountArray:
    """Steepest ascent from one individual, shape (J, N): as long as it helps, the best exchange between any two jobs, of which the one that is
    worst off takes what it can of the rest; where none helps and somebody has nothing, the best for which a third first makes room.
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
    """Gives another population, in each individual of which a giver keeps `kept` of its GPUs and a taker and the worst-off gain; arrays (P,)."""

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
    """The fittest individual that is one move away, and its fitness; itself and zero where no job has anything to give."""
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


def _joined(
    problem: SearchProblem,
    population: CountArray,
    value: FloatArray,
    others: CountArray,
    *,
    most: int,
) -> tuple[CountArray, FloatArray]:
    """The fittest of a population and of `others`."""
    return _survivors(
        np.concatenate((population, others)),
        np.concatenate((value, fitness(problem, others))),
        most,
    )


def _survivors(
    population: CountArray, value: FloatArray, most: int
) -> tuple[CountArray, FloatArray]:
    """The fittest, best first, one of each fitness: nodes are alike, so equals are mostly the same matrix with nodes exchanged."""
    _, first = np.unique(-value, return_index=True)
    kept = first[:most]
    return population[kept], value[kept]
