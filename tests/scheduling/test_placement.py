"""Placement by example: which GPUs a few jobs get on a few nodes.

contracts/ has what holds of every placer.
"""

from __future__ import annotations

import numpy as np
from scheduling.placement_examples import place, t4

from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.explain import ReasonCode
from maat.scheduling.placement import PLACERS
from maat.scheduling.rounds import Grant


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
