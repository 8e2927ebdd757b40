"""Tests of measurements of single GPUs: reading a folder, refusals, and draws for a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import VariabilityError
from maat.simulation.variability import (
    ARTIFACT_VARIABILITY,
    PAPER_VARIABILITY,
    Measurements,
    Variability,
    draw_scores,
    read_variability,
    read_variability_texts,
)
from maat.vocabulary import ScoreDraw

GOOD = "uuid,perf\na,2\nb,4\na,1\na,3\n"


def folder_of(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / f"{name.replace('_', '-')}.csv").write_text(text, encoding="utf-8")
    return tmp_path


def refusal(folder: Path) -> str:
    with pytest.raises(VariabilityError) as caught:
        read_variability(folder)
    return str(caught.value)


# ---- reading


def test_application_and_gpu_type_are_read_from_the_files_name(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        bert_longhorn_agg=GOOD,
        frontera_resnet_agg=GOOD,
        resnet_a100=GOOD,
        pagerank_rtx_6000=GOOD,
    )
    read = read_variability(folder)
    assert sorted(read.measured) == [
        ("a100", "resnet"),
        ("rtx-6000", "pagerank"),
        ("rtx5000", "resnet"),
        ("v100", "bert"),
    ]
    assert sorted(read_variability(folder, gpu_types=("v100",)).measured) == [("v100", "bert")]


def test_texts_are_read_as_files_of_these_names_are(tmp_path: Path) -> None:
    from_files = read_variability(folder_of(tmp_path, bert_longhorn_agg=GOOD, resnet_a100=GOOD))
    from_texts = read_variability_texts({"bert-longhorn-agg.csv": GOOD, "resnet-a100.csv": GOOD})
    assert from_texts.measured.keys() == from_files.measured.keys()
    assert all(
        from_texts.measured[key].rows() == from_files.measured[key].rows()
        for key in from_files.measured
    )
    with pytest.raises(VariabilityError, match=r"bert-v100\.csv, row 3: perf: is no finite number"):
        read_variability_texts({"bert-v100.csv": "uuid,perf\na,1\nb,x\n"})
    with pytest.raises(VariabilityError, match=r"is measured in bert-v100\.csv too"):
        read_variability_texts({"bert-v100.csv": GOOD, "v100-bert.csv": GOOD})


@pytest.mark.parametrize("name", ["bert-v100.txt", "bert-v100", "bert-<b>.csv", "-bert.csv"])
def test_a_file_that_is_no_csv_or_names_no_gpu_type_is_refused(name: str) -> None:
    with pytest.raises(VariabilityError, match=r"Name it APPLICATION-GPUTYPE\.csv"):
        read_variability_texts({name: GOOD})


def test_rows_are_relative_to_the_median_row_and_medians_to_the_median_gpu(tmp_path: Path) -> None:
    found = read_variability(folder_of(tmp_path, bert_v100=GOOD)).measured["v100", "bert"]
    assert found.rows() == [0.8, 1.6, 0.4, 1.2]
    assert found.medians() == pytest.approx([2 / 3, 4 / 3])


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("bert_v100", "uuid,time\na,1\n", "bert-v100.csv, row 1: perf: column is missing"),
        ("bert_v100", "gpu,perf\na,1\n", "bert-v100.csv, row 1: uuid: column is missing"),
        (
            "bert_v100",
            GOOD + "c,fast\n",
            "bert-v100.csv, row 6: perf: is no finite number (got 'fast')",
        ),
        ("bert_v100", GOOD + "c,0\n", "bert-v100.csv, row 6: perf: must be above 0"),
        ("bert_v100", GOOD + ",1\n", "bert-v100.csv, row 6: uuid: is missing"),
        ("bert_v100", "uuid,perf\n", "bert-v100.csv: rows: holds no measurements"),
        (
            "linpack_v100",
            GOOD,
            "file: does not say what was measured on which GPUs (got 'linpack-v100.csv'). "
            "Name it APPLICATION-GPUTYPE.csv",
        ),
        ("bert_V100", GOOD, "does not say what was measured on which GPUs (got 'bert-V100.csv')"),
        ("a_bert_v100", GOOD, "does not say what was measured on which GPUs"),
        (
            "bert_v100",
            GOOD + "c,1e16\n",
            "bert-v100.csv, row 6: perf: must be above 0 and at most 1e15 (got '1e16')",
        ),
        ("bert", GOOD, "does not say what was measured on which GPUs (got 'bert.csv')"),
    ],
)
def test_what_cannot_be_used_is_refused_by_file_row_and_field(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    assert says in refusal(folder_of(tmp_path, **{name: text}))


def test_a_folder_without_files_no_folder_and_two_files_of_one_thing_are_refused(
    tmp_path: Path,
) -> None:
    assert "is no folder with CSV files of measured GPUs" in refusal(tmp_path)
    assert "is no folder with CSV files of measured GPUs" in refusal(tmp_path / "nowhere")
    assert "v100-bert.csv" in refusal(folder_of(tmp_path, bert_v100=GOOD, v100_bert=GOOD))


# ---- drawing


def measured(*times: float, gpu_type: str = "v100") -> Mapping[tuple[str, str], Measurements]:
    """Each GPU measured once with every application."""
    found = Measurements(np.array(times), np.arange(len(times)))
    return {(gpu_type, application): found for application in ("resnet", "bert", "pagerank")}


def test_medians_are_drawn_by_seed_and_none_twice() -> None:
    known, cluster = Variability(measured(*range(1, 10))), Cluster.parse("v100=2x4")
    first, again, other = (
        draw_scores(known, cluster, PAPER_VARIABILITY, needed=(), seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert set(first) == {"A", "B", "C"}
    assert len(set(first["A"])) == 8
    assert {round(score * 5) for score in first["A"]} < set(range(1, 10))


def test_a_gpu_has_one_median_for_classes_of_one_application() -> None:
    medians = replace(ARTIFACT_VARIABILITY, draw=ScoreDraw.MEDIANS)
    drawn = draw_scores(
        Variability(measured(*range(1, 10))), Cluster.parse("v100=2x4"), medians, needed=(), seed=0
    )
    assert drawn["B"] == drawn["C"] != drawn["A"]


def test_scores_are_those_of_each_gpus_own_type() -> None:
    known = Variability(
        {**measured(1.0, 1.0, 1.0, 1.0), **measured(3.0, 9.0, 6.0, gpu_type="a100")}
    )
    drawn = draw_scores(
        known, Cluster.parse("v100=1x4,a100=1x3"), PAPER_VARIABILITY, needed=("A",), seed=0
    )
    assert drawn["A"][:4] == (1.0,) * 4
    assert sorted(drawn["A"][4:]) == [0.5, 1.0, 1.5]


def test_more_gpus_than_were_measured_have_rows_but_no_medians() -> None:
    known, cluster = Variability(measured(1.0, 2.0, 3.0)), Cluster.parse("v100=1x4")
    with pytest.raises(
        VariabilityError,
        match=r"gpu_type: was measured with \w+ on 3 GPUs only \(got '4 GPUs of v100'\)",
    ):
        draw_scores(known, cluster, PAPER_VARIABILITY, needed=("A",), seed=0)
    assert set(draw_scores(known, cluster, ARTIFACT_VARIABILITY, needed=("A",), seed=0)["A"]) <= {
        0.5,
        1.0,
        1.5,
    }


def test_measurements_of_none_of_the_clusters_types_are_refused() -> None:
    with pytest.raises(
        VariabilityError,
        match=r"gpu_type: has no measurements of \w+ \(class A\) \(got 't4'\). Measured are: v100;",
    ):
        draw_scores(
            Variability(measured(1.0, 2.0)),
            Cluster.parse("t4=1x2"),
            PAPER_VARIABILITY,
            needed=(),
            seed=0,
        )


def test_a_class_that_nobody_needs_may_lack_measurements() -> None:
    only = Variability({("a100", "resnet"): measured(1.0, 2.0)["v100", "resnet"]})
    assert set(
        draw_scores(only, Cluster.parse("a100=1x2"), PAPER_VARIABILITY, needed=("A",), seed=0)
    ) == {"A"}
    with pytest.raises(VariabilityError, match=r"has no measurements of bert \(class B\)"):
        draw_scores(only, Cluster.parse("a100=1x2"), PAPER_VARIABILITY, needed=("B",), seed=0)


@pytest.mark.needs_data
def test_the_published_draw_gives_the_one_gpu_on_which_its_headline_rests(
    data_folder: Path,
) -> None:
    known = read_variability(data_folder / "pal/variability", gpu_types=("v100",))
    drawn = draw_scores(
        known, Cluster.parse("v100=16x4"), ARTIFACT_VARIABILITY, needed="ABCD", seed=0
    )
    slowest = sorted(drawn["A"])[-2:]
    assert slowest == pytest.approx([1.15, 2.83], abs=0.005)
    medians = draw_scores(
        known, Cluster.parse("v100=16x4"), PAPER_VARIABILITY, needed="ABC", seed=42
    )
    assert max(medians["A"]) < 1.13


@pytest.mark.needs_data
def test_measured_machines_are_those_of_the_published_table(data_folder: Path) -> None:
    known = read_variability(data_folder / "pal/variability")
    many = Counter({subject: len(found.medians()) for subject, found in known.measured.items()})
    assert many == {
        ("v100", "resnet"): 336,
        ("v100", "bert"): 136,
        ("v100", "pagerank"): 172,
        ("rtx5000", "resnet"): 296,
        ("rtx5000", "bert"): 276,
        ("rtx5000", "pagerank"): 248,
        ("a100", "resnet"): 219,
    }
    slowest = known.measured["v100", "resnet"].medians().max()
    assert slowest == pytest.approx(1.1205, abs=5e-4)
    assert max(known.measured["v100", "resnet"].rows()) == pytest.approx(3.57, abs=5e-3)
