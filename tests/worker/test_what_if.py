"""Questions to a live cluster: what if a node, a policy or a job were another."""

from __future__ import annotations

from typing import Any

import pytest
from forecast_samples import MORE_NODES, answered, ask, make_fifo, one_runs, submit_rigid
from live_samples import make_cluster, make_owner, step_at
from sqlmodel import select

from backend.audit.models import AuditRecord
from backend.clusters.service import change_cluster
from backend.database import Database
from backend.models import (
    Cluster,
    Job,
    Operation,
    OperationState,
    WhatIf,
)
from backend.previews.service import prepare_preview
from maat.api.clusters import ClusterChanges
from maat.api.previews import RoundPreviewBody
from maat.forecasting.draws import Grounds
from maat.forecasting.forecast import Forecast, JobForecast, Quantiles
from maat.forecasting.play import Played
from maat.scheduling.stability import Stability
from maat.vocabulary import ForecastBasis
from worker.forecasts import what_if


def test_a_drained_node_puts_off_what_ran_on_it(database: Database) -> None:
    cluster_id = make_fifo(database)
    held = submit_rigid(database, cluster_id, gpus=4, batch_size=256, gpu_types=["t4"])
    second = submit_rigid(database, cluster_id, gpus=4, batch_size=256, gpu_types=["t4"])
    step_at(database, cluster_id, 30.0)

    forecast_id = ask(database, cluster_id, changes={"drain_nodes": ["t4-0"]})
    what_if.answer(database, forecast_id)

    operation, result = answered(database, forecast_id)
    assert operation.state == OperationState.SUCCEEDED
    assert operation.done == 2 * result["draws"] >= 2 * what_if.LEAST_PAIRS
    assert len(result["slowed"]) == 1
    job_id, p50, _, share = result["slowed"][0]
    assert job_id in {held, second}
    assert p50 > 60
    assert share == 1.0
    assert result["after"]["last_end_seconds"] > result["before"]["last_end_seconds"]
    before, after = result["times"][job_id]
    assert after["end_p50"] - before["end_p50"] > 60
    assert (before["holds_gpus"], before["start_p50"]) == (True, None)


def test_a_job_that_ends_within_the_horizon_in_one_state_alone_counts_in_no_mean() -> None:
    def forecast_of(**ends: float | None) -> Forecast:
        jobs = {
            job_id: JobForecast(
                job_id, None, Quantiles(end, end), (), Grounds(ForecastBasis.WORK, 0)
            )
            for job_id, end in ends.items()
        }
        return Forecast(0.0, jobs, Played({}, {}, {}, 0), ())

    before, after = forecast_of(a=10.0, b=None), forecast_of(a=8.0, b=900.0)

    sides = [what_if._side(before, after), what_if._side(after, before)]

    assert [side["mean_end_seconds"] for side in sides] == [10.0, 8.0]
    assert [side["last_end_seconds"] for side in sides] == [None, 900.0]
    assert [side["later"] for side in sides] == [1, 0]


def test_mean_start_and_mean_end_of_waiting_jobs_are_of_the_same_jobs() -> None:
    """`late` starts within the horizon and does not end in it; `runs` has no start."""

    def forecast_of(**times: tuple[float | None, float | None]) -> Forecast:
        jobs = {
            job_id: JobForecast(
                job_id,
                None if start is None else Quantiles(start, start),
                Quantiles(end, end),
                (),
                Grounds(ForecastBasis.WORK, 0),
            )
            for job_id, (start, end) in times.items()
        }
        return Forecast(0.0, jobs, Played({}, {}, {}, 0), ())

    now = forecast_of(runs=(None, 3.0), soon=(10.0, 20.0), late=(900.0, None))

    side = what_if._side(now, now)

    assert (side["waiting"], side["ending"]) == (1, 2)
    assert (side["mean_start_seconds"], side["mean_end_of_waiting_seconds"]) == (10.0, 20.0)
    assert side["mean_end_seconds"] == 11.5


def test_another_policy_and_more_nodes_are_played_side_by_side(database: Database) -> None:
    cluster_id = make_fifo(database)
    long = submit_rigid(database, cluster_id, work_scale=3.0)
    short = submit_rigid(database, cluster_id, submitted_seconds=1.0, work_scale=0.1)
    step_at(database, cluster_id, 30.0)

    forecast_id = ask(database, cluster_id, changes={"policy": "srtf"})
    what_if.answer(database, forecast_id)
    _, result = answered(database, forecast_id)
    by_job = {row[0]: row[1] for row in result["slowed"]}
    assert by_job[short] < 0 < by_job[long]

    forecast_id = ask(database, cluster_id, changes=MORE_NODES)
    what_if.answer(database, forecast_id)
    _, result = answered(database, forecast_id)
    assert {row[0]: row[1] for row in result["slowed"]}[short] < 0
    before, after = result["times"][short]
    assert after["start_p50"] < before["start_p50"]
    assert ["a100", 8] in [span[1:] for span in before["spans"]]
    assert ["a100", 8] in [span[1:] for span in after["spans"]]


