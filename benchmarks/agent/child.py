"""What cpu.py measures in the processes of a job: one line of JSON on OUT for each.

ASKED names the measurement and its size.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import cycle, islice, permutations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

import maat.agent
from maat.agent.checkpoint import Checkpoints
from maat.agent.job import Job

Measure = Callable[[Job, dict[str, Any]], Any]
"""What is asked of a job -> what was found, if anything; rank 0 writes it."""

WARM_UP = 20
BLOCKS, LEAST_STEPS = 7, 30
LONG_EPOCH = 50
AGENTS, ALIKE = 1, 2  # of the loops that are compared


def model_of(width: int) -> torch.nn.Module:
    """Return three layers: about 2 width^2 parameters."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(256, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, 16),
    )


def loader_of(batch: int, *, times: int = 1) -> DataLoader[Any]:
    """Return batches of 32 x `batch` samples, of which an epoch has each so many times."""
    chance = torch.Generator().manual_seed(1)
    x = torch.randn(32 * batch, 256, generator=chance)
    samples = TensorDataset(x, x[:, :16].argmax(1))
    epoch = samples if times == 1 else ConcatDataset([samples] * times)
    return DataLoader(epoch, batch, shuffle=True)


def optimiser_of(kind: str, model: torch.nn.Module) -> Any:
    return {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[kind](model.parameters(), lr=1e-3)


def steps(model: Any, optimiser: Any, epochs: Iterator[int], loader: Any) -> Iterator[None]:
    """Take a step each time it is asked to."""
    device = next(model.parameters()).device
    for _ in epochs:
        for inputs, labels in loader:
            optimiser.zero_grad()
            cross_entropy(model(inputs.to(device)), labels.to(device)).backward()
            optimiser.step()
            yield


def overhead(job: Job, asked: dict[str, Any]) -> dict[str, float]:
    """Return the CPU seconds of a step without the agent, and how much more it takes with it.

    The third loop has no agent either, and holds its gradients as one with the agent does: one
    replica alone then takes the same steps as in the first.
    """
    replicas = job.environment.world_size
    bare, adapted, alike = (model_of(asked["width"]) for _ in range(3))
    other, optimiser, third = (
        optimiser_of(asked["optimiser"], each) for each in (bare, adapted, alike)
    )
    if replicas > 1:
        bare = DistributedDataParallel(bare)
        alike = DistributedDataParallel(alike, gradient_as_bucket_view=True)
    # No epoch ends in here: each end writes a checkpoint, which is measured by itself.
    loader = loader_of(asked["batch"], times=LONG_EPOCH)
    share = DataLoader(loader.dataset, asked["batch"] // replicas, shuffle=True)
    adapted, optimiser, loader = job.adapt(adapted, optimiser, loader)
    loops = (
        steps(bare, other, iter(range(10**6)), share),
        steps(adapted, optimiser, job.epochs(10**6), loader),
        steps(alike, third, iter(range(10**6)), share),
    )
    clock = Clock()
    with patch("maat.agent.training.time", clock):
        block(loops, WARM_UP, clock)
        every = job.measured_every
        count = max(every, LEAST_STEPS)
        blocks = [block(loops, count, clock) for _ in range(BLOCKS)]
    without = [spent[0] for spent in blocks]
    shares, alikes = ([spent[loop] / spent[0] for spent in blocks] for loop in (AGENTS, ALIKE))
    return {
        "parameters": sum(each.numel() for each in adapted.parameters()),
        "without": statistics.median(without) / count,
        "share": statistics.median(shares) - 1,
        "least": min(shares) - 1,
        "most": max(shares) - 1,
        "alike": statistics.median(alikes) - 1,
        "every": every,
    }


class Clock:
    """The agent's clock. It stands still while the other loops take their steps.

    Else the agent would take its own for as long as all, and measure more often.
    """

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self._elsewhere = 0.0

    def perf_counter(self) -> float:
        return time.perf_counter() - self._elsewhere

    @contextmanager
    def stopped(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._elsewhere += time.perf_counter() - start


def block(loops: Sequence[Iterator[None]], count: int, clock: Clock) -> list[float]:
    """Return the CPU seconds of so many steps of each loop, one after the other, in all orders."""
    spent = [0.0] * len(loops)
    orders = cycle(permutations(range(len(loops))))
    for order in islice(orders, count):
        for index in order:
            start = time.process_time()
            with nullcontext() if index == AGENTS else clock.stopped():
                next(loops[index])
            spent[index] += time.process_time() - start
    return spent


def save(job: Job, asked: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of a checkpoint's write and read."""
    model = model_of(asked["width"]).to(job.device)
    optimiser = optimiser_of("adamw", model)
    model, optimiser, loader = job.adapt(model, optimiser, loader_of(64))
    next(steps(model, optimiser, job.epochs(1), loader))
    checkpoints = Checkpoints(Path(os.environ["OUT"]).parent / "written", 1)
    state = {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
    start = time.perf_counter()
    size = checkpoints.save(1, state, {})
    written = time.perf_counter()
    found = checkpoints.newest()
    assert found is not None
    model.load_state_dict(found.state["model"])
    optimiser.load_state_dict(found.state["optimiser"])
    if job.device.type == "cuda":
        torch.cuda.synchronize()
    return {
        "parameters": sum(each.numel() for each in model.parameters()),
        "bytes": size,
        "save": written - start,
        "restore": time.perf_counter() - written,
    }


def resize(job: Job, asked: dict[str, Any]) -> None:
    """Train, write the loss over all data after each step, and stop where it is asked."""
    raw, loader = model_of(32).to(job.device), loader_of(64)
    x, y = (each.to(job.device) for each in loader.dataset.tensors)
    optimiser = torch.optim.SGD(raw.parameters(), lr=0.05)
    model, optimiser, loader = job.adapt(raw, optimiser, loader, rule="none")
    is_last = job.environment.rank == job.environment.world_size - 1
    done = asked["from"]
    for _ in steps(model, optimiser, job.epochs(3), loader):
        done += 1
        if job.is_first:
            with torch.no_grad():
                say({"step": done, "loss": cross_entropy(raw(x), y).item()})
        if is_last and done == asked["stop_at"]:
            os.kill(os.getpid(), signal.SIGTERM)
        if is_last and done == asked.get("die_at"):
            say({"died": time.time()})
            os.kill(os.getpid(), signal.SIGKILL)


def say(found: dict[str, Any]) -> None:
    with Path(os.environ["OUT"]).open("a") as out:
        print(json.dumps(found), file=out)


MEASURES: Mapping[str, Measure] = {
    "overhead": overhead,
    "save": save,
    "resize": resize,
}


def run(measures: Mapping[str, Measure]) -> int:
    """Measure what ASKED names; return the exit code of the process."""
    asked = json.loads(os.environ["ASKED"])
    job = maat.agent.start()
    found = measures[asked["measure"]](job, asked)
    if found is not None and job.is_first:
        say(found)
    return 0


if __name__ == "__main__":
    sys.exit(run(MEASURES))
