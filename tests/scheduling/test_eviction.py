"""Which jobs a round evicts, and which of them only the placer moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduling.examples import job, round_of, spec

from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.eviction import evicted_jobs, moved_by_placer
from maat.scheduling.job import Job
from maat.scheduling.loop import difference
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundSeconds
from maat.scheduling.solving.report import SolveReport

CLUSTER = Cluster.parse("t4=2x2,rtx=1x2")


def decided(**grants: Grant) -> Decision:
    return Decision(grants, SolveReport(), {})


def placed(**gpus: Sequence[int]) -> PlacementResult:
    return PlacementResult(Placement.of(gpus))


def evicted(
    grants: dict[str, Grant], gpus: dict[str, Sequence[int]], *jobs: Job, cluster: Cluster = CLUSTER
) -> tuple[str, ...]:
    round_input = round_of(cluster, *jobs)
    found, where = decided(**grants), placed(**gpus)
    return evicted_jobs(
        RoundResult(
            round_input, found, where, difference(round_input, found, where), RoundSeconds(0.0, 0.0)
        )
    )


def test_a_job_granted_what_it_holds_but_moved_or_granted_gpus_but_not_placed_is_evicted() -> None:
    holder = job(spec("a"), held=(0,))
    one = {"a": Grant("t4", 1)}
    assert evicted(one, {"a": (1,)}, holder) == ("a",)
    assert evicted(one, {}, holder) == ("a",)
    assert evicted({"a": Grant("t4", 2)}, {}, holder) == ("a",)


def test_a_job_that_the_policy_moves_preempts_or_leaves_is_not_evicted() -> None:
    holder = job(spec("a"), held=(0,))
    assert evicted({"a": Grant("t4", 1)}, {"a": (0,)}, holder) == ()
    assert evicted({"a": Grant("t4", 2)}, {"a": (2, 3)}, holder) == ()
    assert evicted({}, {}, holder) == ()
    assert evicted({"a": Grant("t4", 1)}, {}, job(spec("a"))) == ()


def moved(
    grant: Grant, gpus: dict[str, Sequence[int]], *, cluster: Cluster = CLUSTER
) -> tuple[str, ...]:
    round_input = round_of(cluster, job(spec("a"), held=(0,)))
    found, where = decided(a=grant), placed(**gpus)
    return moved_by_placer(
        RoundResult(
            round_input, found, where, difference(round_input, found, where), RoundSeconds(0.0, 0.0)
        )
    )


def test_a_job_is_moved_by_the_placer_where_the_policy_left_it_and_it_is_placed_elsewhere() -> None:
    same, node = Grant("t4", 1), CLUSTER.nodes[0].id
    assert moved(same, {"a": (1,)}) == ("a",)
    assert moved(replace(same, gpus_by_node={node: 1}), {"a": (1,)}) == ("a",)
    assert moved(replace(same, gpus=(0,)), {"a": (1,)}) == ("a",)


def test_a_job_that_stays_gets_nothing_or_is_moved_by_its_policy_is_not_moved_by_the_placer() -> (
    None
):
    same = Grant("t4", 1)
    assert moved(same, {"a": (0,)}) == ()
    assert moved(same, {}) == ()
    assert moved(Grant("t4", 2), {"a": (2, 3)}) == ()
    assert moved(replace(same, gpus_by_node={CLUSTER.nodes[1].id: 1}), {"a": (2,)}) == ()
    assert moved(replace(same, gpus=(1,)), {"a": (1,)}) == ()
    assert moved(replace(same, share_with=("b",)), {"a": (1,)}) == ()


def test_a_job_whose_gpu_is_out_of_service_is_not_evicted() -> None:
    broken = Cluster.of([Node("t4-0", "t4", 4, drained=frozenset({0}))])
    assert (
        evicted({"a": Grant("t4", 1)}, {"a": (1,)}, job(spec("a"), held=(0,)), cluster=broken) == ()
    )
