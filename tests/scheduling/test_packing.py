"""What nodes can hold at once: by example, and against trying everything."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maat.scheduling.packing import NodeRoom, pack
from maat.scheduling.solving.packing_cut import weights_against


def idle(*whole: int) -> NodeRoom:
    return NodeRoom(whole, whole)


@pytest.mark.parametrize(
    ("room", "gpu_count", "node_count", "parts"),
    [
        (idle(8, 8, 8), 6, 1, (6,)),
        (idle(8, 8, 8), 8, 1, (8,)),
        (idle(8, 8, 8), 12, 2, (8, 4)),
        (idle(8, 8, 8), 16, 2, (8, 8)),
        (idle(4, 4, 4, 4), 14, 4, (4, 4, 4, 2)),
        (idle(6, 6), 8, 2, (4, 4)),
        (idle(6, 6), 7, 2, (6, 1)),
        (idle(8, 4, 4), 16, 2, (8, 4, 4)),
        (NodeRoom((8, 6, 6), (1, 6, 6)), 12, 2, (6, 6)),
        (NodeRoom((8, 8), (8, 2)), 9, 2, (8, 1)),
        (NodeRoom((8, 8), (2, 2)), 9, 2, (9,)),
    ],
    ids=[
        "part of a node",
        "a whole node",
        "a whole node and what is over",
        "two whole nodes",
        "what is over of small nodes",
        "a configuration of virtual nodes",
        "more than an uneven node",
        "nodes of several sizes",
        "idle nodes first",
        "an idle node and one begun",
        "nothing that holds it",
    ],
)
def test_an_allocation_takes_whole_nodes_and_leaves_one_part_over(
    room: NodeRoom, gpu_count: int, node_count: int, parts: tuple[int, ...]
) -> None:
    assert room.parts_of(gpu_count, node_count) == parts


def test_parts_go_to_the_tightest_node_that_holds_them() -> None:
    assert pack((8, 3, 5), (3, 5, 2)) == [1, 2, 0]


def test_parts_that_fit_in_one_way_only_are_found_it() -> None:
    assert pack((8, 8), (4, 3, 3, 2, 2, 2), search=False) is None
    nodes = pack((8, 8), (4, 3, 3, 2, 2, 2))
    assert nodes is not None
    assert [
        sum(size for size, node in zip((4, 3, 3, 2, 2, 2), nodes, strict=True) if node == n)
        for n in (0, 1)
    ] == [8, 8]


@st.composite
def full_nodes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Rooms of a few nodes, and parts that ask for no more than all of them together."""
    rooms = draw(st.lists(st.integers(0, 8), min_size=1, max_size=4))
    parts = draw(st.lists(st.integers(1, 8), max_size=9))
    while sum(parts) > sum(rooms):
        parts.pop()
    return rooms, parts


def by_trying(rooms: list[int], parts: list[int]) -> bool:
    if not parts:
        return True
    return any(
        by_trying([*rooms[:n], rooms[n] - parts[0], *rooms[n + 1 :]], parts[1:])
        for n in range(len(rooms))
        if rooms[n] >= parts[0]
    )


@settings(max_examples=100, deadline=None)
@given(case=full_nodes())
def test_nodes_hold_what_can_be_held_and_a_row_says_why_they_cannot_hold_the_rest(
    case: tuple[list[int], list[int]],
) -> None:
    rooms, parts = case
    nodes, weights = pack(rooms, parts), weights_against(parts, rooms)
    assert (nodes is not None) == by_trying(rooms, sorted(parts, reverse=True))
    assert (weights is None) == (nodes is not None)
    if nodes is not None:
        assert all(
            sum(size for size, node in zip(parts, nodes, strict=True) if node == n) <= room
            for n, room in enumerate(rooms)
        )


@settings(max_examples=80, deadline=None)
@given(
    rooms=st.lists(st.sampled_from((8, 8, 8, 5, 6)), min_size=1, max_size=4),
    crowded=st.lists(st.sampled_from((3, 5, 6, 7)), max_size=6),
    other=st.lists(st.integers(1, 8), max_size=9),
)
def test_a_row_against_some_parts_allows_everything_that_the_nodes_can_hold(
    rooms: list[int], crowded: list[int], other: list[int]
) -> None:
    weights = weights_against(crowded, rooms)
    if weights is not None:
        assert sum(weights[size] for size in crowded) > sum(weights[room] for room in rooms)
        fits = [size for size in other if size < len(weights)]
        while pack(rooms, fits) is None:
            fits.pop()
        assert sum(weights[size] for size in fits) <= sum(weights[room] for room in rooms)


def test_at_most_one_job_of_more_than_half_a_node_is_counted_on_each() -> None:
    assert weights_against((5, 6), (8,)) is not None
    assert weights_against((5, 6), (8, 8)) is None


def test_many_nodes_are_packed_without_trying_everything() -> None:
    rooms, parts = [8] * 300, [5, 3, 6, 2, 7, 1, 4, 4] * 75
    assert pack(rooms, parts) is not None
    assert pack(rooms, [5] * 301) is None
