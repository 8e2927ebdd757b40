"""Reads job rows and their parts. Commits nothing.

One predicate selects rows, totals and state counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant, User
from backend.clusters.models import Cluster
from backend.columns import WithoutIndex
from backend.jobs.counting import Counting, counted, kept_counts, matching_counts
from backend.jobs.models import Job, JobAllocation, JobCount, JobEvent, JobFlag
from backend.pagination import Branch, Listed, Order, Rows, paginate
from backend.problems import NotFound
from maat.vocabulary import JobState

# Jobs with equal first keys follow by submission, then by id, as the index holds them (models.py).
SORT_KEYS: Mapping[str, tuple[Any, ...]] = {
    "submitted_at": (Job.submitted_seconds,),
    "name": (Job.name,),
    "model": (Job.model, Job.submitted_seconds),
    "state": (Job.state, Job.submitted_seconds),
    "progress": (Job.progress,),
    "gpu_hours": (Job.gpu_seconds,),
    "restarts": (Job.restarts,),
}
_CHANGE_IN_ROUNDS = frozenset({"state", "progress", "gpu_hours", "restarts"})
_KINDS = frozenset({"tenant_id", "cluster_id", "owner_id", "model", "state"})
_MOST_BRANCHES = 60
_KEPT_LISTS = 128
_FLAGGED = select(JobFlag.job_id).where(col(JobFlag.dismissed_at).is_(None))


@dataclass(frozen=True)
class JobFilters:
    """Which jobs to select. An empty collection or None filters nothing."""

    cluster: str | None = None
    states: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    owner: str | None = None
    models: tuple[str, ...] = ()
    gpu_types: tuple[str, ...] = ()
    text: str | None = None
    submitted_after: datetime | None = None
    submitted_before: datetime | None = None
    labels: tuple[str, ...] = ()
    array: str | None = None
    flagged: bool = False


def get_job(session: Session, principal: Principal, job_id: str, *, lock: bool = False) -> Job:
    """Find a job.

    Raises NotFound for another tenant's job too, to hide that it exists.
    """
    statement = select(Job).where(Job.id == job_id)
    job = session.exec(statement.with_for_update() if lock else statement).first()
    if job is None or not principal.may_see(job.tenant_id):
        raise NotFound(f"There is no job {job_id!r}.")
    return job


def find_jobs(
    session: Session, found: FoundJobs, sort: str, *, limit: int, cursor: str | None, skip: int = 0
) -> Rows[Job]:
    """Return one page.

    `sort`: a name of SORT_KEYS, with a leading `-` for descending. `skip`: rows to pass over.
    """
    return _listed(found, sort).page(session, limit=limit, cursor=cursor, skip=skip)


@lru_cache(maxsize=_KEPT_LISTS)
def _listed(found: FoundJobs, sort: str) -> Listed[Job]:
    """Make the list. Pages that are open ask for the same few lists again and again."""
    described = {**vars(found.filters), "sort": sort, "for": found.tenant_id or "all"}
    return Listed(
        select(Job).where(found.predicate(Job)),
        order=_order(sort, found.clusters),
        filters=described,
        branches=_branches(found, sort.removeprefix("-")),
        only_shown=True,
    )


def count_by_state(session: Session, found: FoundJobs) -> dict[str, int]:
    """Count all matching jobs by state.

    Uses the stored counts if they know the filters, otherwise counts the matching jobs.
    """
    filters = found.filters
    dates = (filters.submitted_after, filters.submitted_before)
    of_jobs = (filters.gpu_types, filters.text, filters.labels, *dates)
    if any(of_jobs) or filters.array is not None or filters.flagged:
        return counted(session, matching_counts(found.predicate(Job)))
    return counted(session, _counts(found))


@lru_cache(maxsize=_KEPT_LISTS)
def _counts(found: FoundJobs) -> Counting:
    return kept_counts(found.predicate(JobCount))


class _Epoch(NamedTuple):
    """A cluster, and the date that its time counts from."""

    id: str
    epoch: datetime


@dataclass(frozen=True)
class FoundJobs:
    """The jobs of a list: filters as ids, and what the principal may see.

    One predicate for rows, totals and counts. Equal ones have the same list. `tenant_id`: whose
    jobs the principal sees; None: of all tenants. `clusters`: those that the list may cover.
    """

    filters: JobFilters
    tenant_id: str | None
    clusters: tuple[_Epoch, ...]
    tenant_ids: tuple[str, ...]
    owner_ids: tuple[str, ...]

    @classmethod
    def of(
        cls,
        session: Session,
        filters: JobFilters,
        principal: Principal,
        clusters: Sequence[Cluster],
    ) -> FoundJobs:
        """Resolve the filters."""
        tenants, owners = (
            _named(session, Tenant, filters.tenants),
            _named(session, User, (filters.owner,) if filters.owner else ()),
        )
        seen = None if principal.sees_all_tenants else principal.tenant_id
        epochs = tuple(_Epoch(cluster.id, cluster.epoch) for cluster in clusters)
        return cls(filters, seen, epochs, tenants, owners)

    def predicate(
        self, table: type[Job] | type[JobCount], *, without_index: Collection[str] = ()
    ) -> sa.ColumnElement[bool]:
        """Build the condition. `without_index`: columns whose index must not be used."""
        found = ((getattr(table, name), name, values) for name, values in self._of_kinds())
        conditions = [
            (WithoutIndex(column) if name in without_index else col(column)).in_(values)
            for column, name, values in found
        ]
        return sa.and_(sa.true(), *conditions, *(self._of_jobs() if table is Job else ()))

    def _of_kinds(self) -> Iterable[tuple[str, Sequence[str]]]:
        """Yield columns that jobs and their counts share, with the allowed values."""
        filters = self.filters
        if self.tenant_id is not None:
            yield "tenant_id", [self.tenant_id]
        if filters.cluster is not None:
            yield "cluster_id", [cluster.id for cluster in self.clusters]
        if filters.tenants:
            yield "tenant_id", self.tenant_ids
        if filters.owner is not None:
            yield "owner_id", self.owner_ids
        if filters.states:
            yield "state", filters.states
        if filters.models:
            yield "model", filters.models

    def _of_jobs(self) -> Iterable[sa.ColumnElement[bool]]:
        filters = self.filters
        if filters.array is not None:
            yield col(Job.array_id) == filters.array
        if filters.flagged:
            yield col(Job.id).in_(_FLAGGED)
        if filters.gpu_types:
            yield col(Job.gpu_type).in_(filters.gpu_types)
        if filters.text:
            named = (
                col(c).icontains(filters.text, autoescape=True) for c in (Job.name, Job.external_id)
            )
            ids = (col(Job.id) == filters.text, col(Job.array_id) == filters.text)
            yield sa.or_(*named, *ids)
        for label in filters.labels:
            key, _, value = label.partition("=")
            yield col(Job.labels)[key].as_string() == value
        after, before = filters.submitted_after, filters.submitted_before
        if after is not None or before is not None:
            within = (_submitted_within(cluster, after, before) for cluster in self.clusters)
            yield sa.or_(sa.false(), *within)


def _named(
    session: Session, table: type[Tenant] | type[User], wanted: Sequence[str]
) -> tuple[str, ...]:
    """Return the ids of the rows with these ids or names."""
    return (
        tuple(
            session.exec(
                select(table.id).where(col(table.name).in_(wanted) | col(table.id).in_(wanted))
            )
        )
        if wanted
        else ()
    )


def _submitted_within(
    cluster: _Epoch, after: datetime | None, before: datetime | None
) -> sa.ColumnElement[bool]:
    at = col(Job.submitted_seconds)
    conditions = [col(Job.cluster_id) == cluster.id]
    if after is not None:
        conditions.append(at > (after - cluster.epoch).total_seconds())
    if before is not None:
        conditions.append(at < (before - cluster.epoch).total_seconds())
    return sa.and_(*conditions)


def _order(sort: str, clusters: Sequence[_Epoch]) -> Order:
    """Return the order. Dates of several clusters compare as they are shown."""
    name = sort.removeprefix("-")
    keys = SORT_KEYS[name]
    if name == "submitted_at" and len(clusters) > 1:
        epochs = {cluster.id: cluster.epoch.timestamp() for cluster in clusters}
        keys = (col(Job.submitted_seconds) + sa.case(epochs, value=col(Job.cluster_id), else_=0.0),)
    return Order([*keys, col(Job.id)], descending=sort.startswith("-"))


def _branches(found: FoundJobs, sort: str) -> list[Branch]:
    """Return the parts of the list that an index holds in the list's order.

    An index has no order across several clusters, states, models or tenants, nor by columns that
    rounds change (active jobs are sorted; they are few). Returns one part if there would be too
    many.
    """
    filters = found.filters
    if filters.array is not None or filters.flagged:  # few jobs, which an index of their own finds
        return [Branch(found.predicate(Job, without_index=_KINDS), few=True)]
    without_index = _unused_indexes(filters)
    split = {
        name: wanted
        for name, wanted in (
            ("state", filters.states),
            ("model", filters.models),
            ("tenant_id", found.tenant_ids),
        )
        if len(wanted) > 1 and not filters.gpu_types
    }
    ended = [Branch(found.predicate(Job, without_index={*without_index, *split}))]
    under_way: list[Branch] = []
    if sort in _CHANGE_IN_ROUNDS or filters.states:
        under_way = [
            Branch(sa.and_(found.predicate(Job, without_index=_KINDS), _under_way()), few=True)
        ]
        ended = [part.within(col(Job.finished_seconds).is_not(None)) for part in ended]
    for name, wanted in split.items():
        ended = [
            part.within(col(getattr(Job, name)) == value) for part in ended for value in wanted
        ]
    parts = [*under_way, *ended]
    if sort == "submitted_at" and len(found.clusters) > 1:
        parts = [
            _in_cluster(part, cluster, bool(without_index))
            for part in parts
            for cluster in found.clusters
        ]
    return parts if len(parts) <= _MOST_BRANCHES else []


def _unused_indexes(filters: JobFilters) -> Collection[str]:
    """Return the columns whose index selects more rows than another filter's."""
    if filters.gpu_types:
        return _KINDS
    if filters.owner is not None:
        return _KINDS - {"owner_id"}
    return {"cluster_id"} if filters.states or filters.models else ()


