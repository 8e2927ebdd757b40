"""Accepts sweeps: checks every point, then stores the new ones.

A point that was simulated before is found by its content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.clocktime import utc_now
from backend.clusters.service import check_parts
from backend.database import after_commit
from backend.measurements.models import MeasurementUse
from backend.measurements.uses import Measured, find_uses, keep_uses, measured, shown_uses
from backend.operations.models import Operation, OperationState
from backend.operations.service import begin_operation, operations_of
from backend.problems import FieldError, Invalid, invalid_input
from backend.queue import PLAY_NEXT_RUN, Queue
from backend.sight import jobs_named_in, sight_of
from backend.simulations.conditions import check_conditions, check_scores, pointing_at
from backend.simulations.history import hides_others, own_part, without_naming
from backend.simulations.idle_settings import (
    fixed_and_varied,
    idle_conditions,
    refuse,
)
from backend.simulations.quotas import with_quotas_of
from backend.simulations.seen import reserved_for
from backend.simulations.service import check_fits, cluster_id_of, fixed_history, with_its_text
from backend.simulations.stored import HistoryTrace, refuse_unreadable
from backend.sweeps.models import Sweep, SweepMember, SweepPoint
from backend.sweeps.requests import sweep_of
from backend.sweeps.resources import Whole
from backend.sweeps.stored import StoredSweep
from backend.tenancy import find_owned
from maat.api.simulations import MAX_SIMULATED_GPUS, ClusterTrace, DrawnTrace
from maat.api.sweeps import MAX_SWEEP_JOBS, MAX_SWEEP_POINTS, SweepBody
from maat.laboratory import requested
from maat.laboratory.axes import AXES
from maat.laboratory.requested import FIDELITIES, window_of
from maat.laboratory.sweep import FailedPoint, Point
from maat.laboratory.sweep import Sweep as EngineSweep
from maat.scheduling.errors import InputError, ParameterError

SWEEP = "sweep"


@dataclass(frozen=True)
class PreparedSweep:
    """A checked request, ready to store: every point can be simulated."""

    request: StoredSweep
    uses: list[MeasurementUse]
    members: list[SweepMember]
    notes: list[str]


@dataclass(frozen=True)
class _Points:
    """The points of a sweep, and what a reader of their figures should know, each once."""

    members: list[SweepMember]
    notes: tuple[str, ...]


def prepare_sweep(
    session: Session,
    principal: Principal,
    body: SweepBody,
    look: Callable[[], object] = lambda: None,
) -> PreparedSweep:
    """Check a request. It only reads, but takes time: every point is built.

    `look`: called before each point; it may raise. Raises Invalid naming what cannot be used.
    """
    uses = find_uses(session, principal, body)
    found = measured(session, uses, body)
    trace = with_its_text(session, principal, body.trace, "/trace")
    body = body.model_copy(update={"trace": trace})
    varied = [vary.name for vary in body.vary]
    check_conditions(body, found, grows="cluster_size" in varied)
    refuse(chain(idle_conditions(body), fixed_and_varied(_fixed(body), varied)))
    placer_parameters = {} if body.placer is None else body.placer_parameters
    check_parts(body.policy, body.policy_parameters, body.placer, placer_parameters)
    if isinstance(body.trace, ClusterTrace):
        request, points = _of_history(session, principal, body, body.trace, found, look)
    else:
        request = StoredSweep.of(body)
        points = _points(request, found, look)
    return PreparedSweep(request, uses, points.members, list(points.notes))


def store_sweep(
    session: Session, principal: Principal, prepared: PreparedSweep, queue: Queue
) -> Sweep:
    sweep = _store(session, principal, prepared)
    keep_uses(session, prepared.uses, sweep.operation_id)
    after_commit(session, partial(queue.send, PLAY_NEXT_RUN))
    return sweep


def _fixed(body: SweepBody) -> dict[str, tuple[str, Any]]:
    """Return the request's fixed values of settings that a sweep can vary.

    Maps the name of the axis to pointer and value.
    """
    given: dict[str, tuple[str, Any]] = {
        name: (f"/policy_parameters/{name}", value)
        for name, value in body.policy_parameters.items()
    }
    for name in (
        "round_seconds",
        "profiling",
        "rigid_share",
        "strong_scaling_share",
        "locality_penalty",
        "rack_penalty",
        "network_contention",
        "least_stay_seconds",
        "most_moves_per_hour",
        "interference",
        "tuned",
        "placer",
        "policy",
    ):
        value = getattr(body, name)
        if (
            name in body.model_fields_set
            and value not in (None, 0.0)
            and not (name == "rack_penalty" and value == 1.0)
            and not (name == "profiling" and _is_of_fidelity(body))
        ):
            given[name] = (f"/{name}", value)
    if body.trace.kind == "generated" and body.trace.jobs is not None:
        given["jobs_per_hour"] = given["jobs"] = ("/trace/jobs", body.trace.jobs)
    return given


def _is_of_fidelity(body: SweepBody) -> bool:
    """Return whether the profiling equals the fidelity's own, which may be varied."""
    return body.fidelity in FIDELITIES and body.profiling is FIDELITIES[body.fidelity].profiling


