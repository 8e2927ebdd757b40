"""After which jobs, until when, how often: fields of the submit forms, edits, many jobs at once."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.pages.job.editing import changes_of
from frontend.pages.job.editing import unfinished as unfinished_edit
from frontend.pages.job.request_fields import REQUEST, Known, offered_types, wrong_request
from frontend.pages.jobs.bulk import _body, wrong_changes
from frontend.pages.jobs.filters import filters_of
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


BEFORE = {
    "name": "a",
    "priority": "10",
    "weight": 1.5,
    "labels": ["x=1"],
    "deadline": "2026-12-01 08:00:00",
    "least_stay_seconds": "",
    "most_moves_per_hour": 4,
}


def known_job(**declared: Any) -> Known:
    """A waiting job of bert on a cluster of 8 t4 and 4 a100."""
    fits = [
        {"gpu_type": kind, "gpus_per_replica": 1, "largest_batch_per_gpu": 32}
        for kind in ("t4", "a100")
    ]
    bert: Any = {"name": "bert", "initial_batch_size": 12, "max_batch_size": 384}
    job = {
        "name": "a", "model": "bert", "adaptivity": "adaptive", "gpu_count": "", "min_gpus": 2,
        "max_gpus": 8, "batch_size": "", "max_batch_size": "", "workload_kind": "training",
        "promised_seconds": "", "work_scale": 1.0, "weight": 1.5, "gpu_types": [], "labels": [],
        "least_stay_seconds": "", "most_moves_per_hour": "",
        **declared,
    }  # fmt: skip
    capacity = {"t4": 8, "a100": 4}
    return Known(runs_command=False, job=job, model={**bert, "gpu_types": fits}, capacity=capacity)


def test_an_edit_of_what_a_job_asks_for_has_the_rules_of_the_submit_form() -> None:
    known = known_job()
    before = {name: known["job"][name] for name in REQUEST}
    assert offered_types(known) == ["t4", "a100"]

    fewer = {**before, "gpu_types": ["a100"], "max_gpus": ""}
    assert wrong_request(fewer, before, known) == {}
    changed = changes_of({**BEFORE, **fewer}, {**BEFORE, **before}, known)
    assert changed == {"gpu_types": ["a100"], "max_gpus": None}

    most = wrong_request({**fewer, "min_gpus": 6}, before, known)
    assert most == {"min_gpus": "The cluster has at most 4 GPUs of one type that this job may use."}
    least = wrong_request({**before, "max_gpus": 1}, before, known)
    assert "Give at least 2" in least["max_gpus"]

    rigid = {**before, "adaptivity": "rigid", "gpu_count": ""}
    assert wrong_request(rigid, before, known) == {"gpu_count": "Say how many GPUs it needs."}
    given = changes_of({**BEFORE, **rigid, "gpu_count": 4}, {**BEFORE, **before}, known)
    assert given == {"adaptivity": "rigid", "gpu_count": 4, "min_gpus": 1, "max_gpus": None}
    assert JobChanges.model_validate(given).gpu_count == 4


def test_a_job_that_wants_more_than_there_is_by_now_may_still_be_renamed() -> None:
    known = known_job(min_gpus=64)
    before = {name: known["job"][name] for name in REQUEST}
    assert wrong_request(before, before, known) == {}


def test_an_edit_sends_only_what_differs() -> None:
    known = known_job()
    before = {**BEFORE, **{name: known["job"][name] for name in REQUEST}}
    assert changes_of(before, before, known) == {}
    changed = changes_of({**before, "labels": [], "deadline": ""}, before, known)
    assert changed == {"labels": {}, "deadline": None}
    assert JobChanges.model_validate(changed).model_fields_set == {"labels", "deadline"}
    assert changes_of({**before, "weight": 2}, before, known) == {"weight": 2.0}
    bounds = {"least_stay_seconds": 1800, "most_moves_per_hour": ""}
    assert changes_of({**before, **bounds}, before, known) == {
        "least_stay_seconds": 1800,
        "most_moves_per_hour": None,
    }
    assert set(unfinished_edit({**before, "most_moves_per_hour": 1.5})) == {"most_moves_per_hour"}
    wrong = {"name": " ", "labels": ["x"], "deadline": "?", "weight": 1001}
    assert set(unfinished_edit({**before, **wrong})) == set(wrong)
    assert unfinished_edit({**before, "weight": ""}) == {
        "weight": "Give a number from 0.001 to 1000."
    }


def test_many_jobs_get_a_priority_a_weight_or_labels() -> None:
    filters = filters_of({"label": "a=b"})
    given: dict[str, Any] = {"priority": "10", "weight": 1.5, "labels": ["team=vision", "-old"]}
    ranked = BulkBody.model_validate(_body("priority", filters, None, **given))
    labelled = BulkBody.model_validate(_body("label", filters, None, **given))
    weighed = BulkBody.model_validate(_body("weight", filters, None, **given))
    paused = BulkBody.model_validate(_body("pause", filters, None, **given))
    assert (ranked.priority, ranked.labels) == (10, None)
    assert (weighed.priority, weighed.weight, weighed.labels) == (None, 1.5, None)
    assert (labelled.priority, labelled.labels) == (None, {"team": "vision", "old": None})
    assert (paused.priority, paused.weight, paused.labels) == (None, None, None)
    assert wrong_changes(["team=vision", "-old"]) == ""
    assert "no label" in wrong_changes(["team"])
    assert "twice" in wrong_changes(["old=1", "-old"])


def test_a_trial_says_where_the_job_would_stand() -> None:
    found: Any = {"waiting": 3, "position": 2}
    assert "it would be number 2" in queue_words(DryRunOut(**found))
    assert queue_words(DryRunOut(**{**found, "waiting": 0})) == "No job waits on the cluster now."
