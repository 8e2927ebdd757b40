"""The worker plays each run of an experiment once, keeps what has ended, and can be stopped."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from live_samples import make_owner
from sqlmodel import col, select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.experiments.resources import show_whole_experiment
from backend.experiments.service import prepare_experiment, store_experiment
from backend.models import Experiment, Operation, OperationState
from maat.api.experiments import AutoscalingBody, TuningBody
from maat.laboratory import experiments as laboratory
from maat.library.autoscaling import autoscale
from maat.library.tuning import tune
from maat.scheduling.errors import ParameterError
from worker.simulations import experiments, progress

AUTOSCALING = AutoscalingBody(
    kind="autoscaling", name="rent", model="cifar10", cluster="t4=2x4", fixed_nodes=[1]
)
WORKLOAD = AutoscalingBody(
    kind="autoscaling",
    name="rent",
    cluster="t4=8x4",
    fixed_nodes=[8],
    trace={"kind": "generated", "jobs": 2, "hours": 1},  # type: ignore[arg-type]
)
TUNING = TuningBody(kind="tuning", name="search", trials=3, at_a_time=2)


class Silent:
    """A queue that sends nothing."""

    def send(self, task: str, *arguments: str) -> None:
        """Send nothing."""

    def waiting(self) -> dict[str, int]:
        return {}


def ask(database: Database, body: Any = AUTOSCALING) -> str:
    """Ask for an experiment as the service does; return its id."""
    user, tenant = make_owner(database)
    role = Role.SUBMITTER
    principal = Principal(user, "owner", tenant, "tenant", role, PERMISSIONS[role])
    with database.session_scope(writes=False) as session:
        prepared = prepare_experiment(session, principal, body)
    with database.session_scope() as session:
        return store_experiment(session, principal, prepared, Silent()).id


def shown(database: Database, experiment_id: str) -> Any:
    with database.session_scope(writes=False) as session:
        experiment = session.get_one(Experiment, experiment_id)
        operation = session.get_one(Operation, experiment.operation_id)
        return show_whole_experiment(session, experiment, operation)


def operation_of(database: Database, experiment_id: str) -> Operation:
    with database.session_scope(writes=False) as session:
        return session.get_one(Operation, session.get_one(Experiment, experiment_id).operation_id)


def change(database: Database, **values: Any) -> None:
    with database.session_scope() as session:
        session.connection().execute(sa.update(Operation).values(**values))


def test_auto_scaling_finds_what_the_library_finds(database: Database) -> None:
    experiment_id = ask(database)
    assert experiments.run_experiment(database, experiment_id) == OperationState.SUCCEEDED
    found = autoscale("cifar10", cluster="t4=2x4", fixed_nodes=[1], progress=False)
    runs = shown(database, experiment_id)["runs"]
    assert [run["title"] for run in runs] == found.runs["run"]
    assert [run["nodes"] for run in runs] == [None, None, 1]
    for run, alone in zip(runs, found.rented.values(), strict=True):
        assert run["node_seconds"] == alone.node_seconds
        assert run["rented"] == [list(change) for change in alone.rented]
    operation = operation_of(database, experiment_id)
    assert (operation.state, operation.done, operation.total) == ("succeeded", 3, 3)


def test_a_workload_is_rented_for(database: Database) -> None:
    experiment_id = ask(database, WORKLOAD)
    assert experiments.run_experiment(database, experiment_id) == OperationState.SUCCEEDED
    runs = shown(database, experiment_id)["runs"]
    assert [run["unfinished"] for run in runs] == [0, 0, 0]
    assert all(run["avg_jct_seconds"] > 0 for run in runs)


def test_a_search_finds_what_the_library_finds(database: Database) -> None:
    experiment_id = ask(database, TUNING)
    assert experiments.run_experiment(database, experiment_id) == OperationState.SUCCEEDED
    found = tune(trials=3, at_a_time=2, progress=False)
    runs = shown(database, experiment_id)["runs"]
    assert [run["title"] for run in runs] == ["elastic (pollux)", "static (4 GPUs each)"]
    assert [run["makespan_seconds"] for run in runs] == [
        search.makespan_seconds for search in found.found.values()
    ]
    assert [trial["score"] for trial in runs[0]["trials"]] == [
        record.score for record in found.found["elastic"].records
    ]


def waiting(database: Database) -> int:
    with database.session_scope(writes=False) as session:
        return sum(one.waiting for one in experiments.work(session))


def test_it_is_played_once_however_often_it_is_asked_for(database: Database) -> None:
    experiment_id = ask(database)
    assert experiments.run_experiment(database, experiment_id) is not None
    assert experiments.run_experiment(database, experiment_id) is None
    assert waiting(database) == 0
    assert experiments.run_experiment(database, "exp_nope") is None


def test_one_whose_worker_is_gone_goes_on_with_the_runs_that_are_missing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id = ask(database)
    played, real = list[str](), laboratory.Autoscaling.play

    def play(self: Any, run: str, **given: Any) -> Any:
        played.append(run)
        if len(played) == 2:
            raise SystemExit  # the worker is killed
        return real(self, run, **given)

    monkeypatch.setattr(laboratory.Autoscaling, "play", play)
    with pytest.raises(SystemExit):
        experiments.run_experiment(database, experiment_id)
    assert experiments.run_experiment(database, experiment_id) is None, "it may still live"
    change(database, heartbeat_at=utc_now() - timedelta(minutes=5))
    assert waiting(database) == 1
    assert experiments.run_experiment(database, experiment_id) == OperationState.SUCCEEDED
    assert played == ["goodput", "throughput", "throughput", "fixed-1"]
    assert len(shown(database, experiment_id)["runs"]) == 3


def test_a_cancelled_one_stops_within_a_run_and_keeps_those_that_have_ended(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PROGRESS_SECONDS", 0.0)
    experiment_id = ask(database)
    real = experiments.run_to_json

    def cancelling(plan: Any, run: str, **given: Any) -> Any:
        if run == "throughput":
            change(database, cancel_requested=True)
        return real(plan, run, **given)

    monkeypatch.setattr(experiments, "run_to_json", cancelling)
    assert experiments.run_experiment(database, experiment_id) == OperationState.CANCELLED
    found = shown(database, experiment_id)
    assert (found["state"], [run["run"] for run in found["runs"]]) == ("cancelled", ["goodput"])


def test_progress_counts_runs_and_the_share_of_the_present_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id = ask(database)
    seen = list[tuple[float, str]]()
    real = experiments.Progress.report

    def report(self: Any, done: float, message: str = "") -> None:
        seen.append((done, message))
        real(self, done, message)

    monkeypatch.setattr(experiments.Progress, "report", report)
    experiments.run_experiment(database, experiment_id)
    shares = [done for done, message in seen if message.startswith("by goodput")]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert 0.5 < shares[-1] <= 1.0
    assert operation_of(database, experiment_id).message == "All 3 runs have ended."


def test_a_run_that_fails_says_why_and_keeps_the_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id = ask(database)
    real = experiments.run_to_json

    def failing(plan: Any, run: str, **given: Any) -> Any:
        if run == "throughput":
            raise ParameterError("is odd", field="policy", value="x", remedy="Use another.")
        return real(plan, run, **given)

    monkeypatch.setattr(experiments, "run_to_json", failing)
    assert experiments.run_experiment(database, experiment_id) == OperationState.FAILED
    error = operation_of(database, experiment_id).error
    assert error is not None
    assert (error["status"], error["errors"][0]["pointer"]) == (422, "/policy")
    assert [run["run"] for run in shown(database, experiment_id)["runs"]] == ["goodput"]


def test_a_worker_that_was_taken_for_dead_writes_no_runs(database: Database) -> None:
    experiment_id = ask(database)
    with database.session_scope() as session:
        claim = experiments.OPERATIONS.claim_next(session)
        assert claim is not None
        experiment = session.get_one(Experiment, experiment_id)
    change(database, started_at=utc_now() + timedelta(seconds=1))  # another has claimed it
    experiments._keep(database, experiment, claim, [{"run": "goodput"}])
    with database.session_scope(writes=False) as session:
        assert session.exec(select(col(Experiment.runs))).one() == []