def get_sweep(session: Session, principal: Principal, sweep_id: str) -> Sweep:
    """Find a sweep.

    Raises NotFound for another tenant's sweep too, Conflict for one that cannot be read.
    """
    found = find_owned(session, principal, Sweep, sweep_id, noun="sweep")
    refuse_unreadable(found.request)
    return found


def whole_of(session: Session, principal: Principal, sweep: Sweep) -> Whole:
    """Return the sweep with its points in order."""
    statement = select(SweepMember, SweepPoint).join(
        SweepPoint, col(SweepPoint.key) == col(SweepMember.point_key)
    )
    ordered = statement.where(SweepMember.sweep_id == sweep.id).order_by(col(SweepMember.position))
    used = shown_uses(session, [sweep.operation_id])[sweep.operation_id]
    sight = sight_of(session, principal, jobs_named_in(reserved_for(sweep.request)))
    return Whole(
        sweep, operations_of(session, [sweep])[sweep.id], session.exec(ordered).all(), used, sight
    )


def _of_history(
    session: Session,
    principal: Principal,
    body: SweepBody,
    trace: ClusterTrace,
    found: Measured,
    look: Callable[[], object],
) -> tuple[StoredSweep, _Points]:
    """Return the request and its points on the jobs that a cluster has had until now."""
    cluster_id = cluster_id_of(session, trace.cluster_id, "/trace")
    named = trace.model_copy(update={"cluster_id": cluster_id})
    workload, history = fixed_history(session, named, "/trace")
    body = with_quotas_of(session, body, cluster_id)
    request = StoredSweep.of(body, history)
    if not hides_others(workload, principal):
        return request, _points(request, found, look)
    if (window := window_of(body.measured_jobs)) is not None:
        with pointing_at("/measured_jobs"):
            window.check(len(workload))
    own = own_part(workload, principal)
    if own.jobs:
        of_all = body.model_copy(update={"measured_jobs": None})
        _points(StoredSweep.of(of_all, HistoryTrace.of(named, own)), found, look)
    with without_naming():
        return request, _points(request, found, look)


def _points(request: StoredSweep, found: Measured, look: Callable[[], object]) -> _Points:
    """Return every point by its content, and notes on them.

    Raises Invalid at the field that the library refuses.
    """
    trace = request.trace
    try:
        sweep = sweep_of(request, found)
        _check_size(sweep, (trace.jobs or 0) if isinstance(trace, DrawnTrace) else 0)
        _check_policies(sweep)
        return _checked(sweep, look)
    except InputError as error:
        raise invalid_input(error, _pointer(error.field, request)) from None


def _checked(sweep: EngineSweep, look: Callable[[], object]) -> _Points:
    """Check every point. One whose cluster is too small is kept: it fails when it is played.

    Raises InputError if all of them are.
    """
    members: list[SweepMember] = []
    notes: dict[str, None] = {}
    jobs, checked, too_small = 0, 0, None
    for position, point in enumerate(sweep.each()):
        look()
        members.append(
            SweepMember(
                sweep_id="",
                position=position,
                point_key=point.key,
                settings=dict(point.settings),
                seed=point.seed,
            )
        )
        if isinstance(point, FailedPoint):
            too_small = point.error
            continue
        jobs += len(point.scenario.workload)
        _check_jobs(jobs)
        _check_point(point, is_of_first=checked < len(sweep.seeds), sweep=sweep)
        notes |= dict.fromkeys(requested.notes_on(point.scenario))
        checked += 1
    if not checked and too_small is not None:
        raise too_small
    return _Points(members, tuple(notes))


def _check_point(point: Point, *, is_of_first: bool, sweep: EngineSweep) -> None:
    """Check a point. `is_of_first`: of the first settings, whose jobs those of others repeat."""
    scenario = point.scenario
    if scenario.cluster.gpu_count > MAX_SIMULATED_GPUS:
        _refuse(
            "/vary",
            "The cluster becomes larger than this service simulates.",
            f"Stay at or below {MAX_SIMULATED_GPUS} GPUs.",
            scenario.cluster.gpu_count,
        )
    if is_of_first:
        check_fits(scenario)
        requested.check_shared_gpus(scenario)
    if point.seed == sweep.seeds[0]:
        check_scores(scenario)


