"""What rounds want of attempts: as rows to write, and in the rows that were read."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from backend.models import AttemptRow
from maat.scheduling.goodput import BatchPlan
from maat.vocabulary import StopReason
from worker.writes import Write

_ATTEMPTS: sa.Table = AttemptRow.__table__  # type: ignore[attr-defined]


class AttemptWrites:
    """Collects the writes of a step. What was asked before is not asked again."""

    def __init__(self) -> None:
        self._writes: list[Write] = []

    def take(self) -> list[Write]:
        """Return the writes since the last call."""
        writes, self._writes = self._writes, []
        return writes

    def add(self, row: AttemptRow, attempts: list[AttemptRow]) -> None:
        """Order an attempt; `attempts`: those of its job."""
        self._writes.append(Write(sa.insert(_ATTEMPTS), [row.model_dump()]))
        attempts.append(row)

    def ask_to_end(self, live: AttemptRow | None, reason: StopReason, now: float) -> None:
        if live is not None and live.stop_reason is None:
            unasked = (_ATTEMPTS.c.id == live.id, _ATTEMPTS.c.stop_reason.is_(None))
            asked = {"stop_reason": reason.value, "stop_seconds": now}
            self._writes.append(Write(sa.update(_ATTEMPTS).where(*unasked).values(**asked)))
            live.stop_reason, live.stop_seconds = reason.value, now

    def give_plan(self, live: AttemptRow, plan: BatchPlan) -> None:
        """Give an attempt a batch plan; nothing changes if it is the present one or none fits."""
        new = plan_to_json(plan)
        if new == live.plan or not plan.total_batch_size:
            return
        live.plan, live.plan_number = new, live.plan_number + 1
        values = {"plan": new, "plan_number": live.plan_number}
        mine = _ATTEMPTS.c.id == live.id
        self._writes.append(Write(sa.update(_ATTEMPTS).where(mine).values(**values)))


def plan_to_json(plan: BatchPlan) -> dict[str, int]:
    return {
        "total_batch_size": plan.total_batch_size,
        "per_gpu_batch_size": plan.per_gpu_batch_size,
        "accumulation_steps": plan.accumulation_steps,
    }


def plan_from_json(plan: Mapping[str, int] | None) -> BatchPlan | None:
    return None if plan is None else BatchPlan(**plan)