def _in_cluster(part: Branch, cluster: _Epoch, without_index: bool) -> Branch:
    of_cluster = part.within(
        (WithoutIndex(Job.cluster_id) if without_index else col(Job.cluster_id)) == cluster.id
    )
    return replace(of_cluster, column=col(Job.submitted_seconds), offset=cluster.epoch.timestamp())


def _under_way() -> sa.ColumnElement[bool]:
    """Select active jobs: ended jobs hold nothing, and an index has this condition."""
    return col(Job.finished_seconds).is_(None)


def taken_external_ids(session: Session, tenant_id: str, wanted: Iterable[str]) -> dict[str, str]:
    """Return the ids of the tenant's jobs that have one of these external ids."""
    statement = select(Job.external_id, Job.id).where(
        Job.tenant_id == tenant_id, col(Job.external_id).in_(list(wanted))
    )
    return {
        external: job_id for external, job_id in session.exec(statement) if external is not None
    }


def allocations_of(
    session: Session, job_id: str, *, limit: int, cursor: str | None
) -> Rows[JobAllocation]:
    statement = select(JobAllocation).where(JobAllocation.job_id == job_id)
    filters = {"list": "allocations", "job": job_id}
    return paginate(
        session,
        statement,
        order=Order([col(JobAllocation.id)]),
        filters=filters,
        limit=limit,
        cursor=cursor,
    )


def last_failure(session: Session, job_id: str) -> JobEvent | None:
    """Return the event of a command's failure; None if the job did not fail as a command."""
    failed = (JobEvent.job_id == job_id, JobEvent.state == JobState.FAILED.value)
    newest = select(JobEvent).where(*failed).order_by(col(JobEvent.id).desc()).limit(1)
    found = session.exec(newest).first()
    return found if found is not None and "attempt" in found.data else None


def last_setback(session: Session, job_id: str) -> JobEvent | None:
    """Return the event by which a job last lost its GPUs; None if it never did."""
    lost = (JobEvent.job_id == job_id, JobEvent.state == JobState.PREEMPTED.value)
    newest = select(JobEvent).where(*lost).order_by(col(JobEvent.id).desc()).limit(1)
    return session.exec(newest).first()


def events_of(session: Session, job_id: str, *, limit: int, cursor: str | None) -> Rows[JobEvent]:
    statement = select(JobEvent).where(JobEvent.job_id == job_id)
    filters = {"list": "events", "job": job_id}
    return paginate(
        session,
        statement,
        order=Order([col(JobEvent.id)]),
        filters=filters,
        limit=limit,
        cursor=cursor,
    )
