"""Bounds of Gavel's objectives hold at any prices, and meet the answer at the right ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.papers.gavel_bounds import (
    Prices,
    Rows,
    least_rho,
    most_gain,
    most_pace,
)

HALF_OF_A_GPU = Rows(csr_array(np.eye(2)), np.ones((2, 1), dtype=np.int64), np.array([1]))
"""Two jobs on one GPU."""


def prices(
    limit: float, jobs: tuple[float, float] = (0.0, 0.0), further: tuple[float, ...] = ()
) -> Prices:
    return Prices(np.array(jobs), np.array([limit]), np.array(further))


def test_the_gain_of_one_gpu_is_at_most_its_right_price() -> None:
    """Worth 1 to the first job and 2 to the second: a second GPU would add 1."""
    gain = np.array([1.0, 2.0])
    assert most_gain(gain, HALF_OF_A_GPU, prices(1.0, (0.0, 1.0))) == pytest.approx(2.0)
    assert most_gain(gain, HALF_OF_A_GPU, prices(0.0)) == pytest.approx(3.0)


def test_a_pace_that_no_price_bounds_is_infinite() -> None:
    assert most_pace(np.zeros(2), 0.0, HALF_OF_A_GPU, prices(0.0)) == np.inf


def test_half_a_gpu_each_is_the_least_rho_of_two_equal_jobs() -> None:
    """Throughput 1 on the whole GPU: steps of 1 end after 2, of which alone 2 were to pass."""
    y = (1.0, 1.0)
    rho = least_rho(
        np.array(y),
        HALF_OF_A_GPU,
        prices(1.0, further=y),
        past=np.zeros(2),
        to_come=np.array([0.5, 0.5]),
    )
    assert rho == pytest.approx(1.0)
    assert rho <= 1.0


numbers = st.lists(st.floats(0.0, 3.0), min_size=4, max_size=4).map(np.array)


@given(speed=numbers, share=numbers, any_prices=numbers, weight=numbers, past=numbers)
def test_no_shares_beat_a_bound_whatever_the_prices(
    speed: FloatArray,
    share: FloatArray,
    any_prices: FloatArray,
    weight: FloatArray,
    past: FloatArray,
) -> None:
    """Two jobs on two types, one GPU each; entries 0 and 1 are the first job's."""
    rows = Rows(
        csr_array(np.kron(np.eye(2), np.ones(2))),
        np.tile(np.eye(2, dtype=np.int64), (2, 1)),
        np.array([1, 1]),
    )
    X = share / max(float(share.sum()), 1.0)
    by = Prices(any_prices[:2], any_prices[2:], weight[:2])
    throughput = (speed * X).reshape(2, 2).sum(axis=1)
    gain = speed * np.repeat(weight[:2], 2)
    need = 0.1 + weight[2:]

    assert weight[:2] @ throughput <= most_gain(gain, rows, by) + 1e-9
    pace = float((throughput / need).min())
    assert pace <= most_pace(gain, float(weight[:2] @ need), rows, by) + 1e-9
    with np.errstate(divide="ignore"):
        rho = float((past[:2] + need / throughput).max())
    assert rho >= least_rho(gain, rows, by, past=past[:2], to_come=need) - 1e-9
