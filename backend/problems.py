"""The service's errors: one tree of classes with status, address and advice.

web/problem_responses.py sends them.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from maat.scheduling.errors import InputError

_SHOWN_CHARACTERS = 200
_MOST_REMEDIES = 3


class _Shown(reprlib.Repr):
    """A representation limited in depth and length to what an answer shows.

    A hostile value costs no more than any other.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = 10
        self.maxstring = self.maxother = self.maxlong = _SHOWN_CHARACTERS


_SHOWN = _Shown()


@dataclass(frozen=True)
class FieldError:
    """One error in one field.

    `pointer`: JSON Pointer into the body, or `/name` of a query or path parameter. `row`, `column`:
    the place in a table that was sent as one field, or the entry of a batch.
    """

    pointer: str
    code: str
    message: str
    remedy: str
    value: Any = None
    row: int | None = None
    column: str | None = None

    @property
    def field(self) -> str:
        """The last name in the pointer: of an entry of a list, the list's."""
        parts = self.pointer.split("/")
        return next((part for part in reversed(parts) if not part.isdecimal()), "")

    def as_json(self) -> dict[str, Any]:
        shown = vars(self) | {
            "field": self.field,
            "value": shown_value(self.value),
        }
        return {
            name: value
            for name, value in shown.items()
            if value is not None or name not in ("row", "column")
        }


class Problem(Exception):
    """A refused or failed request.

    Subclasses say why, and what to do next: `remedy`, unless an error in `errors` says it better.
    """

    slug: ClassVar[str] = "internal-error"
    title: ClassVar[str] = "Something went wrong inside Maat"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    remedy: ClassVar[str]

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.members = members
        super().__init__(detail)

    def as_json(self, *, instance: str, request_id: str) -> dict[str, Any]:
        return {
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "remedy": self._next_step(),
            "instance": instance,
            "request_id": request_id,
            "retryable": self.retryable,
            "errors": [error.as_json() for error in self.errors],
            **self.members,
        }

    def _next_step(self) -> str:
        """Return what to do next: what the errors say of their fields, or what always helps."""
        of_fields = dict.fromkeys(error.remedy for error in self.errors if error.remedy)
        return " ".join(list(of_fields)[:_MOST_REMEDIES]) or self.remedy


class InternalError(Problem):
    """A fault of Maat."""

    remedy = "Try once more; if it stays, report the request id: the log has the details."
    retryable = True


class PolicyFault(Problem):
    """A policy failed or broke a rule, so that what it was to decide could not be played."""

    slug = "policy-failed"
    title = "The policy failed"
    remedy = "Mend the policy (python -m maat.check_policy tells what it breaks), or name another."


class MalformedRequest(Problem):
    """The request is not valid JSON, or its text holds forbidden characters."""

    remedy = "Correct it and send it again."
    slug, title, status = "malformed-request", "The request cannot be read", 400


class BadCursor(Problem):
    """A cursor is valid only with the filters and sort order it was made for."""

    remedy = "Start again without it."
    slug, title, status = "bad-cursor", "The cursor does not belong to this list", 400


class Unauthenticated(Problem):
    """The request does not say who asks.

    Without a token, only requests from the same machine are accepted, if the settings allow it.
    """

    remedy = "Sign in, or send a token: `Authorization: Bearer maat_...`."
    slug, title, status = "unauthenticated", "Say who you are", 401

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="maat"'})


class Forbidden(Problem):
    """Your role does not include this."""

    remedy = "Ask someone who manages your tenant."
    slug, title, status = "forbidden", "You may not do this", 403


class OutOfScope(Problem):
    """Your role includes this. The token that you sent does not."""

    remedy = "Send a token whose scopes name it; you make tokens on the page Account."
    slug, title, status = "out-of-scope", "The token's scopes do not include this", 403


class CrossSite(Problem):
    """A page of another site made your browser send this. Nothing was done."""

    remedy = "Use Maat's own pages, or a bearer token."
    slug, title, status = "cross-site-request", "Requests from other sites are refused", 403


class NotFound(Problem):
    """There is nothing at this address that you may see."""

    remedy = "Check the id or name; lists show what exists."
    slug, title, status = "not-found", "Not found", 404


