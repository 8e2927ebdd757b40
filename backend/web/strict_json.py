"""Reads requests strictly: what JSON does not allow (NaN, Infinity), no database keeps (NUL, lone surrogates) or no route takes (unknown query
parameters) never reaches a route.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

import anyio.to_thread
from fastapi import Request, Response
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from backend.problems import (
    FieldError,
    Invalid,
    MalformedRequest,
    Problem,
    UnsupportedMediaType,
    shown_value,
)
from backend.validation_errors import pointer_part
from backend.web.before_body import asked_before_body
from backend.web.bodies import (
    SMALL_BYTES,
    announced_bytes,
    is_large,
    is_quickly_parsed,
    most_bytes_of,
    parse_json,
    read_body,
)
from backend.web.gates import Gates
from backend.web.json_depth import refuse_deep

_CONSTANTS = (b"NaN", b"Infinity")
_MOST_ERRORS = 100
_MOST_MEMBERS = 1000
_UNSTORABLE = (
    "The body holds text with a NUL character or half a surrogate pair, which no text may."
)


@dataclass(frozen=True)
class _NoNumber:
    """Stands where a body says NaN or Infinity, until its place is known."""

    name: str


class StrictRequest(Request):
    """A request whose body is as large as its route takes, and whose JSON is JSON."""

    most_bytes = SMALL_BYTES

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            self._body = await read_body(self, self.most_bytes)
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_strict_json"):
            self._strict_json = parse_strictly(await self.body())
        return self._strict_json

    def parse(self, field: ModelField) -> None:
        """Parse and validate the body here, in a thread; raises RequestValidationError. FastAPI finds it parsed."""
        self._strict_json = parse_strictly(self._body)
        _, errors = field.validate(self._strict_json, {}, loc=("body",))
        if errors:
            raise RequestValidationError(errors)


class StrictRoute(APIRoute):
    """Asks who sends a body before it reads it, parses it by `parse_strictly`, and lets the problems of reading it through as they are."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        who_asks = asked_before_body(self.dependant)

        async def strictly(request: Request) -> Response:
            request = StrictRequest(request.scope, request.receive)
            try:
                for ask in who_asks:
                    await ask(request)
                _refuse_unknown_parameters(request, self)
                if self.body_field is not None:
                    await _receive(request, self)
                if who_asks:
                    await _pass_gate(request)
                if self.body_field is not None and not is_quickly_parsed(await request.body()):
                    await anyio.to_thread.run_sync(request.parse, self.body_field)
                return await handle(request)
            except Exception as error:
                # FastAPI wraps whatever reading a body raises: the problem inside says more.
                if isinstance(error.__cause__, Problem) and not isinstance(
                    error, RequestValidationError
                ):
                    raise error.__cause__ from None
                raise

        return strictly


async def _receive(request: StrictRequest, route: APIRoute) -> None:
    """Read the body, large ones a few at a time: they are held in memory until the request is over."""
    gates: Gates = request.app.state.gates
    request.most_bytes = min(
        most_bytes_of(route.endpoint), request.app.state.settings.max_upload_bytes
    )
    if is_large(announced_bytes(request.headers)):
        await _stack(request).enter_async_context(gates.large.passed())
    _check_type(request, await request.body())


async def _pass_gate(request: Request) -> None:
    """The place is given back when the dependencies of the route have ended, its transaction among them."""
    gates: Gates = request.app.state.gates
    await _stack(request).enter_async_context(gates.passed_by(request.method))


def _stack(request: Request) -> AsyncExitStack:
    """What is to be undone when the function-scoped dependencies have ended."""
    stack: AsyncExitStack = request.scope["fastapi_function_astack"]
    return stack


def _refuse_unknown_parameters(request: Request, route: APIRoute) -> None:
    """A filter that is misspelt would else show everything. Raises Invalid naming each."""
    known = list(dict.fromkeys(_query_names(route.dependant)))
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        remedy = (
            f"Use one of {', '.join(known)}." if known else "Leave it out: this address takes none."
        )
        errors = [
            FieldError(
                f"/{pointer_part(name)}",
                "unknown_parameter",
                "There is no such query parameter here.",
                remedy,
                name,
            )
            for name in unknown[:_MOST_ERRORS]
        ]
        raise Invalid(
            f"There is no query parameter {shown_value(unknown[0])!r} here. {remedy}", errors=errors
        )


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _query_names(inner)


def _check_type(request: Request, body: bytes) -> None:
    """Raises UnsupportedMediaType for a body that its header does not call JSON."""
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if (
        kind == "application/json"
        or (kind.startswith("application/") and kind.endswith("+json"))
        or not body
    ):
        return
    said = (
        f"The Content-Type is {shown_value(given)}" if given else "There is no Content-Type header"
    )
    raise UnsupportedMediaType(f"{said}: send JSON with `Content-Type: application/json`.")


def parse_strictly(body: bytes) -> Any:
    """The body's JSON value. Raises MalformedRequest that says what it was, Invalid for an object of very many members."""
    try:
        value = parse_json(body, parse_constant=_NoNumber)
        refuse_deep(body, value)
        if any(name in body for name in _CONSTANTS):
            _refuse_constants(value)
        _refuse_unusable(value)
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
        yield FieldError(
            pointer,
            "no_number",
            f"{value.name} is no JSON.",
            "Give a finite number, or leave the field out.",
            value.name,
        )
    for part, item in _parts(value):
        yield from _constants(item, f"{pointer}/{pointer_part(part)}")


def _refuse_unusable(value: Any) -> None:
    """What no field may be, however deep it stands: text that no database keeps, an object of very many members."""
    waiting = [(value, "")]
    while waiting:
        held, pointer = waiting.pop()
        if isinstance(held, str):
            _check_text(held)
        elif isinstance(held, dict):
            _check_members(held, pointer)
        waiting.extend(
            (item, f"{pointer}/{pointer_part(part)}")
            for part, item in _parts(held)
            if isinstance(item, str | dict | list)
        )


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(index), item) for index, item in enumerate(value))


def _check_members(held: dict[str, Any], pointer: str) -> None:
    if len(held) > _MOST_MEMBERS:
        message, remedy = (
            "It has more members than anything that Maat takes.",
            f"Give at most {_MOST_MEMBERS}.",
        )
        raise Invalid(
            f"{message} {remedy}",
            errors=[FieldError(pointer, "too_long", message, remedy, len(held))],
        )
    for key in held:
        _check_text(key)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedRequest(_UNSTORABLE) from None
    if "\0" in text:
        raise MalformedRequest(_UNSTORABLE)
