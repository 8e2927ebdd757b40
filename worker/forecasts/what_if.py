"""Answers what would happen: two states side by side, in the same draws. Knows no broker."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.clusters.notes import notes_on_parts
from backend.database import Database
from backend.forecasts.service import KIND, PLAYED
from backend.laboratory.use import charge
from backend.models import Cluster, Operation, OperationState, WhatIf
from backend.models import Job as JobRow
from backend.problems import InternalError, PolicyFault, Problem, invalid_input
from maat.api.clusters import NodeBody
from maat.api.forecasts import MOST_SLOWED, MOST_TIMED, ClusterChangesBody
from maat.forecasting.changes import with_job, with_nodes, with_policy
from maat.forecasting.forecast import Forecast, OutOfTime, Slowed, side_by_side, slowed
from maat.forecasting.present import Present
from maat.scheduling.cluster import Node
from maat.scheduling.errors import ContractViolation, InputError, PolicyFailed
from maat.scheduling.job import JobId
from maat.scheduling.own.failures import sentence_of
from maat.scheduling.parts import Parts
from maat.scheduling.stability import Stability
from worker.executors.simulated_state import fit_once
from worker.forecasts.keeping import latest_of
from worker.forecasts.pacing import quick_pacing_of
from worker.forecasts.reading import Reading, read
from worker.forecasts.unused_types import unused_type_notes
from worker.laboratory.work import next_of, work_of
from worker.operations import OPERATIONS, finish, is_cancel_requested, join, waiting_operations
from worker.rehearsals.alone import LoneTrials
from worker.turns import TURNS
from worker.work_queue import Claim

log = logging.getLogger(__name__)

MOST_SECONDS = 60.0  # of CPU
LOOK_SECONDS = 0.5
ANSWER_SECONDS = 3.0
"""No other pair of draws begins so long after the question is taken up, once there are enough.

