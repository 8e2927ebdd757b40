"""The forecast of a cluster: quantiles over draws, and two states side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from maat.forecasting.draws import CENTRAL, Drawing, Grounds, Unknown
from maat.forecasting.play import Pacing, Played, Span, play
from maat.forecasting.present import Present
from maat.scheduling.belief import Fitter
from maat.scheduling.job import JobId

TOLERANCE = 1e-3
"""Gap of a round's programme in a draw: what it decides differs less than one draw from another."""
PACING = Pacing(resolution=0.05, standing=0.25, played_seconds=24 * 3600.0, tolerance=TOLERANCE)
"""A round per 5 % of the time from now: what comes late is known less exactly than that.

A day is played: jobs that have run for half of it then go on as they did.
"""
LEAST_DRAWS = 9
"""The largest of nine draws is a P90: the next value exceeds it with probability 1 / 10."""


class OutOfTime(Exception):
    """Raised by `look` to end a forecast with the draws that are played."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Seconds from now; None if later than the draws go, or never."""

    p50: float | None
    p90: float | None


@dataclass(frozen=True)
class JobForecast:
    """When a job starts and ends.

    `start`: when it next gets GPUs; None if it holds some. `spans`: what it holds over time in the
    central draw. `grounds`: what all this rests on.
    """

    job_id: JobId
    start: Quantiles | None
    end: Quantiles
    spans: tuple[Span, ...]
    grounds: Grounds


@dataclass(frozen=True)
class Forecast:
    """The forecast of every job that has not ended. `draws`: without the central one."""

    now: float
    jobs: Mapping[JobId, JobForecast]
    central: Played
    draws: tuple[Played, ...]


@dataclass(frozen=True, slots=True)
class Slowed:
    """How much later a job ends in a changed state, seconds; negative: earlier.

    `p50`, `p90`: of the differences in the same draws. `share`: of draws in which it ends later.
    """

    job_id: JobId
    p50: float
    p90: float
    share: float


def forecast(
    present: Present,
    unknown: Unknown,
    *,
    fitter: Fitter,
    draws: int = LEAST_DRAWS,
    least: int = 1,
    enough: int = LEAST_DRAWS,
    central: bool = True,
    pacing: Pacing = PACING,
    look: Callable[[], object] = lambda: None,
    progress: Callable[[int], object] = lambda _: None,
    guess: Callable[[Forecast], object] = lambda _: None,
    has_time: Callable[[], bool] = lambda: True,
) -> Forecast:
    """Play the central draw and up to `draws` others; without `central`, the first stands for it.

    `look` is called before every round, and may end the forecast by raising; after OutOfTime, the
    draws that are played count, if there are at least `least`. `progress`: with the number of draws
    played, the central one included. `guess` is given what the first one says: with `least` and
    `enough` of 0 the central one may stay alone, and then stands for the others. `has_time`: asked
    once `enough` are. Raises OutOfTime.
    """
    drawing = Drawing(present, unknown, fitter)
    played: list[Played] = []

    def summary() -> Forecast:
        others = played[1:] if central and len(played) > 1 else played
        return summed_up(present, drawing, played[0], others)

    begin = CENTRAL if central else CENTRAL + 1
    for number in range(begin, draws + 1):
        if number > enough and not has_time():
            break
        try:
            played.append(
                play(present, drawing.draw(number), pacing=pacing, fitter=fitter, look=look)
            )
        except OutOfTime:
            if len(played) < least + central:
                raise
            break
        progress(len(played))
        if len(played) == 1:
            guess(summary())
    return summary()


