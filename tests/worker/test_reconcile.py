"""What the reconciler does with an engine that refuses, is away, forgets, or dies in between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlmodel import select
from training_samples import TrainingCluster

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import AttemptRow, Cluster, Node
from backend.secret_key import secret_key
from backend.settings import Settings
from maat.scheduling.events import EventKind
from maat.vocabulary import AttemptState, Outcome, StopReason
from worker.engines.protocol import (
    Capabilities,
    EngineNode,
    Order,
    Phase,
    Refused,
    Seen,
    Unreachable,
)
from worker.live.lease import leased
from worker.training import reconcile
from worker.training.orders import Orders
from worker.training.reconcile import LeaseLost, Reconciler


class WorkerKilled(BaseException):
    """The worker dies here."""


@dataclass
class ScriptedEngine:
    """An engine that does what a test says; `runs` is what truly lives on it."""

    node_names: Sequence[str]
    runs: set[str] = field(default_factory=set)
    ended: dict[str, Seen] = field(default_factory=dict)
    said: list[tuple[str, str]] = field(default_factory=list)
    launching: Callable[[Order], None] = lambda order: None
    stopping: Callable[[], None] = lambda: None
    is_away: bool = False
    forgets: bool = False

    capabilities = Capabilities(names_gpus=True, shares=False, uneven=True, several_nodes=True)

    def nodes(self) -> Sequence[EngineNode]:
        self._answer()
        return [EngineNode(name, "t4", 4, True) for name in self.node_names]

    def launch(self, order: Order) -> str:
        self._answer()
        self.said.append(("launch", order.attempt_id))
        self.launching(order)
        if order.attempt_id not in self.ended:
            self.runs.add(order.attempt_id)
        return f"engine-{order.attempt_id}"

    def look(self, attempt_ids: Sequence[str]) -> Mapping[str, Seen]:
        self._answer()
        return {each: self._seen(each) for each in attempt_ids}

    def _seen(self, attempt_id: str) -> Seen:
        if self.forgets:
            return Seen(Phase.ABSENT)
        if attempt_id in self.ended:
            return self.ended[attempt_id]
        return Seen(Phase.RUNNING if attempt_id in self.runs else Phase.ABSENT)

    def stop(self, attempt_id: str) -> None:
        self._answer()
        self.said.append(("stop", attempt_id))
        self.stopping()

    def kill(self, attempt_id: str) -> None:
        self._answer()
        self.said.append(("kill", attempt_id))

    def strays(self, known: Collection[str]) -> Sequence[str]:
        self._answer()
        found = sorted(self.runs - set(known))
        self.runs -= set(found)
        return found

    def forget(self, attempt_id: str) -> None:
        self._answer()
        self.said.append(("forget", attempt_id))

    def _answer(self) -> None:
        if self.is_away:
            raise Unreachable("it was asked and did not answer")

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.said]


@dataclass
class Stage:
    """One ordered attempt, and the engine that is to run it."""

    cluster: TrainingCluster
    engine: ScriptedEngine
    job_id: str

    def look(self) -> bool:
        with leased(self.cluster.database, self.cluster.cluster_id) as fencing:
            assert fencing is not None
            return self.reconciler(fencing).run()

    def reconciler(self, fencing: int = 0) -> Reconciler:
        cluster = self.cluster
        root = cluster.settings.data_path / "training" / cluster.cluster_id
        settings = cluster.settings
        key, allowed = secret_key(settings), settings.allow_commands
        orders = Orders(root, settings.public_url, key, allowed)
        return Reconciler(
            cluster.database, cluster.cluster_id, self.engine, orders, fencing=fencing
        )

    @property
    def attempt(self) -> AttemptRow:
        return self.cluster.attempts(self.job_id)[-1]

    def end(self, *codes: int) -> None:
        self.engine.runs.discard(self.attempt.id)
        self.engine.ended[self.attempt.id] = Seen(Phase.ENDED, exits=dict(enumerate(codes)))


@pytest.fixture
def stage(database: Database, tmp_path: Path) -> Stage:
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", allow_commands=True)
    cluster = TrainingCluster(database, settings, tmp_path)
    job_id = cluster.submit("train", gpu_count=1)
    cluster.decide()
    return Stage(cluster, ScriptedEngine(["t4-0", "t4-1", "a100-0"]), job_id)


def test_one_look_takes_an_attempt_from_its_order_to_its_processes(stage: Stage) -> None:
    assert stage.attempt.state == AttemptState.ORDERED
    assert stage.look()
    assert stage.attempt.state == AttemptState.RUNNING
    assert stage.engine.verbs() == ["launch"]
    assert stage.attempt.engine_id == f"engine-{stage.attempt.id}"
    assert not stage.look()


def test_what_there_is_no_time_for_is_left_to_the_next_look_and_ends_come_first(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.look()
    stage.end(0)
    others = [stage.cluster.submit("train", gpu_count=1) for _ in range(3)]
    stage.cluster.decide()
    monkeypatch.setattr(reconcile, "_MOST_SECONDS", 0.0)
    done = len(stage.engine.said)
    looks = 0
    with leased(stage.cluster.database, stage.cluster.cluster_id) as fencing:
        assert fencing is not None
        reconciler = stage.reconciler(fencing)
        while reconciler.run():
            looks += 1
            assert looks < 20
    assert not reconciler.has_more
    first = stage.engine.said[done:]
    assert first[0] == ("forget", stage.attempt.id)
    assert [verb for verb, _ in first] == ["forget"] + ["launch"] * 3
    assert looks >= 4
    assert {stage.cluster.attempts(job)[-1].state for job in others} == {AttemptState.RUNNING}


def _order_the_next(stage: Stage) -> None:
    """As a round does that moves the job, however late its changes are applied."""
    first = stage.attempt
    asked = {"stop_reason": StopReason.MOVED.value, "stop_seconds": first.ordered_seconds}
    kept = {"job_id", "cluster_id", "round_number", "gpu_type", "gpus_by_node", "gpu_count"}
    with stage.cluster.database.session_scope() as session:
        row = session.get_one(AttemptRow, first.id)
        if row.stop_reason is None and row.outcome is None:
            row.sqlmodel_update(asked)
        session.add(
            AttemptRow(
                **first.model_dump(include=kept),
                number=first.number + 1,
                state=AttemptState.ORDERED.value,
                reports=False,
                ordered_seconds=first.ordered_seconds,
            )
        )


@pytest.mark.parametrize("is_late", [False, True])
def test_a_job_that_has_done_all_its_work_is_not_started_again(stage: Stage, is_late: bool) -> None:
    stage.look()
    stage.end(0)
    if is_late:
        stage.look()
    _order_the_next(stage)
    stage.look()
    outcomes = [each.outcome for each in stage.cluster.attempts(stage.job_id)]
    assert outcomes == [Outcome.SUCCEEDED, Outcome.NEVER_STARTED]
    assert stage.engine.verbs().count("launch") == 1
    assert stage.cluster.state(stage.job_id) == "succeeded"


def test_a_refused_order_ends_and_frees_its_gpus(stage: Stage) -> None:
    def refuse(order: Order) -> None:
        raise Refused("no such gang")

    stage.engine.launching = refuse
    stage.look()
    assert (stage.attempt.outcome, stage.attempt.reason) == (Outcome.REFUSED, "no such gang")
    assert stage.cluster.holds() == []


def test_a_worker_where_commands_are_not_allowed_starts_none(stage: Stage) -> None:
    settings = stage.cluster.settings
    stage.cluster.settings = settings.model_copy(update={"allow_commands": False})
    stage.look()
    assert stage.attempt.outcome == Outcome.REFUSED
    assert "MAAT_ALLOW_COMMANDS" in stage.attempt.reason
    assert stage.engine.verbs() == []
    assert stage.cluster.holds() == []


def test_an_engine_that_is_away_changes_nothing_and_is_told_once(stage: Stage) -> None:
    stage.look()
    stage.cluster.note()
    before = stage.attempt.model_dump()
    stage.engine.is_away = True
    assert stage.look(), "that is news"
    for _ in range(3):
        assert not stage.look()
        stage.cluster.note()
    assert stage.attempt.model_dump() == before
    assert len(stage.cluster.holds()) == 1
    assert stage.cluster.row().fault == "it was asked and did not answer"
    away = stage.cluster.events(stage.job_id, EventKind.ENGINE)
    assert away == [{"answers": "no more", "reason": "it was asked and did not answer"}]
    stage.engine.is_away = False
    assert stage.look()
    stage.cluster.forget_everything()
    for _ in range(2):
        stage.cluster.note()
        assert not stage.look()
    assert stage.cluster.row().fault is None
    assert stage.cluster.events(stage.job_id, EventKind.ENGINE) == [*away, {"answers": "again"}]


def test_an_order_that_did_not_reach_the_engine_is_given_again(stage: Stage) -> None:
    stage.engine.is_away = True
    stage.look()
    assert stage.attempt.state == AttemptState.QUEUED
    stage.engine.is_away = False
    stage.look()
    assert stage.attempt.state == AttemptState.RUNNING
    assert len(stage.engine.runs) == 1


@pytest.mark.parametrize("started", [False, True])
def test_a_worker_that_dies_at_the_launch_starts_nothing_twice(stage: Stage, started: bool) -> None:
    def die(order: Order) -> None:
        if started:
            stage.engine.runs.add(order.attempt_id)
        raise WorkerKilled

    stage.engine.launching = die
    with pytest.raises(WorkerKilled):
        stage.look()
    assert stage.attempt.launched
    stage.engine.launching = lambda order: None
    stage.look()
    assert stage.attempt.state == AttemptState.RUNNING
    assert stage.engine.runs == {stage.attempt.id}


def test_an_engine_that_forgets_an_attempt_must_forget_it_for_a_while(stage: Stage) -> None:
    stage.look()
    stage.engine.forgets = True
    stage.look()
    assert stage.attempt.state == AttemptState.RUNNING
    stage.cluster.wind(11.0)
    stage.look()
    assert ("kill", stage.attempt.id) in stage.engine.said
    assert stage.attempt.state == AttemptState.STOPPING
    assert len(stage.cluster.holds()) == 1
    stage.cluster.wind(11.0)
    stage.look()
    assert stage.attempt.outcome == Outcome.LOST
    assert stage.cluster.holds() == []


def test_an_engine_that_remembers_again_goes_on(stage: Stage) -> None:
    stage.look()
    stage.engine.forgets = True
    stage.look()
    stage.engine.forgets = False
    stage.look()
    stage.cluster.wind(60.0)
    stage.look()
    assert stage.attempt.state == AttemptState.RUNNING
    assert stage.attempt.absent_seconds is None


def test_a_stop_that_did_not_reach_the_engine_is_asked_again_before_any_force(stage: Stage) -> None:
    stage.look()
    stage.cluster.ask_to_end(stage.job_id, StopReason.PREEMPTED)
    stage.engine.is_away = True
    stage.look()
    stage.cluster.wind(60.0)
    stage.engine.is_away = False
    stage.look()
    assert stage.engine.verbs() == ["launch", "stop"]
    stage.look()
    assert stage.engine.verbs() == ["launch", "stop"], "its time to save begins when it hears"
    stage.cluster.wind(6.0)
    stage.look()
    assert stage.engine.verbs() == ["launch", "stop", "kill"]
    stage.end(-9)
    stage.look()
    assert stage.attempt.outcome == Outcome.STOPPED
    assert stage.engine.verbs()[-1] == "forget"


def test_an_engine_that_takes_long_to_stop_an_attempt_costs_it_no_time_to_save(
    stage: Stage,
) -> None:
    stage.look()
    stage.cluster.ask_to_end(stage.job_id, StopReason.PREEMPTED)
    stage.engine.stopping = lambda: stage.cluster.wind(60.0)
    stage.look()
    stage.look()
    assert stage.engine.verbs() == ["launch", "stop"]


def test_a_silent_attempt_is_stopped_and_counts_as_failed(stage: Stage) -> None:
    stage.look()
    stage.cluster.change_attempt(stage.attempt.id, reported_at=utc_now(), reported_seconds=0.0)
    stage.cluster.wind(400.0)
    stage.look()
    assert stage.attempt.stop_reason == StopReason.SILENT
    stage.end(-9)
    stage.look()
    assert stage.attempt.outcome == Outcome.FAILED
    assert "report" in stage.attempt.reason


def test_a_worker_that_lost_its_lease_writes_nothing(stage: Stage) -> None:
    cluster = stage.cluster
    with leased(cluster.database, cluster.cluster_id) as fencing:
        assert fencing is not None
        with cluster.database.session_scope() as session:
            row = session.get_one(Cluster, cluster.cluster_id)
            row.fencing += 1
            session.add(row)
        with pytest.raises(LeaseLost):
            stage.reconciler(fencing).run()
    assert stage.attempt.state == AttemptState.ORDERED
    assert cluster.holds() == []
    assert stage.engine.said == []


def test_what_runs_and_is_nobodys_is_ended(stage: Stage) -> None:
    stage.look()
    stage.engine.runs.add("att_of_nobody")
    assert stage.reconciler().end_strays() == ["att_of_nobody"]
    assert stage.engine.runs == {stage.attempt.id}


def test_nodes_that_the_engine_does_not_know_are_out_of_service(stage: Stage) -> None:
    stage.engine.node_names = ["t4-0"]
    stage.look()
    with stage.cluster.database.session_scope(writes=False) as session:
        faults = dict(session.exec(select(Node.name, Node.fault)).all())
    assert [name for name, fault in faults.items() if fault is None] == ["t4-0"]
    stage.engine.node_names = ["t4-0", "t4-1", "a100-0"]
    stage.look()
    with stage.cluster.database.session_scope(writes=False) as session:
        assert set(session.exec(select(Node.fault)).all()) == {None}
