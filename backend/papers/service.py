"""Accepts reproductions: checks which items can be made, then stores them.

The worker finds their runs and plays them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.database import after_commit
from backend.measurements.models import MeasurementUse
from backend.measurements.uses import find_named, keep_uses
from backend.operations.models import Operation, OperationState
from backend.operations.service import begin_operation
from backend.papers.data import PublishedData, published_data
from backend.papers.models import PaperRun, ReproducedItem, ReproducedRun, Reproduction
from backend.papers.own import names_by_kind, own_of
from backend.problems import FieldError, Invalid, NotFound, invalid_input
from backend.queue import REPRODUCE, Queue
from backend.settings import Settings
from backend.tenancy import find_owned
from maat.api.papers import ReproductionBody
from maat.papers.bench import Size
from maat.papers.catalogue import REPORTS, item_of, paper_of
from maat.papers.counting import counted_runs
from maat.papers.data import Data
from maat.papers.items import Item, Paper
from maat.papers.own_checks import check_own
from maat.papers.reproducing import chosen_items
from maat.papers.standing import check_takes, lacking_of, why_not
from maat.scheduling.errors import InputError, MaatError

REPRODUCTION = "reproduction"
MOST_COUNTED = 512  # items, with the uploads that stand in for their data
PLAYED = (OperationState.SUCCEEDED.value, OperationState.FAILED.value)
"""States of a run that has come to its end."""


@dataclass(frozen=True)
class Asked:
    """A checked request: items of a paper that can be made."""

    paper: Paper
    items: Sequence[Item]
    size: Size
    uses: Sequence[MeasurementUse] = ()


@dataclass(frozen=True)
class Progress:
    """How many of the runs have ended, of how many that are known."""

    done: int = 0
    total: int = 0


def check_reproduction(
    session: Session, principal: Principal, body: ReproductionBody, settings: Settings
) -> Asked:
    """Check a request; it only reads.

    It takes time where it is not quick, for runs are counted, and where uploads must have what the
    items need. Raises Invalid naming what cannot be used.
    """
    try:
        paper = paper_of(body.paper)
    except InputError as error:
        raise invalid_input(error, "/paper") from None
    uses = find_named(session, principal, names_by_kind(body))
    published = published_data(settings, own_of(session, uses))
    size = Size.QUICK if body.quick else Size.WHOLE
    with _blaming_uploads(published):
        items = _named(paper, body.items, published) if body.items else _all(paper, published)
        check_own(items, published.data)
    if size is Size.WHOLE:
        _check_runs(paper, items, published.data, settings.whole_paper_runs)
    return Asked(paper, items, size, uses)


@contextmanager
def _blaming_uploads(published: PublishedData) -> Iterator[None]:
    """Refuse an upload that cannot stand in, or lacks something, at the field that names it."""
    try:
        yield
    except InputError as error:
        without_path = InputError(
            published.without_path(error.problem),
            field=error.field,
            value=error.value,
            remedy=error.remedy,
        )
        raise invalid_input(without_path, f"/{error.field}") from None


def _named(paper: Paper, keys: Sequence[str], published: PublishedData) -> list[Item]:
    """Return the items of these keys, each once, as the paper orders them.

    Raises Invalid, and InputError for uploads that one does not take.
    """
    found: dict[str, Item] = {}
    for place, key in enumerate(keys):
        try:
            item = item_of(paper, key)
        except InputError as error:
            raise invalid_input(error, f"/items/{place}") from None
        check_takes(paper, [item], published.data.own)
        lacking = why_not(item, published.data)
        if lacking is not None:
            why = published.without_path(lacking)
            errors = [
                FieldError(f"/items/{place}", "cannot_be_made", why, "Leave this item out.", key)
            ]
            raise Invalid(f"{paper.name} {key} cannot be made: {why}", errors=errors)
        found[item.key] = item
    return [item for item in paper.items if item.key in found]


def _all(paper: Paper, published: PublishedData) -> list[Item]:
    """Return all items that can be made now, of uploads those that take them.

    Raises Invalid if there is none, InputError if none takes an upload.
    """
    taking = chosen_items(paper, None, published.data.own)
    lacking = {item.key: why_not(item, published.data) for item in taking}
    items = [item for item in taking if lacking[item.key] is None]
    if not items:
        needing = next(item.key for item in taking if item.hardware is None)
        why = f"{needing}: {published.without_path(lacking[needing] or '')}"
        raise Invalid(
            f"No item of {paper.name} can be made now.",
            errors=[FieldError("/paper", "cannot_be_made", why, "Ask for another.", paper.name)],
        )
    return items


def _check_runs(paper: Paper, items: Sequence[Item], data: Data, most: int) -> None:
    """Raise Invalid if a whole reproduction has more runs than the operator allows."""
    runs = 0
    for item in items:
        runs += whole_runs(paper.name, item.key, data)
        if runs > most:
            message = (
                "This service makes quick reproductions alone."
                if most == 0
                else f"The items have more runs than this service plays for one whole "
                f"reproduction: {most}."
            )
            remedy = (
                "Ask for a quick one, or run `maat reproduce`; an operator can raise "
                "MAAT_WHOLE_PAPER_RUNS."
                if most == 0 or len(items) == 1
                else "Ask for fewer items, or for a quick one; an operator can raise "
                "MAAT_WHOLE_PAPER_RUNS."
            )
            raise Invalid(message, errors=[FieldError("/quick", "too_large", message, remedy)])


def whole_runs(paper: str, key: str, data: Data) -> int:
    """Return how many runs an item has that is not quick; one that lacks something has none."""
    item = item_of(paper_of(paper), key)
    if why_not(item, data):
        return 0
    if data.own or not item.whole_runs or lacking_of(item.uses, data):
        return _counted_runs(paper, key, data)
    return item.whole_runs


@lru_cache(maxsize=MOST_COUNTED)
def _counted_runs(paper: str, key: str, data: Data) -> int:
    """Count the runs on other data than the published. It is remembered."""
    try:
        return counted_runs(item_of(paper_of(paper), key), data)
    except MaatError:
        return 0


def store_reproduction(
    session: Session, principal: Principal, asked: Asked, queue: Queue
) -> Reproduction:
    owner: dict[str, Any] = {"owner_id": principal.user_id, "tenant_id": principal.tenant_id}
    operation = Operation(
        kind=REPRODUCTION,
        total=float(len(asked.items)),
        unit="items and runs",
        message="Waiting for a worker.",
        **owner,
    )
    reproduction = Reproduction(
        paper=asked.paper.name, size=asked.size.value, operation_id="", **owner
    )
    begin_operation(session, operation, reproduction, result_url="/api/v1/reproductions")
    keep_uses(session, asked.uses, reproduction.operation_id)
    for position, item in enumerate(asked.items):
        session.add(
            ReproducedItem(reproduction_id=reproduction.id, position=position, item=item.key)
        )
    session.flush()
    after_commit(session, partial(queue.send, REPRODUCE, reproduction.id))
    return reproduction


def get_reproduction(session: Session, principal: Principal, reproduction_id: str) -> Reproduction:
    """Find a reproduction. Raises NotFound for another tenant's too."""
    return find_owned(session, principal, Reproduction, reproduction_id, noun="reproduction")


