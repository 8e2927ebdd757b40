"""The report: its verdict first, its figures whole, and nothing that it would fetch."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_runs import fit, recorded_job, recorded_run

from maat.demo import figures
from maat.demo.page import belief_errors, write_page
from maat.demo.replay import Compared

COMPARED = [
    Compared("Average JCT", 100.0, 104.0),
    Compared("Makespan", 200.0, 190.0),
    Compared("JCT of <b>", 100.0, 104.0),
]


def test_the_page_says_its_verdict_first_and_fetches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    jobs = [recorded_job(name) for name in ("<one>", "two", "three")]
    write_page(recorded_run(*jobs, outages=[("a100-node", 50.0, 90.0)]), COMPARED, path)
    text = path.read_text()
    (verdict,) = re.findall("<h1>(.*?)</h1>", text)
    assert verdict.startswith("3 jobs trained to their end in 200 s")
    assert "+4.0%" in verdict
    assert "-5.0%" in verdict
    assert "JCT of &lt;b&gt;" in text
    assert "<td>&lt;one&gt;</td>" in text
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", text)


def test_the_page_says_when_others_kept_the_machine_busy(tmp_path: Path) -> None:
    path, slower = tmp_path / "report.html", "what others took of it makes the live run slower"
    quiet = recorded_run(*(recorded_job(name) for name in ("one", "two", "three")))
    write_page(replace(quiet, load=0.1), COMPARED, path)
    assert "0.1 processes kept this machine busy." in path.read_text()
    assert slower not in path.read_text()
    write_page(replace(quiet, load=2.3), COMPARED, path)
    assert f"2.3 processes kept this machine busy: {slower}" in path.read_text()


def test_a_belief_that_is_the_law_is_off_by_nothing() -> None:
    assert belief_errors(recorded_job("one"))[0] == ("t4", pytest.approx(0.0, abs=1e-6))


def test_a_belief_that_is_off_says_by_how_much() -> None:
    job = recorded_job("one")
    job = replace(job, belief={**job.belief, "types": [fit("t4", 0.003 * 1.1)]})
    at = [0.3 * batch / (70 + 3 * batch) for batch in (32, 64)]
    assert belief_errors(job)[0] == ("t4", pytest.approx(sum(at) / 2))


def test_a_gpu_is_pale_until_its_job_trains_and_grey_while_its_node_is_down() -> None:
    jobs = [recorded_job(name) for name in ("one", "two", "three")]
    figure = figures.occupancy(recorded_run(*jobs, outages=[("a100-node", 50.0, 90.0)]))
    starting, training = figure.data[0], figure.data[1]
    assert (starting.base[0], starting.x[0]) == (0.0, 10.0)
    assert (training.base[0], training.x[0]) == (10.0, 190.0)
    (down,) = figure.layout.shapes
    assert (down.x0, down.x1, down.y0, down.y1) == (50.0, 90.0, 3.5, 7.5)
