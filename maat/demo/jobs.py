"""The three jobs of the demo: how much they train, and how fast the emulated GPUs are for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple


class Law(NamedTuple):
    """Seconds of a pass over m samples: fixed + per_sample * m."""

    fixed: float
    per_sample: float

    def seconds(self, samples: int) -> float:
        return self.fixed + self.per_sample * samples

    def times(self, factor: float) -> Law:
        """Return the law of a pass that takes so many times as long."""
        return Law(factor * self.fixed, factor * self.per_sample)


@dataclass(frozen=True)
class DemoJob:
    """`samples`: of the data set. `laws`: by GPU type. `across_nodes`: how much longer a pass takes
    on several nodes, as a network that is slow would make it.
    """

    epochs: int
    samples: int
    batch_size: int
    max_batch_size: int
    laws: Mapping[str, Law]
    across_nodes: float = 1.0

    @property
    def work(self) -> float:
        """Return the effective samples of the whole training."""
        return float(self.epochs * self.samples)

    def longer(self, times: int) -> DemoJob:
        """Return a job of so many times the epochs."""
        return replace(self, epochs=times * self.epochs)


JOBS: Mapping[str, DemoJob] = {
    "digits": DemoJob(
        16, 4096, 32, 512, {"t4": Law(0.070, 0.0030), "a100": Law(0.060, 0.0008)}, across_nodes=1.3
    ),
    "translate": DemoJob(
        12, 4096, 32, 256, {"t4": Law(0.080, 0.0040), "a100": Law(0.055, 0.0010)}, across_nodes=1.7
    ),
    "matrix": DemoJob(
        epochs=16,
        samples=16_384,
        batch_size=128,
        max_batch_size=2048,
        laws={"t4": Law(0.080, 0.0005), "a100": Law(0.070, 0.0004)},
        across_nodes=1.1,
    ),
}
"""By model, which is the name of its script in this folder. A faster GPU is worth more to one than
to another: at their initial batch sizes 1.9 times for digits, 2.4 for translate, 1.2 for matrix."""


def epochs_of(name: str) -> int:
    """Return the epochs that a script is to train for: EPOCHS says so, if it is set."""
    return int(os.environ.get("EPOCHS", JOBS[name].epochs))
