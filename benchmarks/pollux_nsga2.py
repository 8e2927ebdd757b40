"""NSGA-II of the pymoo library on Pollux's allocation matrices, as a peer.

It has the operators that were published with Pollux, restated from the published simulator:
one-point crossing over jobs; rows put back, entries emptied, entries raised; repair in job order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem
from pymoo.core.repair import Repair
from pymoo.optimize import minimize

from maat.scheduling.arrays import FloatArray
from maat.scheduling.policies.pollux.problem import CountArray, SearchProblem, fitness


def nsga2(
    problem: SearchProblem, start: CountArray, *, population: int, generations: int, seed: int
) -> float:
    """Return the highest fitness in the last generation."""
    first = np.concatenate((problem.present[None], start)).reshape(len(start) + 1, -1)
    rng = np.random.default_rng(seed)
    algorithm = NSGA2(
        pop_size=population,
        sampling=first.astype(np.int64),
        crossover=_Crossing(problem, rng),
        mutation=_Raising(problem, rng),
        repair=_Rules(problem, rng),
    )
    result = minimize(
        _Allocation(problem), algorithm, ("n_gen", generations), seed=seed, verbose=False
    )
    return float(-result.pop.get("F")[:, 0].min())


def _utility(problem: SearchProblem, states: CountArray) -> FloatArray:
    """Return the speedup per GPU of the nodes in use, shape (P,)."""
    count = states.sum(axis=2, dtype=np.int64)
    spread = np.count_nonzero(states, axis=2) > 1
    speedup = problem.speedup_flat[problem.row_start + 2 * count + spread].sum(axis=1)
    active = (states.any(axis=1) * problem.room).sum(axis=1)
    return speedup / np.maximum(active, 1)


class _Allocation(Problem):  # type: ignore[misc]
    """Matrices flattened to rows of whole numbers; both objectives are minimised."""

    def __init__(self, problem: SearchProblem) -> None:
        self.shape, self._problem = problem.present.shape, problem
        super().__init__(
            n_var=problem.present.size, n_obj=2, xl=0, xu=int(problem.room.max()), vtype=int
        )

    def _evaluate(self, x: Any, out: Any, *_: Any, **__: Any) -> None:
        states = x.reshape(len(x), *self.shape)
        out["F"] = np.column_stack(
            [-fitness(self._problem, states), -_utility(self._problem, states)]
        )


class _Crossing(Crossover):  # type: ignore[misc]
    def __init__(self, problem: SearchProblem, rng: np.random.Generator) -> None:
        super().__init__(n_parents=2, n_offsprings=2, prob=0.9)
        self._problem, self._rng = problem, rng

    def _do(self, _: Any, parents: Any, *args: Any, **kwargs: Any) -> Any:
        _, matings, _ = parents.shape
        states = parents.reshape(2, matings, *self._problem.present.shape)
        before = np.arange(states.shape[2]) < self._rng.integers(states.shape[2], size=(matings, 1))
        crossed = np.where(before[None, :, :, None], states[::-1], states)
        return crossed.reshape(2, matings, -1)


class _Raising(Mutation):  # type: ignore[misc]
    def __init__(self, problem: SearchProblem, rng: np.random.Generator) -> None:
        super().__init__()
        self._problem, self._rng = problem, rng

    def _do(self, _: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        rng, problem = self._rng, self._problem
        states = x.reshape(len(x), *problem.present.shape)
        states = np.where((rng.random(states.shape[:2]) < 0.1)[:, :, None], problem.present, states)
        emptied = np.where(rng.random(states.shape[:2]) < 0.1, 0.1, 0.0)
        states[rng.random(states.shape) < emptied[:, :, None]] = 0
        room = np.broadcast_to((states.sum(axis=1) < problem.room)[:, None, :], states.shape)
        anyone = room / np.maximum(room.sum(axis=1, keepdims=True), 1)
        there = room & (states > 0)
        present = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
        raised = rng.random(states.shape) < anyone + present - anyone * present
        drawn = rng.integers(states, np.maximum(problem.most_on_node, states) + 1)
        return np.where(raised, drawn, states).reshape(len(x), -1)


class _Rules(Repair):  # type: ignore[misc]
    def __init__(self, problem: SearchProblem, rng: np.random.Generator) -> None:
        super().__init__()
        self._problem, self._rng = problem, rng

    def _do(self, _: Any, x: Any, **kwargs: Any) -> Any:
        problem = self._problem
        states = x.reshape(len(x), *problem.present.shape)
        spread = np.count_nonzero(states, axis=2) > 1
        states = np.where(
            (states * spread[:, :, None] > 0).cumsum(axis=1) * (states * spread[:, :, None] > 0)
            > 1,
            0,
            states,
        )
        most = np.where(problem.allowed, np.arange(problem.most + 1), 0).max(axis=1)[:, None]
        order = np.argsort(self._rng.random(states.shape), axis=2)
        states = np.take_along_axis(states, order, axis=2)
        states = np.diff(np.minimum(np.cumsum(states, axis=2), most), axis=2, prepend=0)
        states[np.cumsum(states > 0, axis=2) > problem.most_nodes] = 0
        states = np.take_along_axis(states, np.argsort(order, axis=2), axis=2)
        states = np.diff(np.minimum(np.cumsum(states, axis=1), problem.room), axis=1, prepend=0)
        return states.reshape(len(x), -1)