What the first pair says is the first answer: it is stored, and so is what each other one adds.
"""
LEAST_PAIRS = 3


class _Cancelled(Exception):
    """Somebody asked the operation to stop."""


def waiting_questions(database: Database) -> list[str]:
    """Return the questions without a worker; they count as sent from now on."""
    operations = waiting_operations(database, kind=KIND)
    if not operations:
        return []
    with database.session_scope(writes=False) as session:
        mine = select(WhatIf.id).where(col(WhatIf.operation_id).in_(operations))
        return list(session.exec(mine.order_by(col(WhatIf.id))))


def answer_next(database: Database) -> None:
    """Answer a question of the tenant whose turn it is, as with the runs of the laboratory."""
    with database.session_scope(writes=False) as session:
        operations = sa.inspect(Operation).local_table
        asked = work_of(session, KIND, OPERATIONS, operations, col(Operation.kind) == KIND)
        chosen = next_of(session, asked)
        if not chosen:
            return
        mine = select(WhatIf.id).where(WhatIf.operation_id == chosen[0].operation_id)
        forecast_id = session.exec(mine).one()
    answer(database, forecast_id)


def answer(database: Database, forecast_id: str) -> None:
    """Work a question out and store the answer; do nothing if it has one."""
    with database.session_scope(writes=False) as session:
        asked = session.get(WhatIf, forecast_id)
    if asked is None or not join(database, asked.operation_id):
        return
    claim, begun = Claim(asked.operation_id), time.thread_time()
    result, state, error, message = None, OperationState.SUCCEEDED, None, "Done."
    try:
        with TURNS.question(), OPERATIONS.working_on(database, claim):
            result = _worked_out(database, asked)
    except _Cancelled:
        state, message = OperationState.CANCELLED, "Cancelled."
    except OutOfTime:
        state, message = OperationState.FAILED, "It took too long."
        error = _problem(
            InternalError(f"The forecast took longer than {MOST_SECONDS:g} CPU s."), asked
        )
    except InputError as wrong:
        state, message = OperationState.FAILED, "It cannot be asked."
        error = _problem(invalid_input(wrong, f"/changes/{wrong.field}"), asked)
    except (PolicyFailed, ContractViolation) as failed:
        state, message = OperationState.FAILED, "The policy failed."
        error = _problem(PolicyFault(sentence_of(failed)), asked)
    except Exception:
        log.exception("the question %s could not be answered", asked.id)
        state, message = OperationState.FAILED, "Failed."
        error = _problem(
            InternalError(
                "The forecast failed because of a fault of Maat; the worker's log has the details."
            ),
            asked,
        )
    _store(database, asked, result, state, message=message, error=error)
    with database.session_scope() as session:
        charge(session, asked.operation_id, time.thread_time() - begun, now=utc_now())


def _worked_out(database: Database, asked: WhatIf) -> dict[str, Any]:
    begun = time.monotonic()
    with database.session_scope(writes=False) as session:
        model = (asked.request.get("row") or {}).get("model")
        reading = read(session, session.get_one(Cluster, asked.cluster_id), asked=model)
    if reading is None:
        raise InputError(
            "has no nodes", field="cluster_id", value=asked.cluster_id, remedy="Add a node first."
        )
    present = reading.present()
    changed, job_id = _changed(reading, present, asked.request)
    wanted = asked.request.get("changes")
    changes = None if wanted is None else ClusterChangesBody(**wanted)
    parts = (reading.snapshot.cluster.parts, _parts_after(reading, changes))
    look = _looking(database, asked)
    added = () if changes is None else changes.add_nodes
    notes = unused_type_notes(changed, (node.gpu_type for node in added))
    if parts[1] != parts[0]:
        notes += notes_on_parts(reading.snapshot.cluster, parts[1])
    notes += bound_notes(present.stability, changed.stability)
    if asked.request.get("row") is not None:
        notes += _never(database, asked)
    sides = (
        vars(parts[0]) | asdict(present.stability),
        vars(parts[1]) | asdict(changed.stability),
    )

    def stored(before: Forecast, after: Forecast) -> dict[str, Any]:
        return _result(before, after, job_id, sides=sides, notes=notes)

    before, after = side_by_side(
        present,
        changed,
        reading.unknown,
        fitter=fit_once,
        least=LEAST_PAIRS,
        central=job_id is not None,
        pacing=quick_pacing_of(present),
        look=look,
        progress=lambda played: _tell(database, asked, played),
        so_far=lambda one, other: _store_so_far(database, asked, stored(one, other)),
        has_time=lambda: time.monotonic() - begun < ANSWER_SECONDS,
    )
    return stored(before, after)


def _never(database: Database, asked: WhatIf) -> Iterator[str]:
    """Yield why no round would start the job that was asked for, as the cluster stands now."""
    row = JobRow(**asked.request["row"])
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, asked.cluster_id)
        for why in LoneTrials().never_started(session, cluster, [row]).values():
            yield f"No round would start it as the cluster stands. {why.sentence}"


def bound_notes(before: Stability, after: Stability) -> Iterator[str]:
    """Yield what the figures do not say of another bound on moves."""
    now, then = before.most_moves_per_second, after.most_moves_per_second
    ahead = "Far ahead few rounds are played: there jobs restart as often as they did until now"
    if then < now:
        yield (
            f"{ahead}, or as the bound allows. Where jobs have just been moved a lot, as on a "
            "cluster that has begun lately, that overstates what a bound saves."
        )
    if then > now:
        yield f"{ahead}, under the bound that it has: without it, more may come."


def _changed(
    reading: Reading, present: Present, request: Mapping[str, Any]
) -> tuple[Present, JobId | None]:
    """Return the state as asked for, and the id of the job that was asked for."""
    if request.get("changes") is not None:
        present = _with_changes(reading, present, ClusterChangesBody(**request["changes"]))
    if request.get("row") is None:
        return present, None
    row = JobRow(**request["row"])
    reading.specs.tenants.setdefault(row.tenant_id, request["tenant"])
    reading.specs.work[row.id] = request["work"]
    spec = reading.specs.spec(row)
    if spec is None:
        raise InputError(
            "can never run here", field="model", value=row.model, remedy="Name another model."
        )
    needs = frozenset(request["after"]) & frozenset(present.job_ids)
    return with_job(present, replace(spec, submitted_at=present.now), after=needs), row.id


def _with_changes(reading: Reading, present: Present, changes: ClusterChangesBody) -> Present:
    taken = {node.id for node in present.cluster.nodes}
    added = list(_nodes(changes.add_nodes, taken))
    if changes.drain_nodes or added:
        present = with_nodes(present, drained=changes.drain_nodes, added=added)
    present = replace(present, stability=replace(present.stability, **changes.bounds))
    parts = _parts_after(reading, changes)
    return (
        present if parts == reading.snapshot.cluster.parts else with_policy(present, *parts.built())
    )


def _parts_after(reading: Reading, changes: ClusterChangesBody | None) -> Parts:
    """Return what would decide and place, as a change of the cluster itself would have it."""
    parts = reading.snapshot.cluster.parts
    return parts if changes is None else parts.changed(**changes.parts)


def _nodes(bodies: list[NodeBody], taken: set[str]) -> list[Node]:
    """Return new nodes under names of their own."""
    found: list[Node] = []
    for body in bodies:
        for _ in range(body.count):
            number = len(found)
            while (name := f"added-{number}") in taken:
                number += 1
            taken.add(name)
            found.append(Node(name, body.gpu_type, body.gpu_count))
    return found


def _result(
    before: Forecast,
    after: Forecast,
    job_id: JobId | None,
    *,
    sides: tuple[dict[str, Any], dict[str, Any]],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return the answer as it is kept: cluster seconds, jobs by id.

    `sides`: what decides, places and bounds moves, before and after.
    """
    job = None
    if job_id is not None:
        job = latest_of(after.jobs[job_id], after.now)
    moved = [one for one in slowed(before, after) if max(abs(one.p50), abs(one.p90)) >= 1.0]
    named = _ends_of(moved, MOST_SLOWED)
    return {
        "made_seconds": after.now,
        "draws": min(len(before.draws), len(after.draws)),
        "job": job,
        "slowed": [[one.job_id, _finite(one.p50), _finite(one.p90), one.share] for one in named],
        "times": {
            one.job_id: [latest_of(side.jobs[one.job_id], side.now) for side in (before, after)]
            for one in _ends_of(named, MOST_TIMED)
        },
        "before": _side(before, after) | sides[0],
        "after": _side(after, before) | sides[1],
        "notes": list(notes),
    }


