"""Jobs that share GPUs slow each other for just as long as they share, whenever anybody looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation.small import spec, truth

from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.failures import NodeFailure, Outages
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.slowdowns import SharedGpus

EXACT = replace(FIDELITIES["sia-artifact"], whole_second_epochs=False)
GPUS = 4
CLUSTER = replace(Cluster.parse("t4=2x2"), jobs_per_gpu=3)
MODELS = ("light", "middle", "heavy")


@dataclass(frozen=True)
class Shared:
    """A job: what it is, how long it takes alone, the GPUs it holds from time 0 on."""

    model: str
    solo_seconds: float
    gpus: tuple[int, ...]


def ends_seen(
    jobs: Sequence[Shared],
    xi: Mapping[tuple[str, str, int], float],
    looks: Sequence[float],
    failures: tuple[NodeFailure, ...] = (),
) -> list[float | None]:
    """When each job ended, the executor being looked at at these times."""
    clock = JumpingClock()
    executor = SimulatedExecutor(
        CLUSTER, clock, EXACT, slowdowns=(SharedGpus(xi),), outages=Outages(CLUSTER, failures)
    )
    for number, job in enumerate(jobs):
        declared = spec(
            f"{number}", model=job.model, batch_size=10, gpu_count=len(job.gpus), adaptivity="rigid"
        )
        executor.submit(declared, truth(work=10.0 * job.solo_seconds), restart_seconds=0.0)
    executor.observe()
    items = [
        Change(
            f"{number}",
            ChangeKind.START,
            None,
            Allocation("t4", job.gpus),
            Grant("t4", len(job.gpus)),
        )
        for number, job in enumerate(jobs)
    ]
    executor.apply(Changes(1, 0.0, tuple(items)))
    for look in looks:
        clock.sleep_until(look)
        executor.observe()
        executor.apply(Changes(2, look))
    every = {**executor.jobs, **executor.finished}
    return [every[f"{number}"].finished_at for number in range(len(jobs))]


def ends_computed(jobs: Sequence[Shared], xi: Mapping[tuple[str, str, int], float]) -> list[float]:
    """The same, one end after the other, with nothing but arithmetic."""
    left = {number: job.solo_seconds for number, job in enumerate(jobs)}
    ends, now = [0.0] * len(jobs), 0.0
    while left:
        slowdown = {}
        for number in left:
            by_gpu = dict.fromkeys(jobs[number].gpus, 1.0)
            for other in left:
                for gpu in set(jobs[other].gpus) & set(by_gpu) if other != number else ():
                    by_gpu[gpu] *= xi[jobs[number].model, jobs[other].model, len(jobs[number].gpus)]
            slowdown[number] = max(by_gpu.values())
        first = min(left, key=lambda number: left[number] * slowdown[number])
        passed = left[first] * slowdown[first]
        now += passed
        left = {
            number: seconds - passed / slowdown[number]
            for number, seconds in left.items()
            if number != first
        }
        ends[first] = now
    return ends


def constant(value: float) -> dict[tuple[str, str, int], float]:
    return {(a, b, n): value for a in MODELS for b in MODELS for n in range(1, GPUS + 1)}


def test_when_a_partner_ends_within_a_round_the_other_goes_on_at_full_speed_from_that_moment() -> (
    None
):
    """Jobs of 40 s and 100 s take twice as long together.

    The first ends at 80 s; the other then has 60 s of work left to do alone.
    """
    jobs = [Shared("light", 40.0, (0,)), Shared("heavy", 100.0, (0,))]
    assert ends_seen(jobs, constant(2.0), [300.0]) == pytest.approx([80.0, 140.0], rel=1e-6)


def test_a_partner_that_comes_slows_from_that_moment_and_no_longer_when_it_goes() -> None:
    """A job of 100 s runs alone for 30 s, then beside a job of 20 s until 70 s, then alone again.

    Together both take twice as long, so 20 s of its work are done between 30 s and 70 s, and the
    last 50 s are left.
    """
    clock = JumpingClock()
    executor = SimulatedExecutor(CLUSTER, clock, EXACT, slowdowns=(SharedGpus(constant(2.0)),))
    for name, model, seconds in (("first", "light", 100.0), ("comes", "heavy", 20.0)):
        executor.submit(
            spec(name, model=model, batch_size=10, gpu_count=1, adaptivity="rigid"),
            truth(work=10.0 * seconds),
            restart_seconds=0.0,
        )
    executor.observe()
    for number, (name, moment) in enumerate((("first", 0.0), ("comes", 30.0)), start=1):
        clock.sleep_until(moment)
        executor.observe()
        start = Change(name, ChangeKind.START, None, Allocation("t4", (0,)), Grant("t4", 1))
        executor.apply(Changes(number, moment, (start,)))
    clock.sleep_until(500.0)
    executor.observe()
    assert [executor.finished[name].finished_at for name in ("comes", "first")] == pytest.approx(
        [70.0, 120.0], rel=1e-6
    )


def test_a_job_between_two_partners_is_held_up_by_the_worse_and_speeds_up_when_that_one_ends() -> (
    None
):
    """The middle job is slowed by 3 until the heavy one ends at 30 s, with 10 s of work done.

    Then the light job slows it by 1.5 until 60 s, with 30 s done; then it runs alone.
    """
    xi = constant(1.0) | {("middle", "light", 2): 1.5, ("middle", "heavy", 2): 3.0}
    jobs = [
        Shared("light", 60.0, (0,)),
        Shared("middle", 100.0, (0, 1)),
        Shared("heavy", 30.0, (1,)),
    ]
    assert ends_seen(jobs, xi, [500.0]) == pytest.approx([60.0, 130.0, 30.0], rel=1e-6)


def test_a_partner_that_loses_its_node_no_longer_slows_anybody() -> None:
    """The spanning job loses node 1, and with it all work, at 50 s.

    Its partner on node 0 has done 25 s of work by then and needs 75 s more.
    """
    jobs = [Shared("light", 100.0, (0,)), Shared("heavy", 100.0, (0, 2))]
    ends = ends_seen(
        jobs, constant(2.0), [500.0], (NodeFailure(50.0, CLUSTER.nodes[1].id, 1000.0),)
    )
    assert ends == [pytest.approx(125.0, rel=1e-6), None]


@st.composite
def shared_jobs(draw: st.DrawFn) -> list[Shared]:
    jobs: list[Shared] = []
    for _ in range(draw(st.integers(2, 6))):
        free = [
            gpu
            for gpu in range(GPUS)
            if sum(gpu in job.gpus for job in jobs) < CLUSTER.jobs_per_gpu
        ]
        gpus = draw(st.sets(st.sampled_from(free), min_size=1)) if free else set()
        if gpus:
            jobs.append(
                Shared(
                    draw(st.sampled_from(MODELS)),
                    draw(st.integers(1, 60) | st.floats(1.0, 60.0)),
                    tuple(sorted(gpus)),
                )
            )
    return jobs


@given(
    jobs=shared_jobs(),
    slowdowns=st.lists(st.floats(1.0, 4.0), min_size=9, max_size=9),
    gaps=st.lists(st.floats(0.5, 200.0), max_size=8),
)
def test_every_end_is_where_event_by_event_computation_puts_it(
    jobs: list[Shared], slowdowns: list[float], gaps: list[float]
) -> None:
    pairs = [(a, b) for a in MODELS for b in MODELS]
    xi = {
        (a, b, n): slowdown
        for (a, b), slowdown in zip(pairs, slowdowns, strict=True)
        for n in range(1, GPUS + 1)
    }
    looks = [sum(gaps[: i + 1]) for i in range(len(gaps))]
    assert ends_seen(jobs, xi, [*looks, 1e6]) == pytest.approx(ends_computed(jobs, xi), rel=1e-6)
