"""What several tenants say of one thing: no one decides alone, and what is old counts less."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from scheduling.examples import job, round_of, spec

from maat.scheduling.belief import GradientStatistics
from maat.scheduling.cluster import Cluster
from maat.scheduling.evidence import (
    ENOUGH_REPORTS,
    HALF_LIFE_SECONDS,
    MOST_APART,
    MOST_FASTER,
    MOST_SLOWER,
    Comparison,
    Evidence,
    SharedModels,
    bounded_samples,
    compared,
    faults_of_ranks,
    faults_of_steps,
    pooled,
    relative_scores,
    relative_times,
    usual_gradient,
    weight_of,
)
from maat.scheduling.fitting import Sample
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.round_result import RoundResult
from maat.vocabulary import Adaptivity

ratio = st.floats(1 / MOST_SLOWER, MOST_SLOWER)
weight = st.floats(0.0, 1.0)


def said(tenant: str, *ratios: float, weight: float = 1.0) -> list[Evidence]:
    return [Evidence(tenant, each, weight) for each in ratios]


@examples(max_examples=100)
@given(lies=st.lists(st.tuples(ratio, weight), max_size=12), honest=st.tuples(ratio, ratio))
def test_one_of_three_tenants_moves_nothing_beyond_what_the_others_say(
    lies: list[tuple[float, float]], honest: tuple[float, float]
) -> None:
    evidence = [Evidence("liar", *lie) for lie in lies] + [
        *said("b", honest[0]),
        *said("c", honest[1]),
    ]
    found = pooled(evidence).ratio
    assert min(honest) * (1 - 1e-9) <= found <= max(honest) * (1 + 1e-9)


@examples(max_examples=100)
@given(lies=st.lists(st.tuples(ratio, weight), max_size=12), honest=ratio, trust=weight)
def test_of_two_tenants_none_moves_a_ratio_beyond_what_the_other_says(
    lies: list[tuple[float, float]], honest: float, trust: float
) -> None:
    """However little the other has reported: neither has more than half of the weight."""
    evidence = [Evidence("liar", *lie) for lie in lies] + [Evidence("b", honest, trust)]
    found = pooled(evidence).ratio
    if trust > 1e-6:
        assert min(honest, 1.0) * (1 - 1e-9) <= found <= max(honest, 1.0) * (1 + 1e-9)


@examples(max_examples=200)
@given(
    lies=st.lists(st.tuples(ratio, weight), max_size=8),
    others=st.lists(st.tuples(st.sampled_from("bc"), ratio, weight), max_size=6),
)
def test_a_tenants_lies_move_a_belief_no_further_than_one_honest_job_could(
    lies: list[tuple[float, float]], others: list[tuple[str, float, float]]
) -> None:
    evidence = [Evidence(*other) for other in others]
    honest = [pooled([*evidence, *said("liar", one)]).believed for one in (1 / MOST_SLOWER, 3.0)]
    without = pooled(evidence).believed
    found = pooled([*evidence, *(Evidence("liar", *lie) for lie in lies)]).believed
    assert min(*honest, without) * (1 - 1e-6) <= found <= max(*honest, without) * (1 + 1e-6)


def test_many_jobs_of_a_tenant_count_as_one() -> None:
    evidence = [*said("many", *([3.0] * 20)), *said("b", 1.1), *said("c", 1.2)]
    assert pooled(evidence).ratio == pytest.approx(1.2)
    assert pooled(said("only", 0.5, 2.0, 2.0)).believed == pytest.approx(2.0)


def test_where_tenants_differ_the_ratio_nearest_to_one_counts() -> None:
    assert pooled([*said("a", 2.0), *said("b", 1.5)]).ratio == pytest.approx(1.5)
    assert pooled([*said("a", 2.0), *said("b", 0.5)]).ratio == pytest.approx(1.0)


def test_what_is_old_or_was_said_once_counts_less() -> None:
    assert weight_of(ENOUGH_REPORTS, 0.0) == 1.0
    assert weight_of(ENOUGH_REPORTS, HALF_LIFE_SECONDS) == pytest.approx(0.5)
    assert weight_of(1, 0.0) < 1.0
    assert weight_of(1, -5.0) == weight_of(1, 0.0), "a clock that was set back adds nothing"
    old = pooled(said("a", 2.0, weight=0.5))
    assert old.believed == pytest.approx(math.sqrt(2.0))
    assert pooled([]).believed == 1.0


def test_gpus_are_compared_through_those_that_jobs_have_in_common() -> None:
    found = compared(
        [
            Comparison("a", {0: (0.8, 1.0), 1: (1.2, 1.0)}),
            Comparison("a", {4: (1.0, 1.0), 5: (1.0, 1.0)}),
            Comparison("a", {2: (1.0, 1.0), 3: (1.5, 1.0)}),
            Comparison("a", {1: (1.0, 1.0), 2: (1.0, 1.0)}),
        ]
    )
    ratios = {gpu: known.ratio for gpu, known in found.items()}
    assert ratios == pytest.approx({0: 0.8, 1: 1.2, 2: 1.2, 3: 1.8, 4: 1.0, 5: 1.0})


def test_what_one_said_is_not_repeated_by_those_who_never_saw_it() -> None:
    """Others find GPUs equal that one calls slow: they are not slow for being compared by them."""
    lie = Comparison("liar", {0: (3.0, 1.0), 1: (3.0, 1.0), 2: (1.0, 1.0), 3: (1.0, 1.0)})
    others = [Comparison(name, dict.fromkeys(range(4), (1.0, 1.0))) for name in "bc"]
    for order in ([lie, *others], [*others, lie]):
        assert [known.ratio for known in compared(order).values()] == pytest.approx([1.0] * 4)


@examples(max_examples=50)
@given(times=st.lists(st.floats(1e-6, 1e5), min_size=2, max_size=8))
def test_times_of_ranks_are_refused_or_bounded(times: list[float]) -> None:
    if not list(faults_of_ranks(times)):
        assert max(times) <= MOST_APART * min(times)
    assert all(1 / MOST_SLOWER <= each <= MOST_SLOWER for each in relative_times(times))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-9])
def test_what_is_no_time_is_refused(bad: float) -> None:
    assert list(faults_of_ranks([1.0, bad]))
    assert list(faults_of_steps(bad, 1, lived_seconds=None))


def test_steps_are_refused_that_take_longer_than_their_attempt() -> None:
    assert not list(faults_of_steps(1.0, 1000, lived_seconds=1000.0))
    (fault,) = faults_of_steps(1.0, 2000, lived_seconds=1000.0)
    assert "2000 such steps take 2000 s" in fault.problem


def test_a_model_is_its_tenants_own_until_it_is_shared() -> None:
    own, shared, all_shared = SharedModels(), SharedModels({"resnet"}), SharedModels(are_all=True)
    assert own.key("ten_1", "resnet") != own.key("ten_2", "resnet")
    assert shared.key("ten_1", "resnet") == shared.key("ten_2", "resnet")
    assert shared.key("ten_1", "bert") != shared.key("ten_2", "bert")
    assert all_shared.key("ten_1", "bert") == all_shared.key("ten_2", "bert")
    assert SharedModels({"ten_1/resnet"}).key("ten_2", "ten_1/resnet") != own.key("ten_1", "resnet")


def steps(alone: float, batch: int = 32, sync: float = 0.1) -> Sample:
    return Sample(1, 2, batch, alone + sync, sync)


def test_a_step_counts_as_at_most_three_times_faster_than_its_kind() -> None:
    kind = [("b", [steps(0.3)]), ("b", [steps(0.4)])]
    fast, honest = steps(1e-6), steps(0.2)
    assert bounded_samples([honest], [*kind, ("b", [honest])]) == (honest,)
    (bounded,) = bounded_samples([fast], [*kind, ("b", [fast])])
    assert bounded.step_seconds - bounded.sync_seconds == pytest.approx(0.3 / MOST_FASTER)


def test_who_is_alone_of_its_kind_or_one_of_two_is_its_own_measure() -> None:
    fast = steps(1e-6)
    assert bounded_samples([fast], [("b", [fast])]) == (fast,)
    assert bounded_samples([fast], [("b", [fast]), ("b", [steps(0.3)])]) == (fast,)


def test_other_batches_say_what_a_step_takes_at_least() -> None:
    """More samples take no less time than fewer, and fewer at least their part of it."""
    kind = [("b", [steps(0.3, batch=32)])] * 3
    (smaller, larger) = bounded_samples([steps(1e-6, batch=16), steps(1e-6, batch=64)], kind)
    assert smaller.step_seconds - smaller.sync_seconds == pytest.approx(0.15 / MOST_FASTER)
    assert larger.step_seconds - larger.sync_seconds == pytest.approx(0.3 / MOST_FASTER)


def test_the_noise_of_a_job_is_the_median_of_its_latest_reports_old_ones_counting_less() -> None:
    def noise(*ratios: float, ages: Sequence[float] = (0.0,) * 9) -> float | None:
        measured = [GradientStatistics(2.0, 2.0 * ratio) for ratio in ratios]
        found = usual_gradient(list(zip(measured, ages, strict=False)))
        return None if found is None else found.variance / found.square

    assert noise() is None
    assert noise(5.0) == 5.0
    assert noise(5.0, 7.0) == 5.0, "of two the one that claims less"
    assert noise(1e18, 6.0, 5.0, 0.0, 7.0) == 6.0
    week = HALF_LIFE_SECONDS
    assert noise(9.0, 1.0, 1.1, ages=(0.0, 2 * week, 2 * week)) == 9.0
    assert noise(9.0, ages=(5 * week,)) is None
    vanishing = [(GradientStatistics(0.0, 1.0), 0.0), (GradientStatistics(1.0, 1.0), 0.0)]
    assert usual_gradient(vanishing) == GradientStatistics(1.0, 1.0)


def test_a_tenant_of_many_jobs_does_not_say_alone_what_is_usual_of_a_shared_model() -> None:
    fast, honest = steps(1e-6), [("b", [steps(0.3)]), ("c", [steps(0.4)])]
    (bounded,) = bounded_samples([fast], [*[("liar", [fast])] * 20, *honest])
    assert bounded.step_seconds - bounded.sync_seconds == pytest.approx(0.3 / MOST_FASTER)
    slow = [("liar", [steps(1000.0)])] * 20
    assert bounded_samples([steps(0.3)], [*slow, *honest]) == (steps(0.3),)


GPUS, TEAMS = 8, ("b", "c")
reports_of_liar = st.lists(
    st.tuples(
        st.lists(st.integers(0, GPUS - 1), min_size=2, max_size=4, unique=True),
        st.lists(st.floats(0.0, allow_infinity=True), min_size=4, max_size=4),
        st.integers(1, 100),
    ),
    max_size=12,
)


def placed_beside(lies: list[tuple[list[int], list[float], int]]) -> RoundResult:
    """The round of two honest tenants and a third one that reported this of GPUs.

    Each tenant has a job of two GPUs; those of the honest have compared all GPUs, one of which is
    slow.
    """
    honest = {gpu: (1.5 if gpu == 5 else 1.0, 1.0) for gpu in range(GPUS)}
    comparisons = [Comparison(team, honest) for team in TEAMS]
    for gpus, times, reports in lies:
        compute = times[: len(gpus)]
        if not list(faults_of_ranks(compute)):
            weighed = [(ratio, weight_of(reports, 0.0)) for ratio in relative_times(compute)]
            comparisons.append(Comparison("liar", dict(zip(gpus, weighed, strict=True))))
    scores = relative_scores(compared(comparisons), [0] * GPUS)
    cluster = replace(
        Cluster.parse("t4=2x4"), scores={"A": tuple(scores[gpu] for gpu in range(GPUS))}
    )
    jobs = [
        job(
            spec(
                f"{team}-{number}",
                tenant=team,
                variability_class="A",
                gpu_count=2,
                batch_size=64,
                adaptivity=Adaptivity.RIGID,
            )
        )
        for number, team in enumerate((*TEAMS, "liar", TEAMS[0]))
    ]
    return plan_round(round_of(cluster, *jobs), POLICIES.build("fifo"), PLACERS.build("pal"))


@examples(max_examples=60, deadline=None)
@given(lies=reports_of_liar)
def test_no_reports_of_one_of_three_tenants_move_what_the_others_get(
    lies: list[tuple[list[int], list[float], int]],
) -> None:
    """Where two tenants agree on all GPUs, even an honest third job could move nothing."""
    without, beside = placed_beside([]), placed_beside(lies)
    assert not beside.placement.unplaced
    assert beside.placement.placement.by_job == without.placement.placement.by_job
