"""The Lagrangian dual of the programme: one price per limit, and a bound.

    D(l) = sum_i max(0, max_j v_ij - l . a_ij) + l . capacity  >=  the value of any answer, l >= 0

a_ij is the places that the pair takes under every limit. D has kinks. A log-sum-exp smoothing with
temperature tau is minimised by projected Newton steps while tau falls; there are few limits, so the
Hessian is small. Only D itself is reported: it is a bound at whatever prices the search stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.assignment.prepared import PreparedProblem

# As shares of the largest value: from a smooth dual that Newton steps minimise quickly to one whose
# minimum is near the minimum of D. The excess is at most tau log(1 + pairs of the job) per job.
_TEMPERATURES = (2e-2, 5e-3, 1.2e-3, 3e-4, 8e-5, 2e-5, 5e-6)
_MAX_STEPS_PER_TEMPERATURE = 12
_NEWTON_TOLERANCE = 0.5  # of tau: a smaller Newton decrement is close enough to lower tau
_SUFFICIENT_DECREASE = 1e-4  # Armijo: share of the decrease that the gradient promises
_STEP_SHRINK = 0.35  # factor on a step that did not decrease the smoothed dual enough
_MAX_SHRINKS = 12
_ZERO_PRICE = 1e-9  # of the largest value: a smaller price counts as zero
_MIN_STEP_LIMIT = 0.1  # of the largest value: no Newton step is longer than this or the top price
_RELATIVE_DAMPING = 1e-9  # of the Hessian's trace, added to its diagonal
_ABSOLUTE_DAMPING = 1e-12  # of the steepest slope over the largest value, added likewise


@dataclass(frozen=True, slots=True)
class Prices:
    """One price per limit, (R,), and the bound D that they prove."""

    values: FloatArray
    bound: float


@dataclass(slots=True)
class _SmoothedDual:
    """The smoothed dual at some prices.

    `value`: the smoothed dual. `bound`: D. `gradient`: (R,). `hessian`: (R, R).
    """

    value: float
    bound: float
    gradient: FloatArray
    hessian: FloatArray


def minimise_dual(problem: PreparedProblem) -> Iterator[Prices]:
    """Yield the best prices so far after each temperature.

    A caller may stop early.
    """
    prices = _first_prices(problem)
    best = Prices(prices, np.inf)
    for share in _TEMPERATURES:
        tau = share * problem.scale
        at = _smoothed_dual(problem, prices, tau)
        for _ in range(_MAX_STEPS_PER_TEMPERATURE):
            if at.bound < best.bound:
                best = Prices(prices, at.bound)
            direction, decrement = _newton_direction(prices, at, problem.scale)
            if decrement <= _NEWTON_TOLERANCE * tau:
                break
            stepped = _line_search(problem, prices, direction, at, tau)
            if stepped is None:
                break
            prices, at = stepped
        if at.bound < best.bound:
            best = Prices(prices, at.bound)
        yield best


def _first_prices(problem: PreparedProblem) -> FloatArray:
    """Return the same price for every limit, (R,): the marginal value of one place.

    Pairs are taken by falling value per place until their places fill the sum of all capacities;
    the price is the value per place of the last one.
    """
    places = np.maximum(problem.places, 1.0)
    density = problem.value / places
    order = np.argsort(-density)
    taken = np.cumsum(places[order])
    last = min(int(taken.searchsorted(problem.capacity.sum())), len(order) - 1)
    return np.full(len(problem.capacity), density[order[last]])


def _smoothed_dual(problem: PreparedProblem, prices: FloatArray, tau: float) -> _SmoothedDual:
    """Evaluate the smoothed dual, with derivatives.

    sum_i tau log(1 + sum_j exp(rc_ij / tau)) + l . capacity
    """
    jobs, patterns = problem.job_count, len(problem.patterns)
    reduced = problem.reduced_values(prices)
    top = np.maximum(np.maximum.reduceat(reduced, problem.starts), 0.0)
    reduced -= top[problem.job]
    reduced *= 1 / tau
    weight = np.exp(reduced, out=reduced)
    total = np.add.reduceat(weight, problem.starts)
    total += np.exp(top * (-1 / tau))
    weight /= total[problem.job]
    weight *= problem.places
    by_job = np.bincount(problem.job_pattern, weight, jobs * patterns).reshape(jobs, patterns)
    weight *= problem.places
    minus_covariance = by_job.T @ by_job
    minus_covariance.flat[:: patterns + 1] -= np.bincount(problem.pattern, weight, patterns)
    bound = float(top.sum() + prices @ problem.capacity)
    return _SmoothedDual(
        value=bound + tau * float(np.log(total).sum()),
        bound=bound,
        gradient=problem.capacity - by_job.sum(axis=0) @ problem.patterns,
        hessian=problem.patterns.T @ minus_covariance @ problem.patterns / -tau,
    )


def _newton_direction(
    prices: FloatArray, at: _SmoothedDual, scale: float
) -> tuple[FloatArray, float]:
    """Return the Newton direction, (R,), and its decrement -g.d.

    A price of zero whose gradient would lower it further stays at zero.
    """
    fixed = (prices <= _ZERO_PRICE * scale) & (at.gradient >= 0)
    gradient, hessian = at.gradient, at.hessian.copy()
    if fixed.any():
        gradient = np.where(fixed, 0.0, gradient)
        hessian[fixed, :] = 0.0
        hessian[:, fixed] = 0.0
    steepest = float(np.abs(gradient).max())
    if steepest == 0.0:
        return gradient, 0.0
    # The Hessian is singular in a direction in which no job changes its choice at this temperature.
    damping = _RELATIVE_DAMPING * float(hessian.trace()) + _ABSOLUTE_DAMPING * steepest / scale
    hessian.flat[:: len(hessian) + 1] += damping
    direction = np.asarray(np.linalg.solve(hessian, -gradient), dtype=np.float64)
    longest = float(np.abs(direction).max())
    limit = max(float(prices.max()), _MIN_STEP_LIMIT * scale)
    if longest > limit:
        direction *= limit / longest
    return direction, -float(gradient @ direction)


def _line_search(
    problem: PreparedProblem,
    prices: FloatArray,
    direction: FloatArray,
    at: _SmoothedDual,
    tau: float,
) -> tuple[FloatArray, _SmoothedDual] | None:
    """Return prices at which the smoothed dual falls enough, and the dual there.

    Shortens the projected step until they are found; None if they are not.
    """
    step = 1.0
    for _ in range(_MAX_SHRINKS):
        moved = np.maximum(prices + step * direction, 0.0)
        there = _smoothed_dual(problem, moved, tau)
        if there.value <= at.value + _SUFFICIENT_DECREASE * float(at.gradient @ (moved - prices)):
            return moved, there
        step *= _STEP_SHRINK
    return None
