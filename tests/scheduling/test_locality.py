"""PAL's locality penalty from step times within a node and across, and what `pal` makes of it."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling.examples import job, round_of, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import JobError
from maat.scheduling.evidence import HALF_LIFE_SECONDS
from maat.scheduling.locality import (
    LEAST_STEPS,
    MOST_PENALTY,
    StepTimes,
    measured_penalties,
    pooled_penalties,
)
from maat.scheduling.placement import PLACERS
from maat.scheduling.rounds import Decision, Grant
from maat.scheduling.solving.report import SolveReport


def steps(nodes: int, seconds: float, *, replicas: int = 4, count: int = 100) -> StepTimes:
    return StepTimes("t4", nodes, replicas, 32, 0, count, seconds)


ANY_TIMES = st.builds(
    StepTimes,
    st.sampled_from(("t4", "a100")),
    st.integers(1, 3),
    st.integers(1, 8),
    st.sampled_from((8, 16)),
    st.integers(0, 1),
    st.integers(0, 10_000),
    st.floats(0, 1e9),
)


@given(st.lists(ANY_TIMES, max_size=30))
def test_a_penalty_is_finite_at_least_one_and_bounded_whatever_was_measured(
    times: list[StepTimes],
) -> None:
    for measured in measured_penalties(times).values():
        assert 1 <= measured.penalty <= MOST_PENALTY
        assert measured.configurations >= 1
        assert measured.steps >= 2 * LEAST_STEPS


@settings(max_examples=50)
@given(
    planted=st.floats(1.0, 5.0),
    jobs=st.integers(3, 8),
    spoilt=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_a_planted_penalty_is_recovered_from_noisy_means_of_which_a_few_are_far_off(
    planted: float, jobs: int, spoilt: bool, seed: int
) -> None:
    """Means are within 3 %; one job in each group may have been held up a hundredfold."""
    chance, times = random.Random(seed), list[StepTimes]()
    for replicas, alone in ((2, 0.1), (4, 0.17), (8, 0.4)):
        for nodes, factor in ((1, 1.0), (2, planted)):
            for number in range(jobs):
                noise = 100.0 if spoilt and number == 0 else chance.uniform(0.97, 1.03)
                times.append(steps(nodes, alone * factor * noise, replicas=replicas))
    (found,) = measured_penalties(times).values()
    assert found.penalty == pytest.approx(planted, rel=0.07)
    assert found.configurations == 3


@pytest.mark.parametrize(
    "times",
    [
        [],
        [steps(1, 0.1)],
        [steps(1, 0.1), steps(1, 0.2)],
        [steps(1, 0.1), steps(2, 0.2, replicas=8)],
        [steps(1, 0.1), steps(2, 0.2, count=LEAST_STEPS - 1)],
        [steps(1, 0.1), StepTimes("a100", 2, 4, 32, 0, 100, 0.2)],
    ],
    ids=["nothing", "within", "twice within", "other replicas", "too few", "another type"],
)
def test_without_the_same_configuration_both_ways_nothing_is_believed(
    times: list[StepTimes],
) -> None:
    assert measured_penalties(times) == {}


def test_types_are_estimated_apart_and_a_faster_run_across_nodes_is_no_gain() -> None:
    fast = [one._replace(gpu_type="a100") for one in (steps(1, 0.1), steps(2, 0.25))]
    found = measured_penalties([*fast, steps(1, 0.1), steps(2, 0.09)])
    assert {kind: one.penalty for kind, one in found.items()} == {"a100": 2.5, "t4": 1.0}


@pytest.mark.parametrize(
    ("step_penalty", "gpus"),
    [
        ({}, (0, 2)),
        ({"t4": 1.5}, (0, 2)),
        ({"t4": 2.5}, (2, 3)),
        ({"a100": 2.5}, (0, 2)),
    ],
    ids=["assumed", "small", "large", "of another type"],
)
def test_pal_stays_on_a_node_with_a_slow_gpu_where_step_times_say_that_apart_costs_more(
    step_penalty: dict[str, float], gpus: tuple[int, ...]
) -> None:
    """The second GPU of every node takes twice as long: apart pays below a penalty of 2."""
    scores = {"A": (1.0, 2.0, 1.0, 2.0)}
    cluster = replace(Cluster.parse("t4=2x2"), scores=scores)
    pair = job(spec("pair", variability_class="A", step_penalty=step_penalty))
    decision = Decision({"pair": Grant("t4", 2)}, SolveReport(), {})
    placed = PLACERS.build("pal", {}).place(decision, round_of(cluster, pair))
    assert placed.placement.by_job["pair"] == gpus


def test_the_penalty_of_its_steps_comes_on_top_of_one_that_they_do_not_show() -> None:
    known = spec(locality_penalty=1.5, step_penalty={"t4": 2.0})
    assert known.penalty_across_nodes("t4") == 3.0
    assert known.penalty_across_nodes("rtx") == 1.5


@pytest.mark.parametrize("factor", [0.9, math.nan, math.inf])
def test_a_penalty_of_steps_that_is_no_factor_of_at_least_one_is_refused(factor: float) -> None:
    with pytest.raises(JobError, match="step_penalty: is no factor of at least 1"):
        spec(step_penalty={"t4": factor})


def test_of_three_tenants_of_a_shared_model_one_that_lies_moves_no_penalty() -> None:
    def both(across: float, jobs: int = 1) -> list[StepTimes]:
        return [steps(1, 0.1), steps(2, 0.1 * across)] * jobs

    honest = {"b": both(1.5), "c": both(1.7)}
    for lie in (1.0, 10.0):
        found = pooled_penalties({"liar": both(lie, jobs=50), **honest})["t4"]
        assert 1.5 <= found.penalty <= 1.7
    assert pooled_penalties({"b": both(1.5)})["t4"] == measured_penalties(both(1.5))["t4"]


def test_an_old_penalty_counts_less() -> None:
    times = steps(1, 0.1), steps(2, 0.144)
    old = [one._replace(age_seconds=HALF_LIFE_SECONDS) for one in times]
    assert pooled_penalties({"b": old})["t4"].penalty == pytest.approx(1.2)
