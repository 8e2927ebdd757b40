"""`maat replay`, played by the worker's own code: what it prints, and what Ctrl+C does."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import pytest
from fastapi import FastAPI
from sqlmodel import select
from typer.testing import CliRunner

from backend.app import provide
from backend.clocktime import utc_now
from backend.models import Cluster, Operation
from backend.queue import PLAY_NEXT_RUN
from maat import policies
from maat.api.operations import OperationOut
from maat.cli.app import app as commands
from maat.client import Client, Unreachable
from maat.client.following import followed
from maat.library.replaying import replay
from maat.scheduling.errors import InputError, ParameterError
from worker.laboratory.playing import Laboratory

Run = Callable[..., str]


class WorkerAtOnce:
    """A queue whose worker plays a simulation as soon as it is asked for."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self.plays = True

    def send(self, task: str, *arguments: str) -> None:
        if task == PLAY_NEXT_RUN and self.plays:
            state = self._app.state
            while Laboratory(state.database, state.settings).play_next():
                pass

    def waiting(self) -> Mapping[str, int]:
        return {}


@pytest.fixture
def queue(app: FastAPI) -> WorkerAtOnce:
    made = WorkerAtOnce(app)
    provide(app, app.state.settings, queue=made)
    return made


@pytest.fixture
def run(maat: Client, queue: WorkerAtOnce, app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(Client, "close", lambda _: None)
    monkeypatch.setattr("maat.client.Client", lambda *_, **__: maat)
    for number in range(8):
        job = {"name": f"job-{number}", "model": "cifar10", "gpu_count": 8, "work_scale": 0.2}
        maat.submit_job(job | {"adaptivity": "rigid", "batch_size": 1024})
    with app.state.database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.speed, cluster.anchor_seconds, cluster.anchor_wall = 1e-9, 7200.0, utc_now()
        session.add(cluster)

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return invoke


def test_a_replay_compares_the_live_policy_with_others_job_by_job(run: Run) -> None:
    said = run("replay", "--since", "24h", "--policy", "fifo,sia")
    assert "8 jobs of" in said
    assert "Job by job against sia + whole-node" in said
    assert "over the jobs of this one run" in said
    assert re.search(r"job-\d \(job_\w{26}\) +cifar10 +[+-]\d", said)
    found = json.loads(run("replay", "--since", "1d", "--policy", "fifo", "--json"))
    assert [each["policy"] for each in found["comparison"]["contestants"]] == ["sia", "fifo"]
    (paired,) = found["comparison"]["paired"]
    names = [each["name"] for each in found["comparison"]["contestants"]]
    differences = [row[names[1]] - row[names[0]] for row in found["jobs"]]
    assert len(differences) == paired["jobs"] == 8
    mean = sum(differences) / len(differences)
    assert paired["difference_hours"]["estimate"] == pytest.approx(mean)
    request = found["simulation"]["request"]
    assert request["traces"][0]["window"]["submitted"] == 8


def test_a_replay_is_drawn_and_written_run_by_run(run: Run, tmp_path: Path) -> None:
    page, runs = tmp_path / "gpus.html", tmp_path / "runs.csv"
    drawn = ("--plot", str(page), "--figure", "gpus_over_time")
    run("replay", "--policy", "fifo", *drawn, "--csv", str(runs))
    text = page.read_text(encoding="utf-8")
    assert all(f'"name":"{name}"' in text for name in ("sia + whole-node", "fifo + packed-sticky"))
    with runs.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == ["sia", "fifo"]
    with pytest.raises(InputError, match=r"plot: has no suffix of a figure"):
        run("replay", "--policy", "fifo", "--plot", str(tmp_path / "gpus.bmp"))


def test_a_replay_says_what_another_policy_lacks_on_the_cluster(run: Run) -> None:
    said = run("replay", "--since", "24h", "--policy", "sjf-bsbf")
    assert said.count("The policy sjf-bsbf lets jobs share GPUs; here a GPU holds one job") == 1


def test_an_interrupted_replay_is_cancelled(
    run: Run, queue: WorkerAtOnce, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.plays = False

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("maat.client.following.time.sleep", interrupted)
    assert CliRunner().invoke(commands, ["replay", "--policy", "fifo"]).exit_code == 130
    with app.state.database.session_scope(writes=False) as session:
        (operation,) = session.exec(select(Operation)).all()
        assert (operation.kind, operation.state) == ("simulation", "cancelled")


def test_a_replay_says_at_once_where_it_is_and_outlives_a_restart_of_the_service(
    run: Run, queue: WorkerAtOnce, maat: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = maat.operation, iter([True, False, False])

    def restarted(operation_id: str) -> OperationOut:
        if not next(answers, True):
            raise Unreachable("no answer")
        found = asked(operation_id)
        looks.append(found["state"])
        return {**found, "state": "running"} if len(looks) == 1 else found

    looks: list[str] = []
    monkeypatch.setattr(maat, "operation", restarted)
    done = CliRunner().invoke(commands, ["replay", "--policy", "fifo"], catch_exceptions=False)
    assert done.exit_code == 0
    assert len(looks) == 2
    assert re.search(r"^Plays 2 runs: \S+/simulations/sim_\w+\. Ctrl\+C cancels\.", done.stderr)
    assert "8 jobs of" in done.stdout


def test_a_service_that_stays_away_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def operation(self, _: str) -> OperationOut:
            raise Unreachable("no answer")

    monkeypatch.setattr("maat.client.following.PATIENCE_SECONDS", 0.5)
    with pytest.raises(Unreachable):
        followed(cast(Client, Away()), "op_1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--policy", "sia"), "the policy that the cluster has"),
        (("--policy", "fifo", "--since", "soon"), "24h, 90m or 7d"),
        (
            ("--policy", "fifo", "--since", "1h", "--until", "60m"),
            r"^since: is no longer ago than the window's end \(got '1h'\). Give more than 60m",
        ),
        (("--policy", "fifo", "--seeds", "x"), "--seeds 0,1,2"),
    ],
)
def test_a_replay_that_makes_no_sense_is_refused(
    run: Run, options: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        run("replay", *options)


def test_the_library_replays_by_the_same_names_into_tables_and_figures(
    run: Run, maat: Client
) -> None:
    found = replay(["fifo", policies.Sia(p=-1)], client=maat, since="24h", progress=False)

    live, fifo, other = found.contestants
    assert (live, fifo) == (found.baseline, "fifo + packed-sticky")
    assert "p=-1" in other
    assert found.means["contestant"] == found.runs["contestant"] == [live, fifo, other]
    assert found.means["avg_jct_hours"] == pytest.approx(found.runs["avg_jct_hours"])
    assert found.differences["contestant"] == [fifo, other]
    hours: dict[str, list[float]] = {name: [] for name in found.contestants}
    for job in found.jobs:
        hours[job["contestant"]].append(job["jct_hours"])
    assert [len(each) for each in hours.values()] == [8, 8, 8]
    mean = (sum(hours[fifo]) - sum(hours[live])) / 8
    assert found.differences["difference_hours"][0] == pytest.approx(mean)
    assert sum(found.changed(fifo)["difference_hours"]) / 8 == pytest.approx(mean)
    assert [len(line.x) for line in found.plot.jct_cdf().data] == [9, 9, 9]
    assert "8 jobs of" in found.window[0]
    assert all(name in found._repr_html_() for name in found.contestants)


def test_a_run_of_a_replay_has_the_tables_and_figures_of_a_run(run: Run, maat: Client) -> None:
    found = replay("fifo", client=maat, progress=False)
    played = found.run("fifo + packed-sticky")

    assert len(played.jobs) == played.summary["jobs"] == 8
    known = [seconds / 3600 for seconds in played.jobs["jct_seconds"]]
    assert sum(known) / 8 == pytest.approx(played.summary["avg_jct_hours"])
    types = [name for name in played.rounds.columns if name.endswith("_gpus")]
    assert [sum(row[name] for name in types) for row in played.rounds] == played.rounds["gpus"]
    areas = played.plot.gpus_over_time().data
    assert {area.name for area in areas} == {name.removesuffix("_gpus") for name in types}
    assert max(played.rounds["gpus"]) > 0
    with pytest.raises(InputError, match=r"was not played \(got 'las'\). Use one of: sia"):
        found.run("las")


def test_an_own_policy_is_not_sent_to_a_service(run: Run, maat: Client) -> None:
    with pytest.raises(InputError, match="is your own, which the service does not have"):
        replay(lambda round_input: {}, client=maat)
    with pytest.raises(InputError, match="jobs of a cluster are what their owners declared"):
        replay(policies.Fifo(tuned="any-pair"), client=maat)
