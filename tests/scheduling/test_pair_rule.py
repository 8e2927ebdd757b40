"""Sharing a running job's GPUs against waiting for its end.

The published cases, and every moment at which the new job could start.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.pair_rule import (
    gains,
    gains_at_any_length,
    sequential_mean,
    together_mean,
)

SECONDS = st.floats(1.0, 1000.0)
SLOWDOWNS = st.floats(1.0, 6.0)


@pytest.mark.parametrize(
    ("R", "N", "xi_R", "xi_N", "together", "sequential", "shares"),
    [
        (60, 100, 1.5, 1.5, 110, 110, False),
        (60, 100, 1.4, 1.4, 104, 110, True),
        (100, 40, 2, 2, 110, 120, True),
        (100, 60, 2, 2, 140, 130, False),
        (100, 50, 2, 2, 125, 125, False),
        (100, 10, 1.2, 3, 67.5, 105, True),
        (30, 100, 1.1, 2.5, 76.4, 80, True),
    ],
)
def test_the_seven_pairs_come_out_as_computed_by_hand(
    R: float, N: float, xi_R: float, xi_N: float, together: float, sequential: float, shares: bool
) -> None:
    assert together_mean(R, N, xi_R, xi_N) == pytest.approx(together, rel=1e-12)
    assert sequential_mean(R, N) == sequential
    assert bool(gains(together_mean(R, N, xi_R, xi_N), sequential_mean(R, N))) is shares


def mean_if_started_after(wait: float, R: float, N: float, xi_R: float, xi_N: float) -> float:
    """Run both jobs step by step; the new one starts after `wait` seconds."""
    left_R, left_N, now = R - wait, N, wait
    if left_R * xi_R <= left_N * xi_N:
        end_R = now + left_R * xi_R
        end_N = end_R + left_N - left_R * xi_R / xi_N
    else:
        end_N = now + left_N * xi_N
        end_R = end_N + left_R - left_N * xi_N / xi_R
    return (end_R + end_N) / 2


@given(R=SECONDS, N=SECONDS, xi_R=SLOWDOWNS, xi_N=SLOWDOWNS)
def test_no_moment_of_starting_beats_the_better_end_point(
    R: float, N: float, xi_R: float, xi_N: float
) -> None:
    ends = min(float(together_mean(R, N, xi_R, xi_N)), float(sequential_mean(R, N)))
    tried = [mean_if_started_after(wait, R, N, xi_R, xi_N) for wait in np.linspace(0.0, R, 201)]
    assert ends == pytest.approx(min(tried), rel=1e-9)


@given(R=SECONDS, N=SECONDS, xi_R=SLOWDOWNS, xi_N=SLOWDOWNS)
def test_starting_at_once_is_what_playing_it_through_gives(
    R: float, N: float, xi_R: float, xi_N: float
) -> None:
    assert together_mean(R, N, xi_R, xi_N) == pytest.approx(
        mean_if_started_after(0.0, R, N, xi_R, xi_N), rel=1e-9
    )


@given(R=SECONDS, N=SECONDS, xi=SLOWDOWNS)
def test_equal_slowdowns_share_below_one_and_a_half_or_behind_a_long_enough_job(
    R: float, N: float, xi: float
) -> None:
    limit = 1.5 if N >= R else (R / N + 2.0) / 2.0
    if abs(xi - limit) > 1e-6:
        assert bool(gains(together_mean(R, N, xi, xi), sequential_mean(R, N))) == (xi < limit)


def test_whole_arrays_are_compared_at_once() -> None:
    R, N = np.array([[60.0], [100.0]]), np.array([100.0, 10.0])
    assert together_mean(R, N, 1.4, 1.4).shape == (2, 2)
    assert gains(together_mean(R, N, 1.4, 1.4), sequential_mean(R, N)).all()


@given(xi_R=SLOWDOWNS, xi_N=SLOWDOWNS)
def test_sharing_gains_at_any_length_exactly_where_no_pair_of_lengths_loses(
    xi_R: float, xi_N: float
) -> None:
    """At the worst newcomer, which ends with the running job, the mean moves by this much."""
    R, N = 1.0, np.append(np.geomspace(1e-3, 1e3, 601), xi_R / xi_N)
    always = bool(gains(together_mean(R, N, xi_R, xi_N), sequential_mean(R, N)).all())
    if abs(xi_R * (1 - 1 / (2 * xi_N)) - 1) > 1e-6:
        assert bool(gains_at_any_length(xi_R, xi_N)) is always


def test_a_slowdown_that_is_not_known_gains_at_no_length() -> None:
    unknown = np.array([np.nan, 1.1, np.nan])
    assert not gains_at_any_length(unknown, np.array([1.1, np.nan, np.nan])).any()
