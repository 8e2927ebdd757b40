"""What an agent says against what was seen: lies stand out, and no honest agent does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from scheduling.examples import job, round_of, spec

from maat.scheduling.belief import Belief, GradientStatistics, TypeBelief
from maat.scheduling.evidence import CLOCKS_DIFFER, LATE_SECONDS
from maat.scheduling.fitting import Sample, fit_throughput
from maat.scheduling.job import MemoryLimits
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.plausibility import (
    JUDGED_SECONDS,
    LEAST_TIMED,
    MUCH_FASTER,
    Account,
    Doubt,
    Life,
    Progress,
    Timed,
    doubted_samples,
    doubts_of,
    faults_of_progress,
    faults_of_time,
    slowed_by,
)
from maat.scheduling.policies import POLICIES
from maat.vocabulary import Doubted

HONEST = Account(
    [Life("t4", 1000.0, 900.0, Timed(8000, 800.0))],
    progress=250_000.0,
    fastest={"t4": 320.0},
    named_work=1e6,
    declared_work=1e6,
    samples={"t4": [Sample(1, 1, 32, 0.1, 0.0)]},
    of_kind={"t4": [("b", [Sample(1, 1, 32, 0.1, 0.0)])]},
)


def kinds(account: Account) -> list[Doubted]:
    return [doubt.kind for doubt in doubts_of(account)]


def test_steps_that_take_longer_than_the_attempt_has_lived_cannot_be() -> None:
    (fault,) = faults_of_time(Timed(10_000, 1000.0), lived_seconds=60.0)
    assert (fault.pointer, fault.value) == ("/passes", 1000.0)
    assert "10000 steps" in fault.problem
    assert "60 s" in fault.problem
    assert not list(faults_of_time(Timed(10_000, 1000.0), lived_seconds=1000.0))
    assert not list(faults_of_time(Timed(10_000, 1000.0), lived_seconds=None))


def test_samples_are_no_more_than_steps_times_the_largest_batch_and_worth_no_more() -> None:
    def pointers(said: Progress) -> list[str]:
        return [fault.pointer for fault in faults_of_progress(said, largest_batch=64)]

    assert pointers(Progress(10, 640.0, 640.0)) == []
    assert pointers(Progress(10, 641.0)) == ["/progress/processed_samples"]
    assert pointers(Progress(0, 641.0)) == []  # it does not count steps
    assert pointers(Progress(10, 640.0, 1e5)) == ["/progress/gained_samples"]
    assert not list(faults_of_progress(Progress(10, 1e9, 1e12), largest_batch=None))


def test_an_honest_job_is_not_doubted() -> None:
    assert kinds(HONEST) == []


@pytest.mark.parametrize(
    ("lie", "kind"),
    [
        ({"lives": [Life("t4", 1000.0, 900.0, Timed(8000, 8.0))]}, Doubted.SPEED),
        ({"progress": 1.9e6, "named_work": 2e6}, Doubted.PACE),
        ({"named_work": 200_000.0}, Doubted.WORK),
        ({"named_work": None, "declared_work": 100_000.0}, Doubted.WORK),
        ({"named_work": 1e7, "finished": True}, Doubted.END),
        (
            {
                "of_kind": {
                    "t4": [
                        *[("b", [Sample(1, 1, 32, 1.1, 0.0)])] * 2,
                        ("b", [Sample(1, 1, 32, 0.1, 0.0)]),
                    ]
                }
            },
            Doubted.KIND,
        ),
    ],
)
def test_each_lie_is_doubted_once(lie: dict[str, object], kind: Doubted) -> None:
    assert kinds(replace(HONEST, **lie)) == [kind]  # type: ignore[arg-type]


def test_a_doubt_says_what_was_said_and_what_was_seen() -> None:
    lies = replace(HONEST, lives=[Life("t4", 1000.0, 900.0, Timed(9000, 9.0))])
    assert list(doubts_of(lies)) == [Doubt(Doubted.SPEED, 0.001, 0.1, "s a step")]


def test_a_job_that_has_only_begun_is_not_judged_by_its_time() -> None:
    begun = Life("t4", JUDGED_SECONDS - 1, JUDGED_SECONDS - 1, Timed(100, 0.1))
    assert kinds(replace(HONEST, lives=[begun], progress=0.0)) == []


def test_of_a_flagged_job_the_usual_of_its_kind_is_believed_and_alone_no_scaling() -> None:
    fast = Sample(1, 4, 32, 0.01, 0.005)
    others = [
        ("a", [Sample(1, 1, 32, 0.1, 0.0)]),
        ("b", [Sample(1, 1, 32, 0.2, 0.0), Sample(1, 2, 32, 0.3, 0.1)]),
        ("b", [Sample(1, 1, 32, 0.2, 0.0)]),
    ]
    assert doubted_samples([fast], others) == (
        Sample(1, 1, 32, 0.2, 0.0),
        Sample(1, 2, 32, pytest.approx(0.3), 0.1),
    )
    (alone,) = doubted_samples([fast], [], slower=100.0)
    assert alone.step_seconds == pytest.approx(4 * 0.5)
    assert alone.step_seconds - alone.sync_seconds == pytest.approx(0.5)
    assert slowed_by(HONEST.lives) == pytest.approx(900 / 800)


@dataclass(frozen=True)
class Truth:
    """An honest agent, and the troubles between it and the service.

    `idle`: time between steps that is not timed, over a step. `skew`: its clock over the service's.
    `start`: until its first report. `lateness`: of what the service has heard.
    """

    step: float
    idle: float
    skew: float
    start: float
    lateness: float
    steps: tuple[int, ...]  # of each attempt
    lost: int  # steps after the last checkpoint, done again
    batch: int
    noise: float
    data: int


truths = st.builds(
    Truth,
    step=st.floats(1e-4, 100.0),
    idle=st.floats(0.0, 15.0),
    skew=st.floats(0.96, 1.04),
    start=st.floats(0.0, 3600.0),
    lateness=st.floats(0.0, 600.0),
    steps=st.tuples(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 200)),
    lost=st.integers(0, 100),
    batch=st.integers(1, 512),
    noise=st.floats(0.0, 1e5),
    data=st.integers(1, 20_000),
)


def lived(truth: Truth) -> Iterator[tuple[Life, Progress, float]]:
    """Yield each attempt as it was seen, what its agent said at its end, and the job's progress."""
    position, counted, progress, saved = 0, 0, 0.0, 0.0
    for number, steps in enumerate(truth.steps):
        processed = gained = 0.0
        counted = max(counted - truth.lost, 0) if number else 0
        progress = saved
        for step in range(steps):
            taken = min(truth.batch, truth.data - position)
            position = (position + taken) % truth.data
            worth = taken * (truth.noise + 32) / (truth.noise + taken)
            worth = min(worth, truth.data)
            processed, gained, progress = processed + taken, gained + worth, progress + worth
            counted += 1
            if step == max(steps - truth.lost, 0):
                saved = progress
        own = steps * truth.step * truth.skew
        ran = steps * truth.step * (1 + truth.idle)
        life = Life("t4", truth.start + ran, ran, Timed(steps, own))
        yield life, Progress(counted, processed, gained), progress


