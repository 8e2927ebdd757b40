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


@dataclass(frozen=True)
class DemoJob:
    """`samples`: of the data set. `laws`: by GPU type."""

    epochs: int
    samples: int
    batch_size: int
    max_batch_size: int
    laws: Mapping[str, Law]

    @property
    def work(self) -> float:
        """Return the effective samples of the whole training."""
        return float(self.epochs * self.samples)

    def longer(self, times: int) -> DemoJob:
        """Return a job of so many times the epochs."""
        return replace(self, epochs=times * self.epochs)


JOBS: Mapping[str, DemoJob] = {
    "digits": DemoJob(16, 4096, 32, 512, {"t4": Law(0.070, 0.0030), "a100": Law(0.060, 0.0008)}),
    "translate": DemoJob(12, 4096, 32, 256, {"t4": Law(0.080, 0.0040), "a100": Law(0.055, 0.0010)}),
    "matrix": DemoJob(
        16, 16_384, 128, 2048, {"t4": Law(0.080, 0.0005), "a100": Law(0.070, 0.0004)}
    ),
}
"""By model, which is the name of its script in this folder. A faster GPU is worth more to one than
to another: at their initial batch sizes 1.9 times for digits, 2.4 for translate, 1.2 for matrix."""


def epochs_of(name: str) -> int:
    """Return the epochs that a script is to train for: EPOCHS says so, if it is set."""
    return int(os.environ.get("EPOCHS", JOBS[name].epochs))
