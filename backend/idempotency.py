"""Safe retries: a request with an Idempotency-Key is carried out once.

Its repetition gets the first answer again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar

from fastapi import Header
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from pydantic_core import to_jsonable_python
from sqlalchemy import delete, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.idempotency_models import IdempotencyKey
from backend.problems import IdempotencyMismatch, Problem
from backend.settings import Settings
from backend.web.dependencies import Reading

T = TypeVar("T")

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Repeat a request under the same key to get the first answer again "
        "instead of a second effect.",
    ),
]


@dataclass(frozen=True)
class Answer:
    """The answer to a request.

    `kept`: what repetitions get, if not the body: no secret is stored.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: Any = None

    def response(self, *, replayed: bool = False) -> JSONResponse:
        marker = {"Idempotency-Replayed": "true"} if replayed else {}
        return JSONResponse(
            to_jsonable_python(self.body),
            status_code=self.status,
            headers={**self.headers, **marker},
        )


@dataclass(frozen=True)
class Once:
    """One request as its key identifies it: who asks, on which route, for what.

    `request`: the body, or what holds it. It is recognised by the fields that are not at their
    default: so new ones may come while a client tries again. `hidden`: puts something in place of
    its secrets.
    """

    principal_id: str
    route: str
    key: str | None
    request: InitVar[Any]
    hidden: InitVar[Callable[[Any], Any]] = lambda request: request
    digest: str = field(init=False)
    whole_digest: str = field(init=False)
    """By all fields, as requests were recognised at first: of keys from before an upgrade."""

    def __post_init__(self, request: Any, hidden: Callable[[Any], Any]) -> None:
        """Take the digests now: what prepares the answer may change the request."""
        asked = self.key is not None
        digest = _digest(request, hidden, exclude_defaults=True) if asked else ""
        whole = _digest(request, hidden, exclude_defaults=False) if asked else ""
        object.__setattr__(self, "digest", digest)
        object.__setattr__(self, "whole_digest", whole)


def _digest(request: Any, hidden: Callable[[Any], Any], *, exclude_defaults: bool) -> str:
    shown = jsonable_encoder(request, by_alias=False, exclude_defaults=exclude_defaults)
    return hashlib.sha256(json.dumps(hidden(shown), sort_keys=True).encode()).hexdigest()


def answer_once(
    session: Session, once: Once, settings: Settings, answer: Callable[[], Answer]
) -> JSONResponse:
    """Carry the request out unless its key has been used.

    The key is written in the transaction of its request: a failed request leaves no key. A second
    request that arrives while the first is in progress waits for it in the database. Raises
    IdempotencyMismatch if the key was used for another request.
    """
    if once.key is None:
        return answer().response()
    forget_keys(session, before=_oldest(settings), key=once.key)
    if not _reserve(session, once):
        return _replay(session, once)
    given = answer()
    body = jsonable_encoder(given.body if given.kept is None else given.kept)
    session.execute(
        update(IdempotencyKey)
        .where(*_same(once))
        .values(status=given.status, body=body, headers=dict(given.headers))
    )
    return given.response()


def answer_prepared(
    reading: Reading,
    session: Session,
    once: Once,
    settings: Settings,
    *,
    prepare: Callable[[Session], T],
    answer: Callable[[T], Answer],
) -> JSONResponse:
    """Do the same as `answer_once` for a request that takes time.

    `prepare` reads, checks and computes; `answer` only writes. On SQLite one transaction writes at
    a time, from its first statement on: `session` must not have run any statement yet. Rows that
    `prepare` found may have changed by then: `answer` checks again what must still hold.
    """
    with reading() as before:
        kept = _kept(before, once, settings)
        if kept is not None:
            return kept
        try:
            prepared = prepare(before)
        except Problem:  # an identical request may just have succeeded and be the cause
            kept = _kept(before, once, settings)
            if kept is not None:
                return kept
            raise
    return answer_once(session, once, settings, lambda: answer(prepared))


def forget_keys(session: Session, *, before: datetime, key: str | None = None) -> None:
    """Delete expired keys: this one, or all."""
    statement = delete(IdempotencyKey).where(col(IdempotencyKey.created_at) < before)
    session.execute(statement if key is None else statement.where(col(IdempotencyKey.key) == key))


def _reserve(session: Session, once: Once) -> bool:
    """Reserve the key for this request; return whether it was free."""
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    row = {
        "principal": once.principal_id,
        "route": once.route,
        "key": once.key,
        "digest": once.digest,
        "status": 0,
    }
    values = row | {"body": {}, "headers": {}, "created_at": utc_now()}
    statement = (
        insert(IdempotencyKey)
        .values(**values)
        .on_conflict_do_nothing(index_elements=["principal", "route", "key"])
    )
    return session.execute(statement.returning(col(IdempotencyKey.id))).first() is not None


def _kept(session: Session, once: Once, settings: Settings) -> JSONResponse | None:
    """Return the stored answer of the same request, if it has been carried out."""
    if once.key is None:
        return None
    kept = session.exec(
        select(IdempotencyKey).where(
            *_same(once), col(IdempotencyKey.created_at) >= _oldest(settings)
        )
    ).first()
    return None if kept is None else _answer_of(kept, once)


def _oldest(settings: Settings) -> datetime:
    return utc_now() - timedelta(hours=settings.idempotency_keep_hours)


def _replay(session: Session, once: Once) -> JSONResponse:
    return _answer_of(session.exec(select(IdempotencyKey).where(*_same(once))).one(), once)


def _answer_of(kept: IdempotencyKey, once: Once) -> JSONResponse:
    if kept.digest not in (once.digest, once.whole_digest):
        raise IdempotencyMismatch(
            "This Idempotency-Key was used for a request with another content."
        )
    return Answer(kept.status, kept.body, kept.headers).response(replayed=True)


def _same(once: Once) -> tuple[Any, ...]:
    return (
        col(IdempotencyKey.principal) == once.principal_id,
        col(IdempotencyKey.route) == once.route,
        col(IdempotencyKey.key) == once.key,
    )