def _check_size(sweep: EngineSweep, jobs: int) -> None:
    """Check the size.

    `jobs`: the known minimum per point, before any trace is generated.
    """
    if sweep.size > MAX_SWEEP_POINTS:
        _refuse(
            "/vary",
            "The sweep has more points than allowed.",
            f"Choose at most {MAX_SWEEP_POINTS}.",
            sweep.size,
        )
    for varied in sweep.axes:
        if varied.axis.name == "jobs":
            jobs = sum(int(many) for many in varied.values) // len(varied.values)
    _check_jobs(jobs * sweep.size)


def _check_policies(sweep: EngineSweep) -> None:
    """Raise ParameterError for tuned jobs of a policy that does not run."""
    varied = [each.values for each in sweep.axes if each.axis.name == "policy"]
    policies = varied[0] if varied else (sweep.base.policy,)
    for name in sweep.base.tuned_by_policy:
        if name not in policies:
            raise ParameterError(
                "names no policy that runs",
                field="tuned_by_policy",
                value=name,
                remedy=f"Use one of: {', '.join(map(str, policies))}.",
            )


def _check_jobs(jobs: int) -> None:
    if jobs > MAX_SWEEP_JOBS:
        most = f"Ask for at most {MAX_SWEEP_JOBS} over all points."
        _refuse("/trace", "The sweep has more jobs than this service simulates.", most, jobs)


def _refuse(pointer: str, message: str, remedy: str, value: object) -> None:
    raise Invalid(message, errors=[FieldError(pointer, "too_large", message, remedy, value)])


def _pointer(field: str, request: StoredSweep) -> str:
    """Return the pointer into the request of a field of the library."""
    names = [vary.name for vary in request.vary]
    if field in names:
        return f"/vary/{names.index(field)}/values"
    if field in request.policy_parameters:
        return f"/policy_parameters/{field}"
    if field in request.placer_parameters:
        return f"/placer_parameters/{field}"
    known = type(request).model_fields
    if field == "vary" or (field in AXES and field not in known):
        unknown = next((i for i, name in enumerate(names) if name not in AXES), None)
        return "/vary" if unknown is None else f"/vary/{unknown}/name"
    if field.startswith("reservation."):
        return "/reservations"
    if field.startswith("quotas."):
        return "/quotas"
    if field in known:
        return f"/{field}"
    return f"/trace/{field}" if isinstance(request.trace, DrawnTrace) else "/trace/text"


def _store(session: Session, principal: Principal, prepared: PreparedSweep) -> Sweep:
    request, members = prepared.request, prepared.members
    owner: dict[str, Any] = {"owner_id": principal.user_id, "tenant_id": principal.tenant_id}
    keys = sorted({member.point_key for member in members})
    _want(session, keys)
    kept = set(
        session.exec(
            select(SweepPoint.key).where(
                col(SweepPoint.key).in_(keys), col(SweepPoint.figures).is_not(None)
            )
        )
    )
    done = sum(member.point_key in kept for member in members)
    operation = Operation(
        kind=SWEEP,
        done=float(done),
        total=float(len(members)),
        unit="points",
        message=f"Waiting for a worker; {done} of {len(members)} points were already known.",
        **owner,
    )
    if done == len(members):
        operation.state, operation.started_at, operation.finished_at = (
            OperationState.SUCCEEDED,
            utc_now(),
            utc_now(),
        )
        operation.message = "Every point was already known."
    sweep = Sweep(
        name=request.name, request=request, notes=prepared.notes, operation_id="", **owner
    )
    begin_operation(session, operation, sweep, result_url="/api/v1/sweeps")
    for member in members:
        member.sweep_id = sweep.id
        session.add(member)
    session.flush()
    return sweep


def _want(session: Session, keys: list[str]) -> None:
    """Queue new, failed and cancelled points."""
    again = sa.update(SweepPoint).where(
        col(SweepPoint.key).in_(keys), col(SweepPoint.state).in_(["failed", "cancelled"])
    )
    session.execute(
        again.values(state="queued", error=None, figures=None, heartbeat_at=None, finished_at=None)
    )
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    rows = [{"key": key, "state": "queued"} for key in keys]
    session.execute(insert(SweepPoint).values(rows).on_conflict_do_nothing(index_elements=["key"]))
