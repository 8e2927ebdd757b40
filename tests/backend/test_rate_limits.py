"""How many requests a user may send: each kind by itself, each user by themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from backend.accounts.permissions import PERMISSIONS, Role
from backend.accounts.principals import Credential, Principal
from backend.accounts.rate_limits import Kind, RateLimits, TooManyRequests
from backend.settings import Settings

MakeClient = Callable[..., TestClient]
JOBS, SIMULATIONS = "/api/v1/jobs", "/api/v1/simulations"
JOB = {"name": "train", "model": "bert"}


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        _env_file=None,
        data_dir=tmp_path,
        database_url=database_url,
        demo=True,
        reads_per_minute=5,
        changes_per_minute=4,
        simulations_per_hour=2,
    )


def statuses(send: Callable[[], Any], times: int) -> list[int]:
    return [send().status_code for _ in range(times)]


def check_refused(answer: Any, most: float) -> None:
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (429, "/problems/too-many-requests")
    assert problem["retryable"] is True
    assert 1 <= int(answer.headers["Retry-After"]) <= most
    assert f"{answer.headers['Retry-After']} s" in problem["detail"]


def test_a_flood_by_one_tenant_leaves_the_requests_of_another_alone(
    client_as: MakeClient,
) -> None:
    flood = client_as(Role.SUBMITTER, tenant="vision")
    calm = client_as(Role.SUBMITTER, tenant="speech")
    for _ in range(4):
        sent = statuses(lambda: flood.get(JOBS), 10)
        assert calm.get(JOBS).status_code == 200
    assert sent == [429] * 10
    check_refused(flood.get(JOBS), 60)
    assert statuses(lambda: flood.post(JOBS, json=JOB), 5) == [201] * 4 + [429]
    assert calm.post(JOBS, json=JOB).status_code == 201


def test_reads_changes_and_simulations_are_counted_apart(client_as: MakeClient) -> None:
    ann = client_as(Role.SUBMITTER)
    body = {"workload": {"kind": "nonsense"}}
    refused = statuses(lambda: ann.post(SIMULATIONS, json=body), 3)
    assert refused == [422, 422, 429]
    check_refused(ann.post("/api/v1/sweeps", json={}), 1800)
    assert statuses(lambda: ann.get(JOBS), 6) == [200] * 5 + [429]


def test_all_tokens_of_a_user_share_what_the_user_may(
    app: FastAPI, client: TestClient, client_as: MakeClient
) -> None:
    ann = client_as(Role.SUBMITTER, name="ann")
    other = TestClient(app, base_url="http://maat.example", client=("10.0.0.9", 1))
    made = ann.post("/api/v1/tokens", json={"name": "second"}).json()
    other.headers["Authorization"] = f"Bearer {made['secret']}"
    assert statuses(lambda: ann.get(JOBS), 3) + statuses(lambda: other.get(JOBS), 3) == [
        *[200] * 5,
        429,
    ]


def test_the_user_who_runs_maat_is_not_limited(client: TestClient) -> None:
    assert set(statuses(lambda: client.get(JOBS), 30)) == {200}


def test_whoever_is_refused_sends_no_body_and_changes_nothing(
    client: TestClient, client_as: MakeClient
) -> None:
    ann = client_as(Role.SUBMITTER)
    statuses(lambda: ann.post(JOBS, json=JOB), 4)
    before = client.get(JOBS, params={"count": "exact"}).json()["total"]
    assert ann.post(JOBS, content=b"{" * 100_000).status_code == 429
    assert client.get(JOBS, params={"count": "exact"}).json()["total"] == before == 4


class HandClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def principal(user_id: str = "usr_1", *, local: bool = False) -> Principal:
    credential = Credential("local") if local else Credential("token", "tok_1")
    return Principal(
        user_id, "ann", "ten_1", "vision", Role.VIEWER, PERMISSIONS[Role.VIEWER], credential
    )


@given(st.lists(st.floats(0.0, 30.0), max_size=80), st.integers(1, 20))
def test_no_window_holds_more_than_twice_the_limit_and_patience_is_always_rewarded(
    pauses: list[float], most: int
) -> None:
    clock = HandClock()
    settings = Settings(_env_file=None, reads_per_minute=most)
    limits, served = RateLimits(settings, clock=clock), []
    for pause in pauses:
        clock.now += pause
        try:
            limits.take(principal(), Kind.READS)
        except TooManyRequests as refused:
            clock.now += int(refused.headers["Retry-After"])
            limits.take(principal(), Kind.READS)
        served.append(clock.now)
    for end in served:
        assert sum(end - 60.0 < at <= end for at in served) <= 2 * most


def test_a_full_bucket_serves_a_burst_and_0_is_no_limit() -> None:
    clock = HandClock()
    given = {"reads_per_minute": 3, "changes_per_minute": 0}
    limits = RateLimits(Settings(_env_file=None, **given), clock=clock)
    for _ in range(3):
        limits.take(principal(), Kind.READS)
    with pytest.raises(TooManyRequests):
        limits.take(principal(), Kind.READS)
    limits.take(principal("usr_2"), Kind.READS)
    limits.take(principal(local=True), Kind.READS)
    clock.now += 20.0
    limits.take(principal(), Kind.READS)
    for _ in range(1000):
        limits.take(principal(), Kind.CHANGES)
