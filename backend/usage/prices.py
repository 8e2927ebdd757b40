"""The price list of a cluster: what a GPU-hour of each type costs from which day on.

Commits nothing. What was valid is kept, so an old day costs what it cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from sqlmodel import Session, col, select

from backend.answers import answer_of
from backend.audit.changes import Change, Shown, asker, record
from backend.clocktime import cluster_seconds, shown_day
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster, nodes_of
from backend.clusters.topology import capacity_by_type
from backend.moments import moment_of
from backend.problems import Conflict, FieldError, Invalid, NotFound
from backend.usage.costs import micros_of, price_text
from backend.usage.models import GpuPrice
from backend.usage.repository import gpu_types_seen
from backend.web.conditional import check_version
from maat.api.usage import PriceBody, PriceChange, PriceOut


def add_price(session: Session, cluster_id: str, body: PriceBody) -> GpuPrice:
    """Add a price. Raises NotFound, Invalid naming the field, Conflict if the day has one."""
    cluster = get_cluster(session, cluster_id, lock=True)
    _check_type(session, cluster, body.gpu_type)
    prices = prices_of(session, cluster.id)
    currency = next((one.currency for one in prices), body.currency)
    if body.currency != currency:
        raise _invalid(
            "/currency",
            "other_currency",
            f"The prices of this cluster are in {currency}.",
            f"Give the price in {currency}, or remove all others first.",
            body.currency,
        )
    row = GpuPrice(
        cluster_id=cluster.id,
        gpu_type=body.gpu_type,
        valid_from=_today(session, cluster) if body.valid_from is None else body.valid_from,
        micros=micros_of(body.price_per_gpu_hour),
        currency=body.currency,
    )
    _check_free(prices, row)
    session.add(row)
    session.flush()
    record(session, Change(asker(), "add price", row.id, {}, _written(row)))
    return row


def change_price(
    session: Session, cluster_id: str, price_id: str, body: PriceChange, if_match: str | None
) -> GpuPrice:
    """Correct a price: past days then cost what it says. Needs If-Match."""
    cluster = get_cluster(session, cluster_id, lock=True)
    row = find_price(session, cluster.id, price_id)
    check_version(if_match, row.version)
    before = _written(row)
    if body.price_per_gpu_hour is not None:
        row.micros = micros_of(body.price_per_gpu_hour)
    if body.valid_from is not None:
        row.valid_from = body.valid_from
        _check_free(prices_of(session, cluster.id), row)
    row.version += 1
    session.add(row)
    session.flush()
    record(session, Change(asker(), "change price", row.id, before, _written(row)))
    return row


def remove_price(session: Session, cluster_id: str, price_id: str, if_match: str | None) -> None:
    """Remove a price: the one before it counts on. Needs If-Match."""
    cluster = get_cluster(session, cluster_id, lock=True)
    row = find_price(session, cluster.id, price_id)
    check_version(if_match, row.version)
    record(session, Change(asker(), "remove price", row.id, _written(row), {}))
    session.delete(row)
    session.flush()


def find_price(session: Session, cluster_id: str, price_id: str) -> GpuPrice:
    row = session.get(GpuPrice, price_id)
    if row is None or row.cluster_id != cluster_id:
        raise NotFound(f"The cluster has no price {price_id!r}.")
    return row


def prices_of(session: Session, cluster_id: str) -> Sequence[GpuPrice]:
    """List all prices of a cluster, by GPU type and day."""
    order = (col(GpuPrice.gpu_type), col(GpuPrice.valid_from), col(GpuPrice.id))
    statement = select(GpuPrice).where(GpuPrice.cluster_id == cluster_id).order_by(*order)
    with session.no_autoflush:
        return session.exec(statement).all()


def show_prices(session: Session, cluster: Cluster, rows: Sequence[GpuPrice]) -> list[PriceOut]:
    """Show prices, each with the day on which the next one of its type counts."""
    every, today = prices_of(session, cluster.id), _today(session, cluster)
    return [_show(row, every, today) for row in rows]


def _written(row: GpuPrice) -> Shown:
    """Return what is written down of a price."""
    return {
        "cluster_id": row.cluster_id,
        "gpu_type": row.gpu_type,
        "price_per_gpu_hour": price_text(row.micros),
        "currency": row.currency,
        "valid_from": row.valid_from,
    }


def _show(row: GpuPrice, every: Sequence[GpuPrice], today: date) -> PriceOut:
    later = [
        one.valid_from
        for one in every
        if one.gpu_type == row.gpu_type and one.valid_from > row.valid_from
    ]
    until = min(later, default=None)
    return answer_of(
        PriceOut,
        row,
        price_per_gpu_hour=price_text(row.micros),
        valid_from=row.valid_from.isoformat(),
        valid_until=None if until is None else until.isoformat(),
        is_valid_now=row.valid_from <= today and (until is None or today < until),
    )


def _today(session: Session, cluster: Cluster) -> date:
    return shown_day(cluster, cluster_seconds(cluster, moment_of(session)))


def _check_type(session: Session, cluster: Cluster, gpu_type: str) -> None:
    known = dict.fromkeys(capacity_by_type(nodes_of(session, cluster.id), usable_only=False))
    known |= dict.fromkeys(gpu_types_seen(session, cluster.id))
    if gpu_type not in known:
        raise _invalid(
            "/gpu_type",
            "no_such_gpu_type",
            "The cluster has no GPUs of this type.",
            f"Use one of: {', '.join(known) or 'none yet'}.",
            gpu_type,
        )


def _check_free(prices: Sequence[GpuPrice], row: GpuPrice) -> None:
    for one in prices:
        same = (one.gpu_type, one.valid_from) == (row.gpu_type, row.valid_from)
        if same and one.id != row.id:
            raise Conflict(
                f"{row.gpu_type} has a price from {row.valid_from.isoformat()} on: {one.id}. "
                "Change that one, or give another day."
            )


def _invalid(pointer: str, code: str, message: str, remedy: str, value: object) -> Invalid:
    return Invalid(
        f"{message} {remedy}", errors=[FieldError(pointer, code, message, remedy, value)]
    )
