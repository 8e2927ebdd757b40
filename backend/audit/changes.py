"""The one place through which every change that matters is written down.

A record is stored in the transaction of its change: there is neither without the other. It holds
no secret: neither passwords, tokens, nor their digests.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

import sqlalchemy as sa
from sqlmodel import Session

from backend.accounts.models import User
from backend.accounts.principals import Principal
from backend.asking import asking
from backend.audit.models import AuditRecord
from backend.clocktime import utc_now
from backend.database import after_commit
from backend.ids import new_id
from maat.api.fields import rfc3339
from maat.vocabulary import ActorKind, TargetKind

log = logging.getLogger(__name__)

Shown = Mapping[str, object]

_INSERT = sa.insert(AuditRecord)

_KINDS = {
    "usr": TargetKind.USER,
    "ten": TargetKind.TENANT,
    "tok": TargetKind.TOKEN,
    "ses": TargetKind.SESSION,
    "clu": TargetKind.CLUSTER,
    "node": TargetKind.NODE,
    "res": TargetKind.RESERVATION,
    "pri": TargetKind.PRICE,
    "rsc": TargetKind.REPORT_SCHEDULE,
    "whk": TargetKind.WEBHOOK,
    "job": TargetKind.JOB,
}


@dataclass(frozen=True)
class Actor:
    """Who did something: a user, a program of Maat, or a visitor who is not signed in."""

    kind: ActorKind
    name: str
    id: str | None = None
    tenant_id: str | None = None
    credential: str | None = None

    def __str__(self) -> str:
        return self.name if self.credential is None else f"{self.name} ({self.credential})"


VISITOR = Actor(ActorKind.VISITOR, "a visitor")


@dataclass(frozen=True)
class Change:
    """What was done to which row.

    `target`: its id, or empty if there is none. `tenant_id`: the tenant whose managers may read of
    it; None: only who sees all tenants may.
    """

    actor: Actor
    action: str
    target: str
    before: Shown = field(default_factory=dict)
    after: Shown = field(default_factory=dict)
    tenant_id: str | None = None


def program(name: str) -> Actor:
    return Actor(ActorKind.PROGRAM, name)


def actor_of(principal: Principal) -> Actor:
    return Actor(
        ActorKind.USER,
        principal.user_name,
        principal.user_id,
        principal.tenant_id,
        principal.credential.id,
    )


def as_user(user: User) -> Actor:
    return Actor(ActorKind.USER, user.name, user.id, user.tenant_id)


def asker() -> Actor:
    """Return who sends the request that is worked on; outside one, Maat itself."""
    request = asking()
    if request is None:
        return program("maat")
    return VISITOR if request.principal is None else actor_of(request.principal)


def record(session: Session, change: Change) -> None:
    """Write a change down in its own transaction; log it once that is committed."""
    # No caller reads the row again. A statement costs a fraction of what a mapped object costs.
    session.flush()
    session.connection().execute(_INSERT, record_row(change))
    after_commit(session, lambda: _log(change))


def record_row(change: Change) -> dict[str, object]:
    """Return a change as its row, for who makes statements ready before their transaction."""
    request, actor = asking(), change.actor
    return {
        "id": new_id("aud"),
        "at": utc_now(),
        "actor_kind": actor.kind.value,
        "actor_id": actor.id,
        "actor_name": actor.name,
        "actor_tenant_id": actor.tenant_id,
        "credential": actor.credential,
        "tenant_id": change.tenant_id,
        "action": change.action,
        "target_kind": kind_of(change.target).value,
        "target_id": change.target,
        "before": _plain(change.before),
        "after": _plain(change.after),
        "request_id": None if request is None else request.request_id,
    }


def kind_of(target: str) -> TargetKind:
    """Return what an id is of, by its prefix."""
    return _KINDS.get(target.partition("_")[0], TargetKind.NONE)


def _log(change: Change) -> None:
    log.info(
        "%s: %s %s, before %s, after %s",
        change.actor,
        change.action,
        change.target,
        dict(change.before),
        dict(change.after),
    )


def _plain(shown: Shown) -> dict[str, object]:
    return {name: _json(value) for name, value in shown.items()}


def _json(value: object) -> object:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, date):
        return value.isoformat()
    return value
