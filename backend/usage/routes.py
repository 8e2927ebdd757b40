"""Routes of use and cost, and of prices."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.clusters.repository import all_clusters, get_cluster
from backend.idempotency import Answer, KeyHeader, Once, answer_once
from backend.moments import moment_of
from backend.pagination import Order, PageAsked, paginate
from backend.periods import Period, asked_period
from backend.problems import NotFound
from backend.usage import prices
from backend.usage.models import GpuPrice
from backend.usage.service import usage
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Moment, Page
from maat.api.periods import PeriodName
from maat.api.usage import PriceBody, PriceChange, PriceOut, UsageBy, UsageOut

router = APIRouter(tags=["usage"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.REPORTS_READ))]
PriceWriter = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]

ClusterAsked = Annotated[
    str | None, Query(max_length=200, description="Id or name; default: the first cluster.")
]


def reported_cluster(session: Session, named: str | None) -> Cluster:
    """Find the cluster that a report is asked for. Raises NotFound."""
    if named is not None:
        return get_cluster(session, named)
    clusters = all_clusters(session)
    if not clusters:
        raise NotFound("There is no cluster yet. Create one with POST /clusters.")
    return clusters[0]


def period_of_request(
    session: Session,
    cluster: Cluster,
    name: PeriodName | None,
    start: Moment | None,
    end: Moment | None,
) -> Period:
    """Return the period that a request asks for, in the cluster's calendar. Raises Invalid."""
    now = cluster.epoch + timedelta(seconds=cluster_seconds(cluster, moment_of(session)))
    return asked_period(now=now, name=name, start=start, end=end)


@router.get("/usage", operation_id="getUsage")
def read_usage(
    session: SessionDep,
    principal: Reader,
    cluster: ClusterAsked = None,
    period: Annotated[
        PeriodName | None, Query(description="Instead of from and to; default: this week.")
    ] = None,
    start: Annotated[Moment | None, Query(alias="from", description="Cluster time.")] = None,
    end: Annotated[
        Moment | None, Query(alias="to", description="Cluster time; default: now.")
    ] = None,
    by: Annotated[UsageBy, Query(description="What the rows are.")] = UsageBy.TENANT,
    per_day: Annotated[
        bool, Query(description="Also the allocated hours by day, of the 12 largest rows.")
    ] = False,
) -> UsageOut:
    """GPU-hours of a period: allocated, used, useful, lost, idle, and what they cost.

    Other tenants are one row, without names; cluster admins and auditors see all.
    """
    found = reported_cluster(session, cluster)
    asked = period_of_request(session, found, period, start, end)
    return usage(session, principal, cluster=found, period=asked, by=by, per_day=per_day)


@router.get("/clusters/{cluster_id}/prices", operation_id="listPrices")
def list_prices(
    session: SessionDep, _: Reader, cluster_id: str, asked: PageAsked
) -> Page[PriceOut]:
    """Every price that counts, counted or will count: in the order in which they were added."""
    cluster = get_cluster(session, cluster_id)
    order = Order([col(GpuPrice.id)])
    found = asked.linked(
        paginate(
            session,
            select(GpuPrice).where(GpuPrice.cluster_id == cluster.id),
            order=order,
            filters={"list": "prices", "cluster": cluster.id},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    return Page(
        items=prices.show_prices(session, cluster, found.items), next_cursor=found.next_cursor
    )


@router.post(
    "/clusters/{cluster_id}/prices",
    operation_id="addPrice",
    status_code=201,
    response_model=PriceOut,
)
def create_price(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: PriceWriter,
    cluster_id: str,
    body: PriceBody,
    key: KeyHeader = None,
) -> Response:
    """Set what a GPU-hour of a type costs from a day on. What counted before stays for its days."""

    def answer() -> Answer:
        row = prices.add_price(session, cluster_id, body)
        (shown,) = prices.show_prices(session, get_cluster(session, row.cluster_id), [row])
        location = f"/api/v1/clusters/{row.cluster_id}/prices/{row.id}"
        return Answer(201, shown, {"Location": location, "ETag": etag(row.version)})

    with reading() as before:
        route = f"POST /clusters/{get_cluster(before, cluster_id).id}/prices"
    return answer_once(session, Once(principal.user_id, route, key, body), settings, answer)


@router.get("/clusters/{cluster_id}/prices/{price_id}", operation_id="getPrice")
def read_price(
    session: SessionDep, _: Reader, cluster_id: str, price_id: str, response: Response
) -> PriceOut:
    cluster = get_cluster(session, cluster_id)
    return _shown(session, cluster, prices.find_price(session, cluster.id, price_id), response)


@router.patch("/clusters/{cluster_id}/prices/{price_id}", operation_id="changePrice")
def patch_price(
    session: SessionDep,
    _: PriceWriter,
    cluster_id: str,
    price_id: str,
    body: PriceChange,
    response: Response,
    if_match: IfMatch = None,
) -> PriceOut:
    """Correct a price, also for days that are past. Needs If-Match."""
    row = prices.change_price(session, cluster_id, price_id, body, if_match)
    return _shown(session, get_cluster(session, row.cluster_id), row, response)


@router.delete(
    "/clusters/{cluster_id}/prices/{price_id}", operation_id="deletePrice", status_code=204
)
def delete_price(
    session: SessionDep,
    _: PriceWriter,
    cluster_id: str,
    price_id: str,
    if_match: IfMatch = None,
) -> None:
    """Remove a price: the one before it counts on. Needs If-Match."""
    prices.remove_price(session, cluster_id, price_id, if_match)


def _shown(session: Session, cluster: Cluster, row: GpuPrice, response: Response) -> PriceOut:
    response.headers["ETag"] = etag(row.version)
    (shown,) = prices.show_prices(session, cluster, [row])
    return shown
