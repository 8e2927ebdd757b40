"""The papers with their items: what can be made now, and what was made last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.answers import answer_of
from backend.measurements.models import MeasurementUse
from backend.measurements.uses import find_named, shown_uses
from backend.operations.models import Operation, OperationState
from backend.papers.data import PublishedData, published_data
from backend.papers.models import ReproducedItem, Reproduction
from backend.papers.own import names_by_kind, own_of
from backend.papers.resources import state_of
from backend.papers.service import Progress, progress_of_items, whole_runs
from backend.settings import Settings
from maat.api.measurements import UsedOut
from maat.api.papers import NewestOut, OwnNames, PaperItemOut, PaperOut, PapersOut
from maat.papers.bench import Size
from maat.papers.catalogue import PAPERS
from maat.papers.items import Item, Paper
from maat.papers.standing import lacking_of, standing_of, why_not

Place = tuple[str, str]
"""A paper and an item of it."""


def show_papers(
    session: Session, principal: Principal, settings: Settings, own: OwnNames
) -> PapersOut:
    """Show the papers. Raises Invalid for uploads that the tenant has not."""
    uses = find_named(session, principal, names_by_kind(own))
    published = published_data(settings, own_of(session, uses))
    newest = _newest(session, principal)
    made = _newest(
        session,
        principal,
        col(ReproducedItem.state) == OperationState.SUCCEEDED,
        _is_of_published_data(),
    )
    has_whole = settings.whole_paper_runs > 0
    return PapersOut(
        papers=[
            _paper(paper, published, newest, made, has_whole=has_whole) for paper in PAPERS.values()
        ],
        has_data=published.data.folder is not None,
        data_problem=published.problem,
        most_whole_runs=settings.whole_paper_runs,
    )


def _paper(
    paper: Paper,
    published: PublishedData,
    newest: Mapping[Place, NewestOut],
    made: Mapping[Place, NewestOut],
    *,
    has_whole: bool,
) -> PaperOut:
    return PaperOut(
        name=paper.name,
        title=paper.title,
        items=[
            _item(
                item,
                published,
                whole_runs(paper.name, item.key, published.data) if has_whole else None,
                newest=newest.get((paper.name, item.key)),
                newest_made=made.get((paper.name, item.key)),
            )
            for item in paper.items
        ],
    )


def _item(
    item: Item, published: PublishedData, runs: int | None, **reproduced: NewestOut | None
) -> PaperItemOut:
    lacking = why_not(item, published.data)
    return PaperItemOut(
        key=item.key,
        also=list(item.also),
        title=item.title,
        standing=standing_of(item, published.data).value,
        because=None if lacking is None else published.without_path(lacking),
        stands_in=lacking_of(item.uses, published.data),
        emulated=item.emulated,
        quick_cpu_minutes=item.cpu_minutes[0],
        whole_cpu_minutes=item.cpu_minutes[1],
        whole_runs=runs if lacking is None else None,
        takes=list(item.takes),
        newest=reproduced["newest"],
        newest_made=reproduced["newest_made"],
    )


def _newest(
    session: Session, principal: Principal, *which: sa.ColumnElement[bool]
) -> dict[Place, NewestOut]:
    """Return the newest of these reproductions of each item that the principal may see."""
    mine = () if principal.sees_all_tenants else (Reproduction.tenant_id == principal.tenant_id,)
    newest = (
        select(sa.func.max(col(ReproducedItem.id)))
        .join(Reproduction)
        .where(*mine, *which)
        .group_by(col(Reproduction.paper), col(ReproducedItem.item))
    )
    statement = (
        select(ReproducedItem, Reproduction, Operation)
        .join(Reproduction, col(Reproduction.id) == col(ReproducedItem.reproduction_id))
        .join(Operation, col(Operation.id) == col(Reproduction.operation_id))
        .where(col(ReproducedItem.id).in_(newest))
        .options(defer(ReproducedItem.result))
    )
    found = session.exec(statement).all()
    progress = progress_of_items(session, [item.id for item, _, _ in found])
    used = shown_uses(session, [operation.id for _, _, operation in found])
    return {
        (of.paper, item.item): _reproduced(
            item, of, operation, progress.get(item.id, Progress()), used[operation.id]
        )
        for item, of, operation in found
    }


def _is_of_published_data() -> sa.ColumnElement[bool]:
    """Select reproductions in which no upload stands in for published data."""
    mine = col(MeasurementUse.operation_id) == col(Reproduction.operation_id)
    return ~select(MeasurementUse.kind).where(mine).exists()


def _reproduced(
    item: ReproducedItem,
    of: Reproduction,
    operation: Operation,
    progress: Progress,
    used: list[UsedOut],
) -> NewestOut:
    computed: dict[str, Any] = {
        "quick": of.size == Size.QUICK,
        "state": state_of(item, operation, progress),
        "done": progress.done,
        "total": progress.total,
        "measurements": used,
    }
    return answer_of(NewestOut, item, **computed)
