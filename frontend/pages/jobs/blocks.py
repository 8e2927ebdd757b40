"""Blocks of rows: how a grid that asks by offset reads a list that is paged by cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, cast

from frontend.components.grid import Column
from frontend.pages.jobs.filters import Filters, asked
from frontend.pages.jobs.rows import NEWEST_FIRST, SORTS, column_id
from maat.api.job_answers import JobPage
from maat.client import AsyncClient
from maat.client.calls import JobFilters


class SortWish(TypedDict):
    colId: str
    sort: str


class RowsRequest(TypedDict):
    """What the grid asks for: rows by their offsets, in which order."""

    startRow: int
    endRow: int
    sortModel: list[SortWish] | None


BLOCK_ROWS = 100


def first_request(columns: Sequence[Column]) -> dict[str, object]:
    """Return what a grid with these columns asks for first, as it writes it.

    A browser asks for that before the grid is drawn. If the grid asked otherwise, it would be
    asked for twice.
    """
    sorts = [
        {"sort": column["sort"], "type": "default", "colId": column_id(column)}
        for column in columns
        if "sort" in column
    ]
    return {
        "startRow": 0,
        "endRow": BLOCK_ROWS,
        "sortModel": sorts,
        "filterModel": {},
        "api": {},
    }


def query_of(filters: Filters, cluster_id: str | None, request: RowsRequest) -> JobFilters:
    query: JobFilters = {"count": "exact", "sort": NEWEST_FIRST}
    if cluster_id:
        query["cluster"] = cluster_id
    query = cast(JobFilters, {**query, **asked(filters)})
    for wish in request.get("sortModel") or []:
        if wish["colId"] in SORTS:
            query["sort"] = ("-" if wish["sort"] == "desc" else "") + wish["colId"]
    return query


async def block(
    maat: AsyncClient, query: JobFilters, *, start: int, rows: int, cursors: Mapping[str, str]
) -> tuple[JobPage, dict[str, str]]:
    """Return rows `start` to `start + rows` of the list, and the cursors that are known then.

    The grid asks by offset, the service pages by cursor. From the nearest known cursor the service
    passes over the rows that lie before `start`.

    Args:
        cursors: Offset of a row -> cursor of the page that starts there.
    """
    known = {} if start == 0 else {int(offset): cursor for offset, cursor in cursors.items()}
    at = max((offset for offset in known if offset <= start), default=0)
    window: JobFilters = {"limit": rows, "cursor": known.get(at), "skip": start - at}
    page = await maat.jobs(**cast(JobFilters, {**query, **window}))
    if page["next_cursor"] is not None:
        known[start + len(page["items"])] = page["next_cursor"]
    return page, {str(offset): cursor for offset, cursor in known.items()}
