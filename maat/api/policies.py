"""Policies and placers with their parameters, and fidelities."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class ParameterOut(TypedDict):
    """One parameter of a policy or placer.

    Its type (number, integer, boolean, string), default, range and unit, and the default's source.
    """

    name: str
    type: str
    default: float | int | bool | str | None
    minimum: float | None
    maximum: float | None
    choices: list[str] | None
    unit: str | None
    help: str
    source: str | None


class DescribedOut(TypedDict):
    """A policy or placer.

    `round_seconds`: a policy's own interval; `placer`: its default placer; `weighs_jobs`: whether,
    with its default parameters, it counts jobs by weight. All three are null for a placer.
    """

    name: str
    title: str
    summary: str
    round_seconds: float | None
    placer: str | None
    weighs_jobs: bool | None
    parameters: list[ParameterOut]


class FidelityOut(TypedDict):
    """A preset of switches for the differences between paper and simulator.

    `policy_parameters`, `placer_parameters`: by policy and placer, used where a request sets none.
    `round_seconds`: of every policy.
    """

    name: str
    summary: str
    round_seconds: float | None
    policy_parameters: dict[str, dict[str, Any]]
    placer_parameters: dict[str, dict[str, Any]]
