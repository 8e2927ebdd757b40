"""Which GPUs attempts hold where the engine chooses them."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from worker.training.holds import as_named, free_gpus

SIZES = {"a": 4, "b": 2}
GpusByNode: TypeAlias = dict[str, list[int]]


@st.composite
def holds(draw: st.DrawFn) -> dict[str, GpusByNode]:
    """Draw what attempts hold: no GPU twice."""
    found: dict[str, GpusByNode] = {}
    for node, size in SIZES.items():
        for gpu in range(size):
            holder = draw(st.sampled_from(["", "x", "y", "z"]))
            if holder:
                found.setdefault(holder, {}).setdefault(node, []).append(gpu)
    return found


@st.composite
def names(draw: st.DrawFn) -> dict[str, GpusByNode]:
    """Draw what an engine says: anything."""
    gpus = st.lists(st.integers(0, 3), max_size=4, unique=True)
    by_node = st.dictionaries(st.sampled_from(["a", "b", "c"]), gpus)
    return draw(st.dictionaries(st.sampled_from(["x", "y", "z", "other"]), by_node))


def held_gpus(held: dict[str, GpusByNode]) -> list[tuple[str, int]]:
    return [(node, gpu) for each in held.values() for node, gpus in each.items() for gpu in gpus]


def counts(held: dict[str, GpusByNode]) -> dict[str, dict[str, int]]:
    return {one: {node: len(gpus) for node, gpus in by.items()} for one, by in held.items()}


@given(holds(), names())
def test_whatever_an_engine_names_no_gpu_is_held_twice_and_no_count_changes(
    held: dict[str, GpusByNode], named: dict[str, GpusByNode]
) -> None:
    found = as_named(held, named)
    assert len(set(held_gpus(found))) == len(held_gpus(found))
    assert counts(found) == counts(held)
    assert as_named(found, named) == found


@given(holds(), st.randoms())
def test_what_an_engine_names_rightly_is_held(held: dict[str, GpusByNode], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = {node: random.sample(range(size), size) for node, size in SIZES.items()}
    named = {
        one: {node: sorted(shuffled[node][gpu] for gpu in gpus) for node, gpus in by.items()}
        for one, by in held.items()
    }
    told = {one: named[one] for one in sorted(held)[:2]}
    found = as_named(held, told)
    assert all(found[one] == named[one] for one in told)


def test_who_holds_a_named_gpu_already_keeps_it_until_it_has_ended() -> None:
    held = {"old": {"a": [0, 1]}, "new": {"a": [2]}}
    assert as_named(held, {"old": {"a": (0, 1)}, "new": {"a": (1,)}}) == held
    assert as_named({"new": {"a": [2]}}, {"new": {"a": (1,)}}) == {"new": {"a": [1]}}


def test_wanted_gpus_are_taken_if_they_are_free_and_others_if_not() -> None:
    assert free_gpus({"a": [2, 3]}, {}, SIZES) == {"a": [2, 3]}
    assert free_gpus({"a": [2, 3]}, {"a": {3}}, SIZES) == {"a": [0, 2]}
    assert free_gpus({"a": [0], "b": [0]}, {"b": {0}}, SIZES) == {"a": [0], "b": [1]}
    assert free_gpus({"a": [0], "b": [0]}, {"b": {0, 1}}, SIZES) is None
