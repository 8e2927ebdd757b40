"""Which jobs must succeed before another starts: named, checked, stored. Commits nothing.

A job of the caller's tenant is named by its id or external id; another of the same request also by
its place, as `#0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from backend.jobs.candidates import Candidate
from backend.jobs.models import Job, JobDependency
from backend.problems import FieldError
from maat.scheduling.explain import ReasonCode
from maat.vocabulary import JobState

NEVER_SUCCEEDS = frozenset({JobState.FAILED.value, JobState.CANCELLED.value})
_MOST_HELD = 5
_ASKED_AT_ONCE = 5000  # names, each twice: databases limit the parameters of a statement
_REMEDY = "Name a job of your tenant by its id or external id, or one of this request as #0."


class Hold(NamedTuple):
    """Why a job goes on only after a person acted, and the action."""

    why: str
    action: str


def check_dependencies(session: Session, tenant_id: str, candidates: Sequence[Candidate]) -> None:
    """Resolve what each job waits for, and record what is wrong with it."""
    wanted = {name for one in candidates if one.body is not None for name in one.body.after}
    if not wanted:
        return
    known = _jobs_named(session, tenant_id, wanted)
    siblings = {f"#{one.index}": one.index for one in candidates}
    siblings |= {
        one.body.external_id: one.index
        for one in candidates
        if one.body is not None and one.body.external_id is not None
    }
    for one in candidates:
        if one.body is not None:
            one.needs = list(_resolved(one, siblings, known))
    circle = _circle({one.index: _siblings(one) for one in candidates})
    for index in circle:
        one = candidates[index]
        message, remedy = _circle_error([_called(candidates[number]) for number in circle])
        one.errors.append(FieldError("/after", "circle", message, remedy, _called(one)))
    refuse_followers(candidates)


def rows_of_needs(job: Job) -> list[dict[str, Any]]:
    """Return the rows of JobDependency of a new job, one for each that it waits for."""
    of = {"job_id": job.id, "cluster_id": job.cluster_id, "is_open": True}
    return [of | {"needed_id": need} for need in dict.fromkeys(job.after)]


def failed_needs(session: Session, job_id: str) -> list[str]:
    """Return the jobs that this one waits for and that will never succeed."""
    statement = (
        select(JobDependency.needed_id)
        .join(Job, col(Job.id) == col(JobDependency.needed_id))
        .where(
            JobDependency.job_id == job_id,
            col(JobDependency.is_open),
            col(Job.state).in_(NEVER_SUCCEEDS),
        )
    )
    return list(session.exec(statement))


def open_needs(session: Session, job_id: str) -> list[Job]:
    """Return the jobs that this one waits for."""
    statement = (
        select(Job)
        .join(JobDependency, col(JobDependency.needed_id) == col(Job.id))
        .where(JobDependency.job_id == job_id, col(JobDependency.is_open))
        .order_by(col(Job.id))
    )
    return list(session.exec(statement))


def follows_others(job: Job) -> bool:
    """Return whether a job that nobody paused waits until other jobs have succeeded."""
    waits = job.reason_code == ReasonCode.WAITING_DEPENDENCY
    return job.state == JobState.PAUSED and waits and not job.pause_requested


def held_forerunners(session: Session, job_id: str) -> list[Job]:
    """Return the jobs that this one waits for, also through others, and that wait for a person.

    They are paused, or follow a job that will never succeed.
    """
    needed = col(JobDependency.needed_id)
    nearest = (
        sa.select(needed.label("id"))
        .where(col(JobDependency.job_id) == job_id, col(JobDependency.is_open))
        .cte("forerunners", recursive=True)
    )
    further = sa.select(needed).where(
        col(JobDependency.job_id) == nearest.c.id, col(JobDependency.is_open)
    )
    forerunners = nearest.union(further)
    statement = (
        select(Job)
        .where(
            col(Job.id).in_(sa.select(forerunners.c.id)),
            col(Job.finished_seconds).is_(None),
            col(Job.pause_requested) | has_failed_needs(),
        )
        .order_by(col(Job.id))
        .limit(_MOST_HELD)
    )
    return list(session.exec(statement))


def hold_of(forerunner: Job) -> Hold:
    """Return what holds one of `held_forerunners`."""
    if forerunner.pause_requested:
        return Hold("is paused", "resume")
    return Hold("follows a job that has not succeeded", "release")


def drop_failed_needs(session: Session, job_ids: Sequence[str]) -> None:
    """Let these jobs no longer wait for what will never succeed."""
    ended = sa.select(col(Job.id)).where(
        col(Job.id) == col(JobDependency.needed_id), col(Job.state).in_(NEVER_SUCCEEDS)
    )
    session.execute(
        sa.update(JobDependency)
        .where(
            col(JobDependency.job_id).in_(job_ids),
            col(JobDependency.is_open),
            sa.exists(ended),
        )
        .values(is_open=False)
        .execution_options(synchronize_session=False)
    )


def has_failed_needs() -> sa.ColumnElement[bool]:
    """Select the jobs that wait for one that will never succeed."""
    needed: Any = aliased(Job)
    return sa.exists().where(
        col(JobDependency.job_id) == col(Job.id),
        col(JobDependency.is_open),
        col(needed.id) == col(JobDependency.needed_id),
        col(needed.state).in_(NEVER_SUCCEEDS),
    )


def _jobs_named(
    session: Session, tenant_id: str, wanted: set[str]
) -> Mapping[str, tuple[str, str]]:
    """Return id and state of the tenant's jobs, by the id or external id that names them."""
    names, known = sorted(wanted), dict[str, tuple[str, str]]()
    for first in range(0, len(names), _ASKED_AT_ONCE):
        some = names[first : first + _ASKED_AT_ONCE]
        found = session.exec(
            select(Job.id, Job.external_id, Job.state).where(
                Job.tenant_id == tenant_id,
                col(Job.id).in_(some) | col(Job.external_id).in_(some),
            )
        )
        for job_id, external_id, state in found:
            known |= {name: (job_id, state) for name in (external_id, job_id) if name is not None}
    return known


