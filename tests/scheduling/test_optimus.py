"""Optimus: who grows, by how much, and on what evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.belief import Belief, TypeBelief
from maat.scheduling.fitting import Sample
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job, MemoryLimits
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.policies.optimus import Optimus, remaining_steps, step_time
from maat.scheduling.rounds import Decision, RoundInput
from maat.vocabulary import Adaptivity

BATCH = 64
UNREAD = np.full(7, np.nan)  # a model that must not be read


def asks(
    name: str, seconds: list[float], *, steps: float = 100.0, batch: int = BATCH, **changes: object
) -> Job:
    """A job whose step takes seconds[k - 1] on k GPUs of a node of four, as measured."""
    samples = tuple(
        Sample(-(-k // 4), k, -(-batch // k), time, 0.0) for k, time in enumerate(seconds, start=1)
    )
    declared = spec(
        name,
        batch_size=batch,
        initial_batch_size=batch,
        gpu_count=1,
        memory={"t4": MemoryLimits(8, 64)},
        **changes,
    )
    return replace(
        job(declared, Belief({"t4": TypeBelief(samples, UNREAD)})), remaining_steps=steps
    )


def counts(decision: Decision) -> dict[str, int]:
    return {job_id: grant.gpu_count for job_id, grant in decision.grants.items()}


def decide(cluster: str, *jobs: Job, **changes: object) -> Decision:
    return Optimus().allocate(round_of(cluster, *jobs, **changes))


def test_every_job_gets_one_gpu_before_any_gets_two() -> None:
    greedy = asks("greedy", [64.0, 32.0, 16.0, 8.0])
    assert counts(decide("t4=1x3", greedy, asks("a", [1.0, 0.9]), asks("b", [1.0, 0.9]))) == {
        "greedy": 1,
        "a": 1,
        "b": 1,
    }


def test_each_gpu_goes_where_it_shortens_what_is_left_most() -> None:
    """Gains of a: 40, 10, 5 s a step; of b: 15, 12, 1; equally many steps left."""
    a, b = asks("a", [100.0, 60.0, 50.0, 45.0]), asks("b", [50.0, 35.0, 23.0, 22.0])
    assert counts(decide("t4=1x5", a, b)) == {"a": 2, "b": 3}


def test_what_is_left_weighs_the_gain() -> None:
    a, b = asks("a", [10.0, 9.0], steps=100.0), asks("b", [10.0, 5.0], steps=10.0)
    assert counts(decide("t4=1x3", a, b)) == {"b": 1, "a": 2}


def test_gpus_that_shorten_nothing_stay_idle() -> None:
    assert counts(decide("t4=1x4", asks("a", [10.0, 6.0, 6.0, 1.0]))) == {"a": 2}


def test_no_job_grows_beyond_one_smallest_batch_per_gpu() -> None:
    assert counts(decide("t4=2x4", asks("a", [8.0 / k for k in range(1, 9)], batch=24))) == {"a": 3}


def test_the_smallest_are_placed_first() -> None:
    assert list(
        counts(decide("t4=1x4", asks("a", [9.0, 5.0, 3.0, 1.0]), asks("b", [1.0, 1.0])))
    ) == ["b", "a"]


def test_a_step_is_as_measured_and_else_as_the_model_says() -> None:
    plan = BatchPlan(64, 8, 1)
    known = TypeBelief((Sample(1, 4, 8, 3.0, 1.0),), UNREAD)
    assert step_time(known, plan, node_count=1, replica_count=4) == 3.0 + (3.0 - 1.0)
    fitted = belief(t4=0.5).by_type["t4"]
    assert step_time(fitted, plan, node_count=1, replica_count=4) == pytest.approx(
        0.5 + 0.008 + 0.05 + (0.5 + 0.008), rel=1e-6
    )


def test_remaining_work_follows_from_the_gradients_if_it_is_not_given() -> None:
    """At noise scale 320, M0 = 32, a sample of batch 64 is worth 352 / 384."""
    known = job(spec("x", batch_size=64), belief(t4=0.5))
    assert remaining_steps(known) == pytest.approx(1e6 / (64 * 352 / 384))
    assert remaining_steps(job(spec("x", batch_size=64))) == pytest.approx(1e6 / 32), (
        "nothing known: a larger batch gains nothing"
    )


def test_a_job_of_which_nothing_is_known_keeps_to_one_gpu() -> None:
    assert counts(decide("t4=1x4", job(spec("x", batch_size=64)))) == {"x": 1}


def test_a_rigid_job_gets_just_what_it_asks_for() -> None:
    bound = replace(
        asks("a", [9.0, 5.0, 3.0, 1.0]),
        spec=replace(asks("a", []).spec, adaptivity=Adaptivity.RIGID, gpu_count=2),
    )
    assert counts(decide("t4=1x4", bound)) == {"a": 2}


def test_a_quota_ends_growth() -> None:
    quota = Limit("quota:default", LimitKind.QUOTA, 3, tenant="default")
    assert counts(decide("t4=1x4", asks("a", [9.0, 5.0, 3.0, 1.0]), limits=[quota])) == {"a": 3}


def test_a_row_for_large_grants_counts_the_whole_of_one_that_becomes_large() -> None:
    large = Limit("shape:t4>=3", LimitKind.SHAPE, 2, gpu_type="t4", smallest_count=3)
    assert counts(decide("t4=1x4", asks("a", [9.0, 5.0, 3.0, 1.0]), limits=[large])) == {"a": 2}


@given(
    tables=st.lists(st.lists(st.integers(1, 50), min_size=4, max_size=4), min_size=1, max_size=4),
    gpus=st.integers(1, 8),
    steps=st.data(),
)
def test_the_greedy_is_that_of_a_plain_transcription(
    tables: list[list[int]], gpus: int, steps: st.DataObject
) -> None:
    left = [float(steps.draw(st.integers(1, 100))) for _ in tables]
    jobs = [
        asks(f"j{i}", [float(s) for s in table], steps=n, batch=32)
        for i, (table, n) in enumerate(zip(tables, left, strict=True))
    ]
    found = counts(decide(f"t4=1x{gpus}", *jobs))
    assert [found.get(f"j{i}", 0) for i in range(len(jobs))] == transcription(tables, left, gpus)


def transcription(tables: list[list[int]], left: list[float], gpus: int) -> list[int]:
    """One GPU each in order; then the largest gain, recomputed in full each time."""
    have = [1 if i < gpus else 0 for i in range(len(tables))]
    while sum(have) < gpus:
        gains = [
            (t[k - 1] - t[k]) * n if 0 < k < len(t) else 0.0
            for t, k, n in zip(tables, have, left, strict=True)
        ]
        if max(gains) <= 0:
            break
        have[gains.index(max(gains))] += 1
    return have


def test_on_several_types_a_job_grows_where_it_is_fastest() -> None:
    fast = job(spec("x", batch_size=256), belief(t4=0.5, a100=0.05))
    grant = decide("t4=1x4,a100=1x2", fast).grants["x"]
    assert (grant.gpu_type, grant.gpu_count) == ("a100", 2)


def test_the_grant_says_how_the_batch_is_split() -> None:
    assert decide("t4=1x2", asks("a", [9.0, 5.0])).grants["a"].batch == BatchPlan(64, 32, 0)


def test_nothing_is_remembered() -> None:
    given_input: RoundInput = round_of("t4=1x4", asks("a", [9.0, 5.0]))
    assert Optimus().allocate(given_input).state == given_input.state
