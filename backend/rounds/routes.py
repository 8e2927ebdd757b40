"""Routes of rounds and of their timeline."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clocktime import seconds_at
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster
from backend.pagination import PageAsked
from backend.rounds.repository import (
    get_round,
    list_rounds,
    round_sight,
    rounds_sight,
    thinned_rounds,
)
from backend.rounds.resources import show_round, show_round_with_record
from backend.rounds.timeline import timeline
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Moment, Page
from maat.api.rounds import RoundDetailOut, RoundOut, TimelineOut

router = APIRouter(prefix="/clusters/{cluster_id}", tags=["rounds"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.ROUNDS_READ))]
RoundNumber = Annotated[
    str, Path(pattern=r"^(latest|[1-9][0-9]{0,8})$", description="The number, or `latest`.")
]

MAX_POINTS = 2000


@router.get("/rounds", operation_id="listRounds")
def read_rounds(
    session: SessionDep,
    principal: Reader,
    cluster_id: str,
    asked: PageAsked,
    after: Annotated[Moment | None, Query(description="Cluster time.")] = None,
    before: Annotated[Moment | None, Query(description="Cluster time.")] = None,
) -> Page[RoundOut]:
    """Newest first, without their records."""
    cluster = get_cluster(session, cluster_id)
    start, end = _seconds(cluster, after), _seconds(cluster, before)
    found = asked.linked(
        list_rounds(
            session, cluster.id, after=start, before=end, limit=asked.limit, cursor=asked.cursor
        )
    )
    sight = rounds_sight(session, principal, found.items)
    return found.shown(lambda row: show_round(row, cluster, sight))


@router.get("/rounds/{number}", operation_id="getRound")
def read_round(
    session: SessionDep, principal: Reader, cluster_id: str, number: RoundNumber
) -> RoundDetailOut:
    """One round with the matrix that decided it."""
    cluster = get_cluster(session, cluster_id)
    found = get_round(session, cluster.id, None if number == "latest" else int(number))
    return show_round_with_record(found, cluster, round_sight(session, principal, found))


@router.get("/timeline", operation_id="getTimeline")
def read_timeline(
    session: SessionDep,
    _: Reader,
    cluster_id: str,
    start: Annotated[Moment | None, Query(alias="from", description="Cluster time.")] = None,
    end: Annotated[Moment | None, Query(alias="to", description="Cluster time.")] = None,
    points: Annotated[int, Query(ge=2, le=MAX_POINTS)] = 500,
) -> TimelineOut:
    """GPUs in use and jobs over time, reduced to at most `points` rounds."""
    cluster = get_cluster(session, cluster_id)
    rounds = thinned_rounds(
        session,
        cluster.id,
        after=_seconds(cluster, start),
        before=_seconds(cluster, end),
        points=points,
    )
    return timeline(rounds, cluster)


def _seconds(cluster: Cluster, shown: Moment | None) -> float | None:
    return None if shown is None else seconds_at(cluster, shown)
