"""A training that adapts, whose disk has no room as long as the file FULL is there."""

import os
import resource
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

import maat.agent

ROOM = 20_000  # bytes of a file: less than a checkpoint, more than a log


def set_room(full: bool) -> None:
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM if full else most, most))


def main() -> None:
    job = maat.agent.start()
    x = torch.randn(128, 128)
    model = torch.nn.Linear(128, 128)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x, x), 64, shuffle=True)
    model, optimiser, loader = job.adapt(model, optimiser, loader)
    print("from step", job._training.state.step, flush=True)
    for _ in job.epochs(100_000):
        set_room(Path(os.environ["FULL"]).exists())
        for inputs, wanted in loader:
            optimiser.zero_grad()
            (model(inputs) - wanted).square().mean().backward()
            optimiser.step()
            time.sleep(0.1)


if __name__ == "__main__":
    main()
