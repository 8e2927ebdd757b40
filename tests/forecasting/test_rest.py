"""The pace of what is left, by how jobs of a model went on that ended."""

from __future__ import annotations

import numpy as np
import pytest

from maat.forecasting.history import Halves
from maat.forecasting.rest import Rest

RNG = np.random.default_rng(7)


def drawn(rest: Rest, so_far: float, *, times: int = 2000) -> list[float]:
    rng = np.random.default_rng(1)
    return sorted(rest.drawn(so_far, rng) for _ in range(times))


def test_where_jobs_differ_each_goes_on_at_its_own_pace() -> None:
    rest = Rest.of([Halves(pace, 1.1 * pace) for pace in np.linspace(0.5, 4.0, 100)])

    assert rest.middle(3.0) == pytest.approx(3.3, rel=0.01)
    assert drawn(rest, 3.0)[0] == pytest.approx(3.3, rel=0.02)


def test_where_the_early_pace_says_nothing_the_rest_goes_as_that_of_others() -> None:
    """So it is where a job measures few configurations at first: all end at 1.8."""
    paces = RNG.lognormal(0.6, 0.2, 200)
    rest = Rest.of([Halves(float(early), 1.8) for early in paces])

    assert rest.middle(1.4) == pytest.approx(1.8, rel=0.03)
    assert rest.middle(2.4) == pytest.approx(1.8, rel=0.03)


def test_the_rest_varies_as_that_of_others_did() -> None:
    late = 1.8 * RNG.lognormal(0.0, 0.1, 300)
    rest = Rest.of([Halves(2.0 + 0.001 * n, float(pace)) for n, pace in enumerate(late)])

    paces = drawn(rest, 2.15)
    assert np.std(np.log(paces)) == pytest.approx(0.1, rel=0.2)


def test_few_jobs_say_little_of_how_far_a_pace_so_far_tells_of_the_rest() -> None:
    """All went on at 1.8, whatever their pace was, but it was three of them."""
    halves = [Halves(1.5, 1.8), Halves(1.8, 1.8), Halves(2.1, 1.8)]
    few, many = Rest.of(halves), Rest.of(halves * 100)

    assert few.middle(3.6) == pytest.approx(1.8 * 2 ** (4 / 7), rel=0.01)
    assert many.middle(3.6) == pytest.approx(1.8, rel=0.02)
    spread = [np.std(np.log(drawn(one, 3.6))) for one in (few, many)]
    assert spread[0] > 3 * spread[1]


def test_jobs_that_were_all_alike_say_nothing_of_one_that_is_not() -> None:
    rest = Rest.of([Halves(2.0, 3.0)] * 5)

    assert rest.middle(4.0) == pytest.approx(6.0)
    assert drawn(rest, 4.0)[0] == pytest.approx(6.0)
