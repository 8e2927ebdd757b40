"""A draw from a present state: exact where nothing is unknown, and close where it hurries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import pytest

from maat.forecasting.play import Draw, Life, Pacing, Played, play, present_jobs
from maat.forecasting.present import Present, WaitingJob
from maat.models.truth import BoundedTruth
from maat.scheduling.cluster import Cluster
from maat.scheduling.loop import RoundLoop
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.sia import Sia
from maat.scheduling.rounds import Decision, PolicyState, RoundInput, StoredState
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.record import Recorder
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.simulation.world_models import catalog_models
from maat.vocabulary import Adaptivity
from maat.workloads.generators import generate

CLUSTER = "t4=4x4,rtx=2x8,a100=1x8"


class PlayedCluster:
    """A played cluster that is stopped between two rounds, and can go on."""

    def __init__(self, policy: str) -> None:
        workload = generate("philly", jobs=14, hours=0.4, seed=3, work_scale=0.5)
        placer = "whole-node" if policy == "sia" else "packed-sticky"
        scenario = Scenario(
            workload, catalog_models(), Cluster.parse(CLUSTER), policy=policy, placer=placer
        )
        self.world = World.of(scenario)
        self.clock = JumpingClock()
        self.executor = SimulatedExecutor(
            self.world.cluster, self.clock, self.world.fidelity, slowdowns=self.world.slowdowns
        )
        self.lives: dict[str, Life] = {}
        for job in self.world.submissions:
            self.executor.submit(
                job.spec,
                job.truth,
                restart_seconds=job.restart_seconds,
                work_scale=job.work_scale,
            )
            self.lives[job.spec.id] = Life(job.truth, job.restart_seconds, job.work_scale)
        self.store = Recorder(
            self.world.scenario_with_scores,
            self.executor,
            None,
            placer_state=self.world.placer_state,
        )
        self.loop = RoundLoop(
            policy=self.world.policy,
            placer=self.world.placer,
            executor=self.executor,
            store=self.store,
            clock=self.clock,
            round_seconds=self.world.round_seconds,
            projection=self.world.projection,
        )
        self.number = 0

    def go_on(self, *, rounds: int) -> None:
        for _ in range(rounds):
            self.clock.sleep_until(self.number * self.loop.round_seconds)
            self.loop.step()
            self.number += 1

    def present(self) -> Present:
        jobs = tuple(present_jobs(self.executor.jobs))
        seen = {one.job.id for one in jobs} | self.executor.finished.keys()
        return Present(
            now=self.clock.now(),
            next_round_at=self.number * self.loop.round_seconds,
            round_seconds=self.loop.round_seconds,
            cluster=self.world.cluster,
            policy=self.world.policy,
            placer=self.world.placer,
            jobs=jobs,
            waiting=tuple(
                WaitingJob(one.spec) for one in self.world.submissions if one.spec.id not in seen
            ),
            state=self.store.load(),
            projection=self.world.projection,
            fidelity=self.world.fidelity,
        )


@cache
def halfway(policy: str) -> tuple[Present, Mapping[str, Life], Mapping[str, tuple[float, float]]]:
    """A present with running, waiting and coming jobs, and what then becomes of them."""
    cluster = PlayedCluster(policy)
    cluster.go_on(rounds=round(1200 / cluster.loop.round_seconds))
    present = cluster.present()
    while cluster.executor.unfinished and cluster.number < 5000:
        cluster.go_on(rounds=10)
    became = {
        job_id: (job.ledger.started_at or -1.0, job.ledger.finished_at or -1.0)
        for job_id, job in cluster.executor.finished.items()
    }
    return present, cluster.lives, became


@dataclass(frozen=True)
class NotedGaps(Sia):
    """Sia that notes at which gap its programmes count as solved."""

    tolerances: list[float] = field(default_factory=list)

    def allocate(self, round_input: RoundInput) -> Decision:
        self.tolerances.append(self.tolerance)
        return super().allocate(round_input)


def slower(life: Life, factor: float) -> Life:
    return replace(life, truth=BoundedTruth(life.truth, largest={}, slowdown=factor))


@pytest.mark.parametrize("policy", ["sia", "fifo", "tiresias", "gavel"])
def test_a_draw_of_the_truth_is_what_then_happens(policy: str) -> None:
    present, lives, became = halfway(policy)
    assert present.jobs
    assert present.waiting

    played = play(present, Draw(lives))

    assert dict(played.ends) == pytest.approx(
        {job_id: became[job_id][1] for job_id in present.job_ids}, abs=1e-3
    )
    waited = {one.job.id for one in present.jobs if one.job.started_at is None}
    waited |= {one.spec.id for one in present.waiting}
    assert {job_id: played.starts[job_id] for job_id in waited} == pytest.approx(
        {job_id: became[job_id][0] for job_id in waited}
    )


@pytest.mark.parametrize("policy", ["sia", "fifo"])
def test_fewer_rounds_give_nearly_the_same_ends(policy: str) -> None:
    present, lives, _ = halfway(policy)
    long = Draw({job_id: slower(life, 15.0) for job_id, life in lives.items()})

    exact, hurried = play(present, long), play(present, long, pacing=Pacing(0.05, 0.25))

    assert hurried.rounds < exact.rounds / 3
    errors = [
        abs(hurried.ends[job_id] - exact.ends[job_id]) / (exact.ends[job_id] - present.now)
        for job_id in present.job_ids
    ]
    assert sum(errors) / len(errors) < 0.15


def test_programmes_of_a_draw_are_solved_no_closer_than_its_pacing_says() -> None:
    present, lives, _ = halfway("sia")
    exact, rough = NotedGaps(), NotedGaps()

    play(replace(present, policy=exact), Draw(lives), pacing=Pacing())
    play(replace(present, policy=rough), Draw(lives), pacing=Pacing(tolerance=0.05))

    assert set(exact.tolerances) == {1e-4}
    assert set(rough.tolerances) == {0.05}
    remembers = StoredState(3, PolicyState("sia", "parameters", {"kept": 1}))
    play(
        replace(present, policy=exact, state=remembers), Draw(lives), pacing=Pacing(tolerance=0.05)
    )
    assert set(exact.tolerances) == {1e-4}


def test_fewer_rounds_put_off_no_queue() -> None:
    """Each end that is seen late would put off all who wait, one after the other."""
    present, lives, _ = halfway("fifo")
    queue = tuple(
        replace(one, spec=replace(one.spec, id=f"{one.spec.id}-{number}", submitted_at=0.0))
        for number, one in enumerate(present.waiting * 3)
    )
    crowded = replace(present, waiting=queue)
    drawn = {one.spec.id: lives[one.spec.id.rsplit("-", 1)[0]] for one in queue} | dict(lives)

    exact = play(crowded, Draw(drawn))
    hurried = play(crowded, Draw(drawn), pacing=Pacing(0.2, 0.5))

    last = max(exact.ends, key=lambda job_id: exact.ends[job_id])
    late = (hurried.ends[last] - exact.ends[last]) / (exact.ends[last] - present.now)
    assert hurried.rounds < exact.rounds / 2
    assert late < 0.1


def test_a_long_draw_decides_less_often_once_it_has_decided_for_many_jobs() -> None:
    present, lives, _ = halfway("fifo")
    endless = Draw({job_id: slower(life, 2000.0) for job_id, life in lives.items()})
    fine, coarse = Pacing(0.05, 0.05), Pacing(0.05, 0.05, fine_job_rounds=300.0)

    long, shorter = play(present, endless, pacing=fine), play(present, endless, pacing=coarse)
    short, as_before = (play(present, Draw(lives), pacing=each) for each in (fine, coarse))

    assert shorter.rounds < long.rounds / 2
    assert as_before == short


def test_a_draw_ends_early_once_the_speed_of_all_that_are_left_is_known() -> None:
    present, lives, _ = halfway("sia")
    long = Draw({job_id: slower(life, 15.0) for job_id, life in lives.items()})

    exact, early = play(present, long), play(present, long, pacing=Pacing(played_seconds=3600.0))

    assert early.rounds < exact.rounds
    assert early.ends.keys() == exact.ends.keys()
    soon = {job_id for job_id, at in exact.ends.items() if at <= present.now + 3600.0}
    assert {job_id: early.ends[job_id] for job_id in soon} == {
        job_id: exact.ends[job_id] for job_id in soon
    }
    errors = [
        abs(early.ends[job_id] - exact.ends[job_id]) / (exact.ends[job_id] - present.now)
        for job_id in present.job_ids
    ]
    assert sum(errors) / len(errors) < 0.15


def two_on_one_gpu(xi: float | None) -> tuple[Present, Draw]:
    """Two equal jobs that a round puts on the same two GPUs."""
    _, lives, _ = halfway("fifo")
    name, life = next(iter(lives.items()))
    spec = next(one.spec for one in PlayedCluster("fifo").world.submissions if one.spec.id == name)
    alike = replace(
        spec,
        adaptivity=Adaptivity.RIGID,
        gpu_count=2,
        batch_size=spec.initial_batch_size,
        gpu_types=("t4",),
    )
    names = ("a", "b")
    present = Present(
        now=0.0,
        next_round_at=10.0,
        round_seconds=10.0,
        cluster=replace(Cluster.parse("t4=1x2"), jobs_per_gpu=2),
        policy=POLICIES.build("sjf-ffs"),
        placer=PLACERS.build("shared"),
        waiting=tuple(WaitingJob(replace(alike, id=name)) for name in names),
        slowdowns=None if xi is None else {(spec.model, spec.model, 2): xi},
    )
    return present, Draw(dict.fromkeys(names, replace(life, restart_seconds=0.0)))


@pytest.mark.parametrize("xi", [1.1, 2.5])
def test_jobs_that_share_gpus_in_a_draw_end_later_by_their_slowdown(xi: float) -> None:
    alone, slowed = (play(*two_on_one_gpu(each)) for each in (None, xi))
    assert alone.starts == slowed.starts
    for name, start in alone.starts.items():
        assert slowed.ends[name] - start == pytest.approx(xi * (alone.ends[name] - start))


def test_a_job_that_follows_another_starts_after_its_end() -> None:
    present, lives, _ = halfway("fifo")
    first, last = present.jobs[0].job, present.waiting[-1]
    follows = replace(last, after=frozenset({first.id}))
    changed = replace(present, waiting=(*present.waiting[:-1], follows))

    played = play(changed, Draw(lives))

    assert played.starts[last.spec.id] >= played.ends[first.id]


def test_a_job_that_never_fits_ends_the_draw_without_an_end() -> None:
    present, lives, _ = halfway("fifo")
    spec = replace(present.waiting[0].spec, id="huge", gpu_count=8, gpu_types=("a100",))
    only = replace(
        present,
        jobs=(),
        waiting=(WaitingJob(spec),),
        cluster=Cluster.parse("t4=1x4,a100=1x4"),
        state=StoredState(),
    )

    played: Played = play(only, Draw({"huge": lives[present.waiting[0].spec.id]}))

    assert (played.starts, played.ends) == ({}, {})
    assert played.rounds < 100


def test_what_looks_may_end_a_draw() -> None:
    present, lives, _ = halfway("fifo")

    def look() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        play(present, Draw(lives), look=look)


def test_every_policy_can_be_played_on_from_the_present() -> None:
    present, lives, _ = halfway("fifo")
    for name in ("srtf", "las", "optimus", "themis"):
        played = play(
            replace(present, policy=POLICIES.build(name, {}), state=StoredState(21)),
            Draw(lives),
            pacing=Pacing(0.05, 0.25),
        )
        assert played.ends.keys() == set(present.job_ids)
