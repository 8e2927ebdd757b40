"""Recognises digits under noise: a small convolutional network, SGD, AdaScale."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent
from maat.demo.emulated import emulate
from maat.demo.jobs import JOBS, epochs_of

_JOB = JOBS["digits"]
_GLYPHS = (
    "01110 10001 10001 10001 01110",
    "00100 01100 00100 00100 01110",
    "11110 00001 01110 10000 11111",
    "11110 00001 00110 00001 11110",
    "10010 10010 11111 00010 00010",
    "11111 10000 11110 00001 11110",
    "01110 10000 11110 10001 01110",
    "11111 00010 00100 01000 01000",
    "01110 10001 01110 10001 01110",
    "01110 10001 01111 00001 01110",
)


def digits() -> TensorDataset:
    """Return images, (samples, 1, 8, 8): glyphs at random places under noise; and their digits."""
    glyphs = torch.tensor([[float(c) for c in glyph if c != " "] for glyph in _GLYPHS])
    labels = torch.randint(0, 10, (_JOB.samples,))
    images = torch.zeros(_JOB.samples, 1, 8, 8)
    for image, label in zip(images, labels, strict=True):
        top, left = torch.randint(0, 4, (2,)).tolist()
        image[0, top : top + 5, left : left + 5] = glyphs[label].view(5, 5)
    return TensorDataset(images + 0.4 * torch.randn_like(images), labels)


def main() -> None:
    torch.manual_seed(1)
    job = maat.agent.start()
    data = digits()
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    )
    model = emulate(model, "digits").to(job.device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, _JOB.batch_size, shuffle=True)
    model, optimiser, loader = job.adapt(
        model, optimiser, loader, max_batch_size=_JOB.max_batch_size
    )
    for epoch in job.epochs(epochs_of("digits")):
        for images, labels in loader:
            optimiser.zero_grad()
            loss = cross_entropy(model(images.to(job.device)), labels.to(job.device))
            loss.backward()
            optimiser.step()
            job.log(loss=loss)
        if job.is_first:
            print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
