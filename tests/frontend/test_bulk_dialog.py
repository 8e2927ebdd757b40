"""The dialog that acts on many jobs: what it asks the service for, and what it says."""

from __future__ import annotations

from frontend.pages.jobs.bulk import _body, preview_words
from frontend.pages.jobs.filters import filters_of
from maat.api.bulk import BulkBody, BulkOut

NOTHING = filters_of({})


def test_it_asks_for_the_jobs_of_the_lists_filters() -> None:
    days = {"from": "2026-11-20", "to": "2026-11-21"}
    filters = filters_of({"q": "res", "state": ["pending", "failed"], "label": "a=b", **days})
    body = BulkBody.model_validate(_body("pause", filters, "cl_1"))
    assert (body.action, body.filter.q, body.filter.label) == ("pause", "res", ["a=b"])
    assert (body.filter.state, body.filter.cluster) == (["pending"], "cl_1")
    assert str(body.filter.submitted_after) == "2026-11-19 23:59:59.999000+00:00"
    assert str(body.filter.submitted_before) == "2026-11-22 00:00:00+00:00"


def test_without_a_filter_it_means_all_that_live() -> None:
    body = BulkBody.model_validate(_body("cancel", NOTHING, None))
    assert "running" in body.filter.state
    assert "succeeded" not in body.filter.state


def test_the_preview_says_what_changes_and_what_does_not() -> None:
    found = BulkOut(
        action="pause",
        dry_run=True,
        count=3,
        by_state={"running": 1, "pending": 2},
        unchanged=1,
        not_yours=4,
        preview=[],
    )
    said = str(preview_words(found))
    for words in ("It changes 3 jobs.", "running", "1 job more match", "4 jobs more match"):
        assert words in said
