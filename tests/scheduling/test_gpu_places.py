"""Where a cluster allows two jobs on a GPU, only policies that choose pairs put them there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from scheduling.examples import belief, job, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.gpu_places import shares_gpus
from maat.scheduling.job import Allocation, Job
from maat.scheduling.loop import RoundLoop
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.reservations import Reservation
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, StoredState
from maat.vocabulary import Adaptivity

TWO_ON_A_GPU = replace(Cluster.parse("t4=1x4"), jobs_per_gpu=2)
ALONE = [name for name in POLICIES.names if not shares_gpus(POLICIES.build(name))]


@dataclass
class Watched:
    """An executor, a store and a clock that keep one round and apply nothing."""

    jobs: Sequence[Job]
    result: RoundResult | None = None

    def now(self) -> float:
        return 100_000.0

    def sleep_until(self, time: float) -> None: ...

    def observe(self) -> ClusterState:
        return ClusterState(self.now(), TWO_ON_A_GPU, tuple(self.jobs))

    def load(self) -> StoredState:
        return StoredState()

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        self.result = result
        return False

    def unapplied(self) -> Sequence[Changes]:
        return ()

    def applied(self, changes: object, events: object) -> None: ...

    def apply(self, changes: object) -> Sequence[object]:
        return ()


def round_of(
    policy: str, placer: str, *jobs: Job, reservations: Sequence[Reservation] = ()
) -> RoundResult:
    watched = Watched(jobs)
    RoundLoop(
        policy=POLICIES.build(policy),
        placer=PLACERS.build(placer),
        executor=watched,  # type: ignore[arg-type]
        store=watched,
        clock=watched,
        reservations=reservations,
    ).step()
    assert watched.result is not None
    return watched.result


def one_gpu(name: str, held: int | None = None, **changes: object) -> Job:
    declared = spec(name, adaptivity=Adaptivity.RIGID, gpu_count=1, batch_size=32, **changes)
    at = None if held is None else Allocation("t4", (held,))
    return replace(job(declared, belief(t4=1)), allocation=at)


def jobs_on_gpus(result: RoundResult) -> list[int]:
    holders = Counter(result.placement.placement.gpus.tolist())
    return sorted(holders.values(), reverse=True)


@pytest.mark.parametrize("policy", ALONE)
def test_no_job_shares_a_gpu_under_a_policy_that_never_puts_two_on_one(policy: str) -> None:
    for count in (2, 6):
        jobs = [one_gpu(f"job-{i}") for i in range(count)]
        found = jobs_on_gpus(round_of(policy, suiting_placer(policy), *jobs))
        assert found == [1] * min(count, 4)


@pytest.mark.parametrize("placer", PLACERS.names)
def test_nor_under_any_placer(placer: str) -> None:
    jobs = [one_gpu(f"job-{i}") for i in range(6)]
    assert jobs_on_gpus(round_of("fifo", placer, *jobs)) == [1, 1, 1, 1]


@pytest.mark.parametrize("placer", PLACERS.names)
def test_jobs_that_share_already_are_parted_by_such_a_policy(placer: str) -> None:
    jobs = [one_gpu("first", held=0), one_gpu("second", held=0)]
    assert jobs_on_gpus(round_of("fifo", placer, *jobs)) == [1, 1]


@pytest.mark.parametrize("policy", ALONE)
def test_whatever_the_policy(policy: str) -> None:
    jobs = [one_gpu(f"job-{i}", held=i // 2) for i in range(4)]
    assert jobs_on_gpus(round_of(policy, suiting_placer(policy), *jobs)) == [1, 1, 1, 1]


@pytest.mark.parametrize("placer", PLACERS.names)
def test_jobs_that_share_and_may_not_be_moved_stay_and_cost_others_no_gpu(placer: str) -> None:
    pair = [one_gpu(name, held=0, preemptible=False) for name in ("first", "second")]
    waiting = [one_gpu(f"job-{i}") for i in range(5)]
    result = round_of("fifo", placer, *pair, *waiting)
    by_job = result.placement.placement.by_job
    assert by_job["first"] == by_job["second"] == (0,)
    assert jobs_on_gpus(result) == [2, 1, 1, 1]
    assert list(by_job) == [job_id for job_id in result.decision.grants if job_id in by_job]


def test_a_reservation_keeps_whole_gpus_of_a_policy_that_never_shares() -> None:
    jobs = [one_gpu(f"job-{i}") for i in range(6)]
    kept = Reservation("t4", 3, tenant="elsewhere")
    assert jobs_on_gpus(round_of("fifo", "packed-sticky", *jobs, reservations=[kept])) == [1]
