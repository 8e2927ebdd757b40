"""What the job list says where it has no rows."""

from __future__ import annotations

from frontend.pages.jobs.blocks import Filters
from frontend.pages.jobs.callbacks import shown
from maat.api.job_answers import JobPage

NO_JOBS: JobPage = {"items": [], "next_cursor": None, "state_counts": {}, "total": 0}
ALL: Filters = {"q": None, "state": [], "model": [], "gpu_type": [], "label": []}


def test_a_list_without_jobs_says_how_to_begin() -> None:
    changes = shown(NO_JOBS, {}, ALL, "clu_1", None)

    assert "No job yet" in str(changes["told"])
    assert changes["total"] == "0 jobs"


def test_a_list_that_filters_emptied_names_them_and_leads_to_all_jobs() -> None:
    filters: Filters = {**ALL, "q": "bert", "state": ["running", "pending"]}

    changes = shown(NO_JOBS, {}, filters, "clu_1", None)

    assert "Filtered by q bert, state running or pending." in str(changes["told"])
    assert "/jobs?cluster=clu_1" in str(changes["told"])


def test_a_block_within_a_list_leaves_its_rows_alone() -> None:
    changes = shown({**NO_JOBS, "total": 7}, {}, ALL, "clu_1", None)

    assert changes["told"] is None
