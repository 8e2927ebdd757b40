"""Tests of remedies for commands: with each, the next real round starts the job that waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from live_samples import job
from test_rehearsal import press, remedies_of
from training_samples import TrainingCluster

from maat.scheduling.explain import ReasonCode

SLEEP = ("/bin/sleep", "600")


def full_but_for_four(cluster: TrainingCluster, **wanted: Any) -> str:
    """Let commands hold all GPUs but four T4; return one that waits."""
    cluster.submit(*SLEEP, gpu_count=8, gpu_types=["a100"])
    cluster.submit(*SLEEP, gpu_count=4, gpu_types=["t4"])
    cluster.round()
    waiting = cluster.submit(*SLEEP, **wanted)
    cluster.round()
    assert job(cluster.database, waiting).reason_code is not None
    assert cluster.attempts(waiting) == []
    return waiting


def too_many(cluster: TrainingCluster) -> str:
    return full_but_for_four(cluster, gpu_count=8)


def of_a_taken_type(cluster: TrainingCluster) -> str:
    return full_but_for_four(cluster, gpu_count=4, gpu_types=["a100"])


def too_many_at_least(cluster: TrainingCluster) -> str:
    return full_but_for_four(
        cluster, adaptivity="adaptive", batch_size=64, min_gpus=8, profile=False
    )


SCENES: list[tuple[str, Callable[[TrainingCluster], str]]] = [
    ("lower_gpu_count", too_many),
    ("allow_more_types", of_a_taken_type),
    ("lower_min_gpus", too_many_at_least),
]


@pytest.mark.parametrize(("code", "scene"), SCENES, ids=[code for code, _ in SCENES])
def test_with_its_remedy_the_next_round_starts_a_command(
    cluster: TrainingCluster, code: str, scene: Callable[[TrainingCluster], str]
) -> None:
    waiting = scene(cluster)
    offered = {remedy["code"]: remedy for remedy in remedies_of(cluster.database, waiting)}
    assert code in offered
    start = offered[code]["starts_with"]
    assert start is not None
    press(cluster.database, waiting, offered[code])
    cluster.round()
    (attempt,) = cluster.attempts(waiting)
    assert (attempt.gpu_type, attempt.gpu_count) == (start["gpu_type"], start["gpu_count"])


def test_a_command_that_knows_no_agent_is_not_told_to_adapt(cluster: TrainingCluster) -> None:
    waiting = too_many(cluster)
    assert job(cluster.database, waiting).reason_code == ReasonCode.WAITING_CAPACITY
    offered = {remedy["code"] for remedy in remedies_of(cluster.database, waiting)}
    assert not offered & {"make_adaptive", "make_adaptive_on_more_types"}


def test_a_try_orders_nothing_and_stops_nothing(cluster: TrainingCluster) -> None:
    waiting = too_many(cluster)
    before = {one: [a.model_dump() for a in cluster.attempts(one)] for one in cluster.jobs}
    assert remedies_of(cluster.database, waiting)
    assert before == {one: [a.model_dump() for a in cluster.attempts(one)] for one in cluster.jobs}