def get_item(session: Session, reproduction: Reproduction, key: str) -> ReproducedItem:
    """Find an item with its result, by any of its names. Raises NotFound."""
    known = known_item(reproduction.paper, key)
    mine = (
        ReproducedItem.reproduction_id == reproduction.id,
        ReproducedItem.item == (key if known is None else known.key),
    )
    found = session.exec(select(ReproducedItem).where(*mine)).first()
    if found is None:
        raise NotFound(f"{reproduction.id} has no item {key!r}.")
    return found


def items_of(
    session: Session, ids: Sequence[str], *, with_results: bool = False
) -> dict[str, list[ReproducedItem]]:
    """Return the items of reproductions in order."""
    found: dict[str, list[ReproducedItem]] = {reproduction_id: [] for reproduction_id in ids}
    statement = (
        select(ReproducedItem)
        .where(col(ReproducedItem.reproduction_id).in_(ids))
        .order_by(col(ReproducedItem.position))
    )
    large = () if with_results else (defer(ReproducedItem.result),)
    for item in session.exec(statement.options(*large)):
        found[item.reproduction_id].append(item)
    return found


def progress_of_items(session: Session, item_ids: Sequence[str]) -> Mapping[str, Progress]:
    """Return how far the runs of each item are."""
    ended = col(PaperRun.state).in_(PLAYED)
    statement = (
        select(ReproducedRun.item_id, sa.func.count(), sa.func.count().filter(ended))
        .join(PaperRun)
        .where(col(ReproducedRun.item_id).in_(item_ids))
        .group_by(col(ReproducedRun.item_id))
    )
    return {item: Progress(done, total) for item, total, done in session.exec(statement)}


def progress_of(session: Session, ids: Sequence[str]) -> Mapping[str, Progress]:
    """Return how far the runs of each reproduction are; a run of several items counts once."""
    key = col(PaperRun.key)
    done = sa.case((col(PaperRun.state).in_(PLAYED), key), else_=None)
    statement = (
        select(
            ReproducedItem.reproduction_id,
            sa.func.count(sa.distinct(key)),
            sa.func.count(sa.distinct(done)),
        )
        .join(ReproducedRun, col(ReproducedRun.item_id) == col(ReproducedItem.id))
        .join(PaperRun)
        .where(col(ReproducedItem.reproduction_id).in_(ids))
        .group_by(col(ReproducedItem.reproduction_id))
    )
    return {found: Progress(done, total) for found, total, done in session.exec(statement)}


def known_item(paper: str, key: str) -> Item | None:
    """Return an item by any of its names; None for one that only another version of Maat knows."""
    items = REPORTS[paper].items if paper in REPORTS else ()
    return next((item for item in items if key in (item.key, *item.also)), None)
