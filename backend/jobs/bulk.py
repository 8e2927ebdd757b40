"""One action on all jobs that a filter matches. Commits nothing.

All of it is one transaction of a few statements, so that it is done whole or not at all. It writes
wishes into rows; rounds carry them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.accounts.permissions import ACTS_FOR_TENANT, Permission
from backend.accounts.principals import Principal, check_permitted
from backend.audit.changes import Change, actor_of, record
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.clusters.repository import all_clusters, get_cluster
from backend.columns import json_text
from backend.jobs.changing import name_towards
from backend.jobs.dependencies import drop_failed_needs, has_failed_needs
from backend.jobs.models import Job, JobEvent
from backend.jobs.permits import permit_priority, permit_weight
from backend.jobs.repository import FoundJobs, JobFilters
from backend.moments import moment_of
from backend.problems import Conflict, FieldError, Invalid
from maat.api.bulk import PREVIEWED, BulkBody
from maat.scheduling.events import EventKind
from maat.vocabulary import MOST_LABELS

_JOBS: sa.Table = Job.__table__  # type: ignore[attr-defined]
_READ = ("id", "cluster_id", "tenant_id", "state", "labels", "pause_requested")
_AT_ONCE = 5000  # ids: databases limit the parameters of a statement


@dataclass(frozen=True)
class BulkPlan:
    """The jobs that an action changes, by state, and those that match and that it does not."""

    by_state: Mapping[str, int]
    unchanged: int
    not_yours: int
    first: Sequence[Job]

    @property
    def count(self) -> int:
        return sum(self.by_state.values())


def check_allowed(principal: Principal, body: BulkBody) -> None:
    """Raises Forbidden, OutOfScope."""
    if body.action == "cancel":
        check_permitted(principal, Permission.JOBS_CANCEL)
    if body.priority is not None:
        permit_priority(principal, body.priority)
    if body.weight is not None:
        permit_weight(principal, body.weight)


def plan_bulk(session: Session, principal: Principal, body: BulkBody) -> BulkPlan:
    """Return what the action would change."""
    matched = _matched(session, principal, body)
    mine, changes = _may_change(principal), _changes(body)
    by_state = dict(
        session.execute(
            sa.select(col(Job.state), func.count())
            .where(matched, mine, changes)
            .group_by(col(Job.state))
            .order_by(col(Job.state))
        ).all()
    )
    all_of, own = session.execute(
        sa.select(func.count(), func.sum(sa.case((mine, 1), else_=0))).where(matched)
    ).one()
    newest = (
        select(Job)
        .where(matched, mine, changes)
        .order_by(col(Job.submitted_seconds).desc(), col(Job.id).desc())
    )
    return BulkPlan(
        by_state,
        unchanged=int(own or 0) - sum(by_state.values()),
        not_yours=int(all_of) - int(own or 0),
        first=session.exec(newest.limit(PREVIEWED)).all(),
    )


def carry_out(session: Session, principal: Principal, body: BulkBody) -> dict[str, int]:
    """Change the jobs that match now; return how many, by the state that they were in.

    Raises Conflict if they are not as many as expected, Invalid if one would have too many labels.
    """
    target = sa.and_(_matched(session, principal, body), _may_change(principal), _changes(body))
    # In the order in which rounds write jobs, so that neither waits for the other in a circle.
    found = session.execute(
        sa.select(*(_JOBS.c[name] for name in _READ))
        .where(target)
        .order_by(_JOBS.c.submitted_seconds, _JOBS.c.id)
        .with_for_update()
    ).all()
    check_count(body, len(found))
    if body.labels is not None:
        _set_labels(session, found, body.labels)
    else:
        values = _values(body)
        for some in _portions(found):
            if body.action in _RESUMES:
                held = [row.id for row in some if not row.pause_requested]
                drop_failed_needs(session, held)
            mine = _JOBS.c.id.in_([row.id for row in some])
            version = {"version": _JOBS.c.version + 1}
            for tenant_id in {row.tenant_id for row in some} if body.action in _PAUSES else {None}:
                whose = () if tenant_id is None else (_JOBS.c.tenant_id == tenant_id,)
                by = {} if tenant_id is None else {"paused_by": name_towards(principal, tenant_id)}
                session.execute(
                    sa.update(_JOBS).where(mine, *whose).values(**values, **by, **version)
                )
    _note(session, principal, body, found)
    _record(session, principal, body, found)
    return dict(sorted(Counter(row.state for row in found).items()))


def check_count(body: BulkBody, count: int) -> None:
    """Raises Conflict if another number of jobs is expected."""
    if body.expected_count is not None and body.expected_count != count:
        raise Conflict(
            f"{count} jobs would change, and {body.expected_count} were expected: some came, ended "
            "or changed since. Nothing was done. Look at the preview again."
        )


_PAUSES, _RESUMES = frozenset({"pause", "hold"}), frozenset({"resume", "release"})


def _matched(session: Session, principal: Principal, body: BulkBody) -> sa.ColumnElement[bool]:
    """Select the living jobs that the filter matches; their index, no other, is used."""
    given = body.filter
    clusters = (
        all_clusters(session) if given.cluster is None else [get_cluster(session, given.cluster)]
    )
    filters = JobFilters(
        cluster=given.cluster,
        states=tuple(sorted(given.state)),
        tenants=tuple(given.tenant),
        owner=given.owner,
        models=tuple(given.model),
        gpu_types=tuple(given.gpu_type),
        text=given.q,
        submitted_after=given.submitted_after,
        submitted_before=given.submitted_before,
        labels=tuple(given.label),
        array=given.array,
    )
    found = FoundJobs.of(session, filters, principal, clusters)
    kinds = {"tenant_id", "owner_id", "model", "state"}
    matched = sa.and_(
        found.predicate(Job, without_index=kinds), col(Job.finished_seconds).is_(None)
    )
    return sa.and_(matched, col(Job.id).in_(given.ids)) if given.ids else matched


def _may_change(principal: Principal) -> sa.ColumnElement[bool]:
    """The same as Principal.may_change, of jobs that the principal sees."""
    if principal.role in ACTS_FOR_TENANT:
        return sa.true()
    return col(Job.owner_id) == principal.user_id


def _changes(body: BulkBody) -> sa.ColumnElement[bool]:
    """Select the jobs that the action would change."""
    ends, paused = col(Job.cancel_requested), col(Job.pause_requested)
    match body.action:
        case "cancel":
            return ~ends
        case "pause":
            return sa.and_(~paused, ~ends)
        case "hold":
            return sa.and_(~paused, ~ends, col(Job.gpu_type).is_(None))
        case "resume" | "release":
            return sa.and_(sa.or_(paused, has_failed_needs()), ~ends)
        case "priority":
            return col(Job.priority) != body.priority
        case "weight":
            return col(Job.weight) != body.weight
        case "label":
            return sa.or_(*(_differs(key, value) for key, value in (body.labels or {}).items()))


def _differs(key: str, value: str | None) -> sa.ColumnElement[bool]:
    now = col(Job.labels)[key].as_string()
    return now.is_not(None) if value is None else sa.or_(now.is_(None), now != value)


def _values(body: BulkBody) -> Mapping[str, Any]:
    match body.action:
        case "cancel":
            return {"cancel_requested": True}
        case "pause" | "hold":
            return {"pause_requested": True}
        case "resume" | "release":
            return {"pause_requested": False, "paused_by": None}
        case _:
            return {**_declared(body), "declared_version": _JOBS.c.declared_version + 1}


def _declared(body: BulkBody) -> Mapping[str, Any]:
    """Return what the action sets of the declaration that rounds read."""
    return body.model_dump(include={"priority", "weight"}, exclude_none=True)


def _set_labels(session: Session, found: Sequence[Any], given: Mapping[str, str | None]) -> None:
    rows = []
    for row in found:
        labels = {k: v for k, v in {**row.labels, **given}.items() if v is not None}
        if len(labels) > MOST_LABELS:
            message = f"Job {row.id} would have {len(labels)} labels, and may have {MOST_LABELS}."
            remedy = "Remove some with null. Nothing was done."
            raise Invalid(message, errors=[FieldError("/labels", "too_many", message, remedy)])
        rows.append({"of_job": row.id, "new_labels": json_text(labels)})
    if rows:
        mine = _JOBS.c.id == sa.bindparam("of_job")
        values = {"labels": sa.bindparam("new_labels"), "version": _JOBS.c.version + 1}
        session.connection().execute(sa.update(_JOBS).where(mine).values(**values), rows)


def _note(session: Session, principal: Principal, body: BulkBody, found: Sequence[Any]) -> None:
    """Write into each job's history who asked for what; a cancelled job's end says enough."""
    if body.action == "cancel" or not found:
        return
    action = {"release": "resume"}.get(body.action, body.action)
    now = moment_of(session)
    at = {
        cluster_id: cluster_seconds(session.get_one(Cluster, cluster_id), now)
        for cluster_id in {row.cluster_id for row in found}
    }
    by = {row.tenant_id: name_towards(principal, row.tenant_id) for row in found}
    data = {
        tenant: json_text(
            {"action": action, "by": name, **_declared(body), **_label_texts(body.labels)}
        )
        for tenant, name in by.items()
    }
    session.connection().execute(
        sa.insert(JobEvent),
        [
            {
                "job_id": row.id,
                "cluster_id": row.cluster_id,
                "cluster_seconds": at[row.cluster_id],
                "kind": EventKind.ASKED.value,
                "data": data[row.tenant_id],
            }
            for row in found
        ],
    )


def _record(session: Session, principal: Principal, body: BulkBody, found: Sequence[Any]) -> None:
    """Write one change for the jobs of each tenant: what was asked for, and how many changed."""
    asked = body.model_dump(mode="json", exclude_none=True, exclude={"dry_run"})
    for tenant_id, count in Counter(row.tenant_id for row in found).items():
        after = {**asked, "jobs": count}
        actor = actor_of(principal)
        record(session, Change(actor, f"{body.action} jobs", tenant_id, {}, after, tenant_id))


def _label_texts(labels: Mapping[str, str | None] | None) -> Mapping[str, str]:
    return {key: "(none)" if value is None else value for key, value in (labels or {}).items()}


def _portions(rows: Sequence[Any]) -> Iterable[list[Any]]:
    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        yield some
