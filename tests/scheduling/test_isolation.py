"""Tests of lone jobs by belief, of contention, and of deserved shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, GradientStatistics, TypeBelief
from maat.scheduling.believed_life import (
    BelievedLife,
    GradientAt,
    believed_isolated_seconds,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.contention import ActiveJobs
from maat.scheduling.deserved import jain_index, max_min_shares
from maat.scheduling.fitting import Sample
from maat.scheduling.isolation import fair_shares
from maat.scheduling.job import JobSpec, MemoryLimits
from maat.scheduling.metrics import finish_time_fairness
from maat.vocabulary import Adaptivity, FairnessRule

TWO_TYPES = Cluster.parse("t4=2x4,a100=1x4")
SECONDS_PER_SAMPLE = 0.01
PERFECT = np.array([0.0, SECONDS_PER_SAMPLE, 0.0, 0.0, 0.0, 0.0, 1.0])
NOISY = GradientStatistics(square=1e-9, variance=1e9)
"""A gradient of noise alone: a sample has the same value in any batch."""


def life(
    *,
    work: float = 360_000.0,
    kinds: tuple[str, ...] = ("t4", "a100"),
    parameters: FloatArray = PERFECT,
    **fields: object,
) -> BelievedLife:
    """A job that trains 100 samples/s on every GPU, without a restart to pay."""
    settings = {
        "adaptivity": Adaptivity.ADAPTIVE,
        "initial_batch_size": 64,
        "max_batch_size": 4096,
        "restart_seconds": 0.0,
        "memory": {kind: MemoryLimits(1, 1024) for kind in ("t4", "a100")},
    } | fields
    spec = JobSpec(id="job", model="any", submitted_at=0.0, work=work, **settings)  # type: ignore[arg-type]
    samples = (Sample(1, 1, 64, 0.64, 0.0), Sample(1, 2, 64, 0.64, 0.0))
    belief = Belief({kind: TypeBelief(samples, parameters) for kind in kinds})
    return BelievedLife(spec, belief, [GradientAt(0.0, NOISY)], work)


def test_a_job_alone_on_one_gpu_takes_its_work_over_its_goodput() -> None:
    found = believed_isolated_seconds(life(), TWO_TYPES, contention=12.0)
    assert found == pytest.approx({"t4": 3600.0, "a100": 3600.0}, rel=1e-6)


def test_a_share_below_one_gpu_takes_proportionally_longer() -> None:
    found = believed_isolated_seconds(life(), TWO_TYPES, contention=24.0)
    assert found == pytest.approx({"t4": 7200.0, "a100": 7200.0}, rel=1e-6)


def test_alone_it_begins_on_one_gpu_and_doubles_each_minute() -> None:
    # 60 s on 1 GPU, 60 s on 2, then 4: 100 x (60 + 120) samples, and the rest at 400 samples/s.
    found = believed_isolated_seconds(life(), TWO_TYPES, contention=3.0)
    assert found["a100"] == pytest.approx(120.0 + (360_000 - 18_000) / 400, rel=1e-6)


def test_each_move_costs_a_restart() -> None:
    free = believed_isolated_seconds(life(), TWO_TYPES, contention=3.0)
    paid = believed_isolated_seconds(life(restart_seconds=30.0), TWO_TYPES, contention=3.0)
    assert all(paid[kind] > free[kind] + 30.0 for kind in free)


def test_one_job_alone_on_the_cluster_has_a_rho_of_one() -> None:
    gpus = {"t4": 8, "a100": 4}
    alone = believed_isolated_seconds(life(), TWO_TYPES, contention=1.0)
    assert finish_time_fairness(alone["t4"], {"t4": alone["t4"]}, gpus) == pytest.approx(1.0)


def test_two_equal_rigid_jobs_that_take_turns_on_one_gpu_are_treated_as_they_deserve() -> None:
    # Two jobs share one GPU by turns: each takes twice its time, and alone on half a GPU too.
    one_gpu = Cluster.parse("t4=1x1")
    rigid = life(adaptivity=Adaptivity.RIGID, gpu_count=1, batch_size=64, kinds=("t4",))
    alone = believed_isolated_seconds(rigid, one_gpu, contention=2.0)
    assert alone == pytest.approx({"t4": 7200.0}, rel=1e-6)
    assert finish_time_fairness(7200.0, alone, {"t4": 1}) == pytest.approx(1.0)


def test_a_rigid_job_runs_on_its_request_however_large_its_share() -> None:
    rigid = life(adaptivity=Adaptivity.RIGID, gpu_count=3, batch_size=192)
    one = believed_isolated_seconds(rigid, TWO_TYPES, contention=1.0)
    two = believed_isolated_seconds(rigid, TWO_TYPES, contention=8.0)
    assert one == pytest.approx({"t4": 1200.0, "a100": 1200.0}, rel=1e-6)
    assert two == pytest.approx({"t4": 2400.0, "a100": 2400.0}, rel=1e-6)


def test_a_type_of_which_nothing_is_known_lends_from_another_and_a_forbidden_one_is_left_out() -> (
    None
):
    lent = believed_isolated_seconds(life(kinds=("a100",)), TWO_TYPES, contention=12.0)
    assert set(lent) == {"t4", "a100"}
    forbidden = believed_isolated_seconds(life(gpu_types=("a100",)), TWO_TYPES, contention=12.0)
    assert set(forbidden) == {"a100"}
    assert not believed_isolated_seconds(life(kinds=()), TWO_TYPES, contention=12.0)


def test_noise_that_grows_makes_large_batches_worth_more_only_from_then_on() -> None:
    late = life(parameters=np.array([0.1, SECONDS_PER_SAMPLE, 0.0, 0.0, 0.0, 0.0, 1.0]))
    small = BelievedLife(
        late.spec, late.belief, [GradientAt(0.0, GradientStatistics(1.0, 0.0))], late.work
    )
    half = BelievedLife(
        late.spec, late.belief, [*small.gradients, GradientAt(180_000.0, NOISY)], late.work
    )
    by_life = [
        believed_isolated_seconds(one, TWO_TYPES, contention=3.0)["a100"]
        for one in (late, half, small)
    ]
    assert by_life == sorted(by_life)
    assert by_life[0] < by_life[1] < by_life[2]


def test_gradients_are_unknown_before_the_first() -> None:
    known = life(parameters=np.array([0.1, SECONDS_PER_SAMPLE, 0.0, 0.0, 0.0, 0.0, 1.0]))
    later = BelievedLife(known.spec, known.belief, [GradientAt(180_000.0, NOISY)], known.work)
    seconds = [
        believed_isolated_seconds(one, TWO_TYPES, contention=3.0)["a100"] for one in (known, later)
    ]
    assert seconds[0] < seconds[1]


def test_a_long_job_is_no_long_computation() -> None:
    looks: list[int] = []
    found = believed_isolated_seconds(
        life(work=1e12), TWO_TYPES, contention=3.0, look=lambda: looks.append(1)
    )
    assert found["a100"] > 1e9
    assert len(looks) < 2000


def test_what_the_look_raises_ends_the_computation() -> None:
    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        believed_isolated_seconds(life(), TWO_TYPES, contention=3.0, look=stop)


def test_shares_are_of_all_gpus_or_of_each_type() -> None:
    gpus = {"t4": 8, "a100": 4}
    assert fair_shares(gpus, 3.0, FairnessRule.MEAN_OF_RATIOS) == {"t4": 4.0, "a100": 4.0}
    assert fair_shares(gpus, 4.0, FairnessRule.SHARE_OF_TYPE) == {"t4": 2.0, "a100": 1.0}


def test_contention_is_the_mean_number_of_active_jobs() -> None:
    # One job from 0 to 100, one from 50 to 150, one from 20 that has not ended.
    active = ActiveJobs(np.array([0.0, 50.0, 20.0]), np.array([100.0, 150.0, np.inf]))
    begin, end = np.array([0.0, 50.0, 60.0]), np.array([100.0, 150.0, 60.0])
    assert active.mean(begin, end) == pytest.approx(
        [(100 + 50 + 80) / 100, (50 + 100 + 100) / 100, 3.0]
    )


spans = st.lists(
    st.tuples(st.floats(0, 1e6), st.floats(0.01, 1e5)).map(lambda one: (one[0], one[0] + one[1])),
    min_size=1,
    max_size=20,
)


@given(spans)
def test_contention_agrees_with_overlaps_counted_one_by_one(
    jobs: list[tuple[float, float]],
) -> None:
    begin, end = (np.array(values) for values in zip(*jobs, strict=True))
    means = ActiveJobs(begin, end).mean(begin, end)
    for (first, last), mean in zip(jobs, means, strict=True):
        overlaps = sum(max(min(last, e) - max(first, b), 0.0) for b, e in jobs)
        assert mean == pytest.approx(overlaps / (last - first), rel=1e-6, abs=1e-6)
        assert mean >= 1 - 1e-6


demands = st.lists(st.floats(0, 1000), min_size=1, max_size=12)


@given(demands, st.floats(0, 2000))
def test_what_is_deserved_is_at_most_the_capacity_and_the_demand(
    demand: list[float], capacity: float
) -> None:
    asked = np.array([demand])
    found = max_min_shares(asked, np.ones(len(demand)), np.array([capacity]))
    assert (found <= asked + 1e-9).all()
    assert found.sum() == pytest.approx(min(capacity, asked.sum()), rel=1e-9, abs=1e-6)
    unmet = found[0][found[0] < asked[0] - 1e-6]
    assert len(unmet) == 0 or unmet.max() == pytest.approx(found.max(), abs=1e-6)


@given(demands, st.floats(1, 2000), st.lists(st.floats(0.1, 10), min_size=12, max_size=12))
def test_weights_divide_what_is_short(
    demand: list[float], capacity: float, weights: list[float]
) -> None:
    asked, weight = np.array([demand]), np.array(weights[: len(demand)])
    found = max_min_shares(asked, weight, np.array([capacity]))[0]
    levels = (found / weight)[found < asked[0] - 1e-6]
    assert len(levels) == 0 or levels.min() == pytest.approx(levels.max(), rel=1e-6, abs=1e-6)
    assert found.sum() == pytest.approx(min(capacity, asked.sum()), rel=1e-9, abs=1e-6)


def test_equal_weights_give_equal_shares_and_leave_no_gpu_that_is_wanted() -> None:
    found = max_min_shares(np.array([[2.0, 10.0, 10.0]]), np.ones(3), np.array([12.0]))
    assert found.tolist() == [[2.0, 5.0, 5.0]]


def test_jains_index_is_one_if_all_are_alike_and_one_over_n_if_one_has_everything() -> None:
    assert jain_index(np.array([3.0, 3.0, 3.0])) == pytest.approx(1.0)
    assert jain_index(np.array([3.0, 0.0, 0.0])) == pytest.approx(1 / 3)
    assert jain_index(np.zeros(3)) is None
