"""What the job list says where it has no rows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from frontend.pages.jobs.blocks import block, query_of
from frontend.pages.jobs.callbacks import shown
from frontend.pages.jobs.columns import (
    USUAL,
    chosen_columns,
    named_columns,
    shown_columns,
)
from frontend.pages.jobs.filters import TAKES, Filters, filters_of
from frontend.pages.jobs.summary import oldest_wait, verdict
from maat.api.job_answers import JobPage
from maat.api.job_words import state_in_words

NO_JOBS: JobPage = {"items": [], "next_cursor": None, "state_counts": {}, "total": 0}
ALL: Filters = filters_of({})


def test_a_list_without_jobs_says_how_to_begin() -> None:
    changes = shown(NO_JOBS, {}, ALL, "clu_1", {})

    assert "No job yet" in str(changes["told"])
    assert "/submit?cluster=clu_1" in str(changes["told"])
    assert changes["total"] == "0 jobs"


def test_the_list_begins_with_a_sentence_on_who_waits_and_for_how_long() -> None:
    ended = {"succeeded": 9}

    assert verdict({}, None) == ""
    assert verdict({**ended, "running": 1}, None) == "None of 10 jobs waits for GPUs; 1 runs."
    waits = {**ended, "pending": 2, "preempted": 1, "running": 3, "restarting": 1}
    assert verdict(waits, 7200.0) == "3 of 16 jobs wait for GPUs, the oldest for 2 h; 4 run."
    again = {**ended, "preempted": 1}
    assert verdict(again, None) == "1 of 10 jobs waits for GPUs; 0 run."


def test_a_list_that_filters_emptied_names_them_and_leads_to_all_jobs() -> None:
    filters: Filters = {**ALL, "q": "bert", "state": ["running", "pending"]}

    changes = shown(NO_JOBS, {}, filters, "clu_1", {})

    assert "Filtered by name or id bert, state running or pending." in str(changes["told"])
    assert "/jobs?cluster=clu_1" in str(changes["told"])


@pytest.mark.parametrize(
    ("fields", "shown_as"),
    [
        ({}, "follows others"),
        ({"pause_requested": True}, "paused"),
        ({"reason": {"code": "HELD_BY_USER"}}, "paused"),
        ({"reason": {"code": "DEPENDENCY_FAILED"}}, "paused"),
        ({"state": "running"}, "running"),
    ],
)
def test_only_what_waits_for_a_person_is_shown_as_paused(
    fields: dict[str, Any], shown_as: str
) -> None:
    follower = {
        "state": "paused",
        "pause_requested": False,
        "reason": {"code": "WAITING_DEPENDENCY"},
    }
    assert state_in_words(follower | fields) == shown_as


def test_a_block_within_a_list_leaves_its_rows_alone() -> None:
    changes = shown({**NO_JOBS, "total": 7}, {}, ALL, "clu_1", {})

    assert changes["told"] is None


def test_an_address_says_all_filters_and_the_counts_keep_them() -> None:
    query = {
        "q": "bert",
        "state": ["running", "nonsense"],
        "tenant": "vision",
        "owner": "emre",
        "from": "2026-11-20",
        "to": "2026-11-21",
        "label": ["team=a", "=b"],
    }
    filters = filters_of(query)
    request: Any = {"startRow": 0, "endRow": 100, "sortModel": [{"colId": "name", "sort": "desc"}]}

    asked = query_of(filters, "clu_1", request)
    look: Any = {"sort": "-name", "column": ["state", "wait"]}
    told = shown({**NO_JOBS, "state_counts": {"pending": 3}}, {}, filters, "clu_1", look)

    assert asked == {
        "count": "exact",
        "cluster": "clu_1",
        "sort": "-name",
        "q": "bert",
        "state": ["running"],
        "tenant": ["vision"],
        "owner": "emre",
        "label": ["team=a"],
        "submitted_after": "2026-11-19T23:59:59.999000+00:00",
        "submitted_before": "2026-11-22T00:00:00+00:00",
    }
    link = str(told["counts"])
    for part in ("q=bert", "state=pending", "owner=emre", "from=2026-11-20", "to=2026-11-21"):
        assert part in link
    assert "owner emre, from 2026-11-20, to 2026-11-21" in str(told["told"])


class List:
    """A list of 1000 jobs, whose cursors are offsets; it remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def jobs(self, *, limit: int, cursor: str | None, skip: int, **_: Any) -> JobPage:
        start = int(cursor or 0) + skip
        self.asked.append((start, limit))
        items: Any = list(range(1000))[start : start + limit]
        return {**NO_JOBS, "items": items, "next_cursor": str(start + limit)}


def test_a_jump_into_a_long_list_asks_once_and_goes_on_from_the_nearest_cursor() -> None:
    known: Any = List()
    page, cursors = asyncio.run(block(known, {}, start=700, rows=100, cursors={}))
    assert page["items"][0] == 700
    assert known.asked == [(700, 100)]
    assert cursors == {"800": "800"}

    page, cursors = asyncio.run(block(known, {}, start=850, rows=100, cursors=cursors))
    assert page["items"] == list(range(850, 950))
    assert known.asked[1:] == [(850, 100)]
    assert set(cursors) == {"800", "950"}


def test_a_day_that_is_none_is_said_and_left_out() -> None:
    assert "is no day" in str(TAKES["from"]("yesterday"))
    assert TAKES["to"]("2026-11-20") is None
    assert filters_of({"from": "yesterday"}) == ALL


def test_the_oldest_wait_is_asked_for_only_where_a_job_has_had_no_gpu() -> None:
    asked: list[Any] = []

    class Service:
        async def jobs(self, **query: Any) -> Any:
            asked.append(query)
            return {**NO_JOBS, "items": [{"wait_seconds": 7200.0}]}

    request: Any = {"startRow": 0, "endRow": 100, "sortModel": None}
    query = query_of({**ALL, "q": "bert"}, "clu_1", request)

    def oldest(**counts: int) -> float | None:
        page: JobPage = {**NO_JOBS, "state_counts": counts}
        return asyncio.run(oldest_wait(Service(), query, page))  # type: ignore[arg-type]

    assert oldest(running=2, preempted=1) is None
    assert asked == []
    assert oldest(running=2, pending=1) == 7200.0
    assert asked == [
        {
            "cluster": "clu_1",
            "q": "bert",
            "state": ["pending"],
            "sort": "submitted_at",
            "count": None,
            "limit": 1,
        }
    ]


def test_the_usual_columns_need_no_mention_and_none_is_the_name_alone() -> None:
    assert chosen_columns([]) == list(USUAL)
    assert named_columns(list(reversed(USUAL))) == []
    assert chosen_columns(["restarts", "nonsense", "state"]) == ["state", "restarts"]
    assert named_columns(["restarts", "state"]) == ["state", "restarts"]
    assert (chosen_columns(["name"]), named_columns([])) == ([], ["name"])
    hidden = {column["field"] for column in shown_columns(None, ["wait"]) if column["hide"]}
    assert {"name", "wait"} & hidden == set()
    assert {"state", "progress_share", "restarts"} <= hidden
