"""Requests of simulations as they are stored, and what requests of sweeps share with them.

A row is read into these models (backend/columns.py). Their validators bring every older shape to
the present one, so that nothing behind them knows of older shapes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from maat.api.simulations import ClusterTrace, ConditionsBody, RunBody, SimulationBody


class StoredConditions(ConditionsBody):
    """What simulations and sweeps share.

    An older request lacks the settings that came later; it gets their defaults.
    """

    @property
    @abstractmethod
    def replays_a_cluster(self) -> bool:
        """Whether a trace is a cluster's history."""

    @abstractmethod
    def as_answered(self) -> dict[str, Any]:
        """Return the request as JSON. The text of a trace is replaced by its length."""


class StoredSimulation(StoredConditions, SimulationBody):
    """A simulation as requested; a cluster's history names the cluster by its id."""

    @model_validator(mode="before")
    @classmethod
    def _in_present_shape(cls, given: Any) -> Any:
        """Read an older shape. Until there were several traces, `trace` held the only one."""
        if not isinstance(given, Mapping) or "trace" not in given:
            return given
        return {name: value for name, value in given.items() if name != "trace"} | {
            "traces": [given["trace"]]
        }

    @classmethod
    def of(cls, body: SimulationBody) -> Self:
        return cls.model_validate(body.model_dump(mode="json"))

    def run_at(self, position: int) -> RunBody:
        """Return the run at this position: each entry of `runs` is played on every trace."""
        return self.runs[position // len(self.traces)]

    @property
    def replays_a_cluster(self) -> bool:
        return any(isinstance(trace, ClusterTrace) for trace in self.traces)

    def as_answered(self) -> dict[str, Any]:
        shown = self.model_dump(mode="json", exclude={"traces": {"__all__": {"text"}}})
        for trace, json in zip(self.traces, shown["traces"], strict=True):
            json.update(length_of_text(trace))
        return shown


def length_of_text(trace: object) -> dict[str, int]:
    """Return what an answer says of a trace's text, if it has one."""
    text: str | None = getattr(trace, "text", None)
    return {} if text is None else {"text_bytes": len(text.encode())}