def side_by_side(
    before: Present,
    after: Present,
    unknown: Unknown,
    *,
    fitter: Fitter,
    draws: int = LEAST_DRAWS,
    least: int = 1,
    central: bool = True,
    pacing: Pacing = PACING,
    look: Callable[[], object] = lambda: None,
    progress: Callable[[int], object] = lambda _: None,
    so_far: Callable[[Forecast, Forecast], object] = lambda *_: None,
    has_time: Callable[[], bool] = lambda: True,
) -> tuple[Forecast, Forecast]:
    """Play both states in the same draws, one draw after the other.

    After `least` draws, as many more up to `draws` as there is time for. `central`: play the
    central draw too, of `after` alone, once there is a first pair; otherwise, and until then, the
    first draw stands for it, as for `before`. `look` and `progress` are as in `forecast`; it counts
    the draws of both. `so_far` is given what the pairs played until then say, from the first
    one on. After OutOfTime the pairs that are played count. Raises OutOfTime before the first.
    """
    states = (before, after)
    sides = [Drawing(state, unknown, fitter) for state in states]

    def played(side: int, number: int) -> Played:
        drawn = sides[side].draw(number)
        return play(states[side], drawn, pacing=pacing, fitter=fitter, look=look)

    def summary() -> tuple[Forecast, Forecast]:
        first, second = ([pair[side] for pair in pairs] for side in (0, 1))
        return (
            summed_up(before, sides[0], first[0], first),
            summed_up(after, sides[1], middle or second[0], second),
        )

    pairs: list[tuple[Played, Played]] = []
    middle: Played | None = None
    for number in range(CENTRAL + 1, draws + 1):
        if len(pairs) >= least and not has_time():
            break
        try:
            as_it_is = played(0, number)
            progress(2 * len(pairs) + 1)
            pairs.append((as_it_is, played(1, number)))
            progress(2 * len(pairs))
            so_far(*summary())
            if central and middle is None:
                middle = played(1, CENTRAL)
        except OutOfTime:
            if not pairs:
                raise
            break
    return summary()


def summed_up(
    present: Present, drawing: Drawing, central: Played, draws: Sequence[Played]
) -> Forecast:
    """Return the quantiles of these draws."""
    now = present.now
    running = {one.job.id for one in present.jobs if one.job.allocation is not None}
    jobs = {}
    for job_id in present.job_ids:
        jobs[job_id] = JobForecast(
            job_id,
            None if job_id in running else quantiles(_times(draws, job_id, "starts"), now),
            quantiles(_times(draws, job_id, "ends"), now),
            tuple(central.spans.get(job_id, ())),
            drawing.grounds(job_id),
        )
    return Forecast(now, jobs, central, tuple(draws))


def quantiles(times: Sequence[float], now: float) -> Quantiles:
    """Return P50 and P90 of times, as seconds from now."""
    return Quantiles(*(_from_now(order_statistic(times, share), now) for share in (0.5, 0.9)))


def order_statistic(values: Sequence[float], share: float) -> float:
    """Return the k-th smallest of n values, k = ceil(share (n + 1)), at most n.

    Another value of the same kind is at most that with probability k / (n + 1). Infinite without
    values.
    """
    if not values:
        return math.inf
    k = min(math.ceil(share * (len(values) + 1) - 1e-9), len(values))
    return sorted(values)[max(k, 1) - 1]


def slowed(before: Forecast, after: Forecast) -> list[Slowed]:
    """Return who ends later, draw by draw, of the jobs that both have; the most slowed first.

    Draws in which a job ends in neither count as no difference.
    """
    found = []
    for job_id in before.jobs.keys() & after.jobs.keys():
        by_draw = list(_differences(before.draws, after.draws, job_id))
        if by_draw:
            later = sum(one > 1.0 for one in by_draw) / len(by_draw)
            p50, p90 = (order_statistic(by_draw, share) for share in (0.5, 0.9))
            found.append(Slowed(job_id, p50, p90, later))
    return sorted(found, key=lambda one: (-one.p50, -one.p90, one.job_id))


def _differences(
    before: Iterable[Played], after: Iterable[Played], job_id: JobId
) -> Iterable[float]:
    for one, other in zip(before, after, strict=False):
        first, second = one.ends.get(job_id, math.inf), other.ends.get(job_id, math.inf)
        yield 0.0 if first == second else second - first


def _times(draws: Sequence[Played], job_id: JobId, kind: str) -> list[float]:
    return [
        (played.starts if kind == "starts" else played.ends).get(job_id, math.inf)
        for played in draws
    ]


def _from_now(time: float, now: float) -> float | None:
    return None if math.isinf(time) else max(time - now, 0.0)
