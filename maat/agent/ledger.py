"""What training has done since the last report: written by the steps, read by the reporter."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from maat.agent.environment import BatchPlan, Environment
from maat.agent.timing import Times

_MOST_PASSES = 64  # in one report
_MOST_TROUBLE = 500  # characters


class Gradient(NamedTuple):
    """The gradient's squared norm, and its variance at the initial batch size."""

    square: float
    variance: float
    steps: int
    at_batch_size: int
    preconditioned: bool


@dataclass
class Ledger:
    """Facts for reports. All access is through methods, under one lock."""

    environment: Environment
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _passes: dict[tuple[int, int], Times] = field(default_factory=dict)
    _progress: dict[str, Any] = field(default_factory=lambda: {"effective_samples": 0.0})
    _facts: dict[str, Any] = field(default_factory=dict)
    _gradient: Gradient | None = None
    _loss: Any = None

    def add_step(self, plan: BatchPlan, seconds: float) -> None:
        with self._lock:
            self._times(plan).add(seconds)

    def add_sync(self, plan: BatchPlan, seconds: float) -> None:
        with self._lock:
            self._times(plan).add_sync(seconds)

    def set_progress(self, **progress: float | None) -> None:
        with self._lock:
            self._progress = progress

    def set_gradient(self, gradient: Gradient | None) -> None:
        with self._lock:
            self._gradient = gradient

    def set_loss(self, loss: Any) -> None:
        with self._lock:
            self._loss = loss

    def set(self, **facts: Any) -> None:
        """Set fields of the report as they are: checkpoint, restore_seconds, plan_number ..."""
        with self._lock:
            self._facts.update(facts)

    def set_trouble(self, words: str | None) -> None:
        """Say what is wrong with the checkpoints; None: nothing any more."""
        self.set(trouble=None if words is None else words[:_MOST_TROUBLE])

    def look(self) -> dict[str, Any]:
        """Return the report as it would be now, without sequence, kind and incarnation."""
        with self._lock:
            facts = self._report()
            loss = self._loss
        return {**facts, "loss": _finite(loss)}

    def take(self) -> dict[str, Any]:
        """Return the report, and begin the next one: what it holds is held by no other."""
        with self._lock:
            facts = self._report()
            loss = self._loss
            self._facts.pop("ranks", None)  # compared once: to be told once
            for key in list(self._passes)[:_MOST_PASSES]:
                del self._passes[key]
            self._facts.pop("memory", None)
        return {**facts, "loss": _finite(loss)}

    def _times(self, plan: BatchPlan) -> Times:
        return self._passes.setdefault((plan.per_gpu, plan.accumulation), Times())

    def _report(self) -> dict[str, Any]:
        around, gradient = self.environment, self._gradient
        passes = list(self._passes.items())[:_MOST_PASSES]
        return {
            "world_size": sum(around.gpus_by_node.values()),
            "gpu_type": around.gpu_type,
            "progress": dict(self._progress),
            "passes": [
                {
                    "per_gpu_batch_size": per_gpu,
                    "accumulation_steps": accumulation,
                    "node_count": len(around.gpus_by_node),
                    "replica_count": around.world_size,
                    "steps": times.steps,
                    "step_seconds": {"mean": times.mean, "m2": times.m2},
                    "sync_seconds": min(times.sync, times.mean),
                }
                for (per_gpu, accumulation), times in passes
                if times.steps
            ],
            "gradient": None if gradient is None else gradient._asdict(),
            **self._facts,
        }


def _finite(loss: Any) -> float | None:
    """Return a loss as a number; None for none, and for one that is not finite."""
    if loss is None:
        return None
    value = float(loss)
    return value if math.isfinite(value) else None
