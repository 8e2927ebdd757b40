"""Requests of simulations as they are stored, and what requests of sweeps share with them.

A row is read into these models (backend/columns.py). Their validators bring every older shape to
the present one, so that nothing behind them knows of older shapes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, Tag, model_validator

from backend.columns import Unreadable
from backend.problems import Conflict
from maat.api.simulations import (
    MAX_TRACES,
    ClusterTrace,
    ConditionsBody,
    CsvTrace,
    GeneratedTrace,
    HistoryWindow,
    RunBody,
    SimulationBody,
)
from maat.laboratory.requested import FIDELITIES
from maat.workloads.formats.sia import write_workload
from maat.workloads.workloads import Workload


class HistoryTrace(ClusterTrace):
    """The jobs that a cluster had had at the request, as the text of a trace.

    Later submissions must not change what is simulated. `left_out`: how many jobs it had had
    besides, for which a replay has no room.
    """

    text: str
    window: HistoryWindow | None = None
    left_out: int = 0

    @classmethod
    def of(
        cls,
        trace: ClusterTrace,
        history: Workload,
        *,
        window: HistoryWindow | None = None,
        left_out: int = 0,
    ) -> Self:
        given = trace.model_dump()
        text = write_workload(history)
        return cls(**given, text=text, window=window, left_out=left_out)


StoredTrace = GeneratedTrace | CsvTrace | HistoryTrace | ClusterTrace
"""A bare ClusterTrace is of an older request: its jobs are read when a run is played."""


def _kind_of(trace: Any) -> str | None:
    """Return by which tag a trace is read and written: its kind, or `history`."""
    if not isinstance(trace, dict):
        return "history" if isinstance(trace, HistoryTrace) else getattr(trace, "kind", None)
    is_history = trace.get("kind") == "cluster" and "text" in trace
    return "history" if is_history else trace.get("kind")


UNREADABLE = (
    "It was stored by another version of Maat, and this version cannot read it. "
    "Update Maat: it is kept, and a newer version shows and plays it."
)


def why_unreadable(request: object) -> str | None:
    """Return why a request cannot be shown or played; None if it can."""
    return UNREADABLE if isinstance(request, Unreadable) else None


def refuse_unreadable(request: object) -> None:
    """Raise Conflict if a request cannot be read."""
    if (why := why_unreadable(request)) is not None:
        raise Conflict(why)


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
    """A simulation as requested.

    A cluster's history is stored with its jobs and names the cluster by its id.
    """

    # An uploaded trace is stored as its text.
    traces: Annotated[  # type: ignore[assignment]
        list[
            Annotated[
                Annotated[GeneratedTrace, Tag("generated")]
                | Annotated[CsvTrace, Tag("csv")]
                | Annotated[HistoryTrace, Tag("history")]
                | Annotated[ClusterTrace, Tag("cluster")],
                Discriminator(_kind_of),
            ]
        ],
        Field(min_length=1, max_length=MAX_TRACES),
    ]

    @model_validator(mode="before")
    @classmethod
    def _in_present_shape(cls, given: Any) -> Any:
        """Read an older shape.

        Until there were several traces, `trace` held the only one. The interval of a run's rounds
        was a parameter of its policy.
        """
        if not isinstance(given, dict):
            return given
        now = dict(given)
        if "trace" in now:
            now["traces"] = [now.pop("trace")]
        if isinstance(now.get("runs"), list):
            counts = not gives_round_seconds(now)
            now["runs"] = [with_own_round_seconds(run, counts=counts) for run in now["runs"]]
        return now

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
            tell_of_trace(trace, json)
        return shown


def gives_round_seconds(given: Mapping[str, Any]) -> bool:
    """Return whether a request, or its fidelity, gives the interval of rounds of all policies."""
    preset = FIDELITIES.get(given.get("fidelity", ""))
    return given.get("round_seconds") is not None or (
        preset is not None and preset.round_seconds is not None
    )


def with_own_round_seconds(given: Any, *, counts: bool) -> Any:
    """Take the interval of rounds out of the parameters of a policy, one of which it was.

    `given`: what has the policy, a run or a sweep. `counts`: whether nothing else gave an interval;
    else that parameter had no effect.
    """
    if not isinstance(given, dict) or "round_seconds" not in given.get("policy_parameters", {}):
        return given
    parameters = dict(given["policy_parameters"])
    seconds = parameters.pop("round_seconds")
    own = {"round_seconds": seconds} if counts else {}
    return {**given, "policy_parameters": parameters, **own}


def tell_of_trace(trace: object, shown: dict[str, Any]) -> None:
    """Say how long a text is that was sent as a trace, and of a history only what was asked."""
    if isinstance(trace, CsvTrace):
        shown["text_bytes"] = len(trace.text.encode())
        if trace.name is None:
            shown.pop("name", None)
    if isinstance(trace, ClusterTrace) and trace.since_seconds_ago is None:
        for name in ("since_seconds_ago", "until_seconds_ago", "window"):
            shown.pop(name, None)
    if not shown.get("left_out"):
        shown.pop("left_out", None)
