"""Routes of reservations.

Every reader of the cluster sees all reservations; only readers who may see the holder see its name.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import col, select

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clocktime import cluster_seconds
from backend.clusters.repository import get_cluster
from backend.idempotency import Answer, KeyHeader, Once, answer_once
from backend.moments import moment_of
from backend.pagination import Order, PageAsked, paginate
from backend.reservations.models import ClusterReservation
from backend.reservations.repository import get_reservation, standing
from backend.reservations.service import remove, reserve, show_reservations
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.reservations import ReservationBody, ReservationOut

router = APIRouter(
    prefix="/clusters/{cluster_id}/reservations", tags=["clusters"], route_class=StrictRoute
)

Reader = Annotated[Principal, Depends(require(Permission.CLUSTERS_READ))]
Writer = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]


@router.post("", operation_id="reserveGpus", status_code=201, response_model=ReservationOut)
def create_reservation(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Writer,
    cluster_id: str,
    body: ReservationBody,
    key: KeyHeader = None,
) -> Response:
    """Reserve GPUs of a type for a tenant or a job.

    Rounds follow it from its start; jobs on these GPUs are then moved.
    """

    def answer() -> Answer:
        row = reserve(session, principal, cluster_id, body)
        (shown,) = show_reservations(
            session, principal, get_cluster(session, row.cluster_id), [row]
        )
        return Answer(
            201, shown, {"Location": f"/api/v1/clusters/{row.cluster_id}/reservations/{row.id}"}
        )

    with reading() as before:
        route = f"POST /clusters/{get_cluster(before, cluster_id).id}/reservations"
    return answer_once(session, Once(principal.user_id, route, key, body), settings, answer)


@router.get("", operation_id="listReservations")
def list_reservations(
    session: SessionDep,
    principal: Reader,
    cluster_id: str,
    asked: PageAsked,
    over: Annotated[bool, Query(description="Include those that are over.")] = False,
) -> Page[ReservationOut]:
    """Oldest first."""
    cluster = get_cluster(session, cluster_id)
    statement = select(ClusterReservation).where(ClusterReservation.cluster_id == cluster.id)
    if not over:
        now = cluster_seconds(cluster, moment_of(session))
        statement = statement.where(
            col(ClusterReservation.id).in_(
                [row.id for row in standing(session, cluster.id, now=now)]
            )
        )
    filters = {"list": "reservations", "cluster": cluster.id, "over": over}
    found = asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(ClusterReservation.id)]),
            filters=filters,
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    return Page(
        items=show_reservations(session, principal, cluster, found.items),
        next_cursor=found.next_cursor,
    )


@router.get("/{reservation_id}", operation_id="getReservation")
def read_reservation(
    session: SessionDep, principal: Reader, cluster_id: str, reservation_id: str
) -> ReservationOut:
    cluster = get_cluster(session, cluster_id)
    return show_reservations(
        session, principal, cluster, [get_reservation(session, cluster.id, reservation_id)]
    )[0]


@router.delete("/{reservation_id}", operation_id="deleteReservation", status_code=204)
def delete_reservation(
    session: SessionDep, _: Writer, cluster_id: str, reservation_id: str
) -> None:
    """Remove a reservation. The next round may give its GPUs to any job."""
    remove(session, cluster_id, reservation_id)
