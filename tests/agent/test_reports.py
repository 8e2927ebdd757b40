"""Reports: each fact once, whatever the server answers, and none that holds training up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from report_server import Server

from maat.agent import report
from maat.agent.environment import BatchPlan, Environment
from maat.agent.ledger import Ledger
from maat.agent.report import Answer, Reporter
from maat.api.attempts import ReportBody

pytestmark = pytest.mark.needs_torch
PLAN = BatchPlan(0, 64, 32, 1)


def _until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(report, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(report, "LONGEST_PAUSE", 0.1)
    with Server() as listening:
        yield listening


class Reporting:
    """A reporter with its ledger, and the answers that it passed on."""

    def __init__(self, folder: Path, url: str) -> None:
        (folder / "token").write_text("t")
        around = Environment(
            gpu_type="t4", attempt_id="att_1", attempt_directory=folder, server=url
        )
        self.ledger, self.heard = Ledger(around), list[Answer]()
        self.reporter = Reporter(self.ledger, self.heard.append)
        self.reporter.start()

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.ledger.add_step(PLAN, 0.25)


def _steps(taken: list[ReportBody]) -> int:
    return sum(each.steps for body in taken for each in body.passes)


def test_each_step_is_reported_once_though_answers_are_lost(tmp_path: Path, server: Server) -> None:
    lost = set[int]()

    def lose_each_first_answer(body: ReportBody) -> tuple[int, dict[str, Any]] | None:
        if body.sequence in lost:
            return None
        lost.add(body.sequence)
        if body.sequence % 2:  # taken, and the answer is lost
            server.taken.append(body)
        return 503, {}

    server.answer = lose_each_first_answer
    reporting = Reporting(tmp_path, server.url)
    for count in range(1, 5):
        reporting.steps(10)
        _until(lambda count=count: len(server.taken) > count)
    server.answer = lambda _: None
    reporting.reporter.end()
    assert not server.malformed
    assert _steps(server.taken) == 40
    assert [each.sequence for each in server.taken] == list(range(1, len(server.taken) + 1))
    assert [server.taken[0].kind, server.taken[-1].kind] == ["hello", "bye"]


def test_what_happens_while_the_server_is_away_is_reported_when_it_is_back(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = lambda _: (503, {})
    reporting = Reporting(tmp_path, server.url)
    _until(lambda: len(server.heard) > 2)
    reporting.steps(1000)
    reporting.ledger.set_loss(float("nan"))
    server.answer = lambda _: None
    _until(lambda: _steps(server.taken) == 1000)
    reporting.reporter.end()
    found = next(each for body in server.taken for each in body.passes)
    assert (found.step_seconds.mean, found.step_seconds.m2, found.accumulation_steps) == (
        0.25,
        0,
        1,
    )
    assert capsys.readouterr().out.count("no report gets through") == 1
    assert (tmp_path / "report.json").exists()


def test_a_server_that_is_not_there_holds_nobody_up(tmp_path: Path, server: Server) -> None:
    reporting = Reporting(tmp_path, "http://127.0.0.1:9")
    _until(lambda: reporting.reporter._failures)
    reporting.steps(3)
    reporting.reporter.end()
    assert not server.heard
    assert '"steps": 3' in (tmp_path / "report.json").read_text()


def test_plans_stops_and_the_end_are_passed_on(tmp_path: Path, server: Server) -> None:
    plan = {
        "number": 2,
        "total_batch_size": 64,
        "per_gpu_batch_size": 16,
        "accumulation_steps": 1,
    }
    server.answer = lambda body: (200, {"plan": plan, "stop": body.sequence == 2})
    reporting = Reporting(tmp_path, server.url)
    _until(lambda: len(reporting.heard) >= 2)
    assert reporting.heard[:2] == [
        Answer(BatchPlan(2, 64, 16, 1)),
        Answer(BatchPlan(2, 64, 16, 1), stop=True),
    ]
    server.answer = lambda _: (409, {"type": "/problems/stale-attempt"})
    _until(lambda: reporting.heard[-1].is_stale)
    heard = len(server.heard)
    reporting.reporter.end()
    assert len(server.heard) == heard, "no word more"


def test_a_report_that_is_refused_is_dropped_and_the_next_one_sent(
    tmp_path: Path, server: Server
) -> None:
    server.answer = lambda body: (422, {}) if body.sequence == 1 else None
    reporting = Reporting(tmp_path, server.url)
    reporting.reporter._seconds = 0.05
    reporting.reporter.end()
    assert [each.sequence for each in server.taken] == [2]


def test_of_a_report_the_rest_is_told_where_a_measured_part_is_refused(
    tmp_path: Path, server: Server
) -> None:
    problem = {"errors": [{"pointer": "/ranks/compute_seconds/1"}]}
    server.answer = lambda body: None if body.ranks is None else (422, problem)
    reporting = Reporting(tmp_path, server.url)
    _until(lambda: server.taken)
    reporting.ledger.set(ranks={"compute_seconds": [0.1, 9.0]})
    reporting.steps(10)
    _until(lambda: _steps(server.taken) == 10)
    (refused,) = (body for body in server.heard if "ranks" in body)
    taken = next(body for body in server.taken if body.passes)
    assert taken.sequence == refused["sequence"]
    reporting.reporter.end()


def test_progress_is_told_where_a_figure_in_it_is_refused(tmp_path: Path, server: Server) -> None:
    """A job whose reports are all refused would count as silent, and be ended."""
    problem = {"errors": [{"pointer": "/progress/gained_samples"}]}
    server.answer = lambda body: None if body.progress.gained_samples is None else (422, problem)
    reporting = Reporting(tmp_path, server.url)
    _until(lambda: server.taken)
    reporting.ledger.set_progress(effective_samples=9.0, steps=3, gained_samples=1e9)
    _until(lambda: any(body.progress.effective_samples == 9.0 for body in server.taken))
    reporting.reporter.end()


def test_an_answer_that_makes_no_sense_is_no_answer(tmp_path: Path, server: Server) -> None:
    server.answer = lambda body: (200, {"plan": {"number": "many"}})
    reporting = Reporting(tmp_path, server.url)
    _until(lambda: len(server.heard) > 2)
    assert {each["sequence"] for each in server.heard} == {1}, "sent again as it was"
    reporting.reporter.end()
    assert not reporting.heard
