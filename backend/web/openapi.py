"""The OpenAPI document: FastAPI's own, plus problems as error answers and tokens."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from backend.problems import FieldError, Invalid, all_problems
from backend.web.problem_responses import MEDIA_TYPE

_FIELD_ERROR = {
    "type": "object",
    "required": ["pointer", "field", "code", "message", "remedy", "value"],
    "properties": {
        "pointer": {
            "type": "string",
            "description": "JSON Pointer into the body, or /name of a parameter.",
        },
        "field": {"type": "string"},
        "value": {"description": "The value given, shortened."},
        "code": {"type": "string"},
        "message": {"type": "string"},
        "remedy": {"type": "string", "minLength": 1},
        "row": {"type": "integer", "description": "Row of a table, or index in a batch."},
        "column": {"type": "string", "description": "Column of a table."},
    },
}
_PROBLEM = {
    "type": "object",
    "required": [
        "type",
        "title",
        "status",
        "detail",
        "remedy",
        "instance",
        "request_id",
        "retryable",
        "errors",
    ],
    "properties": {
        "type": {
            "type": "string",
            "enum": sorted({f"/problems/{p.slug}" for p in all_problems()} | {"about:blank"}),
        },
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "remedy": {"type": "string", "minLength": 1, "description": "What to do next."},
        "instance": {"type": "string"},
        "request_id": {"type": "string"},
        "retryable": {
            "type": "boolean",
            "description": "Whether the same request may succeed in a moment.",
        },
        "errors": {"type": "array", "items": {"$ref": "#/components/schemas/FieldError"}},
    },
}


def install_openapi(app: FastAPI) -> None:
    """Build the document once, on first request."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI documents this way


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, summary=app.summary, routes=app.routes
    )
    components = document.setdefault("components", {})
    components.setdefault("schemas", {}).update({"Problem": _PROBLEM, "FieldError": _FIELD_ERROR})
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "maat_..."},
        "session": {"type": "apiKey", "in": "cookie", "name": "__Host-maat_session"},
    }
    document["security"] = [{"token": []}, {"session": []}, {}]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    for path in document["paths"].values():
        for method, operation in path.items():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _problem_answer()
            for parameter in operation.get("parameters", []):
                _say_what_is_sent(method, parameter)
    return document


def _say_what_is_sent(method: str, parameter: dict[str, Any]) -> None:
    """Describe a parameter as sent or left out: null only means absent in code.

    A PATCH without If-Match is refused by its own problem (428), so the code accepts it as absent
    too.
    """
    schema = parameter["schema"]
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) == 1:
        parameter["schema"] = {
            name: value for name, value in schema.items() if name != "anyOf"
        } | kinds[0]
    if method == "patch" and parameter["name"] == "If-Match":
        parameter["required"] = True


def _problem_answer() -> dict[str, Any]:
    example = Invalid(
        "/min_gpus: The job needs more GPUs of one type than the cluster has. Give at most 24.",
        errors=[
            FieldError(
                "/min_gpus",
                "exceeds_cluster",
                "The job needs more GPUs of one type than the cluster has.",
                "Give at most 24.",
                99,
            )
        ],
    )
    shown = example.as_json(instance="/api/v1/jobs", request_id="5f2b1c9d0e3a4b67")
    content = {
        "schema": {"$ref": "#/components/schemas/Problem"},
        "examples": {Invalid.slug: {"value": shown}},
    }
    return {"description": "A problem (RFC 9457).", "content": {MEDIA_TYPE: content}}
