"""Who holds the GPUs that a job waits for, by name, until when: in its explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from round_rows import round_row
from sqlmodel import Session, select

from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import Cluster, Job, JobForecastRow, Node

Submit = Callable[..., dict[str, Any]]


@pytest.fixture
def a100s(client: TestClient, database: Database) -> str:
    """The id of a cluster of 16 a100 on two nodes."""
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).first()
        assert cluster is not None
        for node in session.exec(select(Node).where(Node.cluster_id == cluster.id)):
            session.delete(node)
        session.flush()
        for position in (0, 1):
            name = f"node-{position}"
            session.add(
                Node(
                    cluster_id=cluster.id,
                    name=name,
                    gpu_type="a100",
                    gpu_count=8,
                    position=position,
                )
            )
        return cluster.id


def hold(database: Database, job: dict[str, Any], *gpus: int, **fields: Any) -> None:
    """Let a job run on these GPUs."""
    with database.session_scope() as session:
        row = session.get_one(Job, job["id"])
        row.gpu_type, row.gpus, row.state = "a100", list(gpus), "running"
        for name, value in fields.items():
            setattr(row, name, value)
        session.add(row)


def wait(
    database: Database,
    job: dict[str, Any],
    code: str = "WAITING_CAPACITY",
    evidence: dict[str, Any] | None = None,
) -> None:
    believed = {"gpu_type": "a100", "gpu_count": 16, "value": 2.0, "price": 1.0}
    with database.session_scope() as session:
        row = session.get_one(Job, job["id"])
        row.reason_code, row.state, row.as_of_round = code, "pending", 3
        row.reason_evidence = believed if evidence is None else evidence
        session.add(row)


def explained(client: TestClient, job: dict[str, Any]) -> Any:
    return client.get(f"/api/v1/jobs/{job['id']}/explanation").json()


def forecast_end(session: Session, job: dict[str, Any], end: float) -> None:
    session.add(
        JobForecastRow(
            job_id=job["id"],
            cluster_id=job["cluster_id"],
            round_number=3,
            made_seconds=0.0,
            draws=9,
            holds_gpus=True,
            end_p50=end,
            end_p90=2 * end,
        )
    )


def test_a_job_that_needs_all_gpus_hears_who_may_not_be_preempted_and_until_when(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    base, large = submit(name="baseline", preemptible=False), submit(name="large")
    big = submit(name="big16", adaptivity="rigid", gpu_count=16, batch_size=64)
    hold(database, base, 11)
    hold(database, large, *range(8))
    wait(database, big)
    with database.session_scope() as session:
        forecast_end(session, base, 3600.0)

    told = explained(client, big)

    (only,) = told["blockers"]
    assert (only["job"], only["name"], only["gpus"]) == (base["id"], "baseline", [11])
    assert (only["nodes"], only["stay"]) == (["node-1"], "not-preemptible")
    assert told["primary"]["sentence"] == (
        "It needs 16 a100 of 16 in service, and 1 of them cannot be taken now: job baseline holds "
        "1 a100 (on node-1) and may not be preempted, by its forecast until about "
        f"{only['ends_p50_at'][:16].replace('T', ' ')} UTC."
    )
    assert told["reasons"][0] == told["primary"]


def test_jobs_that_could_be_moved_are_named_with_what_is_free(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    small, large = submit(name="small"), submit(name="large")
    big = submit(name="big", adaptivity="rigid", gpu_count=8, batch_size=64)
    hold(database, small, 8)
    hold(database, large, *range(8))
    with database.session_scope() as session:
        node = session.exec(select(Node).where(Node.name == "node-1")).one()
        node.drained_gpus = [5, 6, 7]
        session.add(node)
    wait(database, big, "LOWER_GOODPUT_GAIN")

    told = explained(client, big)

    assert [one["stay"] for one in told["blockers"]] == ["kept", "kept"]
    assert told["primary"]["sentence"].startswith(
        "It needs 8 a100 of 13 in service; 4 are free: job large holds 8 a100 (on node-0) and keeps"
    )
    assert "its end is not forecast yet" in told["primary"]["sentence"]


def test_a_job_that_must_stay_for_a_time_says_so(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    stays = submit(name="stays")
    big = submit(name="big16", adaptivity="rigid", gpu_count=16, batch_size=64)
    evidence = {"stays_for_seconds": 600.0, "least_stay_seconds": 1800.0}
    hold(database, stays, 11, reason_code="PINNED", reason_evidence=evidence)
    wait(database, big)

    (only,) = explained(client, big)["blockers"]

    assert only["stay"] == "must-stay"
    assert "and must stay for a time" in only["sentence"]


def test_another_tenants_job_stays_anonymous(
    client: TestClient,
    client_as: Callable[..., TestClient],
    submit: Submit,
    database: Database,
    a100s: str,
) -> None:
    theirs = submit(name="secret-of-red", preemptible=False)
    blue = client_as(Role.SUBMITTER, tenant="blue")
    body = {"name": "mine", "model": "bert", "adaptivity": "rigid", "gpu_count": 16}
    mine = blue.post("/api/v1/jobs", json={**body, "batch_size": 64}).json()
    hold(database, theirs, 3)
    wait(database, mine)

    answer = blue.get(f"/api/v1/jobs/{mine['id']}/explanation")

    (only,) = answer.json()["blockers"]
    assert (only["job"], only["name"]) == ("other-1", None)
    assert "another tenant's job holds 1 a100" in answer.json()["primary"]["sentence"]
    assert "secret-of-red" not in answer.text
    assert theirs["id"] not in answer.text


def test_nobody_blocks_a_job_for_which_enough_gpus_are_free_or_that_may_share(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    other = submit(name="other", preemptible=False)
    one = submit(name="one", adaptivity="rigid", gpu_count=8, batch_size=64)
    hold(database, other, 3)
    wait(database, one, "BEHIND_IN_ORDER")
    assert explained(client, one)["blockers"] == []

    hold(database, other, *range(12))
    assert len(explained(client, one)["blockers"]) == 1
    with database.session_scope() as session:
        cluster = session.get_one(Cluster, a100s)
        cluster.jobs_per_gpu = 2
        session.add(cluster)
    assert explained(client, one)["blockers"] == []


def let_share(database: Database, cluster_id: str) -> None:
    with database.session_scope() as session:
        session.get_one(Cluster, cluster_id).jobs_per_gpu = 2


def test_jobs_on_gpus_without_a_free_place_are_named(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    first, second, third = (submit(name=name) for name in ("first", "second", "third"))
    one = submit(name="one", adaptivity="rigid", gpu_count=9, batch_size=64)
    let_share(database, a100s)
    hold(database, first, *range(12))
    hold(database, second, *range(4, 10))
    hold(database, third, 12)
    wait(database, one, "BEHIND_IN_ORDER")
    assert explained(client, one)["blockers"] == [], "10 GPUs have a free place"

    hold(database, second, *range(4, 12))

    explanation = explained(client, one)
    assert [each["name"] for each in explanation["blockers"]] == ["first", "second"]
    assert explanation["primary"]["sentence"].startswith(
        "It needs 9 a100 of 16 in service; 8 have a free place: job first holds 12 a100"
    )


def test_who_could_share_and_does_not_hears_that_and_who_holds_the_gpus(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    holds = submit(name="holds")
    one = submit(name="one", adaptivity="rigid", gpu_count=2, batch_size=64)
    let_share(database, a100s)
    hold(database, holds, *range(15))
    wait(database, one, "SHARING_NO_GAIN")

    explanation = explained(client, one)

    assert [each["name"] for each in explanation["blockers"]] == ["holds"]
    sentence = explanation["primary"]["sentence"]
    assert sentence.startswith("It could only share GPUs, and no running job is a good partner")
    assert "It needs 2 a100 of 16 in service; 1 is free: job holds holds 15 a100" in sentence


def test_who_waits_for_a_quota_hears_which_jobs_of_its_team_hold_it(
    client: TestClient,
    client_as: Callable[..., TestClient],
    submit: Submit,
    database: Database,
    a100s: str,
) -> None:
    theirs = submit(name="secret-of-red")
    blue = client_as(Role.SUBMITTER, tenant="blue")
    body = {"model": "bert", "adaptivity": "rigid", "gpu_count": 2, "batch_size": 64}
    ours, mine = (
        blue.post("/api/v1/jobs", json={**body, "name": name}).json() for name in ("ours", "mine")
    )
    hold(database, theirs, 0, 1, 2, 3)
    wait(database, mine, "WAITING_QUOTA")
    evidence = {"quota_gpus": 4, "quota_gpu_type": "a100", "quota_used_gpus": 3}
    with database.session_scope() as session:
        session.get_one(Job, mine["id"]).reason_evidence = evidence
    assert explained(blue, mine)["blockers"] == []

    hold(database, ours, 4, 5, 6)

    explanation = explained(blue, mine)
    assert [each["name"] for each in explanation["blockers"]] == ["ours"]
    assert explanation["primary"]["sentence"].startswith(
        "Held by your team's quota of 4 a100: 3 in use. Of it job ours holds 3 a100 (on node-0)"
    )
    assert "secret-of-red" not in str(explanation)


def past_round(database: Database, cluster_id: str, **held: tuple[dict[str, Any], int]) -> None:
    """Round 3 as it is recorded; `held`: a job and how many a100 it got, by why it stayed."""
    evidence: dict[str, dict[str, Any]] = {
        "pinned": {"starting": 0, "restarting": 0, "preemptible": 0},
        "starts": {"starting": 1, "restarting": 1, "preemptible": 1},
        "kept": {},
    }
    record = {
        "job_ids": [job["id"] for job, _ in held.values()],
        "job_names": [job["name"] for job, _ in held.values()],
        "grants": {
            job["id"]: {"gpu_type": "a100", "gpu_count": gpus} for job, gpus in held.values()
        },
        "reasons": {
            job["id"]: {
                "code": "GRANTED" if why == "kept" else "PINNED",
                "evidence": evidence[why],
            }
            for why, (job, _) in held.items()
        },
    }
    used = sum(gpus for _, gpus in held.values())
    counts = dict.fromkeys(("active_jobs", "running_jobs", "pending_jobs", "changes"), 1)
    with database.session_scope() as session:
        session.add(
            round_row(
                cluster_id,
                3,
                at_seconds=60.0,
                gpus_used=used,
                gpus_total=16,
                gpus_by_type={"a100": {"used": used, "capacity": 16}},
                record=record,
                **counts,
            )
        )


def had_waited(database: Database, job: dict[str, Any], *, as_of: int = 3) -> None:
    """The job has GPUs now; before, it waited for some."""
    waited = {"code": "WAITING_CAPACITY", "round": as_of}
    evidence = {"gpu_type": "a100", "value": 2.0, "price": 1.0}
    kept = {"_waited": {**waited, "evidence": evidence}}
    hold(database, job, *range(16), reason_code="GRANTED", reason_evidence=kept)


def test_who_blocked_a_job_that_runs_now_is_named_by_the_record_of_that_round(
    client: TestClient,
    client_as: Callable[..., TestClient],
    submit: Submit,
    database: Database,
    a100s: str,
) -> None:
    base, begins, large = submit(name="base"), submit(name="begins"), submit(name="large")
    past_round(database, a100s, pinned=(base, 1), starts=(begins, 2), kept=(large, 8))
    blue = client_as(Role.SUBMITTER, tenant="blue")
    body = {"name": "mine", "model": "bert", "adaptivity": "rigid", "batch_size": 64}
    needs_all, needs_half = (
        blue.post("/api/v1/jobs", json={**body, "gpu_count": gpus}).json() for gpus in (16, 8)
    )
    for job in (needs_all, needs_half):
        had_waited(database, job)

    assert explained(client, needs_all)["waited"]["sentence"] == (
        "It needed 16 a100 of 16 in service; 5 were free: job begins held 2 and was starting; "
        "job base held 1 and could not be preempted."
    )
    assert explained(client, needs_half)["waited"]["sentence"] == (
        "It needed 8 a100 of 16 in service; 5 were free: "
        "job large held 8 and had them by the policy's choice."
    )
    hidden = explained(blue, needs_half)["waited"]["sentence"]
    assert hidden.endswith("another tenant's job held 8 and had them by the policy's choice.")


def test_without_the_record_of_the_round_less_is_said_of_a_wait_that_is_over(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    job = submit(name="mine", adaptivity="rigid", gpu_count=16, batch_size=64)
    had_waited(database, job, as_of=2)
    waited = explained(client, job)["waited"]
    assert (waited["as_of_round"], waited["sentence"]) == (
        2,
        "Other jobs hold the GPUs that it needs.",
    )


def test_free_gpus_of_a_type_that_it_cannot_run_on_free_nobody(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    """No model of the catalog runs on k80: that those are free helps nobody who waits for a100."""
    with database.session_scope() as session:
        session.add(Node(cluster_id=a100s, name="old", gpu_type="k80", gpu_count=4, position=2))
    large = submit(name="large")
    pair = submit(name="pair", adaptivity="rigid", gpu_count=2, batch_size=64)
    hold(database, large, *range(15))
    wait(database, pair, evidence={"needed_gpus": 2, "binding_limit": "capacity:a100"})

    told = explained(client, pair)

    assert [one["name"] for one in told["blockers"]] == ["large"]
    assert told["primary"]["sentence"].startswith("It needs 2 a100 of 16 in service; 1 is free:")


def test_a_job_that_could_have_fewer_hears_who_holds_what_its_policy_gives_it(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    """An ordering policy gives an adaptive job as many GPUs as it asks for, and not fewer."""
    large, four = submit(name="large"), submit(name="four", gpu_count=4)
    hold(database, large, *range(14))
    wait(database, four, evidence={"needed_gpus": 4, "binding_limit": "capacity:a100"})

    told = explained(client, four)

    assert [one["name"] for one in told["blockers"]] == ["large"]
    assert told["primary"]["sentence"].startswith("It needs 4 a100 of 16 in service; 2 are free:")


def test_a_job_that_does_not_overtake_hears_which_one_and_who_blocks_that(
    client: TestClient, submit: Submit, database: Database, a100s: str
) -> None:
    large, four, one = submit(name="large"), submit(name="four", gpu_count=4), submit(name="one")
    hold(database, large, *range(14))
    wait(database, four, evidence={"needed_gpus": 4, "binding_limit": "capacity:a100"})
    behind = {"needed_gpus": 1, "free_gpus": 2, "ahead": four["id"]}
    wait(database, one, "BEHIND_IN_ORDER", evidence=behind)

    told = explained(client, one)

    assert [each["name"] for each in told["blockers"]] == ["large"]
    assert told["primary"]["sentence"].startswith(
        "GPUs are free for it, but it does not overtake job four, ahead of it in the policy's "
        "order, which waits: it needs 4 a100 of 16 in service; 2 are free: job large holds 14 a100"
    )
