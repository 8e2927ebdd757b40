"""The REST client against the service itself, in this process, on SQLite."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from maat.client import (
    ApiError,
    AsyncClient,
    Client,
    CommandBody,
    FieldProblem,
    JobBody,
    Unreachable,
    calls,
)

HERE = "http://127.0.0.1:8000"


def test_a_submitted_job_is_read_back_and_cancelled(maat: Client) -> None:
    job = maat.submit_job({"name": "mine", "model": "cifar10", "max_gpus": 8})

    assert maat.job(job["id"])["name"] == "mine"
    assert maat.job(job["id"])["max_gpus"] == 8
    assert maat.cancel_job(job["id"])["cancel_requested"]


def test_a_refused_job_says_for_each_field_what_is_wrong_and_what_to_do(maat: Client) -> None:
    with pytest.raises(ApiError) as refused:
        maat.submit_job({"name": "", "model": "no such model", "min_gpus": 0})

    assert refused.value.status == 422
    assert {"name", "min_gpus"} <= set(refused.value.by_field)
    assert all(len(sentence) > 10 for sentence in refused.value.by_field.values())
    assert all(error.pointer.startswith("/") for error in refused.value.errors)


def test_filters_that_repeat_are_sent_as_repeated_parameters(maat: Client) -> None:
    maat.submit_jobs(
        [
            {"name": f"job {i}", "model": model}
            for i, model in enumerate(("cifar10", "bert", "yolov3"))
        ]
    )

    page = maat.jobs(model=["cifar10", "bert"], count="exact", sort="name")

    assert [job["name"] for job in page["items"]] == ["job 0", "job 1"]
    assert page["total"] == 2
    assert page["state_counts"] == {"submitted": 2}


def test_every_job_walks_over_all_pages(maat: Client) -> None:
    maat.add_demo_jobs(7, seed=1)

    walked = [job["id"] for job in maat.every_job(limit=3)]

    assert len(walked) == len(set(walked)) == 7


def test_the_same_key_submits_once(maat: Client) -> None:
    first = maat.submit_job({"name": "once", "model": "cifar10"}, idempotency_key="k1")
    again = maat.submit_job({"name": "once", "model": "cifar10"}, idempotency_key="k1")

    assert first["id"] == again["id"]
    assert len(maat.jobs()["items"]) == 1


def test_a_missing_job_is_an_api_error_with_status_404(maat: Client) -> None:
    with pytest.raises(ApiError) as missing:
        maat.job("job_nope")

    assert missing.value.status == 404
    assert not missing.value.retryable


def test_an_id_with_odd_characters_stays_one_part_of_the_path(maat: Client) -> None:
    with pytest.raises(ApiError) as missing:
        maat.job("a/../../b?c#d")

    assert missing.value.status == 404


def test_a_stale_version_is_refused(maat: Client) -> None:
    cluster = maat.clusters()[0]
    maat.send(calls.change_cluster(cluster["id"], {"speed": 2.0}, version=cluster["version"]))

    with pytest.raises(ApiError) as stale:
        maat.send(calls.change_cluster(cluster["id"], {"speed": 3.0}, version=cluster["version"]))

    assert stale.value.status == 412


def test_the_awaited_client_answers_the_same(app: FastAPI) -> None:
    async def submit_and_list() -> tuple[Any, list[str]]:
        async with AsyncClient(
            HERE, transport=httpx.ASGITransport(app=app, client=("127.0.0.1", 50000))
        ) as maat:
            job = await maat.submit_job({"name": "mine", "model": "cifar10"})
            return job, [other["id"] async for other in maat.every_job(limit=1)]

    with ThreadPoolExecutor(1) as beside_any_running_loop:
        job, listed = beside_any_running_loop.submit(asyncio.run, submit_and_list()).result()

    assert listed == [job["id"]]


SWEEP: Any = {
    "name": "s",
    "trace": {"kind": "generated", "jobs": 2, "hours": 1},
    "cluster": "t4=2x4,a100=1x8",
    "vary": [{"name": "rigid_share", "values": [0, 0.5]}],
    "failures": {"mtbf_hours": 100.0},
}


def test_a_sweep_is_started_followed_and_cancelled(maat: Client) -> None:
    sweep = maat.start_sweep(SWEEP)

    assert [head["id"] for head in maat.sweeps()["items"]] == [sweep["id"]]
    assert maat.sweep(sweep["id"])["request"]["failures"] == {
        "mtbf_hours": 100.0,
        "repair_seconds": 1800.0,
    }
    assert [point["settings"] for point in maat.sweep_points(sweep["id"])] == [
        {"rigid_share": 0.0},
        {"rigid_share": 0.5},
    ]
    assert maat.sweep_rows(sweep["id"], fairness_rule="share-of-type") == []
    assert (
        maat.sweep(sweep["id"], fairness_rule="share-of-type")["fairness_rule"] == "share-of-type"
    )
    assert maat.cancel_sweep(sweep["id"])["state"] == "cancelled"
    assert maat.sweep(sweep["id"])["state"] == "cancelled"


def test_gpus_are_reserved_and_given_back(maat: Client) -> None:
    cluster_id = maat.clusters()[0]["id"]

    made = maat.reserve(cluster_id, {"gpu_type": "a100", "gpu_count": 4, "tenant": "default"})

    assert (made["state"], made["end_at"]) == ("active", None)
    assert maat.reservations(cluster_id) == [made]
    maat.remove_reservation(cluster_id, made["id"])
    assert maat.reservations(cluster_id, over=True) == []


def test_a_rule_of_fairness_is_chosen_by_name_and_a_wrong_one_refused(maat: Client) -> None:
    asked: Any = {
        "name": "s",
        "traces": [SWEEP["trace"]],
        "cluster": SWEEP["cluster"],
        "runs": [{"policy": "fifo"}],
    }
    simulation = maat.simulate(asked)

    assert maat.figures(simulation["id"], fairness_rule="ratio-to-mean")["runs"] == []
    with pytest.raises(ApiError) as unfinished:
        maat.comparison(simulation["id"], fairness_rule="ratio-to-mean")
    with pytest.raises(ApiError) as unknown:
        maat.figures(simulation["id"], fairness_rule="n_g")  # type: ignore[arg-type]

    assert unfinished.value.status == 409
    assert (unknown.value.status, list(unknown.value.by_field)) == (422, ["fairness_rule"])


def test_the_awaited_client_sweeps_and_reserves_too(app: FastAPI) -> None:
    async def both() -> tuple[Any, ...]:
        async with AsyncClient(
            HERE, transport=httpx.ASGITransport(app=app, client=("127.0.0.1", 50000))
        ) as maat:
            sweep = await maat.start_sweep(SWEEP)
            points = await maat.sweep_points(sweep["id"])
            cancelled = await maat.cancel_sweep(sweep["id"])
            cluster_id = (await maat.clusters())[0]["id"]
            made = await maat.reserve(
                cluster_id, {"gpu_type": "t4", "gpu_count": 1, "tenant": "default"}
            )
            await maat.remove_reservation(cluster_id, made["id"])
            return (
                len(points),
                cancelled["state"],
                await maat.reservations(cluster_id),
                await maat.sweep_rows(sweep["id"]),
            )

    with ThreadPoolExecutor(1) as beside_any_running_loop:
        assert beside_any_running_loop.submit(asyncio.run, both()).result() == (
            2,
            "cancelled",
            [],
            [],
        )


def test_what_is_wrong_with_a_job_is_told_without_its_secrets() -> None:
    run = {"argv": ["train"], "secret_env": {"KEY": "hidden-1"}, "env": {"KEY": "hidden-2"}}
    with pytest.raises(ValueError, match=r"run\.cwd") as refused:
        JobBody(name="train", model="net", run=run, secret_env={"KEY": "hidden-3"})  # type: ignore[arg-type,call-arg]
    assert "hidden" not in str(refused.value)
    with pytest.raises(ValueError, match="cwd") as refused:
        CommandBody(**run)  # type: ignore[arg-type]
    assert "hidden" not in repr(refused.value)


def test_no_answer_is_unreachable_and_names_the_address() -> None:
    with (
        Client("http://127.0.0.1:9", timeout_seconds=2) as nobody,
        pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"),
    ):
        nobody.health()


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (b"<html>Bad gateway</html>", "Bad Gateway"),
        (b"[1, 2]", "Bad Gateway"),
        (b'{"title": "Down", "errors": [7]}', "Down"),
    ],
)
def test_an_answer_that_is_no_problem_document_is_still_an_api_error(
    content: bytes, title: str
) -> None:
    error = ApiError.of(httpx.Response(502, content=content, request=httpx.Request("GET", HERE)))

    assert (error.status, error.title, error.errors, error.retryable) == (502, title, (), True)


def test_several_problems_of_one_field_are_told_together() -> None:
    problems = (
        FieldProblem("/name", "name", "Too long.", remedy="Shorten it."),
        FieldProblem("/name", "name", "Taken."),
    )

    error = ApiError(status=422, title="Invalid", errors=problems)

    assert error.by_field == {"name": "Too long. Shorten it. Taken."}


def test_a_token_is_sent_as_bearer() -> None:
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200, json={"items": [], "next_cursor": None})

    Client(HERE, token="maat_secret", transport=httpx.MockTransport(answer)).clusters()

    assert seen == ["Bearer maat_secret"]


def test_the_client_loads_without_the_engine() -> None:
    engine = "('numpy', 'scipy', 'highspy', 'maat.scheduling', 'maat.simulation')"
    loaded = f"import sys, maat.client; print([m for m in {engine} if m in sys.modules])"

    assert (
        subprocess.run(
            [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
