"""A service with two tenants on one cluster: red, whose every text is secret, and blue.

The worker has carried out all that both have asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import col, select

from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Role
from backend.accounts.tokens import create_token
from backend.app import create_app
from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Cluster,
    ForecastPromise,
    Job,
    Round,
    SimulationRun,
    SweepPoint,
    WhatIf,
)
from backend.settings import Settings
from frontend import app as composition
from worker.fairness.work import work_out
from worker.forecasts.what_if import answer
from worker.forecasts.work import work_out as forecast_jobs
from worker.live.step import step_cluster
from worker.papers.reproductions import reproduce
from worker.simulations.experiments import run_experiment
from worker.simulations.runs import run_simulation
from worker.simulations.sweeps import run_point

HERE, API = "http://127.0.0.1:8000", "/api/v1"
SECRET = "zq7secret"  # stands in every text that red gives
RED_MODEL, BLUE_MODEL = "deepspeech2", "cifar10"
TINY = {"cluster": "t4=2x4", "policy": "srtf"}


class RememberingQueue:
    """Messages that nobody takes: the test calls the worker's functions itself."""

    def send(self, task: str, *arguments: str) -> None:
        """Nothing is kept: rows are the truth."""

    def waiting(self) -> dict[str, int]:
        return {}


@dataclass
class World:
    """`ids`: noun -> ids of red's and of blue's."""

    app: FastAPI
    database: Database
    cluster_id: str
    tokens: dict[str, str] = field(default_factory=dict)
    red: dict[str, list[str]] = field(default_factory=dict)
    blue: dict[str, list[str]] = field(default_factory=dict)
    price_id: str = ""

    def client(self, user: str) -> TestClient:
        """Speaks as this user, from far away."""
        headers = {"Authorization": f"Bearer {self.tokens[user]}"}
        return TestClient(
            self.app, base_url="http://maat.example", client=("10.0.0.9", 50000), headers=headers
        )


def make_world(folder: Path) -> World:
    """Make a world in which both tenants have something of every kind.

    They have running, waiting and ended jobs, shared GPUs, reservations, measurements, simulations,
    sweeps and operations.
    """
    settings = Settings(
        _env_file=None,
        data_dir=folder,
        database_url="",
        broker_url="",
        demo=True,
        event_poll_seconds=0.01,
    )
    database = Database.of(settings)
    ensure_defaults(database, settings)
    service = create_app(settings, queue=RememberingQueue())
    with database.session_scope() as session:
        cluster_id = session.exec(select(Cluster.id)).one()
    world = World(service, database, cluster_id)
    _make_users(world)
    with TestClient(service, base_url=HERE, client=("127.0.0.1", 50000)) as admin:
        red, blue = world.client("red-submitter"), world.client("blue-submitter")
        world.red["jobs"] = _submit(red, SECRET, RED_MODEL, count=6)
        world.blue["jobs"] = _submit(blue, "blue", BLUE_MODEL, count=3)
        _reserve(admin, world)
        _play_rounds(world)
        _share_gpus(world)
        for client, whose, word in ((red, world.red, SECRET), (blue, world.blue, "blue")):
            _ask_for_work(client, whose, word, world.cluster_id)
    _do_work(world)
    for tenant, whose, word in (("red", world.red, SECRET), ("blue", world.blue, "blue")):
        _keep_reports(world.client(f"{tenant}-tenant_manager"), whose, word)
    world.app = composition.create_app(settings)
    return world


def _make_users(world: World) -> None:
    with world.database.session_scope() as session:
        for tenant, word in (("red", SECRET), ("blue", "blue")):
            home = Tenant(name=f"{word} tenant")
            session.add(home)
            session.flush()
            for role in (Role.SUBMITTER, Role.VIEWER, Role.TENANT_MANAGER):
                user = User(name=f"{word} {role.value}", tenant_id=home.id, role=role.value)
                session.add(user)
                session.flush()
                world.tokens[f"{tenant}-{role.value}"] = create_token(
                    session, user, name=f"{word} token"
                )
        session.add(home)


def _made(answer: Any) -> dict[str, Any]:
    assert answer.status_code in (200, 201, 202), answer.text
    made: dict[str, Any] = answer.json()
    return made


