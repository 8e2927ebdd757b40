"""The parts of a stored request of a simulation, also of one from before there were some of them. The worker reads them too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def traces_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The traces of a stored request, also of one from before a simulation could have several."""
    given: list[dict[str, Any]] = request["traces"] if "traces" in request else [request["trace"]]
    return given


def placer_parameters_of(request: Mapping[str, Any], position: int) -> dict[str, Any]:
    """Of the run at this position, from the stored request: every entry of `runs` is played on each trace in turn."""
    given: dict[str, Any] = request["runs"][position // len(traces_of(request))].get(
        "placer_parameters", {}
    )
    return given


def is_history(trace: Mapping[str, Any]) -> bool:
    """Whether a stored trace is what a cluster has had."""
    return bool(trace["kind"] == "cluster")
