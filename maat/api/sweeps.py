"""Sweeps: one simulation with one or two of its settings varied."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Body, Parameters, Timestamp
from maat.api.measurements import UsedOut
from maat.api.operations import OperationState
from maat.api.simulations import (
    ClusterTrace,
    ConditionsBody,
    CsvTrace,
    DrawnTrace,
    Seed,
    Tuned,
    UploadedTrace,
)
from maat.vocabulary import LARGEST_COUNT, FairnessRule

MAX_SWEEP_POINTS = 256
MAX_SWEEP_JOBS = 100_000  # over all points


class VaryBody(Body):
    """One axis, such as p, round_seconds or rigid_share, and its values.

    An unknown name is answered with all known ones.
    """

    name: Annotated[str, Field(max_length=100)]
    values: Annotated[
        list[
            float
            | Annotated[int, Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]
            | Annotated[str, Field(max_length=100)]
        ],
        Field(min_length=1, max_length=64),
    ]


class SweepBody(ConditionsBody):
    """One simulation with one or two of its settings varied.

    Every combination runs with every seed.
    """

    trace: Annotated[
        DrawnTrace | CsvTrace | UploadedTrace | ClusterTrace, Field(discriminator="kind")
    ]
    policy: Annotated[str, Field(max_length=100)] = "sia"
    policy_parameters: Parameters = Field(default_factory=dict)
    placer: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="Default: the policy's own placer."
    )
    placer_parameters: Parameters = Field(default_factory=dict)
    tuned_by_policy: Annotated[dict[str, Tuned], Field(max_length=64)] = Field(
        default_factory=dict,
        description="The rule by which jobs are tuned under a policy, by its name; "
        "default: `tuned` under all.",
        examples=[{"gavel": "any-pair"}],
    )
    vary: Annotated[list[VaryBody], Field(min_length=1, max_length=2)]
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=32)] = Field(
        default_factory=lambda: [0]
    )


class AxisOut(TypedDict):
    """An axis. `logarithmic`: whether its values are best compared by ratio."""

    name: str
    title: str
    unit: str | None
    logarithmic: bool
    values: list[float | int | str]


class PointOut(TypedDict):
    """A point. `figures`: null until it has ended.

    Points with equal `key` are one simulation.
    """

    position: int
    settings: dict[str, float | int | str]
    seed: int
    key: str
    state: OperationState
    figures: dict[str, Any] | None
    error: dict[str, Any] | None


class RowOut(TypedDict):
    """One combination of settings, over the finished seeds.

    `spread`: sample standard deviation, 0 for one seed.
    """

    settings: dict[str, float | int | str]
    seeds: list[int]
    mean: dict[str, float]
    spread: dict[str, float]


class SweepOut(TypedDict):
    """A sweep. `unreadable`: why its seeds and axes cannot be shown; else null."""

    id: str
    name: str
    operation_id: str
    created_at: Timestamp
    state: OperationState
    done: int
    total: int
    seeds: list[int]
    axes: list[AxisOut]
    unreadable: str | None


class SweepDetail(SweepOut):
    """A sweep with its points and their means.

    `request`: as sent; a CSV trace is replaced by its length. `fairness_rule`: how `worst_rho` and
    `unfair_fraction` are computed. `notes`: what a reader of the figures should know, such as that
    jobs can never run under a policy.
    """

    fairness_rule: FairnessRule
    request: dict[str, Any]
    measurements: list[UsedOut]
    points: list[PointOut]
    rows: list[RowOut]
    notes: list[str]
