"""What a training script has before its loop, and the rows of loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.data import (
    DataLoader,
    TensorDataset,
)

from maat.agent.environment import BatchPlan, Environment
from maat.agent.job import Job
from maat.agent.replicas import Replicas
from maat.agent.steps import Inbox

SIZE, BATCH, EPOCHS = 90, 20, 3
STEPS_IN_EPOCH = math.ceil(SIZE / BATCH)


class Script:
    """What a script has before its loop, and how it begins one."""

    def __init__(self, passes: int | None, job: Job | None = None, *, device: str = "cpu") -> None:
        """`passes`: of each step; None for a script without the agent, or with its job."""
        torch.manual_seed(0)
        self.device = device
        x = torch.randn(SIZE, 4)
        y = x @ torch.tensor([[1.0], [2.0], [-1.0], [0.5]]) + 0.5
        self.data = TensorDataset(x.to(device), y.to(device))
        self.model: Any = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        ).to(device)
        self.optimiser: Any = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.5)
        self.average: Any = None
        self._steps = 0
        self.job: Any = job
        if passes is not None:
            plan = BatchPlan(1, BATCH, -(-BATCH // passes), passes - 1)
            around = Environment(plan=plan)
            place = torch.device(device)
            self.job = Job(around, place, Replicas(around, place), Inbox())

    def loader(self, **options: Any) -> DataLoader[Any]:
        return DataLoader(self.data, **{"batch_size": BATCH, **options})

    def begin(
        self, scheduler: Any = None, loader: Any = None
    ) -> tuple[Any, Any, Any, Iterable[int]]:
        """Return model, optimiser, loader and epochs."""
        loader = self.loader() if loader is None else loader
        if self.job is None:
            self.optimiser.register_step_post_hook(self._count)
            return self.model, self.optimiser, loader, range(EPOCHS)
        adapted = self.job.adapt(
            self.model, self.optimiser, loader, scheduler, max_batch_size=4 * BATCH, rule="none"
        )
        return *adapted, self.job.epochs(EPOCHS)

    @property
    def steps(self) -> int:
        """Return the steps taken so far, as `job.steps`."""
        return self._steps if self.job is None else self.job.steps

    def _count(self, *_: Any) -> None:
        self._steps += 1

    def step_hook(self, optimiser: Any, call: Callable[[], object]) -> None:
        optimiser.register_step_post_hook(lambda *_: call())

    def weights(self) -> Any:
        parts = [self.model] if self.average is None else [self.model, self.average]
        return torch.cat([p.detach().flatten() for part in parts for p in part.parameters()])


def loss_of(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


Loop = Callable[[Script], None]
Rows = dict[str, tuple[Loop, str | None]]
"""By the words of the table: the loop, and what the agent says if it stops it."""


def add_row(rows: Rows, words: str, says: str | None = None) -> Callable[[Loop], Loop]:
    def add(loop: Loop) -> Loop:
        rows[words] = (loop, says)
        return loop

    return add
