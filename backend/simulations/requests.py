"""Reads the parts of a stored simulation request, also of older versions.

The worker uses it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def traces_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the traces; older requests have only one, in `trace`."""
    given: list[dict[str, Any]] = request["traces"] if "traces" in request else [request["trace"]]
    return given


def placer_parameters_of(request: Mapping[str, Any], position: int) -> dict[str, Any]:
    """Return the placer parameters of the run at this position.

    Every entry of `runs` is played on each trace in turn.
    """
    given: dict[str, Any] = request["runs"][position // len(traces_of(request))].get(
        "placer_parameters", {}
    )
    return given


def is_history(trace: Mapping[str, Any]) -> bool:
    """Return whether a stored trace is a cluster's history."""
    return bool(trace["kind"] == "cluster")
