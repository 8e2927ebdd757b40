"""Submitting jobs: what is taken, what is refused and how, and that nothing is half-stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlmodel import func, select

from backend.database import Database
from backend.models import Job, JobEvent

JOBS = "/api/v1/jobs"
Submit = Callable[..., dict[str, Any]]


def count(database: Database, table: Any = Job) -> int:
    with database.session_scope(writes=False) as session:
        return session.exec(select(func.count()).select_from(table)).one()


def test_a_submitted_job_belongs_to_who_asked_and_waits_for_a_round(client: TestClient) -> None:
    answer = client.post(JOBS, json={"name": "train", "model": "bert"})
    job = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{JOBS}/{job['id']}"
    assert (job["owner"], job["tenant"], job["state"]) == ("local", "default", "submitted")
    assert job["reason"]["code"] == "NOT_YET_CONSIDERED"
    assert job["allocation"] is None
    assert job["remaining_seconds"] is None
    assert client.get(answer.headers["Location"]).json()["id"] == job["id"]


def test_a_submission_is_the_first_event_of_a_job(client: TestClient, submit: Submit) -> None:
    job = submit()
    events = client.get(f"{JOBS}/{job['id']}/events").json()["items"]
    assert [(event["kind"], event["state"], event["at"]) for event in events] == [
        ("state", "submitted", job["submitted_at"])
    ]


def test_a_job_may_infer_and_its_promise_is_shown(client: TestClient, submit: Submit) -> None:
    trains, scores = submit(), submit(workload_kind="batch-inference")
    serves = submit(workload_kind="latency-inference", batch_size=4, promised_seconds=0.5)
    shown = [client.get(f"{JOBS}/{job['id']}").json() for job in (trains, scores, serves)]
    assert [
        (job["workload_kind"], job["promised_seconds"], job["batch_size"]) for job in shown
    ] == [
        ("training", None, None),
        ("batch-inference", None, None),
        ("latency-inference", 0.5, 4),
    ]


def test_the_work_of_a_job_scales_with_its_share_of_the_training(
    database: Database, submit: Submit
) -> None:
    whole, half = submit(), submit(work_scale=0.5)
    with database.session_scope(writes=False) as session:
        work = {job.id: job.remaining_work for job in session.exec(select(Job))}
    assert work[half["id"]] == pytest.approx(work[whole["id"]] / 2)


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("unknown model", {"model": "gpt-9"}, "/model", "bert"),
    ("a promise of training", {"promised_seconds": 1.0}, "/promised_seconds", "latency-inference"),
    (
        "latency without a promise",
        {"workload_kind": "latency-inference", "batch_size": 16},
        "/promised_seconds",
        "latency-inference",
    ),
    (
        "latency without requests",
        {"workload_kind": "latency-inference", "promised_seconds": 1.0},
        "/batch_size",
        "batch size",
    ),
    (
        "a promise of nothing",
        {"workload_kind": "latency-inference", "batch_size": 16, "promised_seconds": 0},
        "/promised_seconds",
        "0",
    ),
    ("an unknown kind of work", {"workload_kind": "serving"}, "/workload_kind", "batch-inference"),
    ("minimum above the cluster", {"min_gpus": 25}, "/min_gpus", "24"),
    (
        "rigid above the cluster",
        {"adaptivity": "rigid", "gpu_count": 48, "batch_size": 96},
        "/gpu_count",
        "24",
    ),
    ("zero GPUs", {"gpu_count": 0, "adaptivity": "rigid", "batch_size": 96}, "/gpu_count", "1"),
    ("negative minimum", {"min_gpus": -3}, "/min_gpus", "1"),
    ("most below least", {"min_gpus": 4, "max_gpus": 2}, "/max_gpus", "4"),
    ("a type that the cluster does not have", {"gpu_types": ["h100", "t4"]}, "/gpu_types/0", "t4"),
    ("only types without the model's measurements", {"gpu_types": ["h100"]}, "/gpu_types", "t4"),
    ("rigid without a count", {"adaptivity": "rigid", "batch_size": 96}, "/gpu_count", "how many"),
    ("fixed batch without a batch", {"adaptivity": "strong-scaling"}, "/batch_size", "batch size"),
    ("batch beyond what was measured", {"batch_size": 10**6}, "/batch_size", "384"),
    (
        "half a replica",
        {"model": "gpt", "gpu_types": ["a100"], "max_gpus": 1},
        "/max_gpus",
        "2 on a100",
    ),
    (
        "rigid half a replica",
        {"model": "gpt", "adaptivity": "rigid", "gpu_count": 3, "batch_size": 48},
        "/gpu_count",
        "8 on rtx",
    ),
    (
        "rigid batch below its GPUs",
        {"model": "cifar10", "adaptivity": "rigid", "gpu_count": 24, "batch_size": 128},
        "/batch_size",
        "768",
    ),
    (
        "scaled batch below the fewest GPUs",
        {"model": "cifar10", "adaptivity": "strong-scaling", "min_gpus": 8, "batch_size": 128},
        "/batch_size",
        "lower min_gpus",
    ),
    (
        "batch above its own most",
        {"batch_size": 96, "max_batch_size": 48},
        "/batch_size",
        "at most 48",
    ),
    ("control characters in the name", {"name": "a\x07b"}, "/name", "Use letters"),
    ("a sign that nobody sees in the name", {"name": "t4\u200b"}, "/name", "Use letters"),
    ("the end of an isolate of the page", {"name": "\u2069\u202ea"}, "/name", "Use letters"),
    ("control characters in the model", {"model": "a\nb"}, "/model", "Use letters"),
    ("a name of white space", {"name": "   "}, "/name", "Leave that out."),
    ("an overlong name", {"name": "x" * 201}, "/name", "200"),
    ("no name", {"name": ""}, "/name", "1"),
    ("a number as text", {"min_gpus": "4"}, "/min_gpus", "whole number"),
    ("a truth value as a number", {"min_gpus": True}, "/min_gpus", "whole number"),
    ("a count beyond any cluster", {"min_gpus": 10**30}, "/min_gpus", "1000000"),
    ("no work", {"work_scale": 0}, "/work_scale", "0"),
    ("a misspelt field", {"gpus": 4}, "/gpus", "Leave it out"),
    ("an unknown adaptivity", {"adaptivity": "elastic"}, "/adaptivity", "adaptive"),
    ("an unknown cluster", {"cluster_id": "mars"}, "/cluster_id", "demo"),
]


@pytest.mark.parametrize(
    ("fields", "pointer", "remedy"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_cannot_be_used_is_refused_with_field_value_and_remedy(
    client: TestClient, database: Database, fields: dict[str, Any], pointer: str, remedy: str
) -> None:
    answer = client.post(JOBS, json={"name": "train", "model": "bert"} | fields)
    problem = answer.json()
    assert answer.status_code == 422, problem
    assert answer.headers["content-type"] == "application/problem+json"
    error = next(error for error in problem["errors"] if error["pointer"] == pointer)
    assert remedy in error["remedy"]
    assert error["message"]
    assert {"value", "code", "field"} <= set(error)
    assert count(database) == 0


def test_an_entry_of_a_list_is_refused_by_the_name_of_the_list(client: TestClient) -> None:
    fields = {"name": "train", "model": "bert", "gpu_types": ["t4", "h100"]}
    (error,) = client.post(JOBS, json=fields).json()["errors"]
    assert (error["pointer"], error["field"]) == ("/gpu_types/1", "gpu_types")


def test_a_word_that_is_none_of_those_allowed_is_refused_with_them_once(client: TestClient) -> None:
    fields = {"name": "train", "model": "bert", "adaptivity": "elastic"}
    (error,) = client.post(JOBS, json=fields).json()["errors"]
    assert error["message"] == "There is no such value."
    assert error["remedy"].startswith("Use one of 'rigid', ")


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "cifar10", "adaptivity": "rigid", "gpu_count": 4, "batch_size": 128},
        {"model": "cifar10", "adaptivity": "strong-scaling", "min_gpus": 4, "batch_size": 128},
        {
            "model": "gpt",
            "adaptivity": "rigid",
            "gpu_count": 8,
            "batch_size": 48,
            "gpu_types": ["rtx"],
        },
        {"model": "gpt", "adaptivity": "rigid", "gpu_count": 2, "batch_size": 48},
        {"batch_size": 48, "max_batch_size": 48},
    ],
)
def test_what_just_fits_is_taken(submit: Submit, fields: dict[str, Any]) -> None:
    assert submit(**fields)["state"] == "submitted"


def test_a_name_keeps_its_marks_of_direction(client: TestClient, submit: Submit) -> None:
    name = "\u202eturned \u05d0\u05d1\u200f \u2067c\u2069"
    job = submit(name=name, external_id=name)
    found = client.get(f"{JOBS}/{job['id']}").json()
    assert (found["name"], found["external_id"]) == (name, name)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(
    client: TestClient, database: Database, literal: str
) -> None:
    body = f'{{"name": "train", "model": "bert", "work_scale": {literal}}}'
    answer = client.post(JOBS, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert count(database) == 0


def test_a_number_that_is_none_is_refused_by_its_place(client: TestClient) -> None:
    body = (
        '{"jobs": [{"name": "NaN", "model": "bert"}, '
        '{"name": "train", "model": "bert", "work_scale": -Infinity}]}'
    )
    answer = client.post(
        f"{JOBS}:batch", content=body, headers={"content-type": "application/json"}
    )
    (error,) = answer.json()["errors"]
    assert answer.status_code == 400
    assert (error["pointer"], error["field"], error["value"]) == (
        "/jobs/1/work_scale",
        "work_scale",
        "-Infinity",
    )
    assert "finite" in error["remedy"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe\x00binary",
        b'{"name": "\\ud800", "model": "bert"}',
        b'{"name": "a\\u0000b", "model": "bert"}',
        b"[" * 100_000,
        b"[" * 900 + b"NaN" + b"]" * 900,
    ],
)
def test_a_body_that_is_no_json_is_a_problem(
    client: TestClient, database: Database, body: bytes
) -> None:
    answer = client.post(JOBS, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 413, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert count(database) == 0


@pytest.mark.parametrize("bad", ["a\\u0000b", "\\ud800"])
def test_text_that_cannot_be_stored_is_refused_where_it_is(client: TestClient, bad: str) -> None:
    in_text = f'{{"name": "x", "run": {{"argv": ["python", "{bad}"]}}}}'
    in_key = f'{{"name": "x", "labels": {{"{bad}": "y"}}}}'
    for body, pointer in ((in_text, "/run/argv/1"), (in_key, "/labels")):
        answer = client.post(JOBS, content=body, headers={"content-type": "application/json"})
        (error,) = answer.json()["errors"]
        assert answer.status_code == 400
        assert (error["pointer"], error["code"]) == (pointer, "unstorable")
        assert error["remedy"] == "Leave that character out."


def test_an_atomic_batch_with_one_bad_job_stores_none(
    client: TestClient, database: Database
) -> None:
    jobs = [{"name": f"train-{i}", "model": "bert"} for i in range(3)]
    jobs[1] = {"name": "train-1", "model": "nonsense"}
    answer = client.post(f"{JOBS}:batch", json={"jobs": jobs})
    error = answer.json()["errors"][0]
    assert answer.status_code == 422
    assert (error["pointer"], error["row"], error["value"]) == ("/jobs/1/model", 1, "nonsense")
    assert (count(database), count(database, JobEvent)) == (0, 0)


def test_a_partial_batch_stores_what_can_be_used_and_says_what_not(
    client: TestClient, database: Database
) -> None:
    jobs: list[Any] = [
        {"name": "good", "model": "bert"},
        {"name": "bad", "model": "bert", "min_gpus": 99},
        "no object",
        {"name": "worse"},
    ]
    answer = client.post(f"{JOBS}:batch", json={"jobs": jobs, "mode": "partial"})
    result = answer.json()
    assert answer.status_code == 207
    assert (result["created"], result["refused"]) == (1, 3)
    assert [item["status"] for item in result["items"]] == [201, 422, 422, 422]
    assert result["items"][0]["job"]["name"] == "good"
    assert result["items"][1]["errors"][0]["pointer"] == "/min_gpus"
    assert count(database) == 1


def test_a_batch_of_a_thousand_is_taken_and_of_more_refused(
    client: TestClient, database: Database
) -> None:
    jobs = [{"name": f"train-{i}", "model": "bert"} for i in range(1000)]
    assert client.post(f"{JOBS}:batch", json={"jobs": jobs}).json()["created"] == 1000
    assert client.post(f"{JOBS}:batch", json={"jobs": [*jobs, jobs[0]]}).status_code == 422
    assert count(database) == 1000


def test_an_external_id_stands_for_one_job_of_a_tenant(
    client: TestClient, submit: Submit, database: Database
) -> None:
    first = submit(external_id="run-7")
    again = client.post(JOBS, json={"name": "again", "model": "bert", "external_id": "run-7"})
    assert again.status_code == 409
    assert first["id"] in again.json()["detail"]
    twice = [
        {"name": "a", "model": "bert", "external_id": "x"},
        {"name": "b", "model": "bert", "external_id": "x"},
    ]
    assert client.post(f"{JOBS}:batch", json={"jobs": twice}).status_code == 409
    assert count(database) == 1


def test_demo_jobs_of_one_seed_are_the_same_jobs(client: TestClient) -> None:
    def drawn() -> list[tuple[Any, ...]]:
        answer = client.post(f"{JOBS}:demo", json={"count": 20, "seed": 3})
        assert answer.status_code == 201
        return [
            (item["job"]["name"], item["job"]["model"], item["job"]["gpu_count"])
            for item in answer.json()["items"]
        ]

    first = drawn()
    assert len(first) == 20
    assert drawn() == first
    assert len({model for _, model, _ in first}) > 1


def test_cancelling_asks_for_the_end_once_and_only_of_a_job_that_has_not_ended(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job = submit()
    cancel = f"{JOBS}/{job['id']}/actions/cancel"
    first, second = client.post(cancel).json(), client.post(cancel).json()
    assert first["cancel_requested"] is second["cancel_requested"] is True
    assert first["reason"]["code"] == "ENDING"
    assert first["version"] == second["version"] == job["version"] + 1
    with database.session_scope() as session:
        session.get_one(Job, job["id"]).state = "cancelled"
    again = client.post(cancel)
    assert (again.status_code, again.json()["state"]) == (
        200,
        "cancelled",
    )  # who asks again because an answer was lost has what they want
    for ended in ("succeeded", "failed"):
        with database.session_scope() as session:
            session.get_one(Job, job["id"]).state = ended
        assert client.post(cancel).status_code == 409


def test_a_cancel_that_names_a_version_ends_that_version_alone(
    client: TestClient, submit: Submit
) -> None:
    job = submit()
    cancel, tag = (
        f"{JOBS}/{job['id']}/actions/cancel",
        client.get(f"{JOBS}/{job['id']}").headers["ETag"],
    )
    assert client.post(cancel, headers={"If-Match": '"99"'}).status_code == 412
    assert client.get(f"{JOBS}/{job['id']}").json()["cancel_requested"] is False
    done = client.post(cancel, headers={"If-Match": tag})
    assert (done.status_code, done.json()["cancel_requested"]) == (200, True)
    assert done.headers["ETag"] == client.get(f"{JOBS}/{job['id']}").headers["ETag"] != tag
    assert (
        client.post(cancel, headers={"If-Match": tag}).status_code == 200
    )  # the same request again: it has been carried out


def test_there_is_no_job_to_cancel_that_nobody_submitted(client: TestClient) -> None:
    assert client.post(f"{JOBS}/job_none/actions/cancel").status_code == 404


def test_an_explanation_gives_the_reason_with_its_numbers_and_offers_nothing_that_was_not_tried(
    client: TestClient, submit: Submit, database: Database
) -> None:
    job = submit(min_gpus=4)
    with database.session_scope() as session:
        row = session.get_one(Job, job["id"])
        row.reason_code, row.reason_evidence, row.as_of_round = (
            "WAITING_CAPACITY",
            {"needed_gpus": 4},
            12,
        )
    told = client.get(f"{JOBS}/{job['id']}/explanation").json()
    assert told["primary"]["evidence"] == {"needed_gpus": 4}
    assert told["as_of_round"] == 12
    assert [remedy["code"] for remedy in told["remedies"]] == ["wait"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS = (
    "name",
    "model",
    "adaptivity",
    "gpu_count",
    "min_gpus",
    "max_gpus",
    "batch_size",
    "work_scale",
    "gpu_types",
    "external_id",
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(fields=st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=4))
def test_whatever_is_sent_the_answer_is_a_job_or_a_problem_about_it(
    client: TestClient, fields: dict[str, Any]
) -> None:
    body = json.dumps({"name": "train", "model": "bert"} | fields)
    answer = client.post(
        JOBS,
        content=body.encode("utf-8", "surrogatepass"),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code in (201, 400, 409, 422), answer.text
    if answer.status_code != 201:
        assert answer.json()["type"].startswith("/problems/")


@pytest.mark.parametrize(
    ("state", "code", "sentence"),
    [
        ("running", "GRANTED", "It has what the policy chose for it."),
        ("succeeded", "ENDED", "The job has ended: its work is done."),
        ("cancelled", "ENDED", "The job has ended: it was cancelled."),
    ],
)
def test_a_job_that_ended_says_how_and_not_what_it_held(
    client: TestClient, submit: Submit, database: Database, state: str, code: str, sentence: str
) -> None:
    job = submit()
    with database.session_scope() as session:
        row = session.get_one(Job, job["id"])
        row.state, row.reason_code = state, "GRANTED"
    reason = client.get(f"{JOBS}/{job['id']}").json()["reason"]
    assert (reason["code"], reason["sentence"]) == (code, sentence)
    assert client.get(f"{JOBS}/{job['id']}/explanation").json()["primary"] == reason


def test_of_a_large_batch_few_errors_of_each_job_are_told(client: TestClient) -> None:
    wrong = {f"k{i}": 1 for i in range(8)}  # and two that are missing
    for count, told in ((2, 10), (1000, 5)):
        items = client.post(
            f"{JOBS}:batch", json={"jobs": [wrong] * count, "mode": "partial"}
        ).json()["items"]
        assert {len(item["errors"]) for item in items} == {told}


def test_a_gpu_type_in_capitals_is_refused_with_the_one_that_is_meant(client: TestClient) -> None:
    job = {"name": "x", "model": "bert"}
    alone = client.post("/api/v1/jobs", json=job | {"gpu_types": ["A100"]})
    beside = client.post("/api/v1/jobs", json=job | {"gpu_types": ["a100", "T4"]})
    assert [answer.json()["errors"][0]["remedy"] for answer in (alone, beside)] == [
        "Write a100. Measured are t4, rtx, a100, quad, v100.",
        "Write t4.",
    ]
