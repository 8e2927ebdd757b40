"""How the jobs of the last day come again: how often, and when."""

from __future__ import annotations

import numpy as np
import pytest

from maat.forecasting.arrivals import DAY_SECONDS, HOUR_SECONDS, Coming


def hours(number: int, ago: float, *, jobs: int = 50) -> list[float]:
    """The hours of a day of the draw at which jobs come that all came `ago` seconds before now."""
    rng = np.random.default_rng(number)
    coming = Coming(np.full(jobs, ago), 1.0, rng)
    rows = np.repeat(np.arange(jobs), coming.often(rng))
    return [float(at) / HOUR_SECONDS for at in coming.after(rows, rng)]


def test_a_rate_of_which_one_day_is_seen_varies_as_much_as_what_comes_of_it() -> None:
    """The count of a day has a variance of 10 where the rate of 10 is known, and 10 of the rate."""
    days = []
    for number in range(2000):
        rng = np.random.default_rng(number)
        days.append(Coming(np.linspace(0.0, 80_000.0, 10), 1.0, rng).often(rng).sum())

    assert np.mean(days) == pytest.approx(10, rel=0.05)
    assert np.var(days) == pytest.approx(20, rel=0.15)


def test_the_rate_of_a_draw_lasts_for_all_its_days() -> None:
    rng = np.random.default_rng(1)
    coming = Coming(np.full(200, 3600.0), 100.0, rng)
    first, second = coming.often(rng), coming.often(rng)

    assert np.corrcoef(first, second)[0, 1] > 0.9


def test_jobs_come_at_other_minutes() -> None:
    """Where none came in these ten minutes of yesterday, one may come today."""
    came = hours(3, DAY_SECONDS / 2)

    assert len(set(came)) == len(came)
    assert np.std(came) == pytest.approx(1.0, rel=0.3)


def test_the_day_begins_at_another_time_in_half_of_the_draws() -> None:
    middles = [float(np.median(hours(number, DAY_SECONDS / 2))) for number in range(400)]

    same = sum(abs(middle - 12.0) < 1.0 for middle in middles)
    assert same / len(middles) == pytest.approx(0.5 + 0.5 * 2 / 24, abs=0.07)
    assert min(middles) < 3.0
    assert max(middles) > 21.0


def test_all_come_within_the_day() -> None:
    assert all(0.0 <= hour < 24.0 for number in range(50) for hour in hours(number, 60.0))
