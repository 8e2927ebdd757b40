"""The examples of what the library asks of a service are true of a real one."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Mapping

import pytest
from fastapi import FastAPI
from sqlmodel import select

from backend.app import provide
from backend.clocktime import utc_now
from backend.models import Cluster, Simulation
from backend.queue import ANSWER_WHAT_IF, PLAY_NEXT_RUN
from maat.client import Client
from worker.forecasts import what_if
from worker.live.step import step_cluster
from worker.simulations.runs import run_simulation

ASKS_A_SERVICE = ("maat.client.clients", "maat.library.replaying", "maat.library.what_if")


class WorkerAtOnce:
    """A queue whose worker plays a simulation and answers a question as soon as it is asked."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def send(self, task: str, *arguments: str) -> None:
        if task == PLAY_NEXT_RUN:
            database = self._app.state.database
            with database.session_scope(writes=False) as session:
                asked = session.exec(select(Simulation.id)).all()
            for simulation_id in asked:
                run_simulation(database, simulation_id)
        if task == ANSWER_WHAT_IF:
            what_if.answer(self._app.state.database, *arguments)

    def waiting(self) -> Mapping[str, int]:
        return {}


@pytest.fixture
def service(maat: Client, app: FastAPI) -> Client:
    """Return a client of a service whose cluster has three jobs and two hours behind it."""
    provide(app, app.state.settings, queue=WorkerAtOnce(app))
    for number in range(3):
        maat.submit_job({"name": f"job-{number}", "model": "cifar10", "work_scale": 0.1})
    with app.state.database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.speed, cluster.anchor_seconds, cluster.anchor_wall = 1e-9, 7200.0, utc_now()
        session.add(cluster)
    step_cluster(app.state.database, cluster.id)
    return maat


@pytest.mark.parametrize("module", ASKS_A_SERVICE)
def test_the_examples_of_what_asks_a_service_are_true(service: Client, module: str) -> None:
    found = doctest.testmod(importlib.import_module(module), extraglobs={"client": service})

    assert (found.failed, found.attempted > 0) == (0, True)
