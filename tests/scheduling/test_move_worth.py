"""What a move was worth, whatever a job's efficiency did meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.efficiency import efficiency
from maat.scheduling.move_worth import (
    BatchPace,
    MoveWorth,
    Outcome,
    Unknown,
    measured_goodput,
    move_worth,
)

PACES = st.floats(1.0, 1e6)
SECONDS = st.floats(1.0, 1e6)
NOISE = st.one_of(st.none(), st.floats(0.0, 1e18))


def pace(
    throughput: float, *, batch: int | None = 64, seconds: float = 1000.0, exact: bool = False
) -> BatchPace:
    return BatchPace(batch, throughput * seconds, seconds, exact)


def worth(
    before: list[BatchPace] | None,
    after: list[BatchPace],
    *,
    noise_scale: float | None = None,
    stood: float = 300.0,
    ran: float = 1500.0,
    lasts: bool = False,
) -> MoveWorth:
    return move_worth(
        before, after, noise_scale=noise_scale, stood_seconds=stood, ran_seconds=ran, lasts=lasts
    )


@given(PACES, PACES, NOISE, st.integers(1, 10**6), SECONDS, SECONDS)
def test_at_equal_batch_the_throughputs_alone_decide(
    before: float, after: float, phi: float | None, batch: int, stood: float, ran: float
) -> None:
    found = worth(
        [pace(before, batch=batch)],
        [pace(after, batch=batch)],
        noise_scale=phi,
        stood=stood,
        ran=ran,
    )
    assert found.net_seconds == pytest.approx(after / before * ran - stood - ran, rel=1e-6)
    if after < before * (1 - 1e-9):
        assert found.outcome is Outcome.NO_FASTER
        assert found.pays_after_seconds is None


@given(PACES, PACES, st.floats(0.0, 1e9), st.integers(1, 10**6), st.integers(1, 10**6))
def test_different_batches_are_compared_by_their_goodput_at_the_noise_scale_of_the_move(
    before: float, after: float, phi: float, small: int, large: int
) -> None:
    """The initial batch size cancels: no comparison needs it."""
    first = min(small, large)
    goodput = [
        throughput * float(efficiency(phi, first, batch))
        for throughput, batch in ((before, small), (after, large))
    ]
    found = worth([pace(before, batch=small)], [pace(after, batch=large)], noise_scale=phi)
    assert found.rates is not None
    assert found.rates.before == pytest.approx(before)
    assert found.rates.after / found.rates.before == pytest.approx(goodput[1] / goodput[0])


def test_a_move_pays_once_its_extra_work_makes_up_for_the_time_it_stood_still() -> None:
    found = worth([pace(100.0)], [pace(150.0)])
    assert found.pays_after_seconds == pytest.approx(600.0)  # 100 x 300 / (150 - 100)
    assert found.net_seconds == pytest.approx(450.0)  # 150 x 1500 / 100 - 300 - 1500
    assert found.outcome is Outcome.PAID
    assert worth([pace(100.0)], [pace(150.0)], ran=450.0).outcome is Outcome.ENDED_EARLY
    assert worth([pace(100.0)], [pace(150.0)], ran=450.0, lasts=True).outcome is Outcome.PENDING
    assert worth([pace(100.0)], [pace(100.0)]).outcome is Outcome.NO_FASTER


def test_of_several_batch_sizes_the_best_at_that_noise_scale_counts_on_either_side() -> None:
    """A job that stays long runs ever larger batches: its first one stands for the move."""
    before = [pace(100.0, batch=64)]
    after = [pace(100.0, batch=64), pace(150.0, batch=1024)]
    little_noise = worth(before, after, noise_scale=10.0)
    assert little_noise.rates is not None
    assert little_noise.rates.after == pytest.approx(100.0)
    much_noise = worth(before, after, noise_scale=1e9)
    assert much_noise.rates is not None
    assert much_noise.rates.after == pytest.approx(150.0)


def test_a_batch_size_that_hardly_ran_does_not_count() -> None:
    after = [pace(100.0, seconds=1000.0), pace(900.0, batch=65, seconds=10.0)]
    found = worth([pace(100.0)], after, noise_scale=1e9)
    assert found.rates is not None
    assert found.rates.after == pytest.approx(100.0)


def test_a_long_stay_does_not_hide_the_batch_size_of_its_beginning() -> None:
    """Of 13 batch sizes on a faster allocation no early one ran for a tenth of the time."""
    before = [pace(1904.0, batch=128, seconds=190.0)]
    early = [pace(6671.0, batch=566, seconds=190.0)]
    later = [pace(9000.0 + 20 * k, batch=1000 + 250 * k, seconds=120.0) for k in range(12)]
    last = [pace(10883.0, batch=4096, seconds=760.0)]
    found = worth(before, [*early, *later, *last], noise_scale=300.0, stood=50.0, ran=2272.0)
    assert found.outcome is Outcome.PAID
    assert found.rates is not None
    expected = 6671.0 * (300 + 128) / (300 + 566)
    assert found.rates.after == pytest.approx(expected)


def test_a_batch_size_that_was_counted_exactly_counts_however_short() -> None:
    after = [pace(150.0, batch=64, seconds=12.0, exact=True), pace(90.0, batch=640, exact=True)]
    found = worth([pace(100.0, exact=True)], after, noise_scale=10.0)
    assert found.rates is not None
    assert found.rates.after == pytest.approx(150.0)


def test_a_short_stay_is_compared_by_what_it_ran_longest() -> None:
    found = worth([pace(100.0)], [pace(150.0, seconds=40.0), pace(900.0, batch=8, seconds=5.0)])
    assert found.rates is not None
    assert found.rates.after == pytest.approx(150.0)


def test_what_is_not_known_is_said_with_its_reason() -> None:
    assert worth(None, [pace(1.0)]).unknown is Unknown.HELD_NONE
    assert worth([pace(1.0)], []).unknown is Unknown.NOT_COUNTED
    assert worth([pace(1.0)], [BatchPace(64, 0.0, 10.0)]).unknown is Unknown.NOT_COUNTED
    other_batch = worth([pace(1.0)], [pace(1.0, batch=128)])
    assert other_batch.unknown is Unknown.NO_NOISE_SCALE
    assert other_batch.outcome is Outcome.UNKNOWN
    assert worth([pace(1.0)], [pace(2.0)]).unknown is None


def test_without_a_noise_scale_a_batch_size_that_both_ran_is_compared() -> None:
    found = worth([pace(10.0), pace(15.0, batch=128)], [pace(18.0, batch=128), pace(1.0, batch=9)])
    assert found.rates is not None
    assert (found.rates.before, found.rates.after) == (15.0, pytest.approx(18.0))


def test_a_script_that_alone_knows_its_batch_is_compared_by_its_samples() -> None:
    found = worth([pace(10.0, batch=None)], [pace(5.0, batch=None)], noise_scale=7.0)
    assert found.outcome is Outcome.NO_FASTER
    mixed = worth([pace(10.0, batch=None)], [pace(5.0, batch=64)], noise_scale=7.0)
    assert mixed.unknown is Unknown.NO_NOISE_SCALE


def test_the_measured_goodput_is_throughput_times_efficiency() -> None:
    expected = 100.0 * float(efficiency(200.0, 32, 64))
    found = measured_goodput([pace(100.0)], noise_scale=200.0, initial_batch_size=32)
    assert found == pytest.approx(expected)
    assert measured_goodput([], noise_scale=200.0, initial_batch_size=32) is None
