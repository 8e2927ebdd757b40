"""A small adaptive training that tells when its process began, and its first step and save.

Run alone, it is what a script's own start costs; run by Maat, what Maat adds.
"""

from __future__ import annotations

import atexit
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent
from benchmarks.training.moments import BEGUN, FIRST_STEP, LEFT, SAVE, SAVED
from maat.agent.checkpoint import Checkpoints

_EPOCHS, _STEP_SECONDS = 100_000, 0.05


def main() -> None:
    print(BEGUN, _begun_at(), flush=True)
    _tell_saves()
    atexit.register(lambda: print(LEFT, time.time(), flush=True))  # after the agent's goodbye
    job = maat.agent.start()
    inputs = torch.randn(512, 64)
    data = TensorDataset(inputs, inputs[:, :4].argmax(1))
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(data, 64, shuffle=True)
    model, optimiser, loader = job.adapt(model, optimiser, loader, max_batch_size=256)
    is_first = True
    for _ in job.epochs(_EPOCHS):
        for batch, labels in loader:
            optimiser.zero_grad()
            cross_entropy(model(batch), labels).backward()
            optimiser.step()
            if is_first:
                print(FIRST_STEP, time.time(), flush=True)
                is_first = False
            time.sleep(_STEP_SECONDS)


def _tell_saves() -> None:
    save = Checkpoints.save

    def told(self: Checkpoints, *arguments: Any) -> int:
        print(SAVE, time.time(), flush=True)
        found = save(self, *arguments)
        print(SAVED, time.time(), flush=True)
        return found

    Checkpoints.save = told  # type: ignore[method-assign]


def _begun_at() -> float:
    """Return when the kernel made this process, by the wall clock; to a hundredth of a second."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + int(fields[19]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
