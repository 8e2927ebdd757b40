"""Tests of the overview where it has nothing to show: each card says what will be there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from frontend.api import Api
from frontend.pages.overview.page import show
from frontend.pages.overview.summary import troubles, verdict, waiting_table
from frontend.shell import NO_CLUSTER
from maat.client import Unreachable

PARTS = ("waiting", "changes", "tiles", "drawing")


class Silent:
    """A service that does not answer."""

    @asynccontextmanager
    async def visitor(self) -> AsyncIterator[Any]:
        yield self

    async def send(self, _call: object) -> Any:
        raise Unreachable("no answer")

    async def jobs(self, **_filters: object) -> Any:
        raise Unreachable("no answer")


def shown(cluster_id: str) -> dict[str, Any]:
    api = cast(Api, Silent())
    given = {"_live": None, "scheme": "light", "span": "6h", "known": None}
    return dict(asyncio.run(show(api, cluster_id=cluster_id, **given)))


def test_without_a_cluster_no_card_is_empty() -> None:
    assert all(shown(NO_CLUSTER)[part] for part in PARTS)


def test_when_the_service_does_not_answer_no_card_is_empty() -> None:
    assert all(shown("demo")[part] for part in PARTS)


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        (0, "Nobody waits."),
        (1, "Nobody waits for a first GPU. 1 job that had GPUs waits for GPUs again."),
        (2, "Nobody waits for a first GPU. 2 jobs that had GPUs wait for GPUs again."),
    ],
)
def test_who_lost_all_gpus_waits_too(waiting: int, words: str) -> None:
    told = cast(Any, waiting_table([], waiting=waiting, cluster_id="clu_1"))
    parts = told.children if isinstance(told.children, list) else [told.children]
    assert "".join(part if isinstance(part, str) else part.children for part in parts) == words


@pytest.mark.parametrize("drained", [(False, False), (True, False), (True, True)])
def test_a_cluster_of_which_every_gpu_is_drained_is_in_trouble(
    drained: tuple[bool, bool],
) -> None:
    cluster: Any = {"id": "clu_1", "fault": None, "paused": False}
    state: Any = {"gpus": [{"drained": one} for one in drained], "faults": {}}
    assert bool(troubles(cluster, state, [])) == all(drained)


def test_jobs_of_others_are_told_apart_from_the_visitors_own() -> None:
    own = {"held": True, "job_id": "job_1", "shared_with": []}
    other = {"held": True, "job_id": "other-1", "shared_with": []}
    free = {"held": False, "job_id": None}
    mixed: Any = {"gpus": [own, other, other, free]}
    foreign: Any = {"gpus": [other, free]}

    assert verdict(mixed, running=2, waiting=1, failed=0) == (
        "2 of your team's jobs run on 1 of 4 GPUs; others hold 2, 1 job waiting for GPUs."
    )
    assert verdict(foreign, running=0, waiting=0, failed=0) == (
        "None of yours runs; others hold 1 of 2 GPUs, none of yours waits."
    )
