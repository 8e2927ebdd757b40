"""Reads requests strictly: what JSON does not allow (NaN, Infinity), no database keeps (NUL, lone surrogates) or no route takes (unknown query
parameters) never reaches a route.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from backend.problems import FieldError, Invalid, MalformedRequest, Problem, UnsupportedMediaType, shown_value
from backend.validation_errors import pointer_part

_CONSTANTS = ("NaN", "Infinity")
_MOST_ERRORS = 100


@dataclass(frozen=True)
class _NoNumber:
    """Stands where a body says NaN or Infinity, until its place is known."""

    name: str


class StrictRequest(Request):
    """A request whose JSON is JSON."""

    async def json(self) -> Any:
        if not hasattr(self, "_strict_json"):
            self._strict_json = parse_strictly(await self.body())
        return self._strict_json


class StrictRoute(APIRoute):
    """Parses bodies by `parse_strictly`, and lets the problems of reading a body through as they are."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            request = StrictRequest(request.scope, request.receive)
            try:
                _refuse_unknown_parameters(request, self)
                if self.body_field is not None:
                    await _check_type(request)
                return await handle(request)
            except Exception as error:
                # FastAPI wraps whatever reading a body raises: the problem inside says more.
                if isinstance(error.__cause__, Problem) and not isinstance(error, RequestValidationError):
                    raise error.__cause__ from None
                raise

        return strictly


def _refuse_unknown_parameters(request: Request, route: APIRoute) -> None:
    """A filter that is misspelt would else show everything. Raises Invalid naming each."""
    known = list(dict.fromkeys(_query_names(route.dependant)))
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        remedy = f"Use one of {', '.join(known)}." if known else "Leave it out: this address takes none."
        errors = [
            FieldError(f"/{pointer_part(name)}", "unknown_parameter", "There is no such query parameter here.", remedy, name)
            for name in unknown[:_MOST_ERRORS]
        ]
        raise Invalid(f"There is no query parameter {shown_value(unknown[0])!r} here. {remedy}", errors=errors)


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _query_names(inner)


async def _check_type(request: Request) -> None:
    """Raises UnsupportedMediaType for a body that its header does not call JSON."""
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")) or not await request.body():
        return
    said = f"The Content-Type is {shown_value(given)}" if given else "There is no Content-Type header"
    raise UnsupportedMediaType(f"{said}: send JSON with `Content-Type: application/json`.")


def parse_strictly(body: bytes) -> Any:
    """The body's JSON value. Raises MalformedRequest that says what it was."""
    try:
        text = body.decode("utf-8")
        value = json.loads(text, parse_constant=_NoNumber)
        if any(name in text for name in _CONSTANTS):
            _refuse_constants(value)
        if "\\u" in text or "\0" in text:
            _refuse_unstorable(value)
    except UnicodeDecodeError:
        raise MalformedRequest("The body is no UTF-8 text.") from None
    except RecursionError:
        raise MalformedRequest("The body is nested too deeply.") from None
    except ValueError as error:
        raise MalformedRequest(f"The body is no JSON: {error}.") from None
    return value


def _refuse_constants(value: Any) -> None:
    found = list(islice(_constants(value, ""), _MOST_ERRORS))
    if found:
        detail = f"The body holds {found[0].value}, which is no JSON. Give a finite number, or leave the field out."
        raise MalformedRequest(detail, errors=found)


def _constants(value: Any, pointer: str) -> Iterator[FieldError]:
    """Where a body says NaN or Infinity, in its order."""
    if isinstance(value, _NoNumber):
        yield FieldError(pointer, "no_number", f"{value.name} is no JSON.", "Give a finite number, or leave the field out.", value.name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _constants(item, f"{pointer}/{pointer_part(key)}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _constants(item, f"{pointer}/{index}")


def _refuse_unstorable(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise MalformedRequest("The body holds text with a NUL character or half a surrogate pair, which no text may.")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_unstorable(key)
            _refuse_unstorable(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_unstorable(item)
