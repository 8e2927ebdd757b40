"""Rounds of rigid jobs of any GPU count under Sia.

Every grant finds a place, and small jobs stay on one node.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scheduling.examples import belief, job, round_of, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Allocation, Job
from maat.scheduling.loop import plan_round
from maat.scheduling.pins import pinned_grants
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies.sia import Sia
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Grant, RoundInput
from maat.vocabulary import Adaptivity

CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
SIA, WHOLE_NODE = Sia(), PLACERS.build("whole-node")


def crowd(seed: int, *, jobs: int = 25, largest: int = 14) -> RoundInput:
    """Rigid jobs of 1 to `largest` GPUs that wait, each with speeds of its own."""
    rng = np.random.default_rng(seed)
    return round_of(
        CLUSTER,
        *(
            rigid(f"job-{i}", int(rng.integers(1, largest + 1)), *rng.uniform(0.02, 1.0, 3))
            for i in range(jobs)
        ),
    )


def rigid(job_id: str, gpu_count: int, t4: float = 0.6, rtx: float = 0.3, a100: float = 0.1) -> Job:
    asked = spec(job_id, adaptivity=Adaptivity.RIGID, gpu_count=gpu_count, batch_size=512)
    return job(asked, belief(t4=t4, rtx=rtx, a100=a100))


def an_hour_later(result: RoundResult, seed: int) -> RoundInput:
    """The next round: some jobs have ended, some are restarting, and new jobs wait."""
    rng = np.random.default_rng(seed)
    cluster, jobs = result.round_input.cluster, list[Job]()
    for one in result.round_input.jobs:
        gpus = result.placement.placement.by_job.get(one.id, ())
        if gpus and rng.random() < 0.4:
            continue
        held = Allocation(cluster.type_names[cluster.gpu_type_of[gpus[0]]], gpus) if gpus else None
        jobs.append(
            replace(
                one,
                allocation=held,
                started_at=0.0 if gpus else None,
                restarting=bool(gpus) and rng.random() < 0.2,
            )
        )
    jobs += [
        rigid(f"late-{seed}-{i}", int(rng.integers(1, 15)), *rng.uniform(0.02, 1.0, 3))
        for i in range(5)
    ]
    return replace(
        result.round_input,
        jobs=tuple(jobs),
        pinned=pinned_grants(jobs, cluster),
        round_number=result.round_input.round_number + 1,
    )


def granted_gpus(result: RoundResult) -> int:
    return sum(grant.gpu_count for grant in result.decision.grants.values())


def assert_small_jobs_are_together(result: RoundResult) -> None:
    cluster = result.round_input.cluster
    for job_id, gpus in result.placement.placement.by_job.items():
        grant = result.decision.grants[job_id]
        per_node = int(cluster.gpus_per_node[cluster.type_index[grant.gpu_type]])
        nodes = np.unique(cluster.gpu_node[list(gpus)])
        assert len(nodes) == -(-len(gpus) // per_node), "as few nodes as can hold it"


def test_what_is_granted_to_rigid_jobs_is_placed_and_small_ones_on_one_node() -> None:
    results = [plan_round(crowd(seed), SIA, WHOLE_NODE) for seed in range(12)]
    granted, placed = (
        sum(map(granted_gpus, results)),
        sum(len(result.placement.placement.gpus) for result in results),
    )
    assert placed >= 0.99 * granted
    assert granted >= 0.95 * 12 * 64, "nor is a place found for all by granting little"
    for result in results:
        assert_small_jobs_are_together(result)


def test_grants_are_placed_with_running_jobs_and_jobs_that_may_not_move() -> None:
    granted = placed = 0
    for seed in range(3):
        result = plan_round(crowd(seed), SIA, WHOLE_NODE)
        for later in range(4):
            result = plan_round(an_hour_later(result, 10 * seed + later), SIA, WHOLE_NODE)
            granted, placed = (
                granted + granted_gpus(result),
                placed + len(result.placement.placement.gpus),
            )
            assert_small_jobs_are_together(result)
    assert placed >= 0.99 * granted
    assert granted >= 0.9 * 12 * 64


@pytest.mark.long
def test_what_is_granted_to_rigid_jobs_is_placed_in_hundreds_of_rounds() -> None:
    results = [plan_round(crowd(seed), SIA, WHOLE_NODE) for seed in range(100, 400)]
    placed = sum(len(result.placement.placement.gpus) for result in results)
    assert placed >= 0.99 * sum(map(granted_gpus, results))
    for result in results:
        assert_small_jobs_are_together(result)


def test_nodes_hold_one_job_of_more_than_half_a_node_each_though_there_are_gpus_for_more() -> None:
    # Sixteen GPUs, fifteen asked for; but two of the jobs of five fit no node together.
    round_input = round_of("a100=2x8", *(rigid(name, 5) for name in "xyz"))
    decision = SIA.allocate(round_input)
    assert len(decision.grants) == 2
    reason = next(decision.reasons[job_id] for job_id in "xyz" if job_id not in decision.grants)
    assert reason.primary is ReasonCode.FRAGMENTED
    assert reason.evidence["binding_limit"] == "shape:a100>=5"
    assert len(Sia(only_placeable=False).allocate(round_input).grants) == 3


def test_what_a_waiting_job_frees_goes_to_one_that_fits() -> None:
    round_input = round_of(
        "a100=2x8", rigid("x", 5), rigid("y", 5), rigid("z", 5), rigid("pair", 3), rigid("other", 3)
    )
    result = plan_round(round_input, SIA, WHOLE_NODE)
    assert sorted(grant.gpu_count for grant in result.decision.grants.values()) == [3, 3, 5, 5]
    assert dict(result.placement.unplaced) == {}


def test_grants_that_a_pinned_job_leaves_no_room_for_are_not_made() -> None:
    stays = replace(
        rigid("stays", 2), allocation=Allocation("", (2, 3)), restarting=True, started_at=0.0
    )
    round_input = round_of("a100=1x8", stays, rigid("large", 8), rigid("fits", 6))
    result = plan_round(round_input, SIA, WHOLE_NODE)
    assert result.decision.grants == {
        "stays": Grant("a100", 2, node_count=1),
        "fits": Grant("a100", 6, node_count=1),
    }
    assert result.placement.placement.by_job["fits"] == (0, 1, 4, 5, 6, 7)


def test_solving_again_is_counted_in_the_report() -> None:
    crowded = SIA.allocate(round_of("a100=2x8", *(rigid(name, 5) for name in "xyz"))).report
    easy = SIA.allocate(round_of("a100=2x8", *(rigid(name, 5) for name in "xy"))).report
    assert (easy.repairs, crowded.repairs) == (0, 1)


def test_uneven_nodes_hold_a_job_that_is_larger_than_each_of_them() -> None:
    cluster = Cluster.parse("a100=1x8,a100=2x4")
    result = plan_round(round_of(cluster, rigid("x", 14)), SIA, WHOLE_NODE)
    assert result.placement.placement.by_job["x"] == tuple(range(14))
