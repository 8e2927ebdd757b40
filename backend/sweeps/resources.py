"""Sweeps as the API answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.answers import answer_of
from backend.operations.models import Operation, OperationState
from backend.sight import Sight
from backend.simulations.seen import notes_seen, request_seen
from backend.simulations.stored import why_unreadable
from backend.sweeps.models import Sweep, SweepMember, SweepPoint
from maat.api.measurements import UsedOut
from maat.api.sweeps import AxisOut, PointOut, RowOut, SweepDetail, SweepOut, VaryBody
from maat.laboratory.figures import (
    DEFAULT_RULE,
    RunFigures,
    by_rule,
    never_run,
    notes_on_runs,
)
from maat.laboratory.sweep import Varied, rows_of
from maat.scheduling.parts import Parts
from maat.vocabulary import FairnessRule


@dataclass(frozen=True)
class Whole:
    """A sweep with all that belongs to it."""

    sweep: Sweep
    operation: Operation
    points: Sequence[tuple[SweepMember, SweepPoint]]
    measurements: Sequence[UsedOut]
    sight: Sight


def show_sweep(sweep: Sweep, operation: Operation) -> SweepOut:
    return answer_of(SweepOut, sweep, **_computed(sweep, operation))


def show_whole_sweep(whole: Whole, rule: FairnessRule = DEFAULT_RULE) -> SweepDetail:
    """Show a sweep with its points, and their means."""
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
            settings=dict(r.settings), seeds=list(r.seeds), mean=dict(r.mean), spread=dict(r.spread)
        )
        for r in rows_of(ended)
    ]
    return answer_of(
        SweepDetail,
        whole.sweep,
        **_computed(whole.sweep, whole.operation),
        request=request_seen(whole.sweep.request, whole.sight).as_answered(),
        measurements=list(whole.measurements),
        fairness_rule=rule,
        points=[
            _point(member, point, figures[point.key], whole.operation)
            for member, point in whole.points
        ],
        rows=rows,
        notes=_notes(whole, figures),
    )


def _notes(whole: Whole, figures: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """Return what holds of the points, as asked for and as far as they have ended.

    None for a request that cannot be read.
    """
    if why_unreadable(whole.sweep.request) is not None:
        return []
    request = whole.sweep.request
    played = {}
    for member, point in whole.points:
        policy = str(member.settings.get("policy", request.policy))
        placer = member.settings.get("placer", request.placer)
        parts = Parts.chosen(policy, None if placer is None else str(placer))
        if (found := figures[point.key]) is not None:
            played[point.key] = RunFigures(parts.policy, parts.placer, found)
    runs = list(played.values())
    hides = request.replays_a_cluster and not whole.sight.is_whole
    asked = notes_seen(whole.sweep.notes, whole.sight) if hides else whole.sweep.notes
    return [*never_run(runs), *asked, *notes_on_runs(runs)]


def error_of_point(error: Mapping[str, Any], operation: Operation) -> dict[str, Any]:
    """Return a point's problem as this sweep's own; another sweep may have run it."""
    return {**error, "instance": f"/api/v1/operations/{operation.id}"}


def _point(
    member: SweepMember, point: SweepPoint, figures: dict[str, Any] | None, operation: Operation
) -> PointOut:
    """Show a point.

    A cancelled sweep shows as cancelled a point that another sweep still waits for.
    """
    over = (
        operation.state == OperationState.CANCELLED
        and point.figures is None
        and point.error is None
    )
    state: Any = OperationState.CANCELLED.value if over else point.state
    return PointOut(
        position=member.position,
        settings=member.settings,
        seed=member.seed,
        key=point.key,
        state=state,
        figures=figures,
        error=None if point.error is None else error_of_point(point.error, operation),
    )


def _computed(sweep: Sweep, operation: Operation) -> dict[str, Any]:
    unreadable = why_unreadable(sweep.request)
    return {
        "state": operation.state,
        "done": int(operation.done),
        "total": int(operation.total),
        "seeds": [] if unreadable else sweep.request.seeds,
        "axes": [] if unreadable else [_axis(vary) for vary in sweep.request.vary],
        "unreadable": unreadable,
    }


def _axis(vary: VaryBody) -> AxisOut:
    """Show an axis with its values as the points' settings have them."""
    varied = Varied.of(vary.name, vary.values)
    return answer_of(AxisOut, varied.axis, values=list(varied.values))
