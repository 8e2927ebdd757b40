"""What there is to choose from: policies and placers with their parameters, and fidelities."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class ParameterOut(TypedDict):
    """One knob: its type (number, integer, boolean, string), default and range, its unit, and where its default comes from."""

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
    """`round_seconds`: a policy's own interval; `placer`: the one that goes with it. Both null for a placer."""

    name: str
    title: str
    summary: str
    round_seconds: float | None
    placer: str | None
    parameters: list[ParameterOut]


class FidelityOut(TypedDict):
    """A preset of modelling switches for every point where a paper and a published simulator disagree.

    `policy_parameters`, `placer_parameters`: by policy and placer, what holds where a request sets none. `round_seconds`: of every policy.
    """

    name: str
    summary: str
    round_seconds: float | None
    policy_parameters: dict[str, dict[str, Any]]
    placer_parameters: dict[str, dict[str, Any]]