def _ends_of(found: list[Slowed], most: int) -> list[Slowed]:
    """Return the first and the last of them, at most so many of each."""
    return found[:most] + found[most:][-most:]


def _finite(seconds: float) -> float:
    """Return a difference for which there is a number: beyond the horizon it is the horizon's."""
    most = 14 * 86_400.0
    return min(max(seconds, -most), most)


def _side(found: Forecast, other: Forecast) -> dict[str, Any]:
    """Sum up a side. Its means are of the jobs that have such times on both sides.

    Mean start and mean end of the jobs that wait are of the same jobs.
    """
    ends, starts = _ends(found), _starts(found)
    common = ends.keys() & _ends(other).keys()
    waiting = common & starts.keys() & _starts(other).keys()
    return {
        "jobs": len(found.jobs),
        "later": len(found.jobs) - len(ends),
        "waiting": len(waiting),
        "ending": len(common),
        "mean_start_seconds": _mean(starts[job_id] for job_id in waiting),
        "mean_end_of_waiting_seconds": _mean(ends[job_id] for job_id in waiting),
        "mean_end_seconds": _mean(ends[job_id] for job_id in common),
        "last_end_seconds": max(ends.values()) if len(ends) == len(found.jobs) > 0 else None,
    }


def _mean(seconds: Iterable[float]) -> float | None:
    some = sorted(seconds)  # the same sum in any order of a set
    return sum(some) / len(some) if some else None


def _ends(found: Forecast) -> dict[JobId, float]:
    return {i: one.end.p50 for i, one in found.jobs.items() if one.end.p50 is not None}


def _starts(found: Forecast) -> dict[JobId, float]:
    """When jobs start that hold no GPUs."""
    starts = {i: one.start for i, one in found.jobs.items() if one.start is not None}
    return {job_id: start.p50 for job_id, start in starts.items() if start.p50 is not None}


def _looking(database: Database, asked: WhatIf) -> Callable[[], None]:
    begun, next_look = time.thread_time(), time.monotonic()

    def look() -> None:
        nonlocal next_look
        now = time.monotonic()
        if time.thread_time() - begun > MOST_SECONDS:
            raise OutOfTime
        if now > next_look:
            next_look = now + LOOK_SECONDS
            if is_cancel_requested(database, asked.operation_id):
                raise _Cancelled

    return look


def _tell(database: Database, asked: WhatIf, done: int) -> None:
    with database.session_scope() as session:
        message = f"Futures are being played, {PLAYED} at most."
        OPERATIONS.beat(session, Claim(asked.operation_id), done=float(done), message=message)


def _store_so_far(database: Database, asked: WhatIf, result: dict[str, Any]) -> None:
    """Store an answer that may still be refined, unless the question has ended meanwhile."""
    with database.session_scope() as session:
        if OPERATIONS.beat(session, Claim(asked.operation_id)):
            _keep(session, asked.id, result)


def _store(
    database: Database,
    asked: WhatIf,
    result: dict[str, Any] | None,
    state: OperationState,
    *,
    message: str,
    error: dict[str, Any] | None,
) -> None:
    with database.session_scope() as session:
        if state is not OperationState.CANCELLED:  # that keeps what was told until then
            _keep(session, asked.id, result)
        finish(session, asked.operation_id, state, message=message, error=error)


def _keep(session: Session, forecast_id: str, result: dict[str, Any] | None) -> None:
    row = session.get_one(WhatIf, forecast_id)
    row.result = result
    session.add(row)
    session.flush()


def _problem(problem: Problem, asked: WhatIf) -> dict[str, Any]:
    return problem.as_json(instance=f"/api/v1/operations/{asked.operation_id}", request_id="")
