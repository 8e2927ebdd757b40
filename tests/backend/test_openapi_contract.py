"""Tests that the service does what its OpenAPI document says.

Schemathesis makes the requests from the document. This module lists, with reasons, what the
service refuses on purpose although the document allows it; docs/api.md lists it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from remembering_queue import RememberingQueue
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.core.failures import Failure, FailureGroup
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.app import create_app
from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.problems import input_field_error
from backend.settings import Settings
from maat.scheduling.errors import InputError

RULES = (InputError, *InputError.__subclasses__())

# What JSON Schema cannot say, or says otherwise: by kind of problem, then by code of a field error.
REFUSED_PROBLEMS = {
    "bad-cursor": "A cursor is a text that only the list which made it can read.",
    "malformed-request": (
        "Text has no NUL character or half a surrogate pair, a body at most 100 levels."
    ),
    "idempotency-key-reused": "A key belongs to its first request.",
    "precondition-failed": "A tag that is none of the present ones.",
}
REFUSED_FIELDS = {
    "int_type": "1.0 is an integer to JSON Schema, but a floating-point number here.",
    "int_from_float": "The same.",
    "value_error": (
        "Text that cannot be shown; invalid dates; fields that exclude each other; "
        "a rule of the library."
    ),
    "unknown_parameter": "A misspelt filter, if it were ignored, would show everything.",
    "unknown_model": "A model, policy, placer or cluster must exist under its name.",
    "unknown_cluster": "The same.",
    "unknown_tenant": "The same.",
    "unknown_topic": "The same.",
    "no_such_job": "The same.",
    "no_such_gpu_type": "The same.",
    "no_such_gpu": "A node has the GPUs that it has.",
    "out_of_range": "A model has the batch sizes that it was measured at.",
    "above_max_batch_size": "Fields that bound each other.",
    "either_or": "One field or the other.",
    "past": "A deadline lies ahead.",
    "over": "A reservation ends after it begins, and after now.",
    "twice": "Every file of an upload has a name of its own.",
    "exceeds_cluster": "A cluster has the GPUs that it has.",
}
# Rules of the library about several values, by class of the error (maat/scheduling/errors.py).
REFUSED_RULES = {
    input_field_error(kind("is not right", field="x", value=1, remedy="Correct it."), "/x").code
    for kind in RULES
}

EXCLUDED = (
    "ignored_auth",
    "object_level_authorization",
    "use_after_free",
    "ensure_resource_availability",
)  # tests of identity and state


class Local:
    """The application as a client of the same machine reaches it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(
            {**scope, "client": ("127.0.0.1", 50000)} if scope["type"] == "http" else scope,
            receive,
            send,
        )


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Settings(
        _env_file=None,
        data_dir=tmp_path_factory.mktemp("contract"),
        database_url="",
        demo=True,
        max_upload_bytes=200_000,
    )
    database = Database.of(made)
    ensure_defaults(database, made)
    database.dispose()
    return schemathesis.openapi.from_asgi(
        "/openapi.json", Local(create_app(made, queue=RememberingQueue()))
    )


def operations(schema: Any) -> Iterator[Any]:
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path != "/api/v1/events":  # a stream does not end
            yield operation


def unexplained(response: Any) -> list[str]:
    """Why a request that the document allows was refused, where the lists above do not say so."""
    problem = response.json()
    slug = problem["type"].removeprefix("/problems/")
    if slug in REFUSED_PROBLEMS:
        return []
    codes = [error["code"] for error in problem["errors"]] or [slug]
    return [
        f"{code}: {problem['detail'][:200]}"
        for code in codes
        if code not in REFUSED_FIELDS and code not in REFUSED_RULES
    ]


def findings(operation: Any, *, examples: int, mode: GenerationMode) -> list[str]:
    found: list[str] = []
    checks = [check for check in CHECKS.get_all() if check.__name__ not in EXCLUDED]

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        response = case.call(base_url="http://127.0.0.1:8000")
        for check in checks:
            try:
                case.validate_response(response, checks=[check])
            except (Failure, FailureGroup) as failure:
                if check.__name__ == "negative_data_rejection" and response.status_code == 207:
                    continue  # a partial batch answers for each of its jobs
                why = (
                    unexplained(response)
                    if check.__name__ == "positive_data_acceptance"
                    else [told(failure)]
                )
                found.extend(
                    f"{operation.label}: {check.__name__}: {response.status_code}: {reason}"
                    for reason in why
                )

    with suppress(Unsatisfiable):  # what takes nothing can be asked nothing wrong
        ask()
    return found


def told(failure: BaseException) -> str:
    parts = failure.exceptions if isinstance(failure, BaseExceptionGroup) else (failure,)
    return " ".join(str(part) for part in parts)[:500]


def test_every_operation_keeps_to_the_document(schema: Any) -> None:
    found = [
        finding
        for operation in operations(schema)
        for finding in findings(operation, examples=3, mode=GenerationMode.POSITIVE)
    ]
    for operation in operations(schema):
        if operation.body or operation.query:  # to spoil a path alone takes long, and says little
            found += findings(operation, examples=2, mode=GenerationMode.NEGATIVE)
    assert found == []


@pytest.mark.long
def test_every_operation_keeps_to_the_document_with_many_requests(schema: Any) -> None:
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    assert [
        found
        for operation in operations(schema)
        for mode in modes
        for found in findings(operation, examples=100, mode=mode)
    ] == []


def test_every_deliberate_refusal_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    for name in (*REFUSED_PROBLEMS, *REFUSED_FIELDS):
        assert f"`{name}`" in page, name
