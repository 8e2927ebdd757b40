"""Reproductions and their items as the API answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlmodel import Session

from backend.answers import answer_of
from backend.measurements.uses import shown_uses
from backend.operations.models import ENDED, Operation, OperationState
from backend.operations.service import operations_of
from backend.papers.models import ReproducedItem, Reproduction
from backend.papers.service import Progress, items_of, known_item, progress_of, progress_of_items
from maat.api.measurements import UsedOut
from maat.api.papers import ReproducedItemDetail, ReproducedItemOut, ReproductionOut
from maat.papers.bench import Size
from maat.papers.catalogue import REPORTS

_NOT_MADE: Mapping[str, Any] = {"labels": [], "rows": [], "why": "", "notes": []}


def show_reproductions(
    session: Session, reproductions: Sequence[Reproduction]
) -> list[ReproductionOut]:
    """Show reproductions with their items, without tables and figures."""
    ids = [reproduction.id for reproduction in reproductions]
    operations, items = operations_of(session, reproductions), items_of(session, ids)
    progress = progress_of(session, ids)
    of_items = progress_of_items(session, [item.id for each in items.values() for item in each])
    used = shown_uses(session, [reproduction.operation_id for reproduction in reproductions])
    return [
        _shown(
            reproduction,
            operations[reproduction.id],
            progress.get(reproduction.id, Progress()),
            used[reproduction.operation_id],
            [
                show_item(reproduction, operations[reproduction.id], item, of_items.get(item.id))
                for item in items[reproduction.id]
            ],
        )
        for reproduction in reproductions
    ]


def _shown(
    reproduction: Reproduction,
    operation: Operation,
    progress: Progress,
    used: list[UsedOut],
    items: list[ReproducedItemOut],
) -> ReproductionOut:
    paper = REPORTS.get(reproduction.paper)
    return answer_of(
        ReproductionOut,
        reproduction,
        title=reproduction.paper if paper is None else paper.title,
        quick=reproduction.size == Size.QUICK,
        state=operation.state,
        done=progress.done,
        total=progress.total,
        measurements=used,
        items=items,
    )


def show_item(
    reproduction: Reproduction,
    operation: Operation,
    item: ReproducedItem,
    progress: Progress | None,
) -> ReproducedItemOut:
    progress = Progress() if progress is None else progress
    known = known_item(reproduction.paper, item.item)
    return answer_of(
        ReproducedItemOut,
        item,
        key=item.item,
        title=item.item if known is None else known.title,
        state=state_of(item, operation, progress),
        done=progress.done,
        total=progress.total,
    )


def show_item_detail(
    session: Session, reproduction: Reproduction, item: ReproducedItem
) -> ReproducedItemDetail:
    """Show an item with its table and figure."""
    operation = operations_of(session, [reproduction])[reproduction.id]
    progress = progress_of_items(session, [item.id]).get(item.id)
    known = known_item(reproduction.paper, item.item)
    result: Mapping[str, Any] = _NOT_MADE if item.result is None else item.result
    shown = show_item(reproduction, operation, item, progress)
    shown["title"] = result.get("title", shown["title"])
    return ReproducedItemDetail(
        **shown,
        labels=result["labels"],
        rows=result["rows"],
        why=result["why"],
        notes=result["notes"],
        emulated=known is not None and known.emulated,
        cpu_minutes=result.get("cpu_minutes"),
        figure=result.get("figure"),
    )


def state_of(item: ReproducedItem, operation: Operation, progress: Progress) -> OperationState:
    """Return the state of an item as its reader sees it.

    Its row is queued between the two times that a worker works on it.
    """
    if item.state in ENDED:
        return OperationState(item.state)
    if operation.state in ENDED:
        return OperationState.CANCELLED
    begun = item.state == OperationState.RUNNING or progress.done > 0
    return OperationState.RUNNING if begun else OperationState.QUEUED