class MethodNotAllowed(Problem):
    """The address exists, but not for this method."""

    remedy = "Use one of the methods that the Allow header lists."
    slug, title, status = (
        "method-not-allowed",
        "This address does not accept this method",
        405,
    )


class Conflict(Problem):
    """The present state does not allow this."""

    remedy = "Look at it again, then decide."
    slug, title, status = "conflict", "The present state does not allow this", 409


class StaleAttempt(Problem):
    """The attempt is over."""

    remedy = "End its processes, and save nothing more."
    slug, title, status = "stale-attempt", "The attempt is over", 409


class PreconditionFailed(Problem):
    """Someone changed it since you read it."""

    remedy = "Read it again, and repeat the change on the new version."
    slug, title, status = "precondition-failed", "It has changed since you read it", 412


class PayloadTooLarge(Problem):
    """The body is larger than this server accepts."""

    remedy = "Send less, or split it."
    slug, title, status = "payload-too-large", "The body is too large", 413


class UnsupportedMediaType(Problem):
    """The body is not declared as JSON."""

    remedy = "Send it with the header `Content-Type: application/json`."
    slug, title, status = "unsupported-media-type", "The body is not declared as JSON", 415


class Invalid(Problem):
    """Some fields cannot be used: `errors` names each with its value. Nothing was stored."""

    remedy = "Correct them as `errors` says, and send it again."
    slug, title, status = "invalid", "Some fields cannot be used", 422


class IdempotencyMismatch(Problem):
    """This Idempotency-Key was used for another request."""

    remedy = "Use a new key for a new request, or repeat the old one unchanged."
    slug, title, status = (
        "idempotency-key-reused",
        "The Idempotency-Key belongs to another request",
        422,
    )


class PreconditionRequired(Problem):
    """This change needs the version that it is made on.

    It prevents two people from undoing each other's work.
    """

    remedy = "Send the ETag that you read as the header If-Match."
    slug, title, status = "precondition-required", "Say which version you are changing", 428


class Unavailable(Problem):
    """The database does not answer, or is too busy. Nothing was stored."""

    remedy = "Try again in a moment."
    slug, title, status = "unavailable", "Not available at the moment", 503
    retryable = True


class DiskFull(Problem):
    """The disk that holds Maat's database is full. Nothing was stored."""

    remedy = "Make room there, or ask who runs Maat to; then try again."
    slug, title, status = "disk-full", "The disk of Maat's database is full", 507
    retryable = True


class DatabaseDamaged(Problem):
    """What Maat's database stores cannot be right. Nothing was stored."""

    remedy = "Ask who runs Maat to restore it from a backup: /readyz says how."
    slug, title, status = "database-damaged", "Maat's database is damaged", 503


def all_problems() -> Iterator[type[Problem]]:
    """Yield every kind of problem that the service can answer with."""
    yield from Problem.__subclasses__()


def invalid_input(error: InputError, pointer: str) -> Invalid:
    """Turn the library's error about one field into a problem that points at it."""
    return Invalid(str(error), errors=[input_field_error(error, pointer)])


def input_field_error(error: InputError, pointer: str) -> FieldError:
    code = (
        "".join(f"_{c.lower()}" if c.isupper() else c for c in type(error).__name__)
        .strip("_")
        .removesuffix("_error")
    )
    message = f"{error.field} {error.problem}."
    column = error.field if error.row is not None else None
    return FieldError(pointer, code, message, error.remedy, error.value, error.row, column)


def shown_value(value: Any) -> Any:
    """Return a value as an answer may show it.

    It is JSON, short, and without what JSON cannot express (NaN, bytes, lone surrogates).
    """
    if value is None or isinstance(value, bool | int):
        return (
            value
            if not isinstance(value, int) or abs(value) < 2**63
            else _shortened(f"{value:.3e}" if abs(value) < 10**300 else "huge")
        )
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return _shortened(
        value[: _SHOWN_CHARACTERS + 1] if isinstance(value, str) else _SHOWN.repr(value)
    )


def _shortened(text: str) -> str:
    clean = text.encode("utf-8", "backslashreplace").decode()
    return clean if len(clean) <= _SHOWN_CHARACTERS else f"{clean[: _SHOWN_CHARACTERS - 3]}..."