def _submit(client: TestClient, word: str, model: str, *, count: int) -> list[str]:
    shapes: list[dict[str, Any]] = [
        {"max_gpus": 8, "work_scale": 0.02},
        {"min_gpus": 2, "work_scale": 0.4},
        {"gpu_types": ["a100"], "min_gpus": 16, "work_scale": 0.4},
    ]
    made = []
    for number in range(count):
        body = {
            "name": f"{word} job {number}",
            "external_id": f"{word} external {number}",
            "model": model,
            "labels": {"team": word},
            **shapes[number % 3],
        }
        made.append(_made(client.post(f"{API}/jobs", json=body))["id"])
    _made(client.post(f"{API}/jobs/{made[-1]}/actions/cancel"))
    return made


def _reserve(admin: TestClient, world: World) -> None:
    url = f"{API}/clusters/{world.cluster_id}/reservations"
    mine = [
        _made(admin.post(url, json={"gpu_type": "t4", "gpu_count": 2, "tenant": "blue tenant"}))[
            "id"
        ]
    ]
    theirs = [
        _made(admin.post(url, json={"gpu_type": kind, "gpu_count": 2, **holder}))["id"]
        for kind, holder in (
            ("a100", {"tenant": f"{SECRET} tenant"}),
            ("rtx", {"job_id": world.red["jobs"][1]}),
        )
    ]
    world.blue["reservations"], world.red["reservations"] = mine, theirs
    for tenant, ceiling in ((f"{SECRET} tenant", 20), ("blue tenant", 22)):
        quotas = f"{API}/clusters/{world.cluster_id}/quotas/{tenant}"
        _made(admin.put(f"{quotas}/t4", json={"guaranteed": 2, "ceiling": ceiling}))
    price = {"gpu_type": "t4", "price_per_gpu_hour": "0.35", "currency": "EUR"}
    prices = f"{API}/clusters/{world.cluster_id}/prices"
    world.price_id = _made(admin.post(prices, json=price))["id"]


def _play_rounds(world: World) -> None:
    for seconds in range(60, 600, 60):
        with world.database.session_scope() as session:
            cluster = session.get_one(Cluster, world.cluster_id)
            cluster.speed, cluster.anchor_seconds, cluster.anchor_wall = (
                1e-9,
                float(seconds),
                utc_now(),
            )
        step_cluster(world.database, world.cluster_id)


def _share_gpus(world: World) -> None:
    """Write what a policy that shares GPUs leaves behind.

    Jobs of both tenants are partners, and a reservation of red keeps blue's job waiting.
    """
    red, blue = world.red["jobs"], world.blue["jobs"]
    limit = f"reservation:a100:tenant {SECRET} tenant + job {red[1]}"
    why = {"shares_with": f"{red[0]}, {red[1]}", "binding_limit": limit}
    with world.database.session_scope() as session:
        for job_id in (blue[0], red[0]):
            session.get_one(Job, job_id).reason_evidence = {"shares_with": f"{red[1]}, {blue[1]}"}
        waiting = session.get_one(Job, blue[1])
        waiting.reason_code, waiting.reason_evidence = "WAITING_RESERVATION", why
        last = session.exec(select(Round).order_by(col(Round.number).desc())).first()
        assert last is not None
        record = dict(last.record)
        grants = {
            job_id: {**grant, "share_with": [red[1], blue[1]]}
            for job_id, grant in record["grants"].items()
        }
        reasons = {
            job_id: {
                "code": "WAITING_RESERVATION",
                "sentence": f"for {SECRET} tenant",
                "evidence": why,
            }
            for job_id in record["reasons"]
        }
        last.prices = {**last.prices, limit: 1.0}
        last.message = f"{red[0]} stays"
        last.record = {
            **record,
            "grants": grants,
            "reasons": reasons,
            "report": {**record["report"], "message": f"{red[0]} stays"},
        }


