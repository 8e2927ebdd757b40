"""Jobs that are commands: who may submit them, what is refused, what is shown of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.database import Database
from backend.idempotency import Once
from backend.models import IdempotencyKey, Job, JobSecret
from backend.settings import Settings
from maat.api.jobs import JobBody

JOBS = "/api/v1/jobs"
RUN = {"argv": ["python", "train.py"], "cwd": "/home/me"}
SCRIPT = {"name": "mine", "model": "script", "cluster_id": "here"}
RIGID = {**SCRIPT, "adaptivity": "rigid", "gpu_count": 2, "run": RUN}
ADAPTIVE = {**SCRIPT, "batch_size": 64, "run": RUN}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


@pytest.fixture
def here(client: TestClient) -> TestClient:
    """The local admin, with a cluster that runs commands."""
    body = {"name": "here", "shape": "cpu=2x4", "executor": "local"}
    assert client.post("/api/v1/clusters", json=body).status_code == 201
    return client


def test_a_command_is_cloned_once_its_secrets_are_given_again(here: TestClient) -> None:
    run = {**RUN, "env": {"A": "1"}, "secret_env": {"KEY": "hush-hush"}}
    first = here.post(JOBS, json={**RIGID, "run": run}).json()["id"]
    changes = {"run": {"secret_env": {"KEY": "other"}, "max_retries": 7}}
    made = here.post(f"{JOBS}/{first}/actions/clone", json={"changes": changes})
    assert made.status_code == 201, made.text
    shown = here.get(f"{JOBS}/{made.json()['id']}/command").json()
    assert (shown["argv"], shown["env"], shown["max_retries"]) == (RUN["argv"], {"A": "1"}, 7)
    assert shown["secret_names"] == ["KEY"]


def pointers(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [error["pointer"] for error in answer.json()["errors"]]


@pytest.mark.parametrize("body", [RIGID, ADAPTIVE])
def test_a_gpu_type_that_the_cluster_lacks_is_one_error(
    here: TestClient, body: dict[str, Any]
) -> None:
    answer = here.post(JOBS, json={**body, "gpu_types": ["v100"]})
    assert pointers(answer) == ["/gpu_types/0"]


@pytest.mark.parametrize(
    ("body", "message", "remedy"),
    [
        ({**RIGID, "run": {**RUN, "cwd": "here"}}, "The path is not absolute.", "Begin it with /."),
        (
            {**RIGID, "run": {**RUN, "cwd": "/a\nb"}},
            "The path holds a line break or another control character.",
            "Give the path alone.",
        ),
        (
            {**RIGID, "run": {**RUN, "env": {"1 A": "x"}}},
            "This cannot be the name of a variable.",
            "Use letters, digits and _, at most 200, with no digit first, such as DATA_FOLDER.",
        ),
        (
            {**RIGID, "run": {**RUN, "env": {"LD_PRELOAD": "/lib/x.so"}}},
            "LD_PRELOAD is not taken as a variable.",
            'Let the command set it, such as ["env", "LD_PRELOAD=/lib/my.so", "python", '
            '"train.py"].',
        ),
        (
            {**RIGID, "gpu_types": ["cpu", "cpu"]},
            "cpu is named 2 times.",
            "Name each type once.",
        ),
        (
            {**ADAPTIVE, "gpu_count": 1},
            "With both gpu_count and batch_size it is not clear what may vary.",
            'Give adaptivity: "rigid" runs it on 1 GPUs as it stands; "adaptive" lets Maat '
            "choose, for a script that uses maat.agent.",
        ),
        (
            {key: value for key, value in RIGID.items() if key != "model"},
            "Field required.",
            'Give any name for what the command trains, such as "model": "my-net".',
        ),
    ],
)
def test_the_remedy_says_what_to_do(
    here: TestClient, body: dict[str, Any], message: str, remedy: str
) -> None:
    (error,) = here.post(JOBS, json=body).json()["errors"]
    assert (error["message"], error["remedy"]) == (message, remedy)


def test_an_adaptive_job_may_say_what_it_asks_for_where_a_policy_does_not_choose(
    here: TestClient,
) -> None:
    body = {**ADAPTIVE, "gpu_count": 1, "adaptivity": "adaptive"}
    assert here.post(JOBS, json=body).status_code == 201


@pytest.mark.parametrize("body", [RIGID, ADAPTIVE])
def test_a_command_is_stored_and_shown_without_its_secrets(
    here: TestClient, database: Database, body: dict[str, Any]
) -> None:
    run = {**RUN, "env": {"A": "1"}, "secret_env": {"KEY": "hush-hush", "B": "x"}}
    answer = here.post(JOBS, json={**body, "run": run})
    assert answer.status_code == 201, answer.text
    shown = here.get(f"{JOBS}/{answer.json()['id']}/command")
    assert shown.json() == {
        "argv": ["python", "train.py"],
        "cwd": "/home/me",
        "env": {"A": "1"},
        "secret_names": ["B", "KEY"],
        "stop_seconds": 120.0,
        "max_retries": 3,
        "total_samples": None,
        "profile": True,
        "utilisation": None,
        "locality_penalty": None,
    }
    with database.session_scope(writes=False) as session:
        stored = session.exec(select(JobSecret.value)).all()
    assert len(stored) == 2
    assert not any(b"hush" in value for value in stored)


def test_a_repeated_request_is_known_by_no_digest_from_which_a_secret_could_be_guessed(
    here: TestClient, database: Database
) -> None:
    run, again = {**RUN, "secret_env": {"PIN": "1234"}}, {"Idempotency-Key": "once"}
    first = here.post(JOBS, json={**RIGID, "run": run}, headers=again)
    second = here.post(JOBS, json={**RIGID, "run": run}, headers=again)
    assert second.json()["id"] == first.json()["id"]
    other = {**RUN, "secret_env": {"PIN": "4321"}}
    assert here.post(JOBS, json={**RIGID, "run": other}, headers=again).status_code == 422
    batch = {"jobs": [{**RIGID, "run": run}], "mode": "atomic"}
    assert here.post(f"{JOBS}:batch", json=batch, headers=again).status_code == 201
    plain = JobBody.model_validate({**RIGID, "run": run}).model_dump()
    guessed = {Once("", "", None, sent).digest for sent in (plain, batch)}
    with database.session_scope(writes=False) as session:
        assert not guessed & set(session.exec(select(IdempotencyKey.digest)))


def test_a_job_that_is_played_has_no_command_and_no_attempts(
    client: TestClient, submit: Callable[..., dict[str, Any]]
) -> None:
    job_id = submit()["id"]
    assert client.get(f"{JOBS}/{job_id}/command").status_code == 404
    assert client.get(f"{JOBS}/{job_id}/attempts").json()["items"] == []


def test_a_command_of_unknown_work_is_given_no_end(here: TestClient, database: Database) -> None:
    job = here.post(JOBS, json=ADAPTIVE).json()
    assert job["runs_command"] is True
    for progress, remaining in ((0.0, None), (0.5, 2e7)):
        with database.session_scope() as session:
            row = session.get_one(Job, job["id"])
            row.progress, row.goodput, row.remaining_work = progress, 50.0, 1e9
            session.add(row)
        assert here.get(f"{JOBS}/{job['id']}").json()["remaining_seconds"] == remaining


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({**RIGID, "run": None}, "/run"),
        ({**RIGID, "cluster_id": "demo"}, "/run"),
        ({**ADAPTIVE, "batch_size": None}, "/batch_size"),
        ({**RIGID, "gpu_count": 100}, "/gpu_count"),
        ({**RIGID, "gpu_types": ["t4"]}, "/gpu_types/0"),
        ({**RIGID, "work_scale": 2.0}, "/work_scale"),
        ({**ADAPTIVE, "max_batch_size": 32}, "/max_batch_size"),
        ({**RIGID, "gpu_types": ["cpu", "cpu"]}, "/gpu_types"),
        ({**ADAPTIVE, "gpu_count": 1}, "/adaptivity"),
        ({**RIGID, "run": {**RUN, "cwd": "/home/me\n"}}, "/run/cwd"),
        ({**RIGID, "run": {**RUN, "argv": []}}, "/run/argv"),
        ({**RIGID, "run": {**RUN, "argv": ["", "x"]}}, "/run/argv"),
        ({**RIGID, "run": {**RUN, "argv": ["a\0b"]}}, None),
        ({**RIGID, "run": {**RUN, "cwd": "here"}}, "/run/cwd"),
        ({**RIGID, "run": {**RUN, "env": {"MAAT_SERVER": "x"}}}, "/run/env/MAAT_SERVER"),
        ({**RIGID, "run": {**RUN, "env": {"LD_PRELOAD": "x"}}}, "/run/env/LD_PRELOAD"),
        ({**RIGID, "run": {**RUN, "env": {"RANK": "0"}}}, "/run/env/RANK"),
        (
            {**RIGID, "run": {**RUN, "secret_env": {"CUDA_VISIBLE_DEVICES": "0"}}},
            "/run/secret_env/CUDA_VISIBLE_DEVICES",
        ),
        (
            {**RIGID, "run": {**RUN, "env": {"A": "1"}, "secret_env": {"A": "2"}}},
            "/run/secret_env/A",
        ),
        ({**RIGID, "run": {**RUN, "env": {"a b": "x"}}}, "/run/env/a b"),
        ({**RIGID, "run": {**RUN, "stop_seconds": 0.0}}, "/run/stop_seconds"),
        ({**RIGID, "run": {**RUN, "shell": True}}, "/run/shell"),
    ],
)
def test_what_can_never_run_is_refused_where_it_is_wrong(
    here: TestClient, body: dict[str, Any], pointer: str | None
) -> None:
    answer = here.post(JOBS, json=body)
    if pointer is None:
        assert answer.status_code in (400, 422)
    else:
        assert pointer in pointers(answer)
    assert here.get(JOBS, params={"cluster": "here"}).json()["items"] == []


def test_a_refused_secret_is_not_repeated(here: TestClient) -> None:
    run = {**RUN, "secret_env": {"KEY": "hush" * 10_000}}
    answer = here.post(JOBS, json={**RIGID, "run": run})
    assert pointers(answer) == ["/run/secret_env/KEY"]
    assert "hush" not in answer.text


@pytest.mark.parametrize(
    "run",
    [
        {**RUN, "secrets": {"KEY": "hush"}},
        [{**RUN, "secret_env": {"KEY": "hush"}}],
        {**RUN, "env": [{"KEY": "hush"}]},
    ],
)
def test_a_secret_in_a_wrong_place_is_not_repeated(here: TestClient, run: Any) -> None:
    answer = here.post(JOBS, json={**RIGID, "run": run})
    assert answer.status_code == 422
    assert "hush" not in answer.text


@pytest.mark.parametrize("role", [Role.VIEWER, Role.AUDITOR])
def test_who_may_not_submit_may_not_run_commands(
    here: TestClient, client_as: Callable[..., TestClient], role: Role
) -> None:
    assert client_as(role).post(JOBS, json=RIGID).status_code == 403


def test_where_a_process_of_this_machine_is_the_administrator_others_run_no_commands(
    here: TestClient, client_as: Callable[..., TestClient]
) -> None:
    assert client_as(Role.CLUSTER_ADMIN).post(JOBS, json=RIGID).status_code == 201
    answer = client_as(Role.SUBMITTER).post(JOBS, json=RIGID)
    assert answer.status_code == 403
    assert "MAAT_IMPLICIT_ADMIN=false" in answer.json()["detail"]
    assert answer.json()["remedy"] == "Ask the operator."


def test_a_cluster_that_runs_commands_has_the_speed_of_the_world(here: TestClient) -> None:
    body = {"name": "fast", "shape": "cpu=1x1", "executor": "local", "speed": 2.0}
    assert pointers(here.post("/api/v1/clusters", json=body)) == ["/speed"]
    found = here.get("/api/v1/clusters/here")
    changed = here.patch(
        "/api/v1/clusters/here", json={"speed": 3.0}, headers={"If-Match": found.headers["ETag"]}
    )
    assert pointers(changed) == ["/speed"]


def test_time_goes_on_while_rounds_of_real_processes_are_paused(here: TestClient) -> None:
    def now() -> str:
        return here.get("/api/v1/clusters/here").json()["now"]

    assert here.post("/api/v1/clusters/here/actions/pause").status_code == 200
    first = now()
    while now() == first:
        pass


class TestWhereTheOperatorDoesNotAllowCommands:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"allow_commands": False})

    def test_nobody_may_run_them(
        self, here: TestClient, client_as: Callable[..., TestClient]
    ) -> None:
        for client in (here, client_as(Role.CLUSTER_ADMIN), client_as(Role.SUBMITTER)):
            for path, body in ((JOBS, RIGID), (f"{JOBS}:batch", {"jobs": [RIGID]})):
                answer = client.post(path, json=body)
                assert answer.status_code == 403, answer.text
                assert "MAAT_ALLOW_COMMANDS" in answer.json()["detail"]
        assert here.get(JOBS, params={"cluster": "here"}).json()["items"] == []


class TestWherePeopleSignIn:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"implicit_admin": False})

    def test_all_who_may_submit_may_run_commands(
        self, client_as: Callable[..., TestClient]
    ) -> None:
        cluster = {"name": "here", "shape": "cpu=2x4", "executor": "local"}
        admin = client_as(Role.CLUSTER_ADMIN)
        assert admin.post("/api/v1/clusters", json=cluster).status_code == 201
        answer = client_as(Role.SUBMITTER).post(JOBS, json=RIGID)
        assert answer.status_code == 201, answer.text
