"""Sia's configurations, and the limits that make every choice placeable."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.configuration import (
    Configuration,
    sia_configurations,
    virtual_node_sizes,
    virtual_nodes,
    with_counts,
)
from maat.scheduling.limits import Limit, LimitKind, capacity_limits, shape_limits


def counts(cluster: Cluster, gpu_type: str) -> list[int]:
    return [
        c.gpu_count for c in sia_configurations(cluster).configurations if c.gpu_type == gpu_type
    ]


@pytest.mark.parametrize(
    ("nodes", "gpus"), [(1, 1), (1, 8), (2, 8), (3, 8), (6, 4), (16, 4), (128, 8)]
)
def test_n_intact_nodes_of_r_gpus_have_n_plus_log_r_configurations(nodes: int, gpus: int) -> None:
    assert len(sia_configurations(Cluster.parse(f"t4={nodes}x{gpus}"))) == nodes + int(
        math.log2(gpus)
    )


def test_the_papers_cluster_has_nineteen_columns_grouped_by_type() -> None:
    cluster = Cluster.parse("t4=6x4,rtx=3x8,a100=2x8")
    assert counts(cluster, "t4") == [1, 2, 4, 8, 12, 16, 20, 24]
    assert counts(cluster, "rtx") == [1, 2, 4, 8, 16, 24]
    assert counts(cluster, "a100") == [1, 2, 4, 8, 16]
    table = sia_configurations(cluster)
    assert len(table) == 19
    assert table.configurations[4] == Configuration(node_count=3, gpu_count=12, gpu_type="t4")
    assert table.column("a100", 16) == 18
    assert table.column("a100", 3) is None


def test_a_node_of_six_counts_as_one_of_four_and_one_of_two() -> None:
    assert virtual_nodes(6) == (4, 2)
    assert virtual_nodes(7) == (4, 2, 1)
    assert virtual_nodes(8) == (8,)
    assert virtual_nodes(0) == ()
    assert counts(Cluster.parse("t4=2x6"), "t4") == [1, 2, 4, 8]


def test_drained_gpus_shrink_a_node_and_an_empty_type_has_no_configurations() -> None:
    drained = Node("t4-1", "t4", 8, drained=frozenset({0, 1, 2}))
    assert virtual_node_sizes(Cluster.of([Node("t4-0", "t4", 8), drained]), "t4") == {
        8: 1,
        4: 1,
        1: 1,
    }
    gone = Node("rtx-0", "rtx", 2, drained=frozenset({0, 1}))
    assert counts(Cluster.of([drained, gone]), "rtx") == []


def test_counts_that_rigid_jobs_ask_for_are_added_for_them_alone() -> None:
    cluster = Cluster.parse("t4=2x4,rtx=1x2")
    table = with_counts(sia_configurations(cluster), cluster, [2, 3, 6, 100])
    assert [c.gpu_count for c in table.configurations] == [1, 2, 3, 4, 6, 8, 1, 2]
    assert [c for c in table.configurations if c in table.requested_only] == [
        Configuration(1, 3, "t4"),
        Configuration(2, 6, "t4"),
    ]
    assert table.elastic.tolist() == [True, True, False, True, False, True, True, True]


def test_capacity_is_one_limit_for_each_type() -> None:
    cluster = Cluster.of(
        [Node("a", "t4", 4, drained=frozenset({3})), Node("b", "rtx", 2)], jobs_per_gpu=2
    )
    assert capacity_limits(cluster) == (
        Limit("capacity:t4", LimitKind.CAPACITY, 6, gpu_type="t4"),
        Limit("capacity:rtx", LimitKind.CAPACITY, 4, gpu_type="rtx"),
    )


def test_even_nodes_need_no_limit_of_shape() -> None:
    assert shape_limits(Cluster.parse("t4=6x4,rtx=3x8,v100=5x1")) == ()


def test_uneven_nodes_limit_what_larger_allocations_may_take_together() -> None:
    cluster = Cluster.of([Node("a", "t4", 8), Node("b", "t4", 6), Node("c", "t4", 1)])
    rows = {(limit.smallest_count, limit.places) for limit in shape_limits(cluster)}
    assert rows == {(2, 14), (3, 12), (5, 8)}


@given(sizes=st.lists(st.integers(0, 8), min_size=1, max_size=3))
def test_a_choice_of_configurations_keeps_the_limits_exactly_if_it_can_be_placed(
    sizes: list[int],
) -> None:
    nodes = [
        Node(f"n{i}", "t4", 8, drained=frozenset(range(size, 8))) for i, size in enumerate(sizes)
    ]
    cluster = Cluster.of(nodes)
    limits = capacity_limits(cluster) + shape_limits(cluster)
    small = [c for c in counts(cluster, "t4") if c <= max(sizes)]
    for many in (1, 2, 3, 4):
        for choice in combinations_with_replacement(small, many):
            kept = all(
                sum(c for c in choice if c >= limit.smallest_count) <= limit.places
                for limit in limits
            )
            assert kept == fits(sorted(choice, reverse=True), sizes), (choice, sizes)


def fits(choice: list[int], room: list[int]) -> bool:
    """Whether every allocation of one node finds a node, by trying all."""
    if not choice:
        return True
    first, rest = choice[0], choice[1:]
    return any(
        fits(rest, [*room[:i], room[i] - first, *room[i + 1 :]])
        for i in range(len(room))
        if room[i] >= first
    )
