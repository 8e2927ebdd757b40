"""What gpu.py measures in the processes of a job on a GPU: a line of JSON each.

Two replicas share one GPU: NCCL takes them for two machines, as NCCL_HOSTID differs.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

os.environ["NCCL_HOSTID"] = f"replica-{os.environ['RANK']}"

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset

from benchmarks.agent import child
from benchmarks.agent.noise import ratios
from maat.agent import timing
from maat.agent.job import Job

WARM_UP, LEAST_STEPS = 60, 20
LEAST_PAIRS, SECONDS = 3, 15.0
CLASSES = 100


class Block(torch.nn.Module):
    """Two convolutions, and what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(width, width, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(width),
            torch.nn.ReLU(),
            torch.nn.Conv2d(width, width, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.layers(x))


class Transformer(torch.nn.Module):
    """Twelve layers over 256 tokens: 151 million parameters, as BERT large has in twelve of 24."""

    def __init__(self) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, 0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.last = torch.nn.Linear(1024, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens: torch.Tensor = self.last(self.layers(x).mean(1))
        return tokens


def convnet() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 256, 3, padding=1),
        *(Block(256) for _ in range(16)),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(256, CLASSES),
    )


MODELS: dict[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "transformer": (Transformer, (256, 1024)),
    "convnet": (convnet, (3, 32, 32)),
}


class Noise(Dataset[Any]):
    """Samples without files, each made from its index: a loader costs what it costs anyway."""

    def __init__(self, size: int, shape: tuple[int, ...]) -> None:
        self._size, self._sample = size, torch.randn(shape)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self._sample, index % CLASSES


def overhead(job: Job, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the wall time of a step without the agent, and how much more it takes with it."""
    make, shape = MODELS[asked["model"]]
    replicas, batch = job.environment.world_size, asked["batch"]
    torch.manual_seed(0)
    bare, adapted = make().to(job.device), make().to(job.device)
    optimisers = [_optimiser(asked["optimiser"], each) for each in (bare, adapted)]
    if replicas > 1:
        bare = DistributedDataParallel(bare, device_ids=[job.device])
    data = Noise(10**7, (1,))  # what is trained on is on the GPU already
    plain = torch.utils.data.DataLoader(data, batch)
    loader = torch.utils.data.DataLoader(data, batch * replicas)
    model, optimiser, batches = job.adapt(adapted, optimisers[1], loader)
    sample = torch.randn(batch, *shape, device=job.device)
    labels = torch.arange(batch, device=job.device) % CLASSES
    two = (
        _steps(bare, optimisers[0], iter(plain), sample, labels),
        _steps(model, optimiser, _passes(job, batches), sample, labels),
    )
    for each in two:
        _seconds(each, WARM_UP)
    every = job.measured_every
    count = max(every, LEAST_STEPS)
    pairs: list[tuple[float, float]] = []
    while len(pairs) < LEAST_PAIRS or _agreed(job, sum(map(sum, pairs))) < SECONDS:
        order = (0, 1) if len(pairs) % 2 else (1, 0)
        spent = {index: _seconds(two[index], count) for index in order}
        pairs.append((spent[0], spent[1]))
    shares = [with_agent / without for without, with_agent in pairs]
    times = job._ledger.look()["passes"]
    return {
        "parameters": sum(each.numel() for each in adapted.parameters()),
        "without": statistics.median(without for without, _ in pairs) / count,
        "share": statistics.median(shares) - 1,
        "least": min(shares) - 1,
        "most": max(shares) - 1,
        "pairs": len(pairs),
        "every": every,
        "reported": times[0]["step_seconds"]["mean"] if times else None,
        "exposed": times[0]["sync_seconds"] if times else None,
        "device": torch.cuda.get_device_name(),
    }


def _agreed(job: Job, seconds: float) -> float:
    """Return what the slowest replica says: all take as many steps."""
    return seconds if job.environment.world_size == 1 else max(job._replicas.of_all(seconds))


def _passes(job: Job, batches: Any) -> Iterator[Any]:
    for _ in job.epochs(10**6):
        yield from batches


def _optimiser(kind: str, model: Any) -> Any:
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), lr=1e-5, fused=kind == "fused adamw")


def _steps(
    model: Any, optimiser: Any, batches: Iterator[Any], sample: Any, labels: Any
) -> Iterator[None]:
    """Take a step each time it is asked to. What the loader gives only counts them."""
    for _ in batches:
        optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = cross_entropy(model(sample), labels)
        loss.backward()
        optimiser.step()
        yield


def _seconds(steps: Iterator[None], count: int) -> float:
    """Return the wall time of so many steps, the GPU's part included."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        next(steps)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def noise(job: Job, asked: dict[str, Any]) -> dict[str, Any]:
    return ratios(job, asked["optimiser"])


def memory(job: Job, asked: dict[str, Any]) -> dict[str, Any]:
    """Take steps whose batch has no room in the share of the GPU that is left to this process."""
    torch.cuda.set_per_process_memory_fraction(asked["fraction"])
    model = torch.nn.Sequential(torch.nn.Linear(4096, 65536), torch.nn.ReLU())
    model.append(torch.nn.Linear(65536, CLASSES)).to(job.device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = Noise(4 * asked["batch"], (4096,))
    loader = torch.utils.data.DataLoader(data, asked["batch"], shuffle=True)
    model, optimiser, loader = job.adapt(model, optimiser, loader)
    sizes: list[int] = []
    for _ in job.epochs(1):
        for inputs, labels in loader:
            with job.guard():
                sizes.append(len(inputs))
                optimiser.zero_grad()
                loss = cross_entropy(model(inputs.to(job.device)), labels.to(job.device))
                loss.backward()
                optimiser.step()
    return {"sizes": sizes, "steps": job._training.state.step}


def scaled(job: Job, _: dict[str, Any]) -> dict[str, Any]:
    """Train in float16 with a gradient scaler, in several passes; return losses and scale."""
    timing.MOST_EVERY = 1
    model = child.model_of(64).to(job.device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    model, optimiser, loader = job.adapt(model, optimiser, child.loader_of(64))
    scaler = job.scaler(torch.amp.GradScaler("cuda"))
    losses: list[float] = []
    for _ in job.epochs(20):
        for inputs, labels in loader:
            optimiser.zero_grad()
            with torch.autocast("cuda", torch.float16):
                loss = cross_entropy(model(inputs.to(job.device)), labels.to(job.device))
            scaler.scale(loss).backward()
            scaler.step(optimiser)
            scaler.update()
            losses.append(loss.item())
    half = len(losses) // 4
    return {
        "first": statistics.mean(losses[:half]),
        "last": statistics.mean(losses[-half:]),
        "scale": scaler.get_scale(),
        "noise": job._training.state.noise.phi(64),
    }


MEASURES: Mapping[str, child.Measure] = {
    "overhead": overhead,
    "noise": noise,
    "memory": memory,
    "scaled": scaled,
    "save": child.save,
    "resize": child.resize,
}


if __name__ == "__main__":
    sys.exit(child.run(MEASURES))
