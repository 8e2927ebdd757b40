"""The noise of gradients at fixed weights: as the agent measures it, and exactly, sample by sample.

As a script: measures on the replicas of an attempt, and lets rank 0 print the ratios. The tests of
the agent hold them to bounds.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent
from maat.agent import noise, timing
from maat.agent.job import Job
from maat.agent.noise import NoiseScale
from maat.agent.steps import Inbox

BATCH = 64
torch.set_num_threads(1)


class FrozenSgd(torch.optim.SGD):
    def step(self, closure: Any = None) -> None:
        return None


class FrozenAdamW(torch.optim.AdamW):
    def step(self, closure: Any = None) -> None:
        return None


def task(kind: str, size: int, device: torch.device) -> tuple[Any, Any, Any]:
    """Return a model somewhere on its way, its optimiser, which stands still, and the data."""
    chance = torch.Generator().manual_seed(1)
    x = torch.randn(size, 16, generator=chance).to(device)
    y = (x[:, :4].sum(1) > 0).long() + 2 * (x[:, 5] > 0.5).long()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    model = model.to(device)
    warm: Any = (
        FrozenSgd(model.parameters(), lr=0.1)
        if kind == "sgd"
        else FrozenAdamW(model.parameters(), lr=2e-3)
    )
    for _ in range(40):
        few = torch.randint(0, size, (BATCH,), generator=chance).to(device)
        warm.zero_grad()
        cross_entropy(model(x[few]), y[few]).backward()
        type(warm).__mro__[1].step(warm)
    return model, warm, TensorDataset(x, y)


def exact(model: Any, optimiser: Any, data: TensorDataset, *, kind: str) -> tuple[float, float]:
    """Return |G|^2 and the trace of the covariance of one sample's gradient."""
    weights = {name: each.detach() for name, each in model.named_parameters()}

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return cross_entropy(functional_call(model, weights, (x[None],)), y[None])

    found = vmap(grad(loss), in_dims=(None, 0, 0))(weights, *data.tensors)
    flat = []
    for name, parameter in model.named_parameters():
        gradients = found[name].reshape(len(data), -1).double()
        if kind == "adamw":
            state = optimiser.state[parameter]
            size = (state["exp_avg_sq"] / (1 - 0.999 ** float(state["step"]))).sqrt() + 1e-8
            gradients = gradients / size.reshape(-1)
        flat.append(gradients)
    whole = torch.cat(flat, 1)
    mean = whole.mean(0)
    return float((mean**2).sum()), float(((whole - mean) ** 2).sum(1).mean())


def ratios(job: Job, kind: str, *, size: int = 2048, epochs: int = 24) -> dict[str, float]:
    """Return what the agent measures, every step alike, over what is exact."""
    noise._SHARE_REMEMBERED = noise._LONGEST_MEMORY = 1e12
    timing.MOST_EVERY = 1
    model, optimiser, data = task(kind, size, job.device)
    square, trace = exact(model, optimiser, data, kind=kind)
    loader = DataLoader(data, BATCH, shuffle=True)
    adapted, stepping, batches = job.adapt(model, optimiser, loader, max_batch_size=BATCH)

    def clip(*_: object) -> None:
        torch.nn.utils.clip_grad_norm_(adapted.parameters(), 0.01)

    for _ in job.epochs(epochs):
        for x, y in batches:
            stepping.zero_grad()
            cross_entropy(adapted(x), y).backward()
            if job._training._plan.passes == 1:
                clip()
            stepping.step()
    return _over_exact(job._training.state.noise, square, trace)


def followed_ratios(
    job: Job, kind: str, *, passes: int, size: int = 2048, epochs: int = 24
) -> dict[str, float]:
    """Return the same where a library has the loop: it divides losses, and clips by itself."""
    noise._SHARE_REMEMBERED = noise._LONGEST_MEMORY = 1e12
    timing.MOST_EVERY = 1
    model, optimiser, data = task(kind, size, job.device)
    square, trace = exact(model, optimiser, data, kind=kind)
    loader = DataLoader(data, BATCH // passes, shuffle=True)
    following = job.follow(loader, passes=passes, max_batch_size=None, rule="none")
    following.begin(model, optimiser, steps_meant=epochs * following.steps_in_epoch)
    while not following.is_done:
        batches = list(following.loader)
        for index, (x, y) in enumerate(batches):
            if index % passes == 0:
                following.begin_step()
                optimiser.zero_grad()
            (cross_entropy(model(x), y) / passes).backward()
            if (index + 1) % passes:
                following.end_pass()
                continue
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            following.raise_rates()
            optimiser.step()
            following.end_step()
    return _over_exact(following.state.noise, square, trace)


def _over_exact(found: NoiseScale, square: float, trace: float) -> dict[str, float]:
    return {
        "count": found.count,
        "phi": found.phi(BATCH) / (trace / square),
        "square": found.square / square,
        "variance": found.trace / trace,
        "exact": trace / square,
    }


if __name__ == "__main__":
    first = maat.agent.start()
    around = replace(first.environment, checkpoint_directory=None)
    first, second = (Job(around, first.device, first._replicas, Inbox()) for _ in ("sgd", "adamw"))
    both = {"sgd": ratios(first, "sgd"), "adamw": ratios(second, "adamw")}
    if first.is_first:
        print(json.dumps(both))
