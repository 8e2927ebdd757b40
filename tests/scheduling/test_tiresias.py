"""Tiresias: queues by attained service, who falls, who waits, who comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.errors import ParameterError
from maat.scheduling.job import Job
from maat.scheduling.parameters import parameter_hash
from maat.scheduling.policies.ordering import HeadOfLine, ServiceUnit
from maat.scheduling.policies.tiresias import Tiresias
from maat.scheduling.rounds import Decision, PolicyState

HOUR = 3600.0


def served(
    name: str,
    gpus: int,
    hours: float,
    *,
    submitted: float = 0.0,
    held: tuple[int, ...] = (),
    known: bool = True,
) -> Job:
    """A job that asks for that many GPUs and held them for so many hours."""
    one = job(
        spec(name, gpu_count=gpus, submitted_at=submitted, batch_size=64),
        belief(t4=0.5) if known else None,
        held=held,
    )
    return replace(
        one,
        attained_gpu_seconds={"t4": hours * HOUR * gpus},
        started_at=0.0 if hours or held else None,
    )


def decide(
    policy: Tiresias,
    *jobs: Job,
    before: Decision | None = None,
    now: float = 100_000.0,
    cluster: str = "t4=1x4",
) -> Decision:
    state = PolicyState(policy.name, parameter_hash(policy)) if before is None else before.state
    return policy.allocate(round_of(cluster, *jobs, state=state, now=now))


def test_a_job_below_the_threshold_goes_before_one_above_it() -> None:
    old = served("old", 4, 4.0, submitted=1.0, held=(0, 1, 2, 3))
    assert list(decide(Tiresias(), old, served("new", 4, 3.9, submitted=2.0)).grants) == ["new"]


def test_the_threshold_counts_gpu_seconds_or_seconds_alone() -> None:
    wide, narrow = served("wide", 4, 2.0, submitted=1.0), served("narrow", 2, 2.0, submitted=2.0)
    assert list(decide(Tiresias(thresholds="20000"), wide, narrow).grants) == ["narrow"]
    assert list(
        decide(Tiresias(thresholds="20000", service=ServiceUnit.SECONDS), wide, narrow).grants
    ) == ["wide"]


def test_within_a_queue_the_first_to_come_goes_first_and_smaller_ones_may_pass() -> None:
    jobs = [
        served("a", 3, 0.0, submitted=1.0),
        served("b", 2, 0.0, submitted=2.0),
        served("c", 1, 0.0, submitted=3.0),
    ]
    assert list(decide(Tiresias(), *jobs).grants) == ["a", "c"]
    assert list(decide(Tiresias(head_of_line=HeadOfLine.BLOCK), *jobs).grants) == ["a"]


def test_a_job_falls_to_the_end_of_the_next_queue_whenever_it_came() -> None:
    """The one that fell first goes first, though it was submitted later."""
    first, second = served("early", 3, 6.0, submitted=1.0), served("late", 3, 7.0, submitted=2.0)
    fell = decide(Tiresias(), replace(first, attained_gpu_seconds={"t4": HOUR}), second)
    assert list(fell.grants) == ["early"]
    again = decide(Tiresias(), first, second, before=fell)
    assert again.state.data["queues"] == [[], ["late", "early"]]
    assert list(again.grants) == ["late"]


def test_a_job_may_fall_through_several_queues() -> None:
    policy = Tiresias(thresholds="3600,7200")
    jobs = [served("c", 1, 3.0), served("b", 1, 1.5), served("a", 1, 0.5)]
    assert decide(policy, *jobs).state.data["queues"] == [["a"], ["b"], ["c"]]


def test_ended_jobs_are_forgotten() -> None:
    before = decide(Tiresias(), served("gone", 1, 20.0), served("stays", 1, 20.0))
    assert decide(Tiresias(), served("stays", 1, 20.0), before=before).state.data["queues"] == [
        [],
        ["stays"],
    ]


def test_other_parameters_forget_the_queues() -> None:
    before = decide(Tiresias(), served("b", 1, 20.0))
    after = decide(
        Tiresias(thresholds="1e9"), served("a", 1, 0.0), served("b", 1, 20.0), before=before
    )
    assert after.state.data["queues"] == [["a", "b"], []]


def test_who_has_waited_long_enough_starts_again_in_the_first_queue() -> None:
    policy, holder = Tiresias(promote_after=2.0), served("new", 4, 0.0, held=(0, 1, 2, 3))
    old = served("old", 4, 5.0)
    waiting = decide(policy, holder, old, now=0.0)
    assert waiting.state.data["queues"] == [["new"], ["old"]]
    assert decide(policy, holder, old, before=waiting, now=9.9 * HOUR).state.data["queues"] == [
        ["new"],
        ["old"],
    ]
    back = decide(policy, holder, old, before=waiting, now=10.0 * HOUR)
    assert back.state.data["queues"] == [["new", "old"], []]
    later = replace(old, attained_gpu_seconds={"t4": 8.9 * HOUR * 4})
    assert decide(policy, later, before=back, now=11 * HOUR).state.data["queues"] == [
        ["old"],
        [],
    ], "service before its return is forgiven"
    fallen = replace(old, attained_gpu_seconds={"t4": 9.0 * HOUR * 4})
    assert decide(policy, fallen, before=back, now=11 * HOUR).state.data["queues"] == [[], ["old"]]


def test_no_job_comes_back_unless_asked_for() -> None:
    old, holder = served("old", 4, 5.0), served("new", 4, 0.0, held=(0, 1, 2, 3))
    waiting = decide(Tiresias(), holder, old, now=0.0)
    assert decide(Tiresias(), holder, old, before=waiting, now=1e9).state.data["queues"] == [
        ["new"],
        ["old"],
    ]


def test_the_declared_batch_is_trained_with_before_anything_is_known() -> None:
    batch = decide(Tiresias(), served("x", 2, 0.0, known=False)).grants["x"].batch
    assert batch is not None
    assert batch.total_batch_size == 64


@pytest.mark.parametrize("thresholds", ["", "soon", "0", "-1", "700,300", "5,5", "inf", "nan"])
def test_thresholds_that_do_not_ascend_are_refused(thresholds: str) -> None:
    with pytest.raises(ParameterError, match="thresholds: are not ascending numbers above zero"):
        Tiresias(thresholds=thresholds)
