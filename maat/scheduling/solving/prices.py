"""Prices: the Lagrangian dual of the assignment programme, minimised over one price per limit. Not responsible for finding an answer.

D(l) = sum_i max(0, max_j v_ij - w_ij sum_{r in limits of ij} l_r) + l . capacity  >=  any answer's value, for every l >= 0

D has kinks, so a log-sum-exp smoothing with temperature tau is minimised by projected Newton steps (few limits: the Hessian is tiny) while
tau falls. Only D itself is ever reported: it is a bound at whatever prices the search ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.assignment_programme import Programme

_TEMPERATURES = (2e-2, 5e-3, 1.2e-3, 3e-4, 8e-5, 2e-5, 5e-6)  # as shares of the largest value
_STEPS_PER_TEMPERATURE = 12
_DECREMENT = (
    0.5  # a Newton decrement below this share of tau is close enough to follow the path down
)
_SUFFICIENT_DECREASE = 1e-4
_SHORTER = 0.35
_AT_ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class Prices:
    """One price per limit, (R,), and the bound D that they prove."""

    values: FloatArray
    bound: float


@dataclass(slots=True)
class _Smooth:
    """The smoothed dual at some prices: its value, the true dual there, gradient (R,) and Hessian (R, R)."""

    value: float
    bound: float
    gradient: FloatArray
    hessian: FloatArray


def falling_prices(programme: Programme) -> Iterator[Prices]:
    """The best prices so far after each temperature, so that a caller may stop as soon as they serve."""
    prices = _first_prices(programme)
    best = Prices(prices, np.inf)
    for share in _TEMPERATURES:
        tau = share * programme.scale
        at = _smoothed(programme, prices, tau)
        for _ in range(_STEPS_PER_TEMPERATURE):
            if at.bound < best.bound:
                best = Prices(prices, at.bound)
            direction, decrement = _newton(prices, at, programme.scale)
            if decrement <= _DECREMENT * tau:
                break
            stepped = _line_search(programme, prices, direction, at, tau)
            if stepped is None:
                break
            prices, at = stepped
        if at.bound < best.bound:
            best = Prices(prices, at.bound)
        yield best


def _first_prices(programme: Programme) -> FloatArray:
    """One price for all limits: the worth per place of the last pair that all capacity together would hold."""
    places = np.maximum(programme.places, 1.0)
    density = programme.value / places
    order = np.argsort(-density)
    taken = np.cumsum(places[order])
    last = min(int(taken.searchsorted(programme.capacity.sum())), len(order) - 1)
    return np.full(len(programme.capacity), density[order[last]])


def _smoothed(programme: Programme, prices: FloatArray, tau: float) -> _Smooth:
    """sum_i tau log(1 + sum_j exp(rc_ij / tau)) + l . capacity, with derivatives."""
    jobs, kinds = programme.jobs, len(programme.patterns)
    reduced = programme.reduced(prices)
    top = np.maximum(np.maximum.reduceat(reduced, programme.starts), 0.0)
    reduced -= top[programme.job]
    reduced *= 1 / tau
    weight = np.exp(reduced, out=reduced)
    total = np.add.reduceat(weight, programme.starts)
    total += np.exp(top * (-1 / tau))
    weight /= total[programme.job]
    weight *= programme.places
    by_job = np.bincount(programme.cell, weight, jobs * kinds).reshape(jobs, kinds)
    weight *= programme.places
    spread = by_job.T @ by_job
    spread.flat[:: kinds + 1] -= np.bincount(programme.kind, weight, kinds)
    bound = float(top.sum() + prices @ programme.capacity)
    return _Smooth(
        value=bound + tau * float(np.log(total).sum()),
        bound=bound,
        gradient=programme.capacity - by_job.sum(axis=0) @ programme.patterns,
        hessian=programme.patterns.T @ spread @ programme.patterns / -tau,
    )


def _newton(prices: FloatArray, at: _Smooth, scale: float) -> tuple[FloatArray, float]:
    """The Newton direction over prices that are free to move, and its decrement -g.d. Prices at zero that want to fall stay."""
    held = (prices <= _AT_ZERO * scale) & (at.gradient >= 0)
    gradient, hessian = at.gradient, at.hessian.copy()
    if held.any():
        gradient = np.where(held, 0.0, gradient)
        hessian[held, :] = 0.0
        hessian[:, held] = 0.0
    steepest = float(np.abs(gradient).max())
    if steepest == 0.0:
        return gradient, 0.0
    # a flat direction (nobody undecided at this temperature) must not divide by zero
    hessian.flat[:: len(hessian) + 1] += 1e-9 * float(hessian.trace()) + 1e-12 * steepest / scale
    direction = np.asarray(np.linalg.solve(hessian, -gradient), dtype=np.float64)
    longest, limit = float(np.abs(direction).max()), max(float(prices.max()), 0.1 * scale)
    if longest > limit:
        direction *= limit / longest
    return direction, -float(gradient @ direction)


def _line_search(
    programme: Programme, prices: FloatArray, direction: FloatArray, at: _Smooth, tau: float
) -> tuple[FloatArray, _Smooth] | None:
    """Shorten the projected step until the smoothed dual falls enough; None where it does not."""
    step = 1.0
    for _ in range(12):
        moved = np.maximum(prices + step * direction, 0.0)
        there = _smoothed(programme, moved, tau)
        if there.value <= at.value + _SUFFICIENT_DECREASE * float(at.gradient @ (moved - prices)):
            return moved, there
        step *= _SHORTER
    return None
