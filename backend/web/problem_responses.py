"""Sends every error as application/problem+json, without a traceback.

FastAPI's own errors are included.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from starlette.exceptions import HTTPException

from backend.damage import is_damage
from backend.database import is_disk_full
from backend.logs import first_line
from backend.problems import (
    Conflict,
    DatabaseDamaged,
    DiskFull,
    InternalError,
    Invalid,
    MalformedRequest,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    Problem,
    Unavailable,
    input_field_error,
)
from backend.validation_errors import field_error
from backend.web.mistakes import too_many
from backend.web.security_headers import security_headers
from maat.api.mistakes import TooManyMistakes
from maat.scheduling.errors import InputError

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_MOST_ERRORS = 100
DATABASE_AWAY = (OperationalError, InterfaceError, NoConnection)
_BY_STATUS: dict[int, type[Problem]] = {
    c.status: c for c in (MalformedRequest, NotFound, MethodNotAllowed, PayloadTooLarge, Invalid)
}


def problem_response(problem: Problem, request: Request) -> JSONResponse:
    request_id = getattr(request.state, "request_id", "")
    content = problem.as_json(instance=request.url.path, request_id=request_id)
    headers = {"X-Request-Id": request_id, **problem.headers}
    return JSONResponse(
        content, status_code=content["status"], headers=headers, media_type=MEDIA_TYPE
    )


def install_problem_handlers(app: FastAPI) -> None:
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(InputError, _on_input_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(TooManyMistakes, _on_too_many_mistakes)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(IntegrityError, _on_collision)
    for away in DATABASE_AWAY:
        app.add_exception_handler(away, _on_database_away)
    app.add_exception_handler(Exception, _on_anything_else)


async def _on_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)  # noqa: S101  (handlers are registered by class)
    return problem_response(error, request)


async def _on_input_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, InputError)  # noqa: S101
    return problem_response(
        Invalid(str(error), errors=[input_field_error(error, f"/{error.field}")]), request
    )


async def _on_too_many_mistakes(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, TooManyMistakes)  # noqa: S101
    return problem_response(too_many(error), request)


async def _on_validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    found = error.errors()
    if found and found[0]["type"] == "json_invalid":
        return problem_response(
            MalformedRequest(f"The body is not JSON: {found[0]['ctx']['error']}."), request
        )
    body = getattr(request.scope.get("route"), "body_field", None)
    schema = None if body is None else body.field_info.annotation
    errors = [field_error(one, schema) for one in found[:_MOST_ERRORS]]
    detail = " ".join(f"{e.pointer or 'body'}: {e.message} {e.remedy}" for e in errors[:3])
    more = f" And {len(found) - 3} more." if len(found) > 3 else ""
    return problem_response(Invalid(f"{detail}{more}", errors=errors), request)


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    kind = _BY_STATUS.get(error.status_code)
    if kind is not None:
        return problem_response(kind(str(error.detail), headers=error.headers), request)
    phrase = HTTPStatus(error.status_code).phrase
    problem = InternalError(
        str(error.detail),
        headers=error.headers,
        type="about:blank",
        title=phrase,
        status=error.status_code,
    )
    return problem_response(problem, request)


async def _on_database_away(request: Request, error: Exception) -> JSONResponse:
    return problem_response(database_away(request, error), request)


def database_away(request: Request, error: Exception) -> Problem:
    reason = (
        first_line(error.orig or error) if isinstance(error, DBAPIError) else type(error).__name__
    )
    if isinstance(error, DBAPIError) and is_disk_full(error.orig):
        log.error(
            "%s %r: the database's disk is full: %s", request.method, request.url.path, reason
        )
        return DiskFull(
            "Nothing was stored: the disk that holds Maat's database (MAAT_DATA_DIR, unless "
            "MAAT_DATABASE_URL names another server) is full. Make room there, then try again.",
            headers={"Retry-After": "60"},
        )
    if isinstance(error, DBAPIError) and is_damage(error.orig):
        log.error("%s %r: the database is damaged: %s", request.method, request.url.path, reason)
        return DatabaseDamaged("Maat's database is damaged; nothing was stored.")
    log.error("%s %r: the database does not answer: %s", request.method, request.url.path, reason)
    return Unavailable(
        "The database does not answer, or another writer holds it too long.",
        headers={"Retry-After": "2"},
    )


async def _on_collision(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DBAPIError)  # noqa: S101
    log.warning(
        "%s %r met another request: %s",
        request.method,
        request.url.path,
        first_line(error.orig or error),
    )
    return problem_response(
        Conflict(
            "Another request stored the same name or id at the same moment. "
            "Look at it, then try again."
        ),
        request,
    )


async def _on_anything_else(request: Request, error: Exception) -> JSONResponse:
    log.error(
        "%s %r failed (request %s)",
        request.method,
        request.url.path,
        request.state.request_id,
        exc_info=error,
    )
    answer = problem_response(
        InternalError("Maat met an unexpected error. The log has it under the request id."),
        request,
    )
    # This answer alone is made outside of all middleware.
    answer.headers.update(security_headers(request.app.state.script_hashes))
    return answer
