"""Carries a request out in one thread: the route, the JSON of its answer, and the commit.

FastAPI takes a thread for each of them, and every change of threads costs as much as a small
statement. The order is the same: what is no valid answer is not committed, and nothing is sent
before the commit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import Request, Response
from fastapi._compat import ModelField
from fastapi.exceptions import ResponseValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute, get_request_handler
from sqlmodel import Session

from backend.database import whole

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class _Json(str):
    """An answer that is JSON already."""

    __slots__ = ()


class _Written(JSONResponse):
    """Sends JSON as it was written, with the status and headers that FastAPI gives it."""

    def render(self, content: Any) -> bytes:
        return content.encode() if isinstance(content, _Json) else super().render(content)


def in_one_thread(route: APIRoute) -> Handler | None:
    """Return what handles requests of a route; None for one that is a coroutine itself."""
    if inspect.iscoroutinefunction(route.endpoint) or inspect.isasyncgenfunction(route.endpoint):
        return None
    field = route.response_field

    async def call(**given: Any) -> Any:
        return await anyio.to_thread.run_sync(partial(_carry_out, route.endpoint, given, field))

    return get_request_handler(
        dependant=replace(route.dependant, call=call),
        body_field=route.body_field,
        status_code=route.status_code,
        response_class=route.response_class if field is None else _Written,
        dependency_overrides_provider=route.dependency_overrides_provider,
        embed_body_fields=route._embed_body_fields,
        strict_content_type=route.strict_content_type,
    )


def _carry_out(
    endpoint: Callable[..., Any], given: Mapping[str, Any], field: ModelField | None
) -> Any:
    with ExitStack() as transactions:
        for value in given.values():
            if isinstance(value, Session):
                transactions.enter_context(whole(value))
        answer = endpoint(**given)
        return answer if field is None or isinstance(answer, Response) else _json_of(answer, field)


def _json_of(answer: Any, field: ModelField) -> _Json:
    """Raises ResponseValidationError for what the route does not promise."""
    value, errors = field.validate(answer, {}, loc=("response",))
    if errors:
        raise ResponseValidationError(errors=errors, body=answer)
    return _Json(field.serialize_json(value), "utf-8")
