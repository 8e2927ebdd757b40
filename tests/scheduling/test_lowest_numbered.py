"""Gavel's placement: order of placement, what jobs keep; nodes do not matter."""

from __future__ import annotations

from dataclasses import replace

from scheduling.examples import job, round_of, spec

from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.job import Job
from maat.scheduling.placement import PLACERS
from maat.scheduling.rounds import Decision, Grant, RoundInput
from maat.scheduling.solving.report import SolveReport


def asks(name: str, held: tuple[int, ...] = ()) -> Job:
    return job(spec(name), held=held)


def placed(round_input: RoundInput, **counts: int) -> dict[str, tuple[int, ...]]:
    decision = Decision(
        {name: Grant("t4", count) for name, count in counts.items()}, SolveReport(), {}
    )
    return dict(PLACERS.build("lowest-numbered").place(decision, round_input).placement.by_job)


def test_the_largest_job_takes_the_lowest_numbers_whatever_the_order_of_grants() -> None:
    assert placed(round_of("t4=2x4", asks("small"), asks("large")), small=2, large=4) == {
        "large": (0, 1, 2, 3),
        "small": (4, 5),
    }


def test_a_job_may_straddle_nodes() -> None:
    found = placed(round_of("t4=2x4", asks("a"), asks("b"), asks("c")), a=3, b=3, c=2)
    assert found == {"a": (0, 1, 2), "b": (3, 4, 5), "c": (6, 7)}


def test_a_job_keeps_its_gpus_before_others_of_its_size_are_placed() -> None:
    assert placed(round_of("t4=1x4", asks("new"), asks("runs", (0, 1))), new=2, runs=2) == {
        "new": (2, 3),
        "runs": (0, 1),
    }


def test_a_larger_job_takes_a_smaller_ones_gpus() -> None:
    assert placed(round_of("t4=1x4", asks("runs", (0,)), asks("large")), runs=1, large=3) == {
        "large": (0, 1, 2),
        "runs": (3,),
    }


def test_a_job_of_another_count_than_it_holds_is_placed_again() -> None:
    assert placed(round_of("t4=1x4", asks("grows", (2, 3))), grows=3) == {"grows": (0, 1, 2)}


def test_drained_gpus_are_skipped_and_a_job_that_does_not_fit_is_reported() -> None:
    cluster = Cluster.of([Node("n", "t4", 4, frozenset({0, 2}))])
    decision = Decision(
        {"a": Grant("t4", 1), "b": Grant("t4", 1), "c": Grant("t4", 1)}, SolveReport(), {}
    )
    found = PLACERS.build("lowest-numbered").place(
        decision, round_of(cluster, asks("a"), asks("b"), asks("c"))
    )
    assert dict(found.placement.by_job) == {"a": (1,), "b": (3,)}
    assert set(found.unplaced) == {"c"}


def test_a_pair_goes_together_and_no_other_job_shares() -> None:
    cluster = replace(Cluster.parse("t4=1x4"), jobs_per_gpu=2)
    grants = {
        "a": Grant("t4", 2),
        "b": Grant("t4", 2, share_with=("a",), shared_gpus=2),
        "c": Grant("t4", 1),
        "d": Grant("t4", 1),
    }
    jobs = [asks("a"), asks("b"), asks("c"), asks("d")]
    found = (
        PLACERS.build("lowest-numbered")
        .place(Decision(grants, SolveReport(), {}), round_of(cluster, *jobs))
        .placement.by_job
    )
    assert found == {"a": (0, 1), "b": (0, 1), "c": (2,), "d": (3,)}


def test_a_pair_stays_where_either_of_the_two_was() -> None:
    cluster = replace(Cluster.parse("t4=1x4"), jobs_per_gpu=2)
    grants = {
        "new": Grant("t4", 1),
        "a": Grant("t4", 1),
        "b": Grant("t4", 1, share_with=("a",), shared_gpus=1),
    }
    jobs = [asks("new"), asks("a"), asks("b", (0,))]
    found = (
        PLACERS.build("lowest-numbered")
        .place(Decision(grants, SolveReport(), {}), round_of(cluster, *jobs))
        .placement.by_job
    )
    assert found == {"new": (1,), "a": (0,), "b": (0,)}


def test_two_that_shared_and_no_longer_may_are_parted() -> None:
    cluster = replace(Cluster.parse("t4=1x2"), jobs_per_gpu=2)
    grants = {"a": Grant("t4", 1), "b": Grant("t4", 1)}
    found = PLACERS.build("lowest-numbered").place(
        Decision(grants, SolveReport(), {}), round_of(cluster, asks("a", (0,)), asks("b", (0,)))
    )
    assert found.placement.by_job == {"a": (0,), "b": (1,)}
