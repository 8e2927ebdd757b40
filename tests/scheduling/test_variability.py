"""PAL's parts by example: application classes, binned PM scores, the L x V order.

Also where PM-First and PAL place jobs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scheduling.examples import job, round_of, spec

from maat.scheduling.application_classes import Utilisation, classify
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import JobError, ParameterError
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.rounds import Decision, Grant
from maat.scheduling.solving.report import SolveReport
from maat.scheduling.variability import BinRule, Locality, binned, traversal
from maat.vocabulary import Adaptivity


def test_applications_fall_into_classes_by_falling_compute_and_a_new_one_into_the_nearest() -> None:
    measured = {
        "pagerank": Utilisation(0.90, 0.10),
        "resnet50": Utilisation(0.30, 0.90),
        "bert": Utilisation(0.50, 0.60),
        "vgg19": Utilisation(0.35, 0.95),
        "gpt2": Utilisation(0.55, 0.55),
    }
    classes = classify(measured, class_count=3)
    assert dict(classes.members) == {
        "pagerank": "C",
        "resnet50": "A",
        "bert": "B",
        "vgg19": "A",
        "gpt2": "B",
    }
    assert classes.nearest(Utilisation(0.8, 0.2)) == "C"
    assert classes.nearest(Utilisation(0.4, 0.85)) == "A"
    assert dict(classify(dict(reversed(measured.items())), class_count=3, seed=7).members) == dict(
        classes.members
    )


def test_more_classes_than_applications_and_shares_beyond_one_are_refused() -> None:
    alike = {"a": Utilisation(0.1, 0.1), "b": Utilisation(0.1, 0.1)}
    with pytest.raises(
        ParameterError,
        match="class_count: is not between 1 and the number of different applications",
    ):
        classify(alike, class_count=2)
    with pytest.raises(ParameterError, match=r"dram: is not a share from 0 to 1 \(got 43\)"):
        Utilisation(43, 0.5)


SCORES = np.concatenate(
    [centre + np.linspace(-0.004, 0.004, 9) for centre in (0.90, 1.00, 1.05)] + [[2.80]]
)


def test_bins_are_the_groups_that_lie_apart_and_an_outlier_keeps_its_own_score() -> None:
    found = binned(SCORES, BinRule.SILHOUETTE)
    assert sorted(set(found.round(9).tolist())) == [0.90, 1.00, 1.05, 2.80]
    assert found[:9] == pytest.approx(0.90)


def test_the_published_codes_bins_are_two_and_one_per_outlier_relative_to_the_middle_one() -> None:
    found = binned(SCORES, BinRule.TWO)
    assert sorted(set(found.round(9).tolist())) == pytest.approx([0.90 / 1.025, 1.0, 2.80 / 1.025])


@pytest.mark.parametrize("rule", BinRule)
def test_gpus_that_are_all_alike_are_one_bin(rule: BinRule) -> None:
    assert binned(np.full(5, 1.0), rule).tolist() == [1.0] * 5
    assert binned(np.array([1.2]), rule)[0] in (1.0, 1.2)


def test_the_papers_matrix_is_walked_by_rising_product_with_the_entry_that_its_list_omits() -> None:
    order = traversal((0.89, 0.94, 1.06, 2.55), 1.5)
    walked = [
        (1.0 if entry.locality is Locality.NODE else 1.5, entry.score, round(entry.slowdown, 3))
        for entry in order
    ]
    assert walked == [
        (1.0, 0.89, 0.89),
        (1.0, 0.94, 0.94),
        (1.0, 1.06, 1.06),
        (1.5, 0.89, 1.335),
        (1.5, 0.94, 1.41),
        (1.5, 1.06, 1.59),
        (1.0, 2.55, 2.55),
        (1.5, 2.55, 3.825),  # the paper prints 3.88
    ]


def test_where_spreading_costs_nothing_a_node_is_still_preferred() -> None:
    assert [entry.locality for entry in traversal((1.0,), 1.0)] == [
        Locality.NODE,
        Locality.ANYWHERE,
    ]


def test_racks_are_a_third_row_of_the_matrix_and_of_equal_entries_the_nearer_comes_first() -> None:
    """Scores 1 and 2, 1.5 across nodes, twice that across racks: 3 x 1 = 1.5 x 2."""
    walked = [
        (entry.locality, entry.score, entry.slowdown) for entry in traversal((1.0, 2.0), 1.5, 2.0)
    ]
    assert walked == [
        (Locality.NODE, 1.0, 1.0),
        (Locality.RACK, 1.0, 1.5),
        (Locality.NODE, 2.0, 2.0),
        (Locality.RACK, 2.0, 3.0),
        (Locality.ANYWHERE, 1.0, 3.0),
        (Locality.ANYWHERE, 2.0, 6.0),
    ]


def test_a_locality_penalty_below_one_is_refused() -> None:
    with pytest.raises(JobError, match=r"locality_penalty: is no factor of at least 1 \(got 0.5\)"):
        spec(locality_penalty=0.5)


def placed(
    placer: str,
    scores: Mapping[str, Sequence[float]],
    *wanted: tuple[str, str | None, int],
    shape: str = "t4=2x4",
    penalty: float = 1.7,
    rack_penalty: float = 1.0,
    **parameters: object,
) -> Mapping[str, tuple[int, ...]]:
    """Where jobs (name, class, GPUs), in order, go on t4 GPUs of these scores."""
    cluster = replace(
        Cluster.parse(shape, racks=True),
        scores={name: tuple(values) for name, values in scores.items()},
    )
    jobs = [
        job(
            spec(
                name,
                variability_class=kind,
                locality_penalty=penalty,
                rack_penalty=rack_penalty,
            )
        )
        for name, kind, _ in wanted
    ]
    decision = Decision({name: Grant("t4", count) for name, _, count in wanted}, SolveReport(), {})
    result = PLACERS.build(placer, {"binning": "two", **parameters}).place(
        decision, round_of(cluster, *jobs)
    )
    assert not result.unplaced
    return result.placement.by_job


ONE_SLOW = {"A": [1.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0], "B": [1.0] * 8}


@pytest.mark.parametrize(
    ("rack_penalty", "gpus"), [(1.0, (0, 1, 4, 5)), (2.0, (0, 1, 4, 5)), (4.0, (4, 5, 6, 7))]
)
def test_pal_keeps_a_job_in_one_rack_where_apart_costs_more_than_its_slow_gpus(
    rack_penalty: float, gpus: tuple[int, ...]
) -> None:
    """Slow GPUs take three times as long: at 2 fast ones in two racks are better, at 4 not."""
    scores = {"A": [1.0, 1.0, 3.0, 3.0] * 2}
    found = placed("pal", scores, ("wide", "A", 4), shape="t4=4x2/2", rack_penalty=rack_penalty)
    assert found["wide"] == gpus


def test_a_job_of_two_gpus_leaves_its_rack_last() -> None:
    """One free fast GPU on every node: two of one rack, rather than of two racks."""
    scores = {"A": [1.0, 9.0, 9.0, 9.0, 1.0, 9.0, 1.0, 9.0]}
    found = placed("pal", scores, ("pair", "A", 2), shape="t4=4x2/2", rack_penalty=1.5)
    assert found["pair"] == (4, 6)


@pytest.mark.parametrize("placer", ["pm-first", "pal"])
def test_the_most_sensitive_class_chooses_first_and_its_jobs_in_the_policys_order(
    placer: str,
) -> None:
    found = placed(
        placer, ONE_SLOW, ("none", None, 1), ("b", "B", 1), ("a1", "A", 4), ("a2", "A", 2)
    )
    assert found["a1"] == (4, 5, 6, 7)
    assert not {3} & {*found["a1"], *found["a2"]}
    assert found["none"] == (3,)


def test_pm_first_takes_the_fastest_gpus_wherever_they_are() -> None:
    scores = {"A": [0.9, 1.0, 1.0, 1.0, 0.9, 1.0, 1.0, 1.0]}
    assert placed("pm-first", scores, ("a", "A", 2)) == {"a": (0, 4)}
    assert placed("pal", scores, ("a", "A", 2)) == {"a": (4, 5)}


def test_of_equally_fast_gpus_pm_first_takes_those_whose_node_fits_best() -> None:
    assert placed("pm-first", {"A": [1.0] * 8}, ("one", "A", 1), ("three", "A", 3)) == {
        "one": (0,),
        "three": (1, 2, 3),
    }


def test_pal_spreads_a_job_rather_than_let_it_wait_for_a_very_slow_gpu() -> None:
    scores = {"A": [1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 3.0, 3.0]}
    assert placed("pal", scores, ("a", "A", 4)) == {"a": (0, 1, 4, 5)}
    assert placed("pal", scores, ("a", "A", 4), penalty=3.5) == {"a": (4, 5, 6, 7)}


def test_on_a_node_pal_takes_the_gpus_whose_slowest_is_fastest_on_the_node_with_most_of_them() -> (
    None
):
    scores = {"A": [1.0, 0.9, 1.0, 1.0, 0.9, 1.0, 0.9, 0.9]}
    assert placed("pal", scores, ("a", "A", 2)) == {"a": (4, 6)}


def test_of_equally_good_nodes_pal_takes_the_last() -> None:
    assert placed("pal", {"A": [1.0] * 12}, ("a", "A", 2), ("b", "A", 4), shape="t4=3x4") == {
        "a": (8, 9),
        "b": (4, 5, 6, 7),
    }


def test_pal_places_what_fits_no_node_like_pm_first() -> None:
    scores = {"A": [1.0, 1.0, 1.0, 1.2, 0.9, 1.0, 1.0, 1.0, 1.0, 0.9, 1.0, 1.0]}
    wanted = ("wide", "A", 6)
    assert placed("pal", scores, wanted, shape="t4=3x4") == placed(
        "pm-first", scores, wanted, shape="t4=3x4"
    )


def test_a_class_without_scores_is_packed() -> None:
    assert placed("pal", {}, ("a", "A", 3), ("b", None, 3)) == {"a": (4, 5, 6), "b": (0, 1, 2)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("placer", ["pal", "pm-first"])
@pytest.mark.parametrize("binning", list(BinRule))
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_no_numbers_leave_no_job_waiting_beside_free_gpus(
    bad: float, binning: BinRule, placer: str
) -> None:
    cluster = replace(Cluster.parse("t4=1x4"), scores={"A": (bad, 1.0, bad, 1.0)})
    jobs = [
        job(
            spec(
                name,
                variability_class="A",
                gpu_count=2,
                batch_size=64,
                adaptivity=Adaptivity.RIGID,
            )
        )
        for name in ("first", "second")
    ]
    round_input = round_of(cluster, *jobs)
    result = plan_round(
        round_input, POLICIES.build("fifo"), PLACERS.build(placer, {"binning": binning})
    )
    assert sorted(result.placement.placement.gpus.tolist()) == [0, 1, 2, 3]
    for job_id in result.placement.without_scores:
        assert "as if all GPUs were equally fast" in result.reasons[job_id].sentence
    if math.isnan(bad) and placer == "pal":
        assert result.placement.without_scores
