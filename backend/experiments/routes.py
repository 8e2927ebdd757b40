"""Routes of experiments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session

from backend.accounts.identity import Principal, a_simulation, require
from backend.accounts.permissions import Permission
from backend.experiments.resources import show_experiment, show_whole_experiment
from backend.experiments.service import (
    PreparedExperiment,
    get_experiment,
    newest_experiments,
    prepare_experiment,
    store_experiment,
)
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.laboratory.budget import within_budget
from backend.operations.service import operations_of
from backend.pagination import PageAsked
from backend.queue import Queue
from backend.settings import Settings
from backend.web.bodies import TRACE_BYTES, takes_bytes
from backend.web.dependencies import QueueDep, Reading, ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.experiments import (
    AutoscalingBody,
    AutoscalingOut,
    ExperimentBody,
    ExperimentDetail,
    ExperimentOut,
    TuningBody,
    TuningOut,
)
from maat.api.fields import Page

router = APIRouter(prefix="/experiments", tags=["simulations"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.SIMULATIONS_READ))]
Runner = Annotated[Principal, Depends(require(Permission.SIMULATIONS_RUN))]


@router.post(
    "/autoscaling",
    operation_id="requestAutoscaling",
    status_code=202,
    response_model=AutoscalingOut,
    dependencies=[Depends(a_simulation)],
)
@takes_bytes(TRACE_BYTES)
def create_autoscaling(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    queue: QueueDep,
    principal: Runner,
    body: AutoscalingBody,
    key: KeyHeader = None,
) -> Response:
    """Train a model, or play a workload, on rented nodes (Pollux section 5.4.1).

    Follow the operation in Location; results arrive run by run.
    """
    return _begin(session, reading, settings, queue, principal, body, key)


@router.post(
    "/tuning",
    operation_id="requestTuning",
    status_code=202,
    response_model=TuningOut,
    dependencies=[Depends(a_simulation)],
)
def create_tuning(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    queue: QueueDep,
    principal: Runner,
    body: TuningBody,
    key: KeyHeader = None,
) -> Response:
    """Search hyper-parameters with elastic and with static trials (Pollux section 5.4.2).

    Follow the operation in Location; results arrive search by search.
    """
    return _begin(session, reading, settings, queue, principal, body, key)


def _begin(
    session: Session,
    reading: Reading,
    settings: Settings,
    queue: Queue,
    principal: Principal,
    body: ExperimentBody,
    key: str | None,
) -> Response:
    def answer(prepared: PreparedExperiment) -> Answer:
        experiment = store_experiment(session, principal, prepared, queue)
        operation = operations_of(session, [experiment])[experiment.id]
        return Answer(
            202,
            show_whole_experiment(session, experiment, operation),
            {"Location": f"/api/v1/operations/{operation.id}", "Retry-After": "1"},
        )

    route = f"POST /experiments/{body.kind}"
    once = Once(principal.user_id, route, key, body)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=within_budget(
            principal, settings, lambda before: prepare_experiment(before, principal, body)
        ),
        answer=answer,
    )


@router.get("", operation_id="listExperiments")
def list_experiments(
    session: SessionDep, principal: Reader, asked: PageAsked
) -> Page[ExperimentOut]:
    """Newest first, without their runs."""
    found = newest_experiments(session, principal, asked)
    operations = operations_of(session, list(found.items))
    return found.shown(lambda one: show_experiment(one, operations[one.id]))


@router.get("/{experiment_id}", operation_id="getExperiment")
def read_experiment(session: SessionDep, principal: Reader, experiment_id: str) -> ExperimentDetail:
    """An experiment with its request and the runs that have ended."""
    found = get_experiment(session, principal, experiment_id)
    return show_whole_experiment(session, found, operations_of(session, [found])[found.id])
