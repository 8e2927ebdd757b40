"""A remedy that was confirmed is done, also when a round comes between reading and changing."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httpx
import pytest

from frontend.pages.job.remedies import do_remedy
from maat.api.job_answers import JobOut, Remedy
from maat.client import ApiError, AsyncClient


class Service:
    """One job, or one tenant, that changes `moves` times between being read and being changed."""

    def __init__(self, moves: int, **fields: Any) -> None:
        self.held = {
            "id": "job_1",
            "tenant": "default",
            "cluster_id": "cl_1",
            "version": 1,
        } | fields
        self.moves = moves
        self.changes: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=self.held)
        self.changes.append(request.url.path)
        if self.moves:
            self.moves -= 1
            self.held["version"] += 1
        if request.headers["If-Match"] != f'"{self.held["version"]}"':
            return httpx.Response(412, json={"title": "It has changed since you read it"})
        return httpx.Response(200, json=self.held)

    async def press(self, remedy: dict[str, Any]) -> bool:
        async with AsyncClient("http://maat", transport=httpx.MockTransport(self)) as maat:
            return await do_remedy(maat, cast(JobOut, self.held), cast(Remedy, remedy))


FEWER = {"action": "change-job", "before": {"gpu_count": 8}, "changes": {"gpu_count": 4}}
HEAVIER = {"action": "change-tenant", "before": {"weight": 1.0}, "changes": {"weight": 2.0}}


@pytest.mark.parametrize("remedy", [FEWER, HEAVIER], ids=["job", "tenant"])
def test_a_round_that_comes_between_is_no_reason_to_give_up(remedy: dict[str, Any]) -> None:
    service = Service(moves=2, gpu_count=8, weight=1.0)
    assert asyncio.run(service.press(remedy))
    assert len(service.changes) == 3


@pytest.mark.parametrize("remedy", [FEWER, HEAVIER], ids=["job", "tenant"])
def test_what_someone_else_changed_is_left_alone(remedy: dict[str, Any]) -> None:
    service = Service(moves=0, gpu_count=2, weight=4.0)
    assert not asyncio.run(service.press(remedy))
    assert service.changes == []


def test_what_never_stands_still_is_told() -> None:
    service = Service(moves=99, gpu_count=8)
    with pytest.raises(ApiError) as refused:
        asyncio.run(service.press(FEWER))
    assert refused.value.status == 412
