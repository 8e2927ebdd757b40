"""The dialog that acts on many jobs: what it asks the service for, and what it says."""

from __future__ import annotations

from frontend.pages.jobs.blocks import Filters
from frontend.pages.jobs.bulk import _body, preview_words
from maat.api.bulk import BulkBody, BulkOut

NOTHING = Filters(q=None, state=[], model=[], gpu_type=[], label=[])


def test_it_asks_for_the_jobs_of_the_lists_filters() -> None:
    filters = Filters(q="res", state=["pending", "failed"], model=[], gpu_type=[], label=["a=b"])
    body = BulkBody.model_validate(_body("pause", filters, "cl_1"))
    assert (body.action, body.filter.q, body.filter.label) == ("pause", "res", ["a=b"])
    assert (body.filter.state, body.filter.cluster) == (["pending"], "cl_1")


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