@examples(max_examples=150)
@given(truth=truths)
def test_no_honest_agent_is_refused_or_doubted(truth: Truth) -> None:
    truth = replace(truth, batch=max(truth.batch, 32), data=max(truth.data, 32))
    lives, progress = list[Life](), 0.0
    for life, said, reached in lived(truth):
        progress = reached
        assert not list(faults_of_time(life.timed, lived_seconds=life.held_seconds))
        assert not list(faults_of_progress(said, largest_batch=truth.batch))
        # What was timed last may have arrived and be seen late: the clock then shows more.
        lives.append(replace(life, held_seconds=life.held_seconds + truth.lateness))
    sample = Sample(1, 1, truth.batch, truth.step * truth.skew, 0.0)
    account = Account(
        [life for life in lives if life.timed.steps],
        progress,
        {"t4": truth.batch / sample.step_seconds},
        named_work=max(progress, 1.0),
        declared_work=max(progress, 1.0),
        finished=True,
        samples={"t4": [sample]},
        of_kind={"t4": [("b", [sample]), ("b", [sample._replace(step_seconds=truth.step)])]},
    )
    assert kinds(account) == []


@examples(max_examples=100)
@given(
    faster=st.floats(1.5 / LEAST_TIMED, 1e6),
    step=st.floats(1e-3, 10.0),
)
def test_who_says_steps_are_far_faster_than_time_passes_is_doubted_whatever_the_model(
    faster: float, step: float
) -> None:
    steps = int(2 * JUDGED_SECONDS / step) + 10
    life = Life("t4", steps * step, steps * step, Timed(steps, steps * step / faster))
    assert Doubted.SPEED in kinds(Account([life], 0.0, {"t4": 1e9}))
    assert slowed_by([life]) == pytest.approx(faster)


def test_tolerances_are_wider_than_clocks_differ() -> None:
    assert CLOCKS_DIFFER > 1.0
    assert LATE_SECONDS > 30.0  # a report comes every 30 s
    assert MUCH_FASTER > 1.0


def believed(samples: Sequence[Sample], gradient: GradientStatistics | None) -> Belief:
    return Belief({"t4": TypeBelief(tuple(samples), fit_throughput(samples))}, gradient, 64)


def measured(sync: float, faster: float = 1.0) -> list[Sample]:
    """Steps on one, two and four GPUs of a node, and on two nodes."""
    return [
        Sample(nodes, replicas, batch, (0.05 + 0.002 * batch) / faster + wait, wait)
        for nodes, replicas in ((1, 1), (1, 2), (1, 4), (2, 8))
        for batch in (32, 64, 128)
        for wait in [sync * (replicas > 1) * replicas**0.5]
    ]


QUIET = GradientStatistics(1.0, 1.0)  # larger batches are of little use
NOISY = GradientStatistics(1.0, 1e6)  # each sample of any batch has its full value
WAITS, NEVER_WAITS = measured(0.1), measured(0.0)


def gpus_of(known: Belief, honest: int) -> int:
    """Return how many of 16 GPUs Sia gives to a job beside so many honest ones like it."""
    limits = {"max_batch_size": 1024, "memory": {"t4": MemoryLimits(1, 128)}}
    others = [job(spec(f"honest-{n}", **limits), believed(WAITS, QUIET)) for n in range(honest)]
    round_input = round_of("t4=4x4", job(spec("liar", **limits), known), *others)
    found = plan_round(round_input, POLICIES.build("sia"), PLACERS.build("whole-node"))
    return len(found.placement.placement.by_job.get("liar", ()))


@pytest.mark.parametrize("honest", [5, 11])
def test_a_flagged_liar_gets_no_more_of_a_sia_round_than_if_it_were_honest(honest: int) -> None:
    """docs/operations.md, What Maat trusts, has these figures."""
    truth = gpus_of(believed(WAITS, QUIET), honest)
    lie = gpus_of(believed(NEVER_WAITS, NOISY), honest)
    of_kind = [("ours", WAITS)] * honest
    flagged = gpus_of(believed(doubted_samples(NEVER_WAITS, of_kind), None), honest)
    alone = gpus_of(believed(doubted_samples(NEVER_WAITS, [], slower=10.0), None), honest)
    assert (truth, lie, flagged, alone) == (1, {5: 8, 11: 4}[honest], 1, 1)
