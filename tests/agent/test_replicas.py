"""What two replicas agree on, each a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

import torch.distributed as dist
import torch.multiprocessing as processes

from maat.agent.environment import Environment
from maat.agent.replicas import Replicas, Wish

pytestmark = pytest.mark.needs_torch

STEPS, PAUSE, TOLD, NEW_PLAN = 60, 4, 47, 20


def test_replicas_that_pause_hear_the_same_before_the_same_step(tmp_path: Path) -> None:
    processes.spawn(_agree, args=(tmp_path,), nprocs=2)
    heard = [torch.load(tmp_path / f"heard{rank}") for rank in (0, 1)]
    assert heard[0]["wishes"] == heard[1]["wishes"]
    stops, plans = zip(*heard[0]["wishes"], strict=True)
    assert TOLD < stops.index(1) <= TOLD + PAUSE + 2
    assert all(stops[stops.index(1) :])
    assert NEW_PLAN < plans.index(7) <= NEW_PLAN + PAUSE + 2
    assert heard[0]["exchanges"] == heard[1]["exchanges"]
    assert STEPS // (PAUSE + 1) <= heard[0]["exchanges"] <= STEPS // (PAUSE + 1) + 3


def _agree(rank: int, folder: Path) -> None:
    around = Environment(rank=rank, world_size=2, attempt_directory=folder)
    replicas = Replicas(around, torch.device("cpu"))
    exchange, exchanges = dist.all_reduce, []

    def counted(*arguments: Any, **named: Any) -> Any:
        exchanges.append(1)
        return exchange(*arguments, **named)

    dist.all_reduce = counted
    wishes, number = [], 0
    for step in range(STEPS):
        stop = rank == 1 and step >= TOLD
        told = 7 if rank == 0 and step >= NEW_PLAN else 0
        agreed = replicas.agree(Wish(stop=stop, number=told, pause=PAUSE))
        wishes.append((agreed.stop, agreed.number))
        if agreed.number > number:
            number = agreed.number
            replicas.end_pause()
    assert replicas.agree_at_once(Wish(abandon=rank == 0, pause=PAUSE)).abandon == 1
    torch.save({"wishes": wishes, "exchanges": len(exchanges) - 1}, folder / f"heard{rank}")
    replicas.leave()
