"""The contract of placers, and what whole-node placement guarantees for Sia."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace

import pytest
from contracts.sampling import sampled
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from maat.contracts.generated import NOW, clusters, round_inputs
from maat.scheduling.belief import Belief
from maat.scheduling.checks import check_placement
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import sia_configurations
from maat.scheduling.job import Allocation, Job, JobSpec, MemoryLimits
from maat.scheduling.limits import capacity_limits, shape_limits
from maat.scheduling.loop import plan_round
from maat.scheduling.placeable import held_as_granted
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.protocols import Placer
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput
from maat.scheduling.solving.report import SolveReport


@pytest.fixture(params=PLACERS.names, scope="module")
def placer(request: pytest.FixtureRequest) -> Placer:
    return PLACERS.build(request.param)


def nodes_of(round_input: RoundInput, gpus: tuple[int, ...]) -> int:
    return len(set(round_input.cluster.gpu_node[list(gpus)].tolist()))


@sampled(40)
@given(round_input=round_inputs(), name=st.sampled_from(POLICIES.names))
def test_what_was_granted_is_placed_by_the_rules_and_again_in_the_same_way(
    placer: Placer, round_input: RoundInput, name: str
) -> None:
    """All claims on the same rounds: to draw a round costs more than to place its jobs."""
    decision = POLICIES.build(name).allocate(round_input)
    before = pickle.dumps((round_input.jobs, dict(decision.grants)))
    placed = placer.place(decision, round_input)
    assert pickle.dumps((round_input.jobs, dict(decision.grants))) == before

    everything_is_placed_on_usable_gpus_of_its_own_or_explained(placed, decision, round_input)
    pinned_jobs_stay_on_their_gpus_unless_one_was_drained(placed, round_input)

    again = placer.place(decision, round_input)
    assert placed.placement.by_job == again.placement.by_job
    assert placed.unplaced == again.unplaced

    later = placer.place(
        decision, replace(round_input, now=NOW + 600.0, round_number=round_input.round_number + 10)
    )
    assert placed.by_chance or (placed.placement.by_job, placed.unplaced, placed.state) == (
        later.placement.by_job,
        later.unplaced,
        later.state,
    ), "a placer that draws nothing places the same way in any round"


def everything_is_placed_on_usable_gpus_of_its_own_or_explained(
    placed: PlacementResult, decision: Decision, round_input: RoundInput
) -> None:
    check_placement(placed, decision, round_input)
    for job_id in decision.grants:
        assert (job_id in placed.placement.by_job) != (job_id in placed.unplaced)
    assert all(reason.sentence for reason in placed.unplaced.values())


def pinned_jobs_stay_on_their_gpus_unless_one_was_drained(
    placed: PlacementResult, round_input: RoundInput
) -> None:
    for job in round_input.jobs:
        if job.id in round_input.pinned and job.allocation is not None:
            gpus = job.allocation.gpus
            if round_input.cluster.gpu_available[list(gpus)].all():
                assert placed.placement.by_job[job.id] == gpus


@st.composite
def sia_grants(draw: DrawFn) -> tuple[Decision, RoundInput]:
    """Any choice of Sia's configurations that keeps capacity and shape limits.

    The jobs hold something else, the same, or nothing.
    """
    cluster = draw(clusters())
    limits = capacity_limits(cluster) + shape_limits(cluster)
    left = {limit.name: limit.places for limit in limits}
    grants: dict[str, Grant] = {}
    table = sia_configurations(cluster).configurations
    for number in range(draw(st.integers(1, 12)) if table else 0):
        wanted = draw(st.sampled_from(table))
        spec = _spec(f"job-{number}", cluster)
        inside = [
            limit.name for limit in limits if limit.counts(spec, wanted.gpu_type, wanted.gpu_count)
        ]
        if all(left[name] >= wanted.gpu_count for name in inside):
            for name in inside:
                left[name] -= wanted.gpu_count
            grants[spec.id] = Grant(wanted.gpu_type, wanted.gpu_count, node_count=wanted.node_count)
    jobs = tuple(
        Job(_spec(job_id, cluster), Belief(), 1.0, allocation=held)
        for job_id, held in draw(_holdings(list(grants), cluster))
    )
    round_input = RoundInput(
        now=NOW, round_number=1, round_seconds=60.0, jobs=jobs, cluster=cluster, limits=limits
    )
    return Decision(grants, SolveReport(), {}), round_input


@st.composite
def _holdings(
    draw: DrawFn, job_ids: list[str], cluster: Cluster
) -> list[tuple[str, Allocation | None]]:
    """Each job with no GPUs, or with GPUs scattered as drained nodes leave them."""
    free = {
        name: [
            g for g in draw(st.permutations(range(cluster.gpu_count))) if _type(cluster, g) == name
        ]
        for name in cluster.type_names
    }
    held: list[tuple[str, Allocation | None]] = []
    for job_id in job_ids:
        name = draw(st.sampled_from(cluster.type_names))
        count = draw(st.sampled_from((0, 1, 2, 4)))
        gpus, free[name] = free[name][:count], free[name][count:]
        held.append((job_id, Allocation(name, tuple(sorted(gpus))) if gpus else None))
    return held


def _type(cluster: Cluster, gpu: int) -> str:
    return cluster.type_names[cluster.gpu_type_of[gpu]]


def _spec(job_id: str, cluster: Cluster) -> JobSpec:
    memory = {name: MemoryLimits(1, 64) for name in cluster.type_names}
    return JobSpec(
        id=job_id,
        model="vision",
        submitted_at=0.0,
        work=1.0,
        initial_batch_size=8,
        max_batch_size=64,
        memory=memory,
    )


@sampled(120)
@given(case=sia_grants())
def test_whole_node_places_every_choice_of_sias_configurations_on_as_few_nodes_as_it_names(
    case: tuple[Decision, RoundInput],
) -> None:
    decision, round_input = case
    placed = PLACERS.build("whole-node").place(decision, round_input)
    check_placement(placed, decision, round_input)
    assert dict(placed.unplaced) == {}
    for job in round_input.jobs:
        gpus = placed.placement.by_job[job.id]
        if job.allocation is None or job.allocation.gpus != gpus:
            assert nodes_of(round_input, gpus) == decision.grants[job.id].node_count


def moved(
    placed: Mapping[str, tuple[int, ...]], decision: Decision, round_input: RoundInput
) -> set[str]:
    """Jobs that were granted what they hold, on GPUs in service, and are moved."""
    kept = {
        job.id: held_as_granted(round_input, job.id, decision.grants[job.id])
        for job in round_input.jobs
        if job.id in decision.grants
    }
    return {
        job_id for job_id, gpus in kept.items() if gpus is not None and placed.get(job_id) != gpus
    }


@sampled(120)
@given(case=sia_grants())
def test_whole_node_moves_no_job_without_need_and_never_more_than_placing_all_again(
    case: tuple[Decision, RoundInput],
) -> None:
    decision, round_input = case
    few = PLACERS.build("whole-node").place(decision, round_input)
    all_anew = PLACERS.build("whole-node", {"evict": "everybody"}).place(decision, round_input)
    check_placement(few, decision, round_input)
    assert len(few.placement.gpus) >= len(all_anew.placement.gpus)
    if len(few.placement.gpus) == len(all_anew.placement.gpus):
        assert len(moved(few.placement.by_job, decision, round_input)) <= len(
            moved(all_anew.placement.by_job, decision, round_input)
        )


@sampled(40)
@given(round_input=round_inputs())
def test_sia_grants_what_whole_node_can_place(round_input: RoundInput) -> None:
    assume(round_input.cluster.jobs_per_gpu == 1)
    result = plan_round(round_input, POLICIES.build("sia"), PLACERS.build("whole-node"))
    assert set(result.placement.unplaced) <= set(round_input.pinned)


@sampled(40)
@given(round_input=round_inputs())
def test_whole_node_never_splits_a_part_of_a_node(round_input: RoundInput) -> None:
    for name in POLICIES.names:
        result = plan_round(round_input, POLICIES.build(name), PLACERS.build("whole-node"))
        for job_id, gpus in result.placement.placement.by_job.items():
            held = round_input.job_by_id[job_id].allocation
            grant = result.decision.grants[job_id]
            room = round_input.cluster.gpus_per_node[round_input.cluster.type_index[grant.gpu_type]]
            if grant.gpu_count <= room and (held is None or held.gpus != gpus):
                assert nodes_of(round_input, gpus) == 1