def _resolved(
    one: Candidate, siblings: Mapping[str, int], known: Mapping[str, tuple[str, str]]
) -> Iterator[str | int]:
    if one.body is None:
        return
    for place, name in enumerate(one.body.after):
        pointer = f"/after/{place}"
        if name in siblings:
            yield siblings[name]
        elif name not in known:
            message = "There is no such job."
            one.errors.append(FieldError(pointer, "no_such_job", message, _REMEDY, name))
        elif known[name][1] in NEVER_SUCCEEDS:
            message = f"The job has ended: {known[name][1]}. It will never succeed."
            remedy = "Leave it out, or name a job that may succeed."
            one.errors.append(FieldError(pointer, "never_succeeds", message, remedy, name))
        else:
            yield known[name][0]


def _siblings(one: Candidate) -> list[int]:
    return [need for need in one.needs if isinstance(need, int)]


def _circle(needs: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the first circle of jobs that wait for each other; empty if there is none."""
    settled: set[int] = set()
    for start in needs:
        path, on_path = [start], {start}
        ways = [iter(needs[start])]
        while ways:
            following = next(ways[-1], None)
            if following is None:
                ways.pop()
                done = path.pop()
                on_path.discard(done)
                settled.add(done)
            elif following in on_path:
                return path[path.index(following) :]
            elif following not in settled:
                path.append(following)
                on_path.add(following)
                ways.append(iter(needs[following]))
    return []


def _circle_error(circle: Sequence[str]) -> tuple[str, str]:
    """Return what is wrong with a circle of jobs, and the remedy."""
    if len(circle) == 1:
        return f"{circle[0]} waits for itself.", "Take it out."
    way = " -> ".join([*circle, circle[0]])
    return f"The jobs wait for each other: {way}.", "Take one of these out."


def _called(one: Candidate) -> str:
    """Return what names a job in its request: its external id, or its place."""
    given = None if one.body is None else one.body.external_id
    return f"#{one.index}" if given is None else given


def refuse_followers(candidates: Sequence[Candidate]) -> None:
    """Refuse what waits for a job of the request that cannot be used, step by step."""
    left = True
    while left:
        left = False
        for one in candidates:
            bad = next((need for need in _siblings(one) if not candidates[need].usable), None)
            if one.usable and bad is not None:
                name = _called(candidates[bad])
                message = f"It waits for job {name} of this request, which cannot be used."
                remedy = "Correct that one, or leave it out."
                one.errors.append(FieldError("/after", "needs_refused", message, remedy, name))
                left = True
