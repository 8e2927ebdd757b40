"""Placement by example: which GPUs a few jobs get on a few nodes.

contracts/ has what holds of every placer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from maat.scheduling.belief import Belief
from maat.scheduling.checks import check_decision, check_placement
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.errors import ContractViolation
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Allocation, Job, JobSpec, MemoryLimits
from maat.scheduling.loop import pinned_grants, standing_limits
from maat.scheduling.placement import PLACERS
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput
from maat.scheduling.solving.report import SolveReport


def place(
    placer: str,
    cluster: Cluster,
    grants: Mapping[str, Grant],
    held: Mapping[str, Sequence[int]] | None = None,
    *,
    pinned: bool = False,
    round_number: int = 1,
    restart_seconds: Mapping[str, float] | None = None,
    **parameters: object,
) -> PlacementResult:
    """Place grants of t4 GPUs to jobs that hold what `held` says."""
    allocations = {job_id: Allocation("t4", tuple(gpus)) for job_id, gpus in (held or {}).items()}
    specs = {
        job_id: replace(
            _spec(job_id, not pinned), restart_seconds=(restart_seconds or {}).get(job_id, 30.0)
        )
        for job_id in grants
    }
    jobs = tuple(
        Job(specs[job_id], Belief(), 1.0, allocation=allocations.get(job_id)) for job_id in grants
    )
    round_input = RoundInput(
        0.0,
        round_number,
        60.0,
        jobs,
        cluster,
        standing_limits(cluster),
        pinned=pinned_grants(jobs, cluster),
    )
    return PLACERS.build(placer, parameters).place(Decision(grants, SolveReport(), {}), round_input)


def round_of(cluster: Cluster, grants: Mapping[str, Grant]) -> RoundInput:
    """A round of jobs that hold nothing yet."""
    jobs = tuple(Job(_spec(job_id, True), Belief(), 1.0) for job_id in grants)
    return RoundInput(0.0, 1, 60.0, jobs, cluster, standing_limits(cluster))


def _spec(job_id: str, preemptible: bool) -> JobSpec:
    memory = {"t4": MemoryLimits(1, 64)}
    return JobSpec(
        job_id,
        "m",
        0.0,
        1.0,
        initial_batch_size=8,
        max_batch_size=64,
        memory=memory,
        preemptible=preemptible,
    )


def t4(count: int, nodes: int | None = None) -> Grant:
    return Grant("t4", count, node_count=nodes)


def test_whole_node_puts_a_part_of_a_node_on_the_tightest_node() -> None:
    placed = place(
        "whole-node", Cluster.parse("t4=2x4"), {"a": t4(2, 1), "b": t4(4, 1), "c": t4(2, 1)}
    ).placement.by_job
    assert placed == {"a": (4, 5), "b": (0, 1, 2, 3), "c": (6, 7)}


def test_whole_node_gives_large_allocations_whole_nodes() -> None:
    placed = place(
        "whole-node", Cluster.parse("t4=3x4"), {"a": t4(1, 1), "b": t4(8, 2)}
    ).placement.by_job
    assert placed == {"a": (8,), "b": (0, 1, 2, 3, 4, 5, 6, 7)}


def test_whole_node_evicts_only_the_job_that_is_in_the_way_of_a_whole_node() -> None:
    held = {"a": (0,), "b": (4,)}
    grants = {"a": t4(1, 1), "b": t4(1, 1), "c": t4(4, 1)}
    placed = place("whole-node", Cluster.parse("t4=2x4"), grants, held)
    assert placed.placement.by_job == {"a": (5,), "b": (4,), "c": (0, 1, 2, 3)}
    assert dict(placed.unplaced) == {}


def test_whole_node_may_place_all_jobs_of_the_type_again_as_the_published_code_does() -> None:
    held = {"a": (0,), "b": (4,)}
    grants = {"a": t4(1, 1), "b": t4(1, 1), "c": t4(4, 1)}
    placed = place("whole-node", Cluster.parse("t4=2x4"), grants, held, evict="everybody")
    assert placed.placement.by_job == {"a": (4,), "b": (5,), "c": (0, 1, 2, 3)}


def test_whole_node_moves_one_job_of_two_gpus_rather_than_two_of_one() -> None:
    # Each node has two GPUs free: the first is cleared by moving one job, the second by moving two.
    held = {"pair": (0, 1), "x": (4,), "y": (5,)}
    grants = {"pair": t4(2, 1), "x": t4(1, 1), "y": t4(1, 1), "new": t4(4, 1)}
    placed = place("whole-node", Cluster.parse("t4=2x4"), grants, held).placement.by_job
    assert placed == {"pair": (6, 7), "x": (4,), "y": (5,), "new": (0, 1, 2, 3)}


def test_whole_node_moves_the_job_whose_restart_wastes_least() -> None:
    held = {"slow": (0,), "quick": (4,)}
    grants = {"slow": t4(1, 1), "quick": t4(1, 1), "new": t4(4, 1)}
    placed = place(
        "whole-node",
        Cluster.parse("t4=2x4"),
        grants,
        held,
        restart_seconds={"slow": 250.0, "quick": 25.0},
    ).placement.by_job
    assert placed == {"slow": (0,), "quick": (1,), "new": (4, 5, 6, 7)}


def test_whole_node_moves_a_second_job_where_the_first_finds_no_room_but_its_own() -> None:
    # The job of two GPUs in the way of `new` fits nowhere until one of one GPU makes room for it.
    held = {"two": (0, 1), "stays": (4, 5), "one": (6,), "other": (8, 9, 10)}
    grants = {
        "two": t4(2, 1),
        "stays": t4(2, 1),
        "one": t4(1, 1),
        "other": t4(3, 1),
        "new": t4(4, 1),
    }
    placed = place("whole-node", Cluster.parse("t4=3x4"), grants, held).placement.by_job
    assert placed == {
        "two": (6, 7),
        "stays": (4, 5),
        "one": (11,),
        "other": (8, 9, 10),
        "new": (0, 1, 2, 3),
    }


def test_whole_node_gives_a_rigid_job_whole_nodes_and_puts_the_rest_with_others() -> None:
    grants = {"large": Grant("t4", 12, node_count=2), "small": t4(4, 1), "half": t4(2, 1)}
    placed = place("whole-node", Cluster.parse("t4=3x8"), grants).placement.by_job
    assert placed == {
        "large": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
        "small": (12, 13, 14, 15),
        "half": (16, 17),
    }


def test_whole_node_packs_parts_that_fit_in_one_way_only() -> None:
    # Largest first, each on the tightest node, would leave the last two GPUs on two nodes.
    grants = {str(i): t4(count) for i, count in enumerate((4, 3, 3, 2, 2, 2))}
    placed = place("whole-node", Cluster.parse("t4=2x8"), grants)
    assert dict(placed.unplaced) == {}
    assert sorted(gpu for gpus in placed.placement.by_job.values() for gpu in gpus) == list(
        range(16)
    )
    assert all(len({gpu // 8 for gpu in gpus}) == 1 for gpus in placed.placement.by_job.values())


def test_whole_node_spreads_what_fits_no_node_only_where_asked_to() -> None:
    grants = {"a": t4(3), "b": t4(3), "c": t4(2)}
    strict = place("whole-node", Cluster.parse("t4=2x4"), grants)
    assert set(strict.unplaced) == {"c"}
    spread = place("whole-node", Cluster.parse("t4=2x4"), grants, spread=True)
    assert spread.placement.by_job["c"] == (3, 7)


def test_whole_node_leaves_every_job_in_place_if_there_is_room() -> None:
    placed = place(
        "whole-node", Cluster.parse("t4=2x4"), {"a": t4(1, 1), "b": t4(4, 1)}, {"a": (3,)}
    ).placement.by_job
    assert placed == {"a": (3,), "b": (4, 5, 6, 7)}


def test_whole_node_moves_no_pinned_job_and_says_that_gpus_are_scattered() -> None:
    held = {"a": (0,), "b": (4,)}
    cluster = Cluster.parse("t4=2x4")
    grants = {"a": t4(1, 1), "b": t4(1, 1), "c": t4(4, 1)}
    placed = place("whole-node", cluster, grants, held, pinned=True)
    assert placed.placement.by_job == {"a": (0,), "b": (4,)}
    assert placed.unplaced["c"].primary is ReasonCode.FRAGMENTED
    assert placed.unplaced["c"].evidence == {"gpu_type": "t4", "gpu_count": 4}


def test_whole_node_keeps_an_odd_part_together_although_another_node_has_few_gpus_left() -> None:
    placed = place(
        "whole-node", Cluster.parse("t4=2x6"), {"a": t4(5), "b": t4(5)}, {"a": (0, 1, 2, 3, 4)}
    ).placement.by_job
    assert placed["b"] == (6, 7, 8, 9, 10)


def test_whole_node_uses_no_drained_gpu_even_one_that_its_job_holds() -> None:
    cluster = Cluster.of([Node("t4-0", "t4", 4, drained=frozenset({1})), Node("t4-1", "t4", 2)])
    placed = place("whole-node", cluster, {"a": t4(2, 1)}, {"a": (0, 1)}).placement.by_job
    assert placed == {"a": (4, 5)}


def test_packed_takes_the_node_that_fits_exactly_and_then_the_fewest_nodes() -> None:
    cluster = Cluster.parse("t4=1x4,t4=1x2")
    assert place("packed-sticky", cluster, {"a": t4(2)}).placement.by_job == {"a": (4, 5)}
    assert place("packed-sticky", cluster, {"a": t4(5)}).placement.by_job == {"a": (0, 1, 2, 3, 4)}


def test_a_sticky_placer_keeps_a_jobs_gpus_and_the_other_places_it_again() -> None:
    cluster, held = Cluster.parse("t4=2x4"), {"a": (2, 3)}
    assert place("packed-sticky", cluster, {"b": t4(2), "a": t4(2)}, held).placement.by_job == {
        "b": (0, 1),
        "a": (2, 3),
    }
    assert place("packed", cluster, {"b": t4(2), "a": t4(2)}, held).placement.by_job == {
        "b": (0, 1),
        "a": (2, 3),
    }
    assert place("packed", cluster, {"a": t4(2)}, held).placement.by_job == {"a": (0, 1)}
    assert place("random-sticky", cluster, {"a": t4(2)}, held).placement.by_job == {"a": (2, 3)}


def test_the_last_of_the_order_gives_way_where_one_before_it_finds_no_room() -> None:
    cluster = Cluster.of([Node("t4-0", "t4", 2)], jobs_per_gpu=2)
    held = {"first": (0,), "second": (0,)}
    placed = place("packed-sticky", cluster, {"first": t4(1), "wide": t4(2), "second": t4(1)}, held)
    assert placed.placement.by_job == {"first": (0,), "wide": (0, 1), "second": (1,)}


def test_no_job_gives_way_in_vain() -> None:
    cluster = Cluster.of([Node("t4-0", "t4", 2)], jobs_per_gpu=2)
    held = {"first": (0,), "twin": (0,), "second": (1,)}
    placed = place(
        "packed-sticky",
        cluster,
        {"first": t4(1), "twin": t4(1), "wide": t4(2), "second": t4(1)},
        held,
    )
    assert placed.placement.by_job == {"first": (0,), "twin": (0,), "second": (1,)}
    assert placed.unplaced["wide"].primary is ReasonCode.FRAGMENTED


def test_no_pinned_job_gives_way() -> None:
    cluster = Cluster.of([Node("t4-0", "t4", 2)], jobs_per_gpu=2)
    held = {"first": (0,), "second": (0,)}
    placed = place(
        "packed-sticky",
        cluster,
        {"first": t4(1), "wide": t4(2), "second": t4(1)},
        held,
        pinned=True,
    )
    assert placed.placement.by_job == held
    assert "wide" in placed.unplaced


def test_random_placement_draws_every_gpu_equally_and_again_each_round() -> None:
    cluster = Cluster.parse("t4=4x4")
    drawn = [
        place("random", cluster, {"a": t4(8)}, round_number=number).placement.by_job["a"]
        for number in range(200)
    ]
    times = np.bincount(np.concatenate(drawn), minlength=16)
    assert len(set(drawn)) > 190
    assert times.min() > 70, (
        "each of 16 GPUs is drawn 100 times of 200, give or take four standard deviations"
    )
    assert times.max() < 130


def test_packed_says_so_where_gpus_are_lacking() -> None:
    placed = place("packed-sticky", Cluster.parse("t4=1x2"), {"a": t4(2), "b": t4(1)})
    assert placed.placement.by_job == {"a": (0, 1)}
    assert placed.unplaced["b"].primary is ReasonCode.FRAGMENTED


def test_what_is_over_from_whole_nodes_takes_no_gpu_twice() -> None:
    cluster = Cluster.of([Node("t4-0", "t4", 4), Node("t4-1", "t4", 2)], jobs_per_gpu=2)
    assert place("whole-node", cluster, {"a": t4(5)}).placement.by_job == {"a": (0, 1, 2, 3, 4)}


def test_a_job_never_gets_two_places_on_one_gpu_but_two_jobs_may_share_it() -> None:
    cluster = Cluster.of([Node("t4-0", "t4", 2), Node("t4-1", "t4", 1)], jobs_per_gpu=2)
    for placer in PLACERS.names:
        placed = place(placer, cluster, {"a": t4(3), "b": t4(3)})
        assert placed.placement.by_job.get("a") == (0, 1, 2), placer
        others = placed.placement.by_job.get("b")
        assert others == (0, 1, 2) or "b" in placed.unplaced, placer


def sharing(count: int, *partners: str, shared: int) -> Grant:
    return Grant("t4", count, share_with=partners, shared_gpus=shared)


TWO_PER_GPU = Cluster.of([Node("t4-0", "t4", 4), Node("t4-1", "t4", 4)], jobs_per_gpu=2)


def test_shared_gives_idle_gpus_on_one_node_to_a_job_without_partners() -> None:
    placed = place("shared", TWO_PER_GPU, {"a": t4(3), "b": t4(3), "c": t4(3)}, {"a": (0, 1, 2)})
    assert placed.placement.by_job == {"a": (0, 1, 2), "b": (4, 5, 6)}
    assert placed.unplaced["c"].evidence == {"gpu_type": "t4", "gpu_count": 3, "idle_gpus": 2}


def test_shared_puts_partners_on_the_same_gpus_best_first_and_takes_no_more_than_needed() -> None:
    grants = {"a": t4(2), "b": t4(4), "new": sharing(5, "b", "a", shared=3)}
    placed = place("shared", TWO_PER_GPU, grants, {"a": (0, 1), "b": (4, 5, 6, 7)})
    assert placed.placement.by_job["new"] == (2, 3, 4, 5, 6)


def test_shared_goes_on_to_the_next_partner_and_to_gpus_of_nodes_that_it_has_already() -> None:
    grants = {"a": t4(1), "b": t4(4), "new": sharing(3, "a", "b", shared=3)}
    placed = place("shared", TWO_PER_GPU, grants, {"a": (4,), "b": (0, 1, 2, 5)})
    assert placed.placement.by_job["new"] == (0, 4, 5)


def test_shared_lets_no_third_job_onto_a_gpu() -> None:
    grants = {"a": t4(2), "b": sharing(2, "a", shared=2), "c": sharing(2, "a", "b", shared=2)}
    placed = place("shared", TWO_PER_GPU, grants, {"a": (0, 1), "b": (0, 1)})
    assert placed.placement.by_job == {"a": (0, 1), "b": (0, 1)}
    assert "c" in placed.unplaced


def test_shared_places_a_job_with_a_partner_that_is_new_itself() -> None:
    placed = place("shared", TWO_PER_GPU, {"a": t4(8), "b": sharing(2, "a", shared=2)})
    assert placed.placement.by_job["b"] == (0, 1)


def test_shared_shares_nothing_where_a_gpu_holds_one_job() -> None:
    placed = place("shared", Cluster.parse("t4=1x4"), {"a": t4(4), "b": sharing(2, "a", shared=2)})
    assert placed.placement.by_job == {"a": (0, 1, 2, 3)}


def named(*gpus: int, beside: tuple[str, ...] = (), shared: int = 0) -> Grant:
    return Grant("t4", len(gpus), share_with=beside, shared_gpus=shared, gpus=gpus)


def test_shared_gives_the_gpus_that_a_grant_names_idle_or_with_its_partners() -> None:
    grants = {"a": t4(3), "alone": named(7), "new": named(1, 5, beside=("a",), shared=1)}
    assert place("shared", TWO_PER_GPU, grants, {"a": (0, 1, 2)}).placement.by_job == {
        "a": (0, 1, 2),
        "alone": (7,),
        "new": (1, 5),
    }


def test_shared_places_no_job_on_named_gpus_that_another_holds() -> None:
    grants = {
        "a": t4(2),
        "b": t4(2),
        "stranger": named(0),
        "late": named(1, 2, beside=("a",), shared=2),
    }
    placed = place("shared", TWO_PER_GPU, grants, {"a": (0, 1), "b": (2, 3)})
    assert placed.placement.by_job == {"a": (0, 1), "b": (2, 3)}
    assert set(placed.unplaced) == {"stranger", "late"}


def test_shared_lets_no_third_job_onto_a_named_gpu() -> None:
    grants = {
        "a": t4(2),
        "b": named(0, beside=("a",), shared=1),
        "c": named(0, beside=("a", "b"), shared=1),
    }
    assert set(place("shared", TWO_PER_GPU, grants, {"a": (0, 1)}).unplaced) == {"c"}


@pytest.mark.parametrize(
    "grants",
    [
        {"a": named(0, 0)},
        {"a": named(8)},
        {"a": named(-1)},
        {"a": Grant("t4", 2, gpus=(1,))},
        {"a": named(3)},
        {"a": named(0), "b": named(0), "c": named(0)},
    ],
    ids=["twice", "unknown", "below zero", "too few", "drained", "for too many jobs"],
)
def test_unavailable_gpus_are_named_for_no_job(grants: Mapping[str, Grant]) -> None:
    cluster = Cluster.of(
        [Node("t4-0", "t4", 4, drained=frozenset({3})), Node("t4-1", "t4", 4)], jobs_per_gpu=2
    )
    with pytest.raises(ContractViolation):
        check_decision(Decision(grants, SolveReport(), {}), round_of(cluster, grants))


def test_a_placer_that_takes_named_gpus_is_held_to_them() -> None:
    grants = {"a": named(1)}
    other = PlacementResult(Placement.of({"a": (0,)}), as_named=True)
    with pytest.raises(ContractViolation, match=r"granted GPUs \(1,\)"):
        check_placement(other, Decision(grants, SolveReport(), {}), round_of(TWO_PER_GPU, grants))


def test_most_free_takes_gpus_from_the_node_with_most_of_them_and_goes_on_with_the_next() -> None:
    held = {"old": (0,), "three": (4, 5, 6)}
    placed = place(
        "most-free", Cluster.parse("t4=3x4"), {"old": t4(1), "three": t4(3), "new": t4(6)}, held
    ).placement.by_job
    assert placed == {**held, "new": (1, 2, 8, 9, 10, 11)}


def test_most_free_spreads_small_jobs_where_packed_would_fill_a_node() -> None:
    grants = {"a": t4(1), "b": t4(1), "c": t4(1)}
    assert place("most-free", Cluster.parse("t4=2x4"), grants).placement.by_job == {
        "a": (0,),
        "b": (4,),
        "c": (1,),
    }
    assert place("packed", Cluster.parse("t4=2x4"), grants).placement.by_job == {
        "a": (0,),
        "b": (1,),
        "c": (2,),
    }


def test_most_free_keeps_an_unchanged_allocation_and_moves_a_changed_one() -> None:
    placed = place(
        "most-free",
        Cluster.parse("t4=2x4"),
        {"grows": t4(3), "stays": t4(2)},
        {"grows": (0, 1), "stays": (2, 3)},
    )
    assert placed.placement.by_job == {"grows": (4, 5, 6), "stays": (2, 3)}


def test_most_free_says_what_it_cannot_place() -> None:
    placed = place("most-free", Cluster.parse("t4=1x4"), {"a": t4(3), "b": t4(3)})
    assert placed.placement.by_job == {"a": (0, 1, 2)}
    assert placed.unplaced["b"].primary is ReasonCode.FRAGMENTED


def paired(count: int, partner: str) -> Grant:
    return Grant("t4", count, share_with=(partner,))


def test_together_puts_a_pair_on_one_set_of_gpus_and_no_other_job_on_them() -> None:
    placed = place(
        "together", TWO_PER_GPU, {"a": paired(2, "b"), "c": t4(2), "b": paired(2, "a")}
    ).placement.by_job
    assert placed == {"a": (0, 1), "b": (0, 1), "c": (2, 3)}


def test_together_forms_a_pair_on_the_gpus_of_its_first_member_that_holds_any() -> None:
    grants = {"new": paired(2, "runs"), "runs": paired(2, "new")}
    assert place("together", TWO_PER_GPU, grants, {"runs": (4, 5)}).placement.by_job == {
        "new": (4, 5),
        "runs": (4, 5),
    }


def test_together_moves_one_of_a_pair_that_is_dissolved() -> None:
    placed = place(
        "together", TWO_PER_GPU, {"a": t4(2), "b": t4(2)}, {"a": (0, 1), "b": (0, 1)}
    ).placement.by_job
    assert placed == {"a": (0, 1), "b": (2, 3)}


def test_together_pairs_only_jobs_that_name_each_other() -> None:
    placed = place("together", TWO_PER_GPU, {"a": t4(2), "b": paired(2, "a")}).placement.by_job
    assert placed == {"a": (0, 1), "b": (2, 3)}
