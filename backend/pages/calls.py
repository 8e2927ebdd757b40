"""Guards the pages' callbacks: form, size, sender of large calls, and host name.

A rebound host name must not make a call the local admin's. The pages handle their own errors. The
pages read bodies before any middleware inside them: this stands outside and hands them parsed
calls.
"""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.accounts.cookies import (
    CsrfFailed,
    check_csrf,
    clear_session_cookies,
    session_secret,
)
from backend.accounts.identity import principal_of
from backend.accounts.locality import is_rebound
from backend.problems import MalformedRequest, Problem, Unauthenticated, shown_value
from backend.web.bodies import (
    PAGE_CALL_BYTES,
    SMALL_BYTES,
    announced_bytes,
    is_large,
    is_quickly_parsed,
    parse_json,
    read_body,
)
from backend.web.gates import Gates
from backend.web.problem_responses import DATABASE_AWAY, database_away, problem_response

PATH = "/_dash-update-component"
_PARSED_TYPE = b"application/x-parsed"  # the pages do not parse this again
_MOST_VALUES = 100_000  # a grid sends its rows
_NO_CALL = (
    "The body is not a callback of a page: "
    "send a JSON object with output, outputs, inputs and changedPropIds."
)


class PageCallGuard:
    """Reads and parses the calls of the pages; their other addresses get no body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_of_pages(scope["path"]):
            await self._app(scope, receive, send)
        elif scope["method"] == "POST" and scope["path"] == PATH:
            await self._call(scope, receive, send)
        else:
            await self._app(scope, _without_body(receive), send)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            call = await _read_call(request)
        except CsrfFailed as problem:  # or a browser that lost one of two cookies sees no page
            answer = problem_response(problem, request)
            clear_session_cookies(request, answer)
            await answer(scope, receive, send)
        except Problem as problem:
            await problem_response(problem, request)(scope, receive, send)
        except DATABASE_AWAY as error:
            await problem_response(database_away(request, error), request)(scope, receive, send)
        else:
            request.state.page_call = call
            gates: Gates = request.app.state.gates
            async with gates.page_calls.passed():
                await self._app(_marked_as_parsed(scope), _without_body(receive), send)


class ParsedCall:
    """Passes the call that the guard parsed to its handler.

    Stands inside the pages' middleware, which registers the callbacks.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.get("state", {})
        if "page_call" in state:
            call = state["json_body"] = state["page_call"]
            if call["output"] not in scope["app"].state.page_outputs:
                problem = MalformedRequest(
                    f"No page has a callback with the output {shown_value(call['output'])!r}: "
                    "load the page again."
                )
                await problem_response(problem, Request(scope))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_of_pages(path: str) -> bool:
    return path == "/" or path.startswith("/_dash-")


async def _read_call(request: Request) -> Any:
    """Read and check the call. Raises the Problem with it.

    Anyone may send a small call: the service checks the requests that it makes.
    """
    secret = None if "authorization" in request.headers else session_secret(request)
    if secret is not None:
        check_csrf(request, secret)
    elif is_rebound(request):
        raise Unauthenticated(
            "The Host header names another machine than this one. "
            "Open Maat by its own address, or send a token."
        )
    announced = announced_bytes(request.headers)
    if announced is None or announced > SMALL_BYTES:
        await principal_of(request)
    call = await (_large_body(request) if is_large(announced) else _body(request))
    if not _is_call(call):
        raise MalformedRequest(_NO_CALL)
    return call


async def _large_body(request: Request) -> Any:
    """Read a large body, a few at a time.

    The place is free again once it is parsed: the call's own request may be as large and need one
    too.
    """
    gates: Gates = request.app.state.gates
    async with gates.large.passed():
        return await _body(request)


async def _body(request: Request) -> Any:
    body = await read_body(
        request, min(PAGE_CALL_BYTES, request.app.state.settings.max_upload_bytes)
    )
    return (
        _parsed(body) if is_quickly_parsed(body) else await anyio.to_thread.run_sync(_parsed, body)
    )


def _parsed(body: bytes) -> Any:
    try:
        return parse_json(body, most_values=_MOST_VALUES)
    except (ValueError, RecursionError):
        raise MalformedRequest(_NO_CALL) from None


def _is_call(body: Any) -> bool:
    if (
        not isinstance(body, dict)
        or not isinstance(body.get("output"), str)
        or "outputs" not in body
    ):
        return False
    given, changed = (body.get("inputs", []), body.get("state", [])), body.get("changedPropIds", [])
    named = isinstance(changed, list) and all(isinstance(name, str) for name in changed)
    return named and all(
        isinstance(entries, list) and all(map(_is_entry, entries)) for entries in given
    )


def _is_entry(entry: Any) -> bool:
    """Return whether this is a property with its component, or several of a pattern."""
    return all(
        isinstance(one, dict) and {"id", "property"} <= one.keys()
        for one in (entry if isinstance(entry, list) else [entry])
    )


def _marked_as_parsed(scope: Scope) -> Scope:
    copy = {**scope, "headers": list(scope["headers"])}
    MutableHeaders(scope=copy)["content-type"] = _PARSED_TYPE.decode()
    return copy


def _without_body(receive: Receive) -> Receive:
    """Receive an empty body, then what arrives on the connection."""
    begun = False

    async def empty() -> Message:
        nonlocal begun
        if begun:
            return await receive()
        begun = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return empty
