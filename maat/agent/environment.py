"""What a rank is told by its environment and by the folder of its attempt."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

SHOWN = "agent"
"""The file in an attempt's folder that shows that its script has the agent."""


class BatchPlan(NamedTuple):
    """How a step's samples are split. The highest number counts.

    Attributes:
        total: The batch size that was meant; `samples` is what the split makes of it.
        accumulation: Passes of a step whose gradients are not yet synchronised.
    """

    number: int
    total: int
    per_gpu: int
    accumulation: int

    @property
    def passes(self) -> int:
        return self.accumulation + 1

    def samples(self, replicas: int) -> int:
        return replicas * self.per_gpu * self.passes

    def in_passes(self, passes: int) -> BatchPlan:
        """Return a plan of as many samples a step, or a few fewer, in so many passes."""
        samples = self.per_gpu * self.passes
        passes = min(passes, samples)
        return self._replace(per_gpu=samples // passes, accumulation=passes - 1)

    def exceeds(self, most: int, replicas: int) -> bool:
        """Return whether a step has more samples than `most`, or is meant to."""
        return max(self.total, self.samples(replicas)) > most

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BatchPlan:
        """Raises ValueError for what is no plan."""
        names = ("number", "total_batch_size", "per_gpu_batch_size", "accumulation_steps")
        values = []
        for name, least in zip(names, (0, 1, 1, 0), strict=True):
            value = data.get(name)
            if not isinstance(value, int) or not least <= value < 2**31:
                raise ValueError(f"The plan's {name} is {value!r}: it must be at least {least}.")
            values.append(value)
        return cls(*values)


@dataclass(frozen=True)
class Environment:
    """The place of this process among the replicas, and where it reads and writes.

    Without an attempt (a script run by hand) there is one replica, and nobody to report to.
    `profile`: set if the attempt is to measure step times and to keep nothing else.
    """

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    number: int = 0
    gpu_type: str = ""
    gpus_by_node: Mapping[str, int] = field(default_factory=lambda: {"here": 1})
    attempt_id: str | None = None
    attempt_directory: Path | None = None
    checkpoint_directory: Path | None = None
    server: str | None = None
    plan: BatchPlan | None = None
    profile: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Environment:
        """Raises ValueError naming the variable."""
        checkpoints = environ.get("MAAT_CHECKPOINT_DIR")
        directory = environ.get("MAAT_ATTEMPT_DIR")
        world_size = _whole(environ, "WORLD_SIZE", 1)
        if directory is None:
            if world_size != 1:
                raise ValueError(
                    f"WORLD_SIZE is {world_size}, and there is no MAAT_ATTEMPT_DIR: let Maat start "
                    "the replicas, or run the script as one process."
                )
            return cls(checkpoint_directory=Path(checkpoints) if checkpoints else None)
        rank = _whole(environ, "RANK", 0)
        if not rank < world_size:
            raise ValueError(f"RANK is {rank}: it must be below WORLD_SIZE, {world_size}.")
        server = environ.get("MAAT_SERVER")
        if server is not None and urlsplit(server).scheme not in {"http", "https"}:
            raise ValueError(f"MAAT_SERVER is {server!r}: it must begin with http:// or https://.")
        spec = json.loads((Path(directory) / "spec.json").read_text())
        plan = spec.get("plan")
        return cls(
            rank=rank,
            local_rank=_whole(environ, "LOCAL_RANK", rank),
            world_size=world_size,
            number=_whole(environ, "MAAT_NUMBER", 0),
            gpu_type=environ.get("MAAT_GPU_TYPE", ""),
            gpus_by_node=json.loads(environ.get("MAAT_SHAPE", '{"here": 1}')),
            attempt_id=environ.get("MAAT_ATTEMPT"),
            attempt_directory=Path(directory),
            checkpoint_directory=Path(checkpoints) if checkpoints else None,
            server=server,
            plan=None if plan is None else BatchPlan.from_json(plan),
            profile=spec.get("profile"),
        )

    def show_agent(self) -> None:
        """Leave a file in the attempt's folder by which Maat knows that the script has the agent.

        From the start of the job to its first report minutes may pass.
        """
        if self.attempt_directory is not None and self.rank == 0:
            with suppress(OSError):
                self.file(SHOWN).touch()

    def file(self, name: str) -> Path:
        """Return a file of the attempt."""
        if self.attempt_directory is None:
            raise RuntimeError(f"There is no {name} without an attempt.")
        return self.attempt_directory / name

    @property
    def is_one_machine(self) -> bool:
        return len(self.gpus_by_node) == 1


def _whole(environ: Mapping[str, str], name: str, default: int) -> int:
    value = environ.get(name, str(default))
    if not value.isdecimal():
        raise ValueError(f"{name} is {value!r}: it must be a whole number of at least 0.")
    return int(value)
