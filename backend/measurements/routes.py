"""Routes of measurements."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import col

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.measurements.drawn import figures_of
from backend.measurements.models import Measurement
from backend.measurements.repository import get_measurement, texts_of
from backend.measurements.service import (
    PreparedMeasurement,
    delete_measurement,
    prepare_measurement,
    show_measurements,
    store_measurement,
)
from backend.pagination import PageAsked
from backend.tenancy import newest_owned
from backend.web.bodies import MEASUREMENT_BYTES, takes_bytes
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.measurements import (
    FileTextOut,
    MeasurementBody,
    MeasurementFiguresOut,
    MeasurementFilesOut,
    MeasurementOut,
)
from maat.vocabulary import MeasurementKind

router = APIRouter(prefix="/measurements", tags=["simulations"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.MEASUREMENTS_READ))]
Writer = Annotated[Principal, Depends(require(Permission.MEASUREMENTS_WRITE))]
Kind = Annotated[MeasurementKind | None, Query(description="Only measurements of this kind.")]

Part = Annotated[
    str | None, Query(max_length=200, description="One that it covers; default: the first.")
]


@router.post("", operation_id="uploadMeasurement", status_code=201, response_model=MeasurementOut)
@takes_bytes(MEASUREMENT_BYTES)
def create_measurement(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Writer,
    body: MeasurementBody,
    key: KeyHeader = None,
) -> Response:
    """Store measurements under a name.

    Simulations and sweeps of the tenant name them as `variability`, `interference` or `profiles`,
    and traces as `{"kind": "uploaded", "measurement": NAME}`.
    `variability`: CSV files with the columns `uuid` and `perf`, named APPLICATION-GPUTYPE.csv, one
    for each application and GPU type. `interference`: one CSV with the columns victim, partner,
    gpu_count, slowdown; PAL's norm_speed.csv; or Gavel's simulation_throughputs.json.
    `profiles`: placements-TYPE.csv, scalability-TYPE.csv and validation-BATCH.csv in a folder of
    each model, or one JSON table of throughputs. `trace`: one trace. All may come as a zip.
    """

    def answer(prepared: PreparedMeasurement) -> Answer:
        (shown,) = show_measurements(session, [store_measurement(session, prepared)])
        return Answer(201, shown, {"Location": f"/api/v1/measurements/{shown['id']}"})

    once = Once(principal.user_id, "POST /measurements", key, body)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=lambda read: prepare_measurement(read, principal, body),
        answer=answer,
    )


@router.get("", operation_id="listMeasurements")
def list_measurements(
    session: SessionDep, principal: Reader, asked: PageAsked, kind: Kind = None
) -> Page[MeasurementOut]:
    """Newest first."""
    stands = [col(Measurement.deleted_at).is_(None)]
    wanted = [*stands, col(Measurement.kind) == kind.value] if kind is not None else stands
    found = newest_owned(session, principal, Measurement, asked, *wanted, filters={"kind": kind})
    return Page(items=show_measurements(session, found.items), next_cursor=found.next_cursor)


@router.get("/{measurement_id}", operation_id="getMeasurement")
def read_measurement(session: SessionDep, principal: Reader, measurement_id: str) -> MeasurementOut:
    return show_measurements(session, [get_measurement(session, principal, measurement_id)])[0]


@router.get("/{measurement_id}/figures", operation_id="getMeasurementFigures")
def read_figures(
    session: SessionDep,
    principal: Reader,
    measurement_id: str,
    model: Part = None,
    gpu_type: Part = None,
) -> MeasurementFiguresOut:
    """What charts draw: scores and bins of GPUs, slowdowns of pairs, or throughput with its fit."""
    measurement = get_measurement(session, principal, measurement_id)
    return figures_of(session, measurement, model=model, gpu_type=gpu_type)


@router.get("/{measurement_id}/files", operation_id="getMeasurementFiles")
def read_files(session: SessionDep, principal: Reader, measurement_id: str) -> MeasurementFilesOut:
    """The files as they were uploaded."""
    measurement = get_measurement(session, principal, measurement_id)
    texts = texts_of(session, measurement.id)
    return {"files": [FileTextOut(name=name, text=text) for name, text in texts.items()]}


@router.delete("/{measurement_id}", operation_id="deleteMeasurement", status_code=204)
def remove_measurement(session: SessionDep, principal: Writer, measurement_id: str) -> None:
    """Delete measurements.

    Requests can no longer name them; operations that use them keep them.
    """
    delete_measurement(session, principal, measurement_id)
