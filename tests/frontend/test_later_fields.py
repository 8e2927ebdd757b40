"""After which jobs, until when, how often: fields of the submit forms, edits, many jobs at once."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.pages.job.editing import changes_of
from frontend.pages.job.editing import unfinished as unfinished_edit
from frontend.pages.jobs.bulk import _body, wrong_changes
from frontend.pages.submit.later import (
    indices_of,
    later_body,
    of_job,
    refused_later,
    unfinished_later,
)
from frontend.pages.submit.trying import queue_words
from maat.api.bulk import BulkBody
from maat.api.job_answers import DryRunOut
from maat.api.jobs import JobChanges
from maat.client.errors import FieldProblem

EMPTY: dict[str, Any] = {"after": [], "deadline": "", "array": ""}


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("0-2", [0, 1, 2]),
        ("0, 3,7", [0, 3, 7]),
        ("5", [5]),
        ("0-1 4", [0, 1, 4]),
        ("0-1000", None),
        ("0-999", list(range(1000))),
        ("3-1", None),
        ("1,1", None),
        ("1000000", None),
        ("a", None),
        ("-1", None),
        ("", None),
        (None, None),
    ],
)
def test_indices_are_read_as_the_command_line_reads_them(
    text: str | None, indices: list[int] | None
) -> None:
    assert indices_of(text) == indices


def test_a_deadline_is_in_utc_unless_it_says_otherwise() -> None:
    for text, moment in (
        ("2026-12-01 08:00", "2026-12-01T08:00:00.000Z"),
        ("2026-12-01T08:00+01:00", "2026-12-01T07:00:00.000Z"),
        (" 2026-12-01 ", "2026-12-01T00:00:00.000Z"),
    ):
        assert later_body({**EMPTY, "deadline": text}) == {"deadline": moment}
    assert later_body(EMPTY) == {}
    wrong = unfinished_later({"after": ["x"] * 33, "deadline": "soon", "array": "many"})
    assert set(wrong) == {"after", "deadline", "array"}
    assert unfinished_later(EMPTY) == {}


def test_what_the_service_says_of_an_arrays_job_stands_beside_the_same_fields() -> None:
    raw = {"message": "There is no such job.", "remedy": "Name another.", "code": "unknown_job"}
    alone = FieldProblem.parse({**raw, "pointer": "/after/0"})
    in_array = FieldProblem.parse({**raw, "pointer": "/job/after/0"})
    size = FieldProblem.parse({**raw, "pointer": "/indices/3"})
    said = {"after": "There is no such job. Name another."}
    assert refused_later([alone]) == refused_later(of_job([in_array])) == said
    assert set(refused_later(of_job([size]))) == {"array"}


def test_an_edit_sends_only_what_differs() -> None:
    before = {"name": "a", "priority": "10", "labels": ["x=1"], "deadline": "2026-12-01 08:00:00"}
    assert changes_of(before, before) == {}
    changed = changes_of({**before, "labels": [], "deadline": ""}, before)
    assert changed == {"labels": {}, "deadline": None}
    assert JobChanges.model_validate(changed).model_fields_set == {"labels", "deadline"}
    assert set(unfinished_edit({**before, "name": " ", "labels": ["x"], "deadline": "?"})) == {
        "name",
        "labels",
        "deadline",
    }


def test_many_jobs_get_a_priority_or_labels() -> None:
    filters: Any = {"q": None, "state": [], "model": [], "gpu_type": [], "label": ["a=b"]}
    given = {"priority": "10", "labels": ["team=vision", "-old"]}
    ranked = BulkBody.model_validate(_body("priority", filters, None, **given))
    labelled = BulkBody.model_validate(_body("label", filters, None, **given))
    paused = BulkBody.model_validate(_body("pause", filters, None, **given))
    assert (ranked.priority, ranked.labels) == (10, None)
    assert (labelled.priority, labelled.labels) == (None, {"team": "vision", "old": None})
    assert (paused.priority, paused.labels) == (None, None)
    assert wrong_changes(["team=vision", "-old"]) == ""
    assert "no label" in wrong_changes(["team"])
    assert "twice" in wrong_changes(["old=1", "-old"])


def test_a_trial_says_where_the_job_would_stand() -> None:
    found: Any = {"waiting": 3, "position": 2}
    assert "it would be number 2" in queue_words(DryRunOut(**found))
    assert queue_words(DryRunOut(**{**found, "waiting": 0})) == "No job waits on the cluster now."
