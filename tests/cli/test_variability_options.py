"""Unequal GPUs by command line: measurements, how they are drawn, and what nodes apart cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from maat.__main__ import main

TRACE = "job_id,num_gpus,submit_time,duration,model\n0,4,0,20000,resnet50\n1,6,10,20000,vgg19\n"
RULES = ("--cluster", "v100=2x4", "--policy", "fifo", "--fidelity", "pal-artifact", "--json")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "pal.csv"
    path.write_text(TRACE, encoding="utf-8")
    return path


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Measurements of ten GPUs, the same for every application.

    One GPU is three times as slow in one of its five measurements.
    """
    folder = tmp_path / "measured"
    folder.mkdir()
    rows = [
        f"{gpu},{3.0 if (gpu, time) == (0, 0) else 1.0 + gpu / 20}\n"
        for gpu in range(10)
        for time in range(5)
    ]
    for application in ("resnet", "bert", "pagerank"):
        (folder / f"{application}-v100.csv").write_text(
            "uuid,perf\n" + "".join(rows), encoding="utf-8"
        )
    return folder


class Run:
    """The command in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> Any:
        code, out, said = self._run(*arguments)
        assert code in (0, None), said
        return json.loads(out)

    def refused(self, *arguments: object) -> str:
        code, _, said = self._run(*arguments)
        assert code == 2
        return said

    def _run(self, *arguments: object) -> tuple[object, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["maat", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        return ended.value.code, said.out, said.err


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


def test_measurements_the_draw_and_the_penalty_reach_the_simulation(
    run: Run, trace: Path, measured: Path
) -> None:
    alike = run("simulate", trace, *RULES)
    unequal = run("simulate", trace, *RULES, "--variability", measured)
    medians = run(
        "simulate",
        trace,
        *RULES,
        "--variability",
        measured,
        "--variability-draw",
        "medians",
        "--seed",
        3,
    )
    apart = run(
        "simulate", trace, *RULES, "--locality-penalty", 1.7, "--locality-penalty", "vgg19=3"
    )
    assert alike["complete"]
    assert alike["placer"] == "packed-sticky"
    assert len({run["avg_jct_hours"] for run in (alike, unequal, medians, apart)}) == 4
    assert apart["avg_jct_hours"] > 1.3 * alike["avg_jct_hours"]


def test_a_measured_table_slows_jobs_as_its_factors_would(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    table = tmp_path / "locality.csv"
    columns = "model,gpu_type,gpu_count,per_gpu_batch_size,node_count,within_seconds,across_seconds"
    table.write_text(f"{columns},steps\nvgg19,v100,4,8,2,0.1,0.3,30\n")
    hours = [
        run("simulate", trace, *RULES, "--locality-penalty", given)["avg_jct_hours"]
        for given in (table, "vgg19=3", "measured")
    ]
    alike = run("simulate", trace, *RULES)["avg_jct_hours"]
    assert hours[0] == hours[1] > alike == hours[2], "one iteration time is measured nowhere else"
    said = run.refused("simulate", trace, *RULES, "--locality-penalty", tmp_path / "none.csv")
    assert "cannot be read" in said


def test_placers_are_compared_and_penalties_varied_on_unequal_gpus(
    run: Run, trace: Path, measured: Path, tmp_path: Path
) -> None:
    given = (
        "--cluster",
        "v100=2x4",
        "--fidelity",
        "pal-artifact",
        "--variability",
        measured,
        "--workers",
        1,
        "--json",
    )
    compared = run("compare", trace, "--policy", "fifo", "--placer", "packed-sticky,pal", *given)
    assert [contestant["name"] for contestant in compared["contestants"]] == [
        "fifo + packed-sticky",
        "fifo + pal",
    ]
    swept = run(
        "sweep",
        trace,
        "--policy",
        "fifo",
        "--placer",
        "pal",
        "--vary",
        "locality_penalty=1,3",
        *given,
    )
    near, far = (row["mean"]["avg_jct_hours"] for row in swept["rows"])
    assert near < far


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("--variability", "nowhere"),
            "variability: is no folder with CSV files of measured GPUs (got 'nowhere'). "
            "Name a folder of files",
        ),
        (
            ("--locality-penalty", "0.5"),
            "locality_penalty: is no factor of at least 1 (got '0.5'). "
            "Write for example 1.7, or resnet50=1.2.",
        ),
        (
            ("--locality-penalty", "vgg19=much"),
            "locality_penalty: is no factor of at least 1 (got 'vgg19=much')",
        ),
        (
            ("--locality-penalty", "lenet=2"),
            "locality_penalty: is no known model (got 'lenet'). Use one of: ",
        ),
        (
            ("--network-contention", "1"),
            "network_contention: is not between 0 and 0.99 (got '1').",
        ),
    ],
)
def test_a_bad_option_is_refused_by_name_value_and_remedy(
    run: Run, trace: Path, arguments: tuple[str, ...], says: str
) -> None:
    assert says in run.refused("simulate", trace, *RULES, *arguments)


def test_measurements_that_do_not_cover_the_cluster_are_refused(
    run: Run, trace: Path, measured: Path
) -> None:
    said = run.refused("simulate", trace, "--cluster", "a100=2x4", "--variability", measured)
    assert (
        "gpu_type: has no measurements of resnet (class A) (got 'a100'). Measured are: v100" in said
    )
