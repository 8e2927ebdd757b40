"""Placement of jobs that share GPUs or name them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from scheduling.placement_examples import place, round_of, t4

from maat.scheduling.checks import check_decision, check_placement
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.errors import ContractViolation
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult
from maat.scheduling.solving.report import SolveReport


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
