"""What a notice says of the next round, by what the service tells of its clusters and worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from frontend.components.next_round import next_round
from maat.client import AsyncClient

LATE = {"state": "stale", "last_round_age_seconds": 180.0}


@pytest.mark.parametrize(
    ("paused", "worker", "said"),
    [
        (False, {"state": "ok"}, "The next round considers it."),
        (False, {"state": "none"}, "The next round considers it."),
        (True, {"state": "ok"}, "The cluster is paused: once it is resumed, a round considers it."),
        (
            False,
            LATE,
            "The last round was 3 min ago: one considers it as soon as the worker runs again.",
        ),
        (
            False,
            LATE | {"last_round_age_seconds": None},
            "No round is made: one considers it as soon as the worker runs again.",
        ),
    ],
)
def test_a_notice_promises_no_round_that_is_not_coming(
    paused: bool, worker: dict[str, object], said: str
) -> None:
    def service(request: httpx.Request) -> httpx.Response:
        of_cluster = request.url.path.endswith("/clusters/cl_1")
        return httpx.Response(200, json={"paused": paused} if of_cluster else {"worker": worker})

    assert words_from(service) == said


def test_a_service_that_tells_nothing_refuses_no_notice() -> None:
    assert words_from(lambda _: httpx.Response(503)) == "The next round considers it."


def test_a_job_for_whichever_cluster_there_is_asks_for_none_of_them() -> None:
    def service(request: httpx.Request) -> httpx.Response:
        of_all = "/clusters" in request.url.path
        return httpx.Response(200, json=[{"paused": True}] if of_all else {"worker": LATE})

    assert words_from(service, None).startswith("The last round was 3 min ago")


def words_from(
    service: Callable[[httpx.Request], httpx.Response], cluster_id: str | None = "cl_1"
) -> str:
    async def ask() -> str:
        transport = httpx.MockTransport(service)
        async with AsyncClient("http://maat", transport=transport) as maat:
            return await next_round(maat, cluster_id, "it")

    return asyncio.run(ask())