def test_a_least_stay_keeps_a_long_job_on_the_gpus_that_a_shorter_one_waits_for(
    database: Database,
) -> None:
    cluster_id = make_cluster(database, policy="srtf", placer="packed-sticky")
    long = submit_rigid(database, cluster_id, work_scale=3.0)
    step_at(database, cluster_id, 30.0)
    short = submit_rigid(database, cluster_id, submitted_seconds=40.0, work_scale=0.1)

    forecast_id = ask(database, cluster_id, changes={"least_stay_seconds": 3600.0})
    what_if.answer(database, forecast_id)

    _, result = answered(database, forecast_id)
    by_job = {row[0]: row[1] for row in result["slowed"]}
    assert by_job[short] > 600
    assert by_job[long] < 0
    bounds = ("least_stay_seconds", "most_moves_per_hour")
    assert [result["before"][name] for name in bounds] == [None, None]
    assert [result["after"][name] for name in bounds] == [3600.0, None]
    (note,) = result["notes"]
    assert "overstates what a bound saves" in note


def test_a_bound_of_the_cluster_is_asked_away_and_the_other_stays(database: Database) -> None:
    bounds = {"least_stay_seconds": 3600.0, "most_moves_per_hour": 2}
    cluster_id = make_cluster(database, policy="srtf", placer="packed-sticky", **bounds)
    submit_rigid(database, cluster_id, work_scale=3.0)
    step_at(database, cluster_id, 30.0)
    short = submit_rigid(database, cluster_id, submitted_seconds=40.0, work_scale=0.1)

    forecast_id = ask(database, cluster_id, changes={"least_stay_seconds": None})
    what_if.answer(database, forecast_id)

    _, result = answered(database, forecast_id)
    assert {row[0]: row[1] for row in result["slowed"]}[short] < -600
    assert {name: result["before"][name] for name in bounds} == bounds
    assert {name: result["after"][name] for name in bounds} == bounds | {"least_stay_seconds": None}
    assert list(what_if.bound_notes(Stability(3600.0), Stability(60.0))) == [
        "Far ahead few rounds are played: there jobs restart as often as they did until now, under "
        "the bound that it has: without it, more may come."
    ]
    assert list(what_if.bound_notes(Stability(), Stability(0.0))) == []


PARTS = ("policy", "policy_parameters", "placer", "placer_parameters")


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "pollux"},
        {"policy": "sia"},
        {"policy": "sia", "policy_parameters": {"p": -1.0}},
        {"placer": "pal"},
        {"policy": "las", "placer": "pal"},
        {"policy": "fifo", "policy_parameters": {}},
    ],
    ids=str,
)
def test_what_is_asked_is_what_the_same_change_would_make(
    database: Database, changes: dict[str, Any]
) -> None:
    own = {"policy_parameters": {"p": -2.0}, "placer_parameters": {"spread": True}}
    cluster_id = make_cluster(database, policy="sia", placer="whole-node", **own)
    submit_rigid(database, cluster_id, gpus=1, work_scale=0.1)
    step_at(database, cluster_id, 30.0)
    with database.session_scope(writes=False) as session:
        tried = prepare_preview(session, cluster_id, RoundPreviewBody(**changes)).wanted

    forecast_id = ask(database, cluster_id, changes=changes)
    what_if.answer(database, forecast_id)
    _, result = answered(database, forecast_id)
    with database.session_scope() as session:
        change_cluster(session, cluster_id, ClusterChanges(**changes), "*")
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        written = session.exec(select(AuditRecord).order_by(AuditRecord.id)).all()[-1:]

    made = {name: getattr(cluster, name) for name in PARTS}
    assert {name: result["after"][name] for name in PARTS} == made
    assert {name: tried[name] for name in PARTS} == made
    assert result["before"]["policy_parameters"] == {"p": -2.0}
    for record in written:
        assert {name: record.after[name] for name in PARTS} == made
    assert len(written) == (changes != {"policy": "sia"})


def added(kind: str, gpus: int = 8) -> dict[str, Any]:
    return {"add_nodes": [{"gpu_type": kind, "gpu_count": gpus}]}


@pytest.mark.parametrize(
    ("fields", "changes", "note"),
    [
        ({}, added("h100"), "No job here can use h100: 1 job does not allow it."),
        (
            {"gpu_types": None},
            added("h100"),
            "No job here can use h100: 1 model has no profile on it.",
        ),
        (
            {"gpu_types": None, "gpus": 4},
            added("rtx", 2),
            "No job here can use rtx: 1 job needs more than 2 GPUs.",
        ),
        ({"gpu_types": None, "gpus": 4}, added("rtx", 4), None),
        ({}, added("a100"), None),
        ({}, {"policy": "srtf"}, None),
    ],
)
def test_why_no_job_uses_a_gpu_type_that_is_asked_for_is_told(
    database: Database, fields: dict[str, Any], changes: dict[str, Any], note: str | None
) -> None:
    cluster_id = make_fifo(database)
    submit_rigid(database, cluster_id, **fields)
    step_at(database, cluster_id, 30.0)

    forecast_id = ask(database, cluster_id, changes=changes)
    what_if.answer(database, forecast_id)

    _, result = answered(database, forecast_id)
    assert result["notes"] == ([] if note is None else [note])