def _ask_for_work(
    client: TestClient, whose: dict[str, list[str]], word: str, cluster_id: str
) -> None:
    text = (
        "name,time,application,num_replicas,batch_size,tenant\n"
        f"{word} first,0,bert,1,24,{word} tenant\n"
        f"{word} second,9,bert,1,24,\n"
    )
    history, csv = {"kind": "cluster", "cluster_id": cluster_id}, {"kind": "csv", "text": text}
    pairs = {"name": f"{word}.csv", "text": "victim,partner,gpu_count,slowdown\nbert,bert,1,1.5\n"}
    measured = _made(
        client.post(
            f"{API}/measurements",
            json={"kind": "interference", "name": f"{word} pairs", "files": [pairs]},
        )
    )
    whose["measurements"] = [measured["id"]]
    bodies: list[dict[str, Any]] = [
        {"traces": [csv], "cluster": "t4=1x4", "interference": f"{word} pairs", "jobs_per_gpu": 2},
        {
            "traces": [history],
            "cluster": "t4=2x4,a100=1x8",
            "reservations": [{"gpu_type": "t4", "gpu_count": 1, "job": whose["jobs"][0]}],
        },
    ]
    runs = [{"policy": "fifo"}, {"policy": "srtf"}]
    made = [
        _made(
            client.post(
                f"{API}/simulations", json={"name": f"{word} simulation", "runs": runs, **body}
            )
        )
        for body in bodies
    ]
    vary = [{"name": "round_seconds", "values": [60, 120]}]
    sweep = {"name": f"{word} sweep", "cluster": "t4=2x4,a100=1x8", "policy": "fifo", "vary": vary}
    swept = [
        _made(client.post(f"{API}/sweeps", json={**sweep, "trace": trace}))
        for trace in (csv, history)
    ]
    whose["simulations"] = [one["id"] for one in made]
    whose["runs"] = [run["id"] for one in made for run in one["runs"]]
    whose["sweeps"] = [one["id"] for one in swept]
    scaling = {"name": f"{word} experiment", "cluster": "t4=4x4", "fixed_nodes": []}
    experiments = [
        _made(client.post(f"{API}/experiments/autoscaling", json={**scaling, "trace": csv}))
    ]
    whose["experiments"] = [one["id"] for one in experiments]
    changes = {"policy": "fifo", "drain_nodes": ["t4-0"]}
    job = {"name": f"{word} new", "model": "bert"}
    asked = [
        _made(client.post(f"{API}/forecasts", json=body))
        for body in ({"changes": changes}, {"job": job})
    ]
    whose["forecasts"] = [one["id"] for one in asked]
    again = _made(
        client.post(
            f"{API}/reproductions",
            json={"paper": "bsbf", "items": ["fig-3"], "interference": f"{word} pairs"},
        )
    )
    whose["reproductions"] = [again["id"]]
    begun = (*made, *swept, *experiments, *asked, again)
    whose["operations"] = [one["operation_id"] for one in begun]


def _keep_reports(manager: TestClient, whose: dict[str, list[str]], word: str) -> None:
    schedule = {
        "name": f"{word} Mondays",
        "cluster": "demo",
        "channel": "webhook",
        "url": f"https://{word}.example.com/{word}",
        "secret": f"{word} signs messages".replace(" ", "-"),
    }
    kept = _made(manager.post(f"{API}/reports", json={"cluster": "demo"}))
    made = _made(manager.post(f"{API}/report-schedules", json=schedule))
    _made(manager.post(f"{API}/report-schedules/{made['id']}/actions/deliver"))
    whose["reports"], whose["schedules"] = [kept["id"]], [made["id"]]
    hook = {
        "name": f"{word} pager",
        "url": f"https://93.184.216.34/{word}",
        "events": ["job.failed"],
    }
    webhook = _made(manager.post(f"{API}/webhooks", json=hook))
    sent = _made(manager.post(f"{API}/webhooks/{webhook['id']}/actions/test"))
    whose["webhooks"], whose["messages"] = [webhook["id"]], [sent["id"]]


def _do_work(world: World) -> None:
    for simulation_id in world.red["simulations"] + world.blue["simulations"]:
        run_simulation(world.database, simulation_id)
    with world.database.session_scope(writes=False) as session:
        keys = list(session.exec(select(SweepPoint.key)))
    for key in keys:
        run_point(world.database, key)
    for reproduction_id in world.red["reproductions"] + world.blue["reproductions"]:
        reproduce(world.database, world.app.state.settings, reproduction_id)
    for experiment_id in world.red["experiments"] + world.blue["experiments"]:
        assert run_experiment(world.database, experiment_id) == "succeeded"
    while work_out(world.database):
        pass
    forecast_jobs(world.database, world.cluster_id)
    for forecast_id in world.red["forecasts"] + world.blue["forecasts"]:
        answer(world.database, forecast_id)
    with world.database.session_scope(writes=False) as session:
        assert set(session.exec(select(SimulationRun.state))) == {"succeeded"}
        assert all(session.exec(select(WhatIf.result)))
        assert session.exec(select(ForecastPromise)).all()
        assert set(session.exec(select(SweepPoint.state))) == {"succeeded"}
