"""Reads requests strictly, so that routes never see invalid input.

Refuses what JSON forbids (NaN, Infinity), members given twice, what databases cannot store (NUL,
lone surrogates), unknown query parameters, and members of a body that nothing would read.
"""

from __future__ import annotations

import asyncio
from collections import Counter
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
from backend.web.in_one_thread import in_one_thread
from backend.web.json_depth import refuse_deep
from backend.web.middleware import SAFE_METHODS
from maat.garbage import give_back_memory

GIVE_BACK_SECONDS = 2.0
_CONSTANTS = (b"NaN", b"Infinity")
_MOST_ERRORS = 100
_MOST_MEMBERS = 1000
_UNSTORABLE = (
    "The body holds text with a NUL character or half a surrogate pair, which is not allowed."
)


@dataclass(frozen=True)
class _NoNumber:
    """Replaces NaN or Infinity in a body until its place is known."""

    name: str


class _Repeating(dict[str, Any]):
    """Replaces an object that gives a member more than once, until its place is known."""

    repeated: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) == len(pairs):
        return held
    repeating = _Repeating(held)
    counts = Counter(key for key, _ in pairs)
    repeating.repeated = next(key for key, count in counts.items() if count > 1)
    return repeating


class StrictRequest(Request):
    """A request with the body limit of its route and strict JSON."""

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
        """Parse and validate the body here, in a thread, so that FastAPI finds it parsed.

        Raises RequestValidationError.
        """
        self._strict_json = parse_strictly(self._body)
        _, errors = field.validate(self._strict_json, {}, loc=("body",))
        if errors:
            raise RequestValidationError(errors)


