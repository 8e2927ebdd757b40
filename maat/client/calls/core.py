"""A call of the REST API as data: method, path, query, body. Sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

Answer = TypeVar("Answer")

Query = Mapping[str, object]

Fields = Mapping[str, Any]
"""A body as plain data; the service checks it."""

RawBody = dict[str, Any]
"""A body while it is built."""

PREFIX = "/api/v1"

ANY_FORM = {"Accept": "*/*"}
"""Headers of a call that is answered by a file."""


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One request whose answer has the type `Answer`."""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


def as_json(body: BaseModel | Fields) -> dict[str, Any]:
    """Return what is sent of a body: the fields that were set."""
    if isinstance(body, BaseModel):
        return body.model_dump(mode="json", exclude_unset=True, by_alias=True)
    return dict(body)


def path_of(*parts: object) -> str:
    return "/".join([PREFIX, *(quote(str(part), safe=":") for part in parts)])


def given_of(**query: object) -> dict[str, object]:
    return {name: value for name, value in query.items() if value is not None and value != []}


def keyed_by(idempotency_key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": idempotency_key} if idempotency_key else {}


def version_of(version: int) -> dict[str, str]:
    return {"If-Match": f'"{version}"'}
