"""Requests of sweeps as they are stored.

A row is read into these models (backend/columns.py); every older shape is brought to the present
one there.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from backend.simulations.stored import (
    HistoryTrace,
    StoredConditions,
    gives_round_seconds,
    tell_of_trace,
    with_own_round_seconds,
)
from maat.api.simulations import CsvTrace, DrawnTrace
from maat.api.sweeps import SweepBody


class StoredSweep(StoredConditions, SweepBody):
    """A sweep as requested; a cluster's history is stored with its jobs."""

    trace: Annotated[DrawnTrace | CsvTrace | HistoryTrace, Field(discriminator="kind")]

    @model_validator(mode="before")
    @classmethod
    def _in_present_shape(cls, given: Any) -> Any:
        """Read an older shape: the interval of rounds was a parameter of the policy."""
        if not isinstance(given, dict):
            return given
        varied = any(vary.get("name") == "round_seconds" for vary in given.get("vary", ()))
        return with_own_round_seconds(given, counts=not varied and not gives_round_seconds(given))

    @classmethod
    def of(cls, body: SweepBody, history: HistoryTrace | None = None) -> Self:
        """Return what to store of a request. `history`: of its cluster, if it names one."""
        given = body.model_dump(mode="json")
        if history is not None:
            given["trace"] = history.model_dump(mode="json")
        return cls.model_validate(given)

    @property
    def replays_a_cluster(self) -> bool:
        return isinstance(self.trace, HistoryTrace)

    def as_answered(self) -> dict[str, Any]:
        shown = self.model_dump(mode="json", exclude={"trace": {"text"}})
        tell_of_trace(self.trace, shown["trace"])
        return shown