class StrictRoute(APIRoute):
    """Identifies the sender before it reads a body, and parses it strictly.

    Problems while reading pass through unchanged.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = in_one_thread(self) or super().get_route_handler()
        who_asks = asked_before_body(self.dependant)

        async def strictly(request: Request) -> Response:
            request = StrictRequest(request.scope, request.receive)
            try:
                for ask in who_asks:
                    await ask(request)
                _refuse_unknown_parameters(request, self)
                if self.body_field is not None:
                    await _receive(request, self)
                elif request.method not in SAFE_METHODS:
                    _refuse_members(request, await request.body())
                if who_asks:
                    await _pass_gate(request)
                if self.body_field is not None and not is_quickly_parsed(await request.body()):
                    await anyio.to_thread.run_sync(request.parse, self.body_field)
                return await handle(request)
            except Exception as error:
                # FastAPI wraps errors from reading a body: the inner problem is more precise.
                if isinstance(error.__cause__, Problem) and not isinstance(
                    error, RequestValidationError
                ):
                    raise error.__cause__ from None
                raise

        return strictly


async def _receive(request: StrictRequest, route: APIRoute) -> None:
    """Read the body; large ones a few at a time, since they stay in memory."""
    gates: Gates = request.app.state.gates
    request.most_bytes = min(
        most_bytes_of(route.endpoint), request.app.state.settings.max_upload_bytes
    )
    if is_large(announced_bytes(request.headers)):
        stack = _stack(request)
        stack.callback(_give_back_soon)
        await stack.enter_async_context(gates.large.passed())
    _check_type(request, await request.body())


def _give_back_soon() -> None:
    """Give back what a large body took, once nothing holds it any more."""
    loop = asyncio.get_running_loop()
    loop.call_later(GIVE_BACK_SECONDS, loop.run_in_executor, None, give_back_memory)


def _refuse_members(request: Request, body: bytes) -> None:
    """Raise Invalid naming each member of a body of which nothing is read.

    A misspelt condition would otherwise have no effect.
    """
    if not body.strip():
        return
    _check_type(request, body)
    given = parse_strictly(body)
    if given == {}:
        return
    message, remedy = "This address reads no body.", "Leave it out, or send {}."
    members = given.items() if isinstance(given, dict) else [("", given)]
    errors = [
        FieldError(name and f"/{pointer_part(name)}", "extra_forbidden", message, remedy, value)
        for name, value in islice(members, _MOST_ERRORS)
    ]
    raise Invalid(f"{message} {remedy}", errors=errors)


async def _pass_gate(request: Request) -> None:
    """Hold a place until the route's dependencies have ended.

    Its transaction is one of them.
    """
    gates: Gates = request.app.state.gates
    stack = _stack(request)
    for gate in gates.before(request.method):
        await stack.enter_async_context(gate.passed())


def _stack(request: Request) -> AsyncExitStack:
    """Return the stack that unwinds when the function-scoped dependencies have ended."""
    stack: AsyncExitStack = request.scope["fastapi_function_astack"]
    return stack


def _refuse_unknown_parameters(request: Request, route: APIRoute) -> None:
    """Raise Invalid naming each: a misspelt filter would otherwise show everything."""
    if not request.scope["query_string"]:
        return
    known = list(dict.fromkeys(_query_names(route.dependant)))
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        remedy = (
            f"Use one of {', '.join(known)}."
            if known
            else "Leave it out: this address accepts none."
        )
        errors = [
            FieldError(
                f"/{pointer_part(name)}",
                "unknown_parameter",
                "This query parameter does not exist here.",
                remedy,
                name,
            )
            for name in unknown[:_MOST_ERRORS]
        ]
        raise Invalid(
            f"The query parameter {shown_value(unknown[0])!r} does not exist here. {remedy}",
            errors=errors,
        )


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _query_names(inner)


def _check_type(request: Request, body: bytes) -> None:
    """Raise UnsupportedMediaType unless the header declares the body as JSON."""
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if (
        kind == "application/json"
        or (kind.startswith("application/") and kind.endswith("+json"))
        or not body
    ):
        return
    found = (
        f"The Content-Type is {shown_value(given)}" if given else "There is no Content-Type header"
    )
    raise UnsupportedMediaType(f"{found}: send JSON with `Content-Type: application/json`.")


def parse_strictly(body: bytes) -> Any:
    """Return the body's JSON value.

    Raises MalformedRequest with the cause, Invalid for an object with too many members or with one
    more than once.
    """
    try:
        value = parse_json(body, parse_constant=_NoNumber, object_pairs_hook=_object)
        refuse_deep(body, value)
        if any(name in body for name in _CONSTANTS):
            _refuse_constants(value)
        _refuse_unusable(value)
    except UnicodeDecodeError:
        raise MalformedRequest("The body is not UTF-8 text.") from None
    except RecursionError:
        raise MalformedRequest("The body is nested too deeply.") from None
    except ValueError as error:
        raise MalformedRequest(f"The body is not JSON: {error}.") from None
    return value


def _refuse_constants(value: Any) -> None:
    found = list(islice(_constants(value, ""), _MOST_ERRORS))
    if found:
        detail = (
            f"The body holds {found[0].value}, which is not JSON. "
            "Give a finite number, or leave the field out."
        )
        raise MalformedRequest(detail, errors=found)


def _constants(value: Any, pointer: str) -> Iterator[FieldError]:
    """Yield where a body holds NaN or Infinity, in order."""
    if isinstance(value, _NoNumber):
        yield FieldError(
            pointer,
            "no_number",
            f"{value.name} is not JSON.",
            "Give a finite number, or leave the field out.",
            value.name,
        )
    for part, item in _parts(value):
        yield from _constants(item, f"{pointer}/{pointer_part(part)}")


def _refuse_unusable(value: Any) -> None:
    """Refuse unstorable text and objects with too many members, at any depth."""
    waiting = [(value, "")]
    while waiting:
        held, pointer = waiting.pop()
        if isinstance(held, str):
            _check_text(held, pointer)
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
    if isinstance(held, _Repeating):
        message, remedy = "This member is given more than once.", "Give it once."
        place = f"{pointer}/{pointer_part(held.repeated)}"
        raise Invalid(
            f"{place}: {message} {remedy}",
            errors=[FieldError(place, "repeated", message, remedy, held[held.repeated])],
        )
    if len(held) > _MOST_MEMBERS:
        message, remedy = (
            "The object has more members than any that Maat accepts.",
            f"Give at most {_MOST_MEMBERS}.",
        )
        raise Invalid(
            f"{message} {remedy}",
            errors=[FieldError(pointer, "too_long", message, remedy, len(held))],
        )
    for key in held:
        _check_text(key, pointer)


def _check_text(text: str, pointer: str) -> None:
    """Raise MalformedRequest for text that cannot be stored. `pointer`: its place, or its key's."""
    if _is_storable(text):
        return
    where = f"{pointer}: " if pointer else ""
    raise MalformedRequest(
        f"{where}{_UNSTORABLE}",
        errors=[FieldError(pointer, "unstorable", _UNSTORABLE, "Leave that character out.")],
    )


def _is_storable(text: str) -> bool:
    """Return whether text is Unicode without NUL, as both databases have it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