def test_a_job_that_no_round_would_start_is_told_so(database: Database) -> None:
    cluster_id = make_cluster(database)
    owner, tenant = make_owner(database)
    row = Job(
        cluster_id=cluster_id, name="net", owner_id=owner, tenant_id=tenant, model="cifar10",
        adaptivity="adaptive", submitted_seconds=0.0, remaining_work=1.0, min_gpus=3, max_gpus=3,
    ).model_dump(mode="json", exclude={"created_at"})  # fmt: skip
    forecast_id = ask(database, cluster_id, row=row, tenant="tenant", work=1.0, after=[])
    what_if.answer(database, forecast_id)

    (note,) = answered(database, forecast_id)[1]["notes"]
    assert note.startswith("No round would start it as the cluster stands. The policy gives these")


def test_a_job_that_is_asked_for_counts_among_those_that_use_a_type(database: Database) -> None:
    cluster_id = make_fifo(database)
    forecast_id = ask(database, cluster_id, changes=added("h100"))
    what_if.answer(database, forecast_id)

    assert answered(database, forecast_id)[1]["notes"] == []


def test_a_cancelled_question_stops_and_has_no_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = one_runs(database)
    forecast_id = ask(database, cluster_id, changes={"policy": "srtf"})
    monkeypatch.setattr(what_if, "LOOK_SECONDS", 0.0)
    with database.session_scope() as session:
        operation = session.get_one(Operation, answered(database, forecast_id)[0].id)
        operation.cancel_requested = True
        session.add(operation)

    what_if.answer(database, forecast_id)

    operation, result = answered(database, forecast_id)
    assert (operation.state, result) == (OperationState.CANCELLED, None)


def test_a_question_that_is_cancelled_after_a_first_answer_keeps_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    forecast_id = ask(database, one_runs(database), changes={"policy": "srtf"})
    monkeypatch.setattr(what_if, "LOOK_SECONDS", 0.0)
    store = what_if._store_so_far

    def store_and_cancel(*arguments: Any) -> None:
        store(*arguments)
        with database.session_scope() as session:
            operation = session.get_one(Operation, answered(database, forecast_id)[0].id)
            operation.cancel_requested = True

    monkeypatch.setattr(what_if, "_store_so_far", store_and_cancel)
    what_if.answer(database, forecast_id)

    operation, result = answered(database, forecast_id)
    assert operation.state == OperationState.CANCELLED
    assert result["draws"] == 1


def test_a_question_without_a_worker_is_sent_again_and_answered_once(database: Database) -> None:
    cluster_id = one_runs(database)
    forecast_id = ask(database, cluster_id, changes={"policy": "srtf"})

    assert what_if.waiting_questions(database) == [forecast_id]
    assert what_if.waiting_questions(database) == []
    what_if.answer(database, forecast_id)
    first = answered(database, forecast_id)
    what_if.answer(database, forecast_id)
    assert answered(database, forecast_id) == first


def test_a_first_answer_is_there_while_others_are_played(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = one_runs(database)
    forecast_id = ask(database, cluster_id, changes=MORE_NODES)
    seen: list[tuple[str, int]] = []
    told = what_if._tell

    def noted(*arguments: Any) -> None:
        told(*arguments)
        operation, result = answered(database, forecast_id)
        seen.append((operation.state, 0 if result is None else result["draws"]))

    monkeypatch.setattr(what_if, "_tell", noted)
    what_if.answer(database, forecast_id)

    running = OperationState.RUNNING.value
    assert seen[:5] == [(running, n) for n in (0, 0, 1, 1, 2)]
    assert answered(database, forecast_id)[1]["draws"] >= what_if.LEAST_PAIRS


def test_a_question_out_of_time_keeps_the_pairs_that_were_played(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = one_runs(database)
    forecast_id = ask(database, cluster_id, changes=MORE_NODES)
    told = what_if._tell

    def noted(database: Database, asked: WhatIf, done: int) -> None:
        told(database, asked, done)
        if done == 2:
            monkeypatch.setattr(what_if, "MOST_SECONDS", 0.0)

    monkeypatch.setattr(what_if, "_tell", noted)
    what_if.answer(database, forecast_id)

    operation, result = answered(database, forecast_id)
    assert (operation.state, result["draws"]) == (OperationState.SUCCEEDED, 1)


def test_the_next_answer_is_for_the_tenant_that_has_used_less(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = one_runs(database)
    first = ask(database, cluster_id, tenant="red", changes=MORE_NODES)
    second = ask(database, cluster_id, tenant="red", changes=MORE_NODES)
    other = ask(database, cluster_id, tenant="blue", changes=MORE_NODES)
    answers = list[str]()

    def noting(_: Database, asked: WhatIf) -> dict[str, Any]:
        answers.append(asked.id)
        return {"x": sum(range(1_000_000))}

    monkeypatch.setattr(what_if, "_worked_out", noting)
    for _ in range(4):
        what_if.answer_next(database)
    assert answers == [first, other, second]
    assert answered(database, first)[0].cpu_seconds > 0
