"""Throughput, efficiency and goodput over arrays, against scalar formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maat.scheduling.efficiency import efficiency, noise_scale
from maat.scheduling.goodput import BATCH_CANDIDATES, BatchLimits, best_plans
from maat.scheduling.throughput import overlapped, step_seconds

positive = st.floats(1e-2, 2.0)
parameter_tuples = st.tuples(
    positive, st.floats(1e-6, 0.1), positive, positive, positive, positive, st.floats(1.0, 10.0)
)


def scalar_step(
    parameters: tuple[float, ...], batch: float, nodes: int, replicas: int, accumulation: int
) -> float:
    """Pollux eq. 8-11 as it stands in the paper."""
    alpha, beta, alpha_n, beta_n, alpha_r, beta_r, gamma = parameters
    compute = alpha + beta * batch
    if replicas == 1:
        sync = 0.0
    elif nodes == 1:
        sync = alpha_r + beta_r * (replicas - 2)
    else:
        sync = alpha_n + beta_n * (replicas - 2)
    return accumulation * compute + (compute**gamma + sync**gamma) ** (1 / gamma)


def scalar_goodput(
    parameters: tuple[float, ...],
    phi: float,
    initial: int,
    nodes: int,
    replicas: int,
    batch: int,
    accumulation: int,
) -> float:
    """Pollux eq. 4, 6 and 13."""
    total = replicas * batch * (accumulation + 1)
    return (
        total
        / scalar_step(parameters, batch, nodes, replicas, accumulation)
        * (phi + initial)
        / (phi + total)
    )


@given(
    parameters=parameter_tuples,
    batch=st.integers(1, 4096),
    nodes=st.integers(1, 4),
    replicas=st.integers(1, 64),
    extra=st.integers(0, 4),
)
def test_step_times_are_those_of_the_formula(
    parameters: tuple[float, ...], batch: int, nodes: int, replicas: int, extra: int
) -> None:
    found = step_seconds(
        np.array(parameters),
        np.asarray(float(batch)),
        node_count=np.asarray(nodes),
        replica_count=np.asarray(replicas),
        accumulation_steps=extra,
    )
    assert float(found) == pytest.approx(
        scalar_step(parameters, batch, nodes, replicas, extra), rel=2e-6
    )


def test_step_times_broadcast_over_jobs_and_batches() -> None:
    parameters = np.array(
        [[0.1, 0.01, 0.2, 0.02, 0.1, 0.01, 2.0], [0.2, 0.02, 0.3, 0.01, 0.2, 0.02, 1.5]]
    )
    batches = np.array([[8.0, 16.0, 32.0]])
    found = step_seconds(
        parameters[:, None, :],
        batches,
        node_count=np.array([[1], [2]]),
        replica_count=np.array([[4], [16]]),
    )
    assert found.shape == (2, 3)
    for j, (nodes, replicas) in enumerate(((1, 4), (2, 16))):
        for b, batch in enumerate((8, 16, 32)):
            assert found[j, b] == pytest.approx(
                scalar_step(tuple(parameters[j]), batch, nodes, replicas, 0)
            )


@given(compute=st.floats(1e-8, 1e4), sync=st.floats(1e-8, 1e4), gamma=st.floats(1.0, 10.0))
def test_overlap_lies_between_the_longer_of_the_two_and_their_sum(
    compute: float, sync: float, gamma: float
) -> None:
    seconds = float(overlapped(np.asarray(compute), np.asarray(sync), np.asarray(gamma)))
    assert max(compute, sync) * (1 - 1e-12) <= seconds <= (compute + sync) * (1 + 1e-12)


@given(phi=st.floats(0.0, 1e6), initial=st.integers(1, 512), scale=st.floats(1.0, 100.0))
def test_efficiency_is_one_at_the_initial_batch_and_falls_to_no_less_than_its_share(
    phi: float, initial: int, scale: float
) -> None:
    total = initial * scale
    worth = float(efficiency(np.asarray(phi), np.asarray(float(initial)), np.asarray(total)))
    assert worth == pytest.approx((phi + initial) / (phi + total))
    assert initial / total * (1 - 1e-12) <= worth <= 1.0


def test_the_noise_scale_is_variance_over_signal_in_samples() -> None:
    assert float(noise_scale(2.0, 6.0, 128)) == pytest.approx(128 * 3)
    assert float(noise_scale(1.0, 0.0, 128)) == 0.0
    assert float(noise_scale(0.0, 1.0, 128)) == 1e18, (
        "no signal left: any batch is as good as another, and nothing overflows"
    )


def brute_force(
    parameters: tuple[float, ...],
    phi: float,
    initial: int,
    nodes: int,
    replicas: int,
    memory: tuple[int, int],
    largest_total: int,
) -> float:
    """The best of fifty geometrically spaced batch sizes, one after the other."""
    smallest, largest = memory
    low = max(initial, smallest * replicas)
    if low > largest_total:
        return 0.0
    best = 0.0
    for i in range(BATCH_CANDIDATES):
        local = low * (largest_total / low) ** (i / (BATCH_CANDIDATES - 1)) / replicas
        accumulation = math.ceil(local / largest - 1e-8) - 1
        if replicas == 1 and local > initial + 1e-8:
            accumulation = max(accumulation, 1)
        batch = math.ceil(local / (accumulation + 1) - 1e-8)
        batch = min(batch, largest_total // (replicas * (accumulation + 1)))
        if smallest <= batch <= largest:
            best = max(
                best, scalar_goodput(parameters, phi, initial, nodes, replicas, batch, accumulation)
            )
    return best


@settings(max_examples=150)
@given(
    parameters=parameter_tuples,
    phi=st.floats(0.0, 1e5),
    initial=st.integers(1, 256),
    times=st.integers(1, 64),
    memory=st.tuples(st.integers(1, 64), st.integers(1, 64)).map(
        lambda pair: (pair[0], pair[0] * pair[1])
    ),
    nodes=st.integers(1, 3),
    replicas=st.integers(1, 32),
)
def test_the_best_plan_is_the_best_of_all_fifty_candidates(
    parameters: tuple[float, ...],
    phi: float,
    initial: int,
    times: int,
    memory: tuple[int, int],
    nodes: int,
    replicas: int,
) -> None:
    largest_total = initial * times
    found = best_plans(
        np.array([parameters]),
        noise_scale=np.array([phi]),
        initial_batch_size=np.array([float(initial)]),
        limits=BatchLimits(*(np.array([float(x)]) for x in (initial, largest_total, *memory))),
        node_count=np.array([float(nodes)]),
        replica_count=np.array([float(replicas)]),
    )
    expected = brute_force(parameters, phi, initial, nodes, replicas, memory, largest_total)
    assert found.goodput[0] == pytest.approx(expected, rel=2e-6)
    if expected > 0:
        plan = found.plan(0)
        assert plan.total_batch_size <= largest_total
        assert plan.total_batch_size == replicas * plan.per_gpu_batch_size * (
            plan.accumulation_steps + 1
        )
        assert memory[0] <= plan.per_gpu_batch_size <= memory[1]
        made = scalar_goodput(
            parameters,
            phi,
            initial,
            nodes,
            replicas,
            plan.per_gpu_batch_size,
            plan.accumulation_steps,
        )
        assert made == pytest.approx(found.goodput[0], rel=2e-6)


def test_many_pairs_are_planned_as_each_would_be_alone() -> None:
    rng = np.random.default_rng(1)
    pairs = 1300
    parameters = rng.uniform(0.01, 1.0, size=(pairs, 7))
    parameters[:, 6] += 1.0
    columns = {
        "noise_scale": rng.uniform(0, 1e4, pairs),
        "initial_batch_size": rng.integers(1, 128, pairs).astype(float),
        "node_count": rng.integers(1, 4, pairs).astype(float),
        "replica_count": rng.integers(1, 32, pairs).astype(float),
    }
    low = columns["initial_batch_size"]
    batch_limits = BatchLimits(
        low, low * 32, np.ones(pairs), rng.integers(1, 64, pairs).astype(float)
    )
    together = best_plans(parameters, limits=batch_limits, **columns)
    for i in (0, 511, 512, 1023, 1024, 1299):
        one = slice(i, i + 1)
        alone = best_plans(
            parameters[one],
            limits=batch_limits.of(one),
            **{k: v[one] for k, v in columns.items()},
        )
        assert alone.goodput[0] == together.goodput[i]
        assert alone.plan(0) == together.plan(i)


@pytest.mark.parametrize(("replicas", "largest"), [(3, 256), (16, 1000), (7, 64)])
def test_a_plan_is_rounded_down_where_whole_samples_would_exceed_the_largest_batch(
    replicas: int, largest: int
) -> None:
    def planned(most: float) -> int:
        limits = (32, largest, 1, 4096, most)
        found = best_plans(
            np.array([[0.1, 1e-4, 1e-8, 1e-8, 1e-8, 1e-8, 1.0]]),
            noise_scale=np.array([1e9]),
            initial_batch_size=np.array([32.0]),
            limits=BatchLimits(*(np.array([float(x)]) for x in limits)),
            node_count=np.array([1.0]),
            replica_count=np.array([float(replicas)]),
        )
        return found.plan(0).total_batch_size

    assert planned(largest) == largest // replicas * replicas
    assert planned(math.inf) == -(-largest // replicas) * replicas


def test_one_gpu_beyond_the_initial_batch_accumulates_so_that_noise_can_be_measured() -> None:
    found = best_plans(
        np.array([[0.1, 1e-4, 1e-8, 1e-8, 1e-8, 1e-8, 1.0]]),
        noise_scale=np.array([1e9]),
        initial_batch_size=np.array([32.0]),
        limits=BatchLimits(*(np.array([float(x)]) for x in (32, 1024, 1, 4096))),
        node_count=np.array([1.0]),
        replica_count=np.array([1.0]),
    )
    assert found.plan(0).total_batch_size > 32
    assert found.plan(0).accumulation_steps >= 1


def test_a_batch_that_memory_cannot_hold_has_no_goodput() -> None:
    found = best_plans(
        np.ones((1, 7)),
        noise_scale=np.zeros(1),
        initial_batch_size=np.array([32.0]),
        limits=BatchLimits(*(np.array([float(x)]) for x in (32, 64, 16, 64))),
        node_count=np.ones(1),
        replica_count=np.array([8.0]),
    )
    assert found.goodput[0] == 0.0


def test_more_replicas_than_the_largest_batch_has_samples_have_no_goodput() -> None:
    found = best_plans(
        np.ones((1, 7)),
        noise_scale=np.zeros(1),
        initial_batch_size=np.array([8.0]),
        limits=BatchLimits(*(np.array([float(x)]) for x in (8, 8, 1, 64, 8))),
        node_count=np.ones(1),
        replica_count=np.array([16.0]),
    )
    assert found.goodput[0] == 0.0
