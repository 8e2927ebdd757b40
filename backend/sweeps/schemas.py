"""Sweeps as the API speaks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from backend.clusters.schemas import Parameters
from backend.measurements.schemas import UsedOut
from backend.operations.models import Operation, OperationState
from backend.sight import Sight
from backend.simulations.schemas import (
    ClusterTrace,
    ConditionsBody,
    CsvTrace,
    DrawnTrace,
    Seed,
    State,
    without_text,
)
from backend.simulations.seen import request_seen
from backend.sweeps.models import Sweep, SweepMember, SweepPoint
from backend.web.fields import Body, Timestamp
from maat.laboratory.figures import DEFAULT_RULE, by_rule
from maat.laboratory.sweep import Varied, rows_of
from maat.scheduling.metrics import FairnessRule

MAX_SWEEP_POINTS = 256
MAX_SWEEP_JOBS = 100_000  # of all points together


class VaryBody(Body):
    """One axis, such as p, round_seconds or rigid_share, and its values. A name that is none is answered with all that there are."""

    name: Annotated[str, Field(max_length=100)]
    values: Annotated[
        list[float | int | Annotated[str, Field(max_length=100)]],
        Field(min_length=1, max_length=64),
    ]


class SweepBody(ConditionsBody):
    """One simulation with one or two of its settings varied, every combination with every seed."""

    trace: Annotated[DrawnTrace | CsvTrace | ClusterTrace, Field(discriminator="kind")]
    policy: Annotated[str, Field(max_length=100)] = "sia"
    policy_parameters: Parameters = Field(default_factory=dict)
    placer: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="The one that suits the policy where absent."
    )
    placer_parameters: Parameters = Field(default_factory=dict)
    vary: Annotated[list[VaryBody], Field(min_length=1, max_length=2)]
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=32)] = Field(
        default_factory=lambda: [0]
    )


class AxisOut(BaseModel):
    """`logarithmic`: whether its values are read best as ratios."""

    name: str
    title: str
    unit: str | None
    logarithmic: bool
    values: list[float | int | str]


class PointOut(BaseModel):
    """`figures`: null until it has ended. Points of the same `key` are the same simulation."""

    position: int
    settings: dict[str, float | int | str]
    seed: int
    key: str
    state: State
    figures: dict[str, Any] | None
    error: dict[str, Any] | None


class RowOut(BaseModel):
    """One combination of settings over the seeds that have ended. `spread`: sample standard deviation, 0 of one seed."""

    settings: dict[str, float | int | str]
    seeds: list[int]
    mean: dict[str, float]
    spread: dict[str, float]


class SweepOut(BaseModel):
    """`request`: as it was made; of a CSV trace only its length is shown."""

    id: str
    name: str
    operation_id: str
    created_at: Timestamp
    state: State
    done: int
    total: int
    seeds: list[int]
    axes: list[AxisOut]

    @classmethod
    def of(cls, sweep: Sweep, operation: Operation) -> SweepOut:
        return cls(**_shown(sweep, operation))


@dataclass(frozen=True)
class Whole:
    """A sweep with all that belongs to it."""

    sweep: Sweep
    operation: Operation
    points: Sequence[tuple[SweepMember, SweepPoint]]
    measurements: Sequence[UsedOut]
    sight: Sight


class SweepDetail(SweepOut):
    """A sweep with its points, and their means. `fairness_rule`: by which `worst_rho` and `unfair_fraction` are computed."""

    fairness_rule: FairnessRule
    request: dict[str, Any]
    measurements: list[UsedOut]
    points: list[PointOut]
    rows: list[RowOut]

    @classmethod
    def whole(cls, whole: Whole, rule: FairnessRule = DEFAULT_RULE) -> SweepDetail:
        figures = {
            point.key: None if point.figures is None else by_rule(point.figures, rule)
            for _, point in whole.points
        }
        ended = [
            (member.settings, member.seed, found)
            for member, point in whole.points
            if (found := figures[point.key]) is not None
        ]
        rows = [
            RowOut(
                settings=dict(r.settings),
                seeds=list(r.seeds),
                mean=dict(r.mean),
                spread=dict(r.spread),
            )
            for r in rows_of(ended)
        ]
        points = [
            _point(member, point, figures[point.key], whole.operation)
            for member, point in whole.points
        ]
        asked = {
            "request": without_text(request_seen(whole.sweep.request, whole.sight)),
            "measurements": list(whole.measurements),
        }
        return cls(
            **_shown(whole.sweep, whole.operation),
            fairness_rule=rule,
            **asked,
            points=points,
            rows=rows,
        )


def _point(
    member: SweepMember, point: SweepPoint, figures: dict[str, Any] | None, operation: Operation
) -> PointOut:
    """A point that waits for another sweep is none that a cancelled one still waits for."""
    over = (
        operation.state == OperationState.CANCELLED
        and point.figures is None
        and point.error is None
    )
    given = member.model_dump(include={"position", "settings", "seed"})
    state: Any = OperationState.CANCELLED.value if over else point.state
    return PointOut(
        **given,
        key=point.key,
        state=state,
        figures=figures,
        error=None if point.error is None else error_of_point(point.error, operation),
    )


def error_of_point(error: Mapping[str, Any], operation: Operation) -> dict[str, Any]:
    """A point may have been played for another sweep, even of another tenant: its problem is this sweep's own."""
    return {**error, "instance": f"/api/v1/operations/{operation.id}"}


def _shown(sweep: Sweep, operation: Operation) -> dict[str, Any]:
    given = sweep.model_dump(include={"id", "name", "operation_id", "created_at"})
    progress = {
        "state": operation.state,
        "done": int(operation.done),
        "total": int(operation.total),
    }
    return {
        **given,
        **progress,
        "seeds": sweep.request["seeds"],
        "axes": [_axis(vary) for vary in sweep.request["vary"]],
    }


def _axis(vary: dict[str, Any]) -> AxisOut:
    """Its values as the points' settings have them, however they were written."""
    varied = Varied.of(vary["name"], vary["values"])
    axis = varied.axis
    return AxisOut(
        name=axis.name,
        title=axis.title,
        unit=axis.unit,
        logarithmic=axis.logarithmic,
        values=list(varied.values),
    )
