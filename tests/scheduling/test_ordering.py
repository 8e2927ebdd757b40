"""FIFO, SJF, SRTF and LAS: the order, which jobs may pass, and the GPU types."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, TypeBelief
from maat.scheduling.explain import ReasonCode
from maat.scheduling.fitting import Sample
from maat.scheduling.job import Job, MemoryLimits
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.misjudged import factor_of, misjudged
from maat.scheduling.policies.requests import Requests
from maat.scheduling.policies.sjf import Sjf
from maat.scheduling.rounds import Decision, RoundInput
from maat.vocabulary import Adaptivity

HOLD = "hold the GPUs that it needs, or are to have them."


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("fifo", f"Jobs that came before it, of higher priority, or running already, {HOLD}"),
        ("sjf", f"Shorter jobs, and jobs that run already, {HOLD}"),
        ("srtf", f"Jobs with less time left {HOLD}"),
        ("las", f"Jobs that have had less service {HOLD}"),
        ("tiresias", f"Jobs of higher queues, which have had less service, {HOLD}"),
        ("gandiva", f"Jobs whose turn it is {HOLD}"),
        ("shockwave", f"Jobs that the plan has in this round {HOLD}"),
        ("sia", "Other jobs gain at least as much from the GPUs that it needs."),
    ],
)
def test_each_policy_says_in_its_own_words_who_holds_the_gpus(policy: str, says: str) -> None:
    waiting = round_of("t4=1x2", asks("a", 2, submitted=1.0), asks("b", 2, submitted=2.0))
    reasons = decide(policy, waiting).reasons
    (why,) = [
        each.sentence
        for each in (reasons["a"], reasons["b"])
        if each.primary is not ReasonCode.GRANTED
    ]
    assert why == says


def asks(
    name: str,
    gpus: int,
    *,
    submitted: float = 0.0,
    work: float = 1e6,
    held: tuple[int, ...] = (),
    t4: float = 0.5,
) -> Job:
    """A job that asks for that many GPUs and knows t4 and a100."""
    one = job(
        spec(name, gpu_count=gpus, submitted_at=submitted),
        belief(t4=t4, a100=t4 / 5),
        held=held,
        started_at=0.0 if held else None,
    )
    return replace(one, remaining_work=work)


def decide(policy: str, round_input: RoundInput, **parameters: object) -> Decision:
    return POLICIES.build(policy, parameters).allocate(round_input)


def test_fifo_serves_in_order_of_submission() -> None:
    late, early = asks("late", 2, submitted=20.0), asks("early", 2, submitted=10.0)
    assert set(decide("fifo", round_of("t4=1x2", late, early)).grants) == {"early"}


def test_fifo_lets_no_job_pass_one_that_does_not_fit_unless_backfilling() -> None:
    first, second, third = (
        asks("first", 2, submitted=1.0),
        asks("second", 3, submitted=2.0),
        asks("third", 1, submitted=3.0),
    )
    waiting = round_of("t4=1x4", first, second, third)
    blocked = decide("fifo", waiting)
    assert set(blocked.grants) == {"first"}
    assert blocked.reasons["second"].primary is ReasonCode.WAITING_CAPACITY
    assert blocked.reasons["second"].evidence == {
        "needed_gpus": 3,
        "free_gpus": 2,
        "binding_limit": "capacity:t4",
        "held_by": "jobs that came before it, of higher priority, or running already,",
    }
    assert blocked.reasons["third"].primary is ReasonCode.BEHIND_IN_ORDER
    assert blocked.reasons["third"].evidence["ahead"] == "second"
    assert set(decide("fifo", waiting, head_of_line="backfill").grants) == {"first", "third"}


def test_a_job_that_can_never_run_blocks_no_other() -> None:
    decision = decide(
        "fifo", round_of("t4=1x4", asks("huge", 9, submitted=1.0), asks("small", 1, submitted=2.0))
    )
    assert set(decision.grants) == {"small"}
    assert decision.reasons["huge"].primary is ReasonCode.EXCEEDS_CLUSTER
    assert decision.reasons["huge"].evidence == {"needed_gpus": 9, "largest_type_gpus": 4}


def test_fifo_takes_nothing_from_a_running_job() -> None:
    running, earlier = (
        asks("running", 2, submitted=20.0, held=(0, 1)),
        asks("earlier", 2, submitted=10.0),
    )
    assert set(decide("fifo", round_of("t4=1x2", running, earlier)).grants) == {"running"}


def test_srtf_preempts_for_a_job_that_is_done_sooner() -> None:
    running, shorter = (
        asks("running", 2, work=1e6, held=(0, 1)),
        asks("shorter", 2, submitted=50.0, work=1e3),
    )
    decision = decide("srtf", round_of("t4=1x2", running, shorter))
    assert set(decision.grants) == {"shorter"}


def test_srtf_counts_time_not_work() -> None:
    much_but_fast, little_but_slow = (
        asks("fast", 2, work=2e6, t4=0.01),
        asks("slow", 2, work=1e6, t4=5.0),
    )
    assert set(decide("srtf", round_of("t4=1x2", much_but_fast, little_but_slow)).grants) == {
        "fast"
    }


def test_a_new_job_takes_the_fastest_type_with_room() -> None:
    first, second = asks("first", 2, submitted=1.0), asks("second", 2, submitted=2.0)
    grants = decide("fifo", round_of("t4=1x2,a100=1x2", first, second)).grants
    assert (grants["first"].gpu_type, grants["second"].gpu_type) == ("a100", "t4")


def test_a_running_job_stays_on_its_type() -> None:
    grants = decide("srtf", round_of("t4=1x2,a100=1x2", asks("running", 2, held=(0, 1)))).grants
    assert grants["running"].gpu_type == "t4"


def test_the_batch_size_that_was_asked_for_is_kept() -> None:
    one = job(spec("x", gpu_count=2, batch_size=128), belief(t4=0.5))
    batch = decide("fifo", round_of("t4=1x2", one)).grants["x"].batch
    assert batch is not None
    assert batch.total_batch_size == 128


def test_a_quota_holds_back_a_tenants_second_job() -> None:
    quota = Limit("quota:default", LimitKind.QUOTA, 2, tenant="default")
    decision = decide(
        "fifo",
        round_of(
            "t4=1x4", asks("a", 2, submitted=1.0), asks("b", 2, submitted=2.0), limits=[quota]
        ),
    )
    assert set(decision.grants) == {"a"}
    assert decision.reasons["b"].primary is ReasonCode.WAITING_QUOTA
    assert decision.reasons["b"].evidence["binding_limit"] == "quota:default"


def test_a_job_beyond_its_tenants_quota_blocks_no_other() -> None:
    quota = Limit("quota:default", LimitKind.QUOTA, 2, tenant="default")
    decision = decide(
        "fifo",
        round_of(
            "t4=1x4", asks("a", 3, submitted=1.0), asks("b", 2, submitted=2.0), limits=[quota]
        ),
    )
    assert set(decision.grants) == {"b"}
    assert decision.reasons["a"].primary is ReasonCode.EXCEEDS_QUOTA_LIMIT
    assert decision.reasons["a"].evidence == {"binding_limit": "quota:default", "places": 2}


def test_sjf_serves_the_shortest_of_those_that_wait() -> None:
    long, short = (
        asks("long", 2, submitted=1.0, work=2e6),
        asks("short", 2, submitted=2.0, work=1e6),
    )
    assert set(decide("sjf", round_of("t4=1x2", long, short)).grants) == {"short"}


def test_sjf_orders_by_time_and_not_by_work() -> None:
    quick, slow = (
        asks("quick", 2, submitted=2.0, work=2e6, t4=0.1),
        asks("slow", 2, submitted=1.0, work=1e6, t4=10.0),
    )
    assert set(decide("sjf", round_of("t4=1x2", quick, slow)).grants) == {"quick"}


def test_misjudged_lengths_change_the_order_of_sjf_and_are_the_same_in_every_round() -> None:
    jobs = [asks(f"job-{n}", 4, work=1e5 * (n + 1)) for n in range(8)]
    right = round_of("t4=1x4", *jobs)
    orders = {
        error: tuple(Sjf(length_error=error).order(right).rows) for error in (0.0, 0.001, 3.0)
    }
    assert orders[0.0] == orders[0.001] == tuple(range(8))
    assert orders[3.0] != orders[0.0]
    later = replace(right, round_number=right.round_number + 1)
    assert tuple(Sjf(length_error=3.0).order(later).rows) == orders[3.0]
    assert misjudged(right, 0.0) is right
    drawn = [math.log(factor_of(f"job-{n}", 2.0)) for n in range(2000)]
    assert abs(sum(drawn) / 2000) < 0.2
    assert 1.9 < (sum(x * x for x in drawn) / 2000) ** 0.5 < 2.1


def test_sjf_preempts_no_job() -> None:
    runs, short = asks("runs", 2, work=9e6, held=(0, 1)), asks("short", 2, submitted=2.0, work=1e3)
    assert set(decide("sjf", round_of("t4=1x2", runs, short)).grants) == {"runs"}


def test_las_preempts_the_job_with_most_service() -> None:
    runs, waits = asks("runs", 2, held=(0, 1)), asks("waits", 2, submitted=2.0)
    runs = replace(runs, attained_gpu_seconds={"t4": 100.0, "a100": 20.0})
    assert set(
        decide(
            "las", round_of("t4=1x2", runs, replace(waits, attained_gpu_seconds={"t4": 110.0}))
        ).grants
    ) == {"waits"}
    assert set(
        decide(
            "las", round_of("t4=1x2", runs, replace(waits, attained_gpu_seconds={"t4": 130.0}))
        ).grants
    ) == {"runs"}


def test_las_counts_gpu_time_or_time_alone() -> None:
    wide, narrow = asks("wide", 4), asks("narrow", 1)
    jobs = (
        replace(wide, attained_gpu_seconds={"t4": 400.0}),
        replace(narrow, attained_gpu_seconds={"t4": 200.0}),
    )
    assert set(decide("las", round_of("t4=1x4", *jobs)).grants) == {"narrow"}
    assert set(decide("las", round_of("t4=1x4", *jobs), service="seconds").grants) == {"wide"}


@pytest.mark.parametrize("policy", ["sjf", "srtf", "las", "fifo", "tiresias"])
def test_the_head_of_the_line_blocks_if_the_parameter_says_so(policy: str) -> None:
    first, second, third = (
        asks("first", 2, work=1e3),
        asks("second", 3, work=2e3, submitted=1.0),
        asks("third", 1, work=3e3, submitted=2.0),
    )
    assert set(
        decide(policy, round_of("t4=1x4", first, second, third), head_of_line="block").grants
    ) == {"first"}
    assert set(
        decide(policy, round_of("t4=1x4", first, second, third), head_of_line="backfill").grants
    ) == {"first", "third"}


class Unreadable:
    """A fit that must not be read."""

    def __call__(self, samples: tuple[Sample, ...], /) -> FloatArray:
        raise AssertionError("the model was read")


def unread(name: str, gpus: int, **changes: object) -> Job:
    known = Belief(
        {kind: TypeBelief((Sample(1, 1, 32, 0.5, 0.0),), Unreadable()) for kind in ("t4", "a100")}
    )
    return job(spec(name, gpu_count=gpus, batch_size=64, **changes), known)


def test_on_one_gpu_type_the_order_of_arrival_needs_no_model() -> None:
    decision = decide("fifo", round_of("t4=1x4", unread("a", 2), unread("b", 4)))
    assert set(decision.grants) == {"a"}
    assert decision.reasons["b"].primary is ReasonCode.WAITING_CAPACITY


def test_the_choice_of_a_type_needs_one() -> None:
    with pytest.raises(AssertionError, match="the model was read"):
        decide("fifo", round_of("t4=1x4,a100=1x4", unread("a", 2)))


def test_a_batch_that_memory_has_no_room_for_is_refused_on_one_type_too() -> None:
    tight = replace(
        asks("x", 4),
        spec=spec("x", gpu_count=4, batch_size=64, memory={"t4": MemoryLimits(32, 64)}),
    )
    assert (
        decide("fifo", round_of("t4=1x4", tight)).reasons["x"].primary
        is ReasonCode.NO_CONFIGURATION
    )


def fits_an_rtx() -> RoundInput:
    """A batch of 80: on a t4 three passes of 32 are more, an rtx holds all of it."""
    declared = spec(
        "x",
        adaptivity=Adaptivity.STRONG_SCALING,
        batch_size=80,
        max_batch_size=80,
        gpu_count=1,
        memory={"t4": MemoryLimits(32, 32), "rtx": MemoryLimits(32, 2048)},
        gpus_per_replica={"t4": 4},
    )
    return round_of("t4=1x4,rtx=1x4", job(declared, belief(t4=0.1)))


def test_a_batch_that_fits_runs_also_where_the_type_whose_model_stands_in_cannot_hold_it() -> None:
    wanted = Requests(fits_an_rtx())
    unread = wanted.fastest_types(0)
    assert wanted.goodput[0].tolist() == [0.0, 1e-9]
    assert wanted.fastest_types(0) == unread == [1]


@pytest.mark.parametrize(
    "name", ["fifo", "srtf", "las", "tiresias", "gavel", "themis", "shockwave"]
)
def test_every_policy_of_requests_runs_it(name: str) -> None:
    assert decide(name, fits_an_rtx()).grants["x"].gpu_type == "rtx"
