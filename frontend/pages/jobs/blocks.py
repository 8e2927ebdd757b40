"""Blocks of rows: how a grid that asks by offset reads a list that is paged by cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from frontend.pages.jobs.rows import NEWEST_FIRST, SORTS
from maat.api.job_answers import JobPage
from maat.client import AsyncClient
from maat.client.calls import JobFilters

MAX_LIMIT = 500


class Filters(TypedDict):
    """The filters of the page; None and empty lists keep all jobs."""

    q: str | None
    state: list[str]
    model: list[str]
    gpu_type: list[str]
    label: list[str]


class SortWish(TypedDict):
    colId: str
    sort: str


class RowsRequest(TypedDict):
    """What the grid asks for: rows by their offsets, in which order."""

    startRow: int
    endRow: int
    sortModel: list[SortWish] | None


def query_of(filters: Filters, cluster_id: str | None, request: RowsRequest) -> JobFilters:
    query: JobFilters = {"count": "exact", "sort": NEWEST_FIRST}
    if cluster_id:
        query["cluster"] = cluster_id
    if filters["q"]:
        query["q"] = filters["q"]
    if filters["state"]:
        query["state"] = filters["state"]
    if filters["model"]:
        query["model"] = filters["model"]
    if filters["gpu_type"]:
        query["gpu_type"] = filters["gpu_type"]
    if filters["label"]:
        query["label"] = filters["label"]
    for wish in request.get("sortModel") or []:
        if wish["colId"] in SORTS:
            query["sort"] = ("-" if wish["sort"] == "desc" else "") + wish["colId"]
    return query


async def block(
    maat: AsyncClient, query: JobFilters, *, start: int, rows: int, cursors: Mapping[str, str]
) -> tuple[JobPage, dict[str, str]]:
    """Return rows `start` to `start + rows` of the list, and the cursors that are known then.

    The grid asks by offset, the service pages by cursor. The rows between the nearest known cursor
    and `start` are read and skipped.

    Args:
        cursors: Offset of a row -> cursor of the page that starts there.
    """
    known = {} if start == 0 else {int(offset): cursor for offset, cursor in cursors.items()}
    at = max((offset for offset in known if offset <= start), default=0)
    while at < start:
        skipped = await maat.jobs(**_window(query, rows=start - at, cursor=known.get(at)))
        at += len(skipped["items"])
        if skipped["next_cursor"] is None:
            return {**skipped, "items": []}, {
                str(offset): cursor for offset, cursor in known.items()
            }
        known[at] = skipped["next_cursor"]
    page = await maat.jobs(**_window(query, rows=rows, cursor=known.get(start)))
    if page["next_cursor"] is not None:
        known[start + len(page["items"])] = page["next_cursor"]
    return page, {str(offset): cursor for offset, cursor in known.items()}


def _window(query: JobFilters, *, rows: int, cursor: str | None) -> JobFilters:
    return cast(JobFilters, {**query, "limit": min(rows, MAX_LIMIT), "cursor": cursor})
