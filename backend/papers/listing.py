"""The papers with their items: what can be made now, and what was made last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.answers import answer_of
from backend.operations.models import Operation, OperationState
from backend.papers.data import PublishedData, published_data
from backend.papers.models import ReproducedItem, Reproduction
from backend.papers.resources import state_of
from backend.papers.service import Progress, progress_of_items
from backend.settings import Settings
from maat.api.papers import NewestOut, PaperItemOut, PaperOut, PapersOut
from maat.papers.bench import Size
from maat.papers.catalogue import PAPERS
from maat.papers.items import Item, Paper
from maat.papers.standing import lacking_of, standing_of, why_not

Place = tuple[str, str]
"""A paper and an item of it."""


def show_papers(session: Session, principal: Principal, settings: Settings) -> PapersOut:
    published = published_data(settings)
    newest = _newest(session, principal)
    made = _newest(session, principal, col(ReproducedItem.state) == OperationState.SUCCEEDED)
    return PapersOut(
        papers=[_paper(paper, published, newest, made) for paper in PAPERS.values()],
        has_data=published.data.folder is not None,
        data_problem=published.problem,
        most_whole_runs=settings.whole_paper_runs,
    )


def _paper(
    paper: Paper,
    published: PublishedData,
    newest: Mapping[Place, NewestOut],
    made: Mapping[Place, NewestOut],
) -> PaperOut:
    return PaperOut(
        name=paper.name,
        title=paper.title,
        items=[
            _item(
                item,
                published,
                newest=newest.get((paper.name, item.key)),
                newest_made=made.get((paper.name, item.key)),
            )
            for item in paper.items
        ],
    )


def _item(item: Item, published: PublishedData, **reproduced: NewestOut | None) -> PaperItemOut:
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
    return {
        (of.paper, item.item): _reproduced(item, of, operation, progress.get(item.id, Progress()))
        for item, of, operation in found
    }


def _reproduced(
    item: ReproducedItem, of: Reproduction, operation: Operation, progress: Progress
) -> NewestOut:
    computed: dict[str, Any] = {
        "quick": of.size == Size.QUICK,
        "state": state_of(item, operation, progress),
        "done": progress.done,
        "total": progress.total,
    }
    return answer_of(NewestOut, item, **computed)
