"""Routes of the papers and of reproductions of their tables and figures."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse

from backend.accounts.identity import Principal, a_simulation, require
from backend.accounts.permissions import Permission
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.laboratory.budget import within_budget
from backend.pagination import PageAsked
from backend.papers.forms import MEDIA_TYPES, ReportForm, report_of, table_of
from backend.papers.listing import show_papers
from backend.papers.models import Reproduction
from backend.papers.resources import show_item_detail, show_reproductions
from backend.papers.service import (
    Asked,
    check_reproduction,
    get_item,
    get_reproduction,
    items_of,
    store_reproduction,
)
from backend.tenancy import newest_owned
from backend.web.dependencies import QueueDep, ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.papers import (
    OwnNames,
    PapersOut,
    ReproducedItemDetail,
    ReproductionBody,
    ReproductionOut,
)
from maat.api.simulations import MeasurementName

papers = APIRouter(prefix="/papers", tags=["papers"], route_class=StrictRoute)
reproductions = APIRouter(prefix="/reproductions", tags=["papers"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.SIMULATIONS_READ))]
Runner = Annotated[Principal, Depends(require(Permission.SIMULATIONS_RUN))]
Upload = Annotated[
    MeasurementName | None, Query(description="An upload that stands in for published data.")
]


def _file(*media: str) -> dict[int | str, dict[str, Any]]:
    content = {each: {"schema": {"type": "string", "format": "binary"}} for each in media}
    return {200: {"content": content, "description": "A file to save."}}


@papers.get("", operation_id="getPapers")
def read_papers(
    session: SessionDep,
    settings: SettingsDep,
    principal: Reader,
    profiles: Upload = None,
    trace: Upload = None,
    variability: Upload = None,
    interference: Upload = None,
) -> PapersOut:
    """The papers with their tables and figures.

    Each with whether it can be made now, what it costs, and its newest reproduction. Uploads are
    named as a reproduction names them: then it says what can be made with these.
    """
    own = OwnNames(
        profiles=profiles, trace=trace, variability=variability, interference=interference
    )
    return show_papers(session, principal, settings, own)


@reproductions.post(
    "",
    operation_id="requestReproduction",
    status_code=202,
    response_model=ReproductionOut,
    dependencies=[Depends(a_simulation)],
)
def create_reproduction(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    queue: QueueDep,
    principal: Runner,
    body: ReproductionBody,
    key: KeyHeader = None,
) -> JSONResponse:
    """Make tables and figures of a paper again. Follow the operation in Location.

    Results arrive item by item; runs that were made before are not made again.
    """

    def answer(asked: Asked) -> Answer:
        reproduction = store_reproduction(session, principal, asked, queue)
        (shown,) = show_reproductions(session, [reproduction])
        return Answer(
            202,
            shown,
            {"Location": f"/api/v1/operations/{reproduction.operation_id}", "Retry-After": "1"},
        )

    once = Once(principal.user_id, "POST /reproductions", key, body)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=within_budget(
            principal, settings, lambda read: check_reproduction(read, principal, body, settings)
        ),
        answer=answer,
    )


@reproductions.get("", operation_id="listReproductions")
def list_reproductions(
    session: SessionDep, principal: Reader, asked: PageAsked
) -> Page[ReproductionOut]:
    """Newest first."""
    found = newest_owned(session, principal, Reproduction, asked)
    return Page(items=show_reproductions(session, found.items), next_cursor=found.next_cursor)


@reproductions.get("/{reproduction_id}", operation_id="getReproduction")
def read_reproduction(
    session: SessionDep, principal: Reader, reproduction_id: str
) -> ReproductionOut:
    """A reproduction and how far its items are."""
    return show_reproductions(session, [get_reproduction(session, principal, reproduction_id)])[0]


@reproductions.get("/{reproduction_id}/items/{key}", operation_id="getReproducedItem")
def read_item(
    session: SessionDep, principal: Reader, reproduction_id: str, key: str
) -> ReproducedItemDetail:
    """An item's table beside the published values, its figure, and why they differ."""
    reproduction = get_reproduction(session, principal, reproduction_id)
    return show_item_detail(session, reproduction, get_item(session, reproduction, key))


@reproductions.get(
    "/{reproduction_id}/items/{key}/csv",
    operation_id="getReproducedItemAsCsv",
    response_class=Response,
    responses=_file("text/csv"),
)
def read_table(session: SessionDep, principal: Reader, reproduction_id: str, key: str) -> Response:
    """An item's table, to save."""
    reproduction = get_reproduction(session, principal, reproduction_id)
    item = get_item(session, reproduction, key)
    name = f"{reproduction.paper}-{item.item}.csv"
    return _saved(table_of(item), name, "text/csv; charset=utf-8")


@reproductions.get(
    "/{reproduction_id}/report/{form}",
    operation_id="getReproductionReport",
    response_class=Response,
    responses=_file("text/html", "text/markdown"),
)
def read_report(
    session: SessionDep, principal: Reader, reproduction_id: str, form: ReportForm
) -> Response:
    """All items that were made as one file to save; the HTML needs nothing else."""
    reproduction = get_reproduction(session, principal, reproduction_id)
    items = items_of(session, [reproduction.id], with_results=True)[reproduction.id]
    text = report_of(reproduction, items, form)
    return _saved(text, f"{reproduction.paper}.{form}", MEDIA_TYPES[form])


def _saved(text: str, name: str, media_type: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=media_type, headers=headers)
