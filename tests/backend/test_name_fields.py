"""Names that people choose obey one rule, whatever they name.

Control characters are refused. Marks that turn the direction of writing are kept, as scripts need
them: pages isolate them, terminals show their numbers. Names in addresses have neither.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

import maat.api
from maat.api.jobs import JobBody

NAMES = {"name", "tenant", "external_id", "source", "licence"}
NOT_CHOSEN = {("SignInBody", "name"), ("VaryBody", "name"), ("BulkFilter", "tenant")}
"""They find what has a name, or nothing: no row keeps them."""
CONTROLS = ["a\x00b", "a\x07b", "a\x1b[1mb", "a\nb", "a\x85b", "a\u2028b", "\u2069a"]
MARKED = "\u202eturned \u2067a\u2069\u200f"


def chosen_names() -> Iterator[tuple[str, str, TypeAdapter[Any]]]:
    for module in pkgutil.iter_modules(maat.api.__path__):
        loaded = importlib.import_module(f"maat.api.{module.name}")
        for name, body in inspect.getmembers(loaded, inspect.isclass):
            if not issubclass(body, BaseModel) or body.__module__ != loaded.__name__:
                continue
            for field, info in body.model_fields.items():
                if field in NAMES and (name, field) not in NOT_CHOSEN:
                    whole = Annotated[info.annotation, None, *info.metadata]
                    yield name, field, TypeAdapter(whole)


FIELDS = {f"{body}.{field}": schema for body, field, schema in chosen_names()}


def refuses(schema: TypeAdapter[Any], text: str) -> bool:
    try:
        schema.validate_python(text)
    except ValidationError:
        return True
    return False


def test_no_name_holds_control_characters() -> None:
    assert [
        (field, text)
        for field, schema in FIELDS.items()
        for text in CONTROLS
        if not refuses(schema, text)
    ] == []


def test_only_names_in_addresses_hold_no_marks_of_direction() -> None:
    refusing = {field for field, schema in FIELDS.items() if refuses(schema, MARKED)}
    assert refusing == {
        *("ClusterBody.name", "ClusterChanges.name", "NodeBody.name"),
        *("TenantBody.name", "TenantChanges.name", "UserBody.name"),
    }


@pytest.mark.parametrize("text", [*CONTROLS, MARKED])
@pytest.mark.parametrize("place", ["key", "value"])
def test_labels_hold_neither(text: str, place: str) -> None:
    labels = {text: "a"} if place == "key" else {"a": text}
    assert JobBody.model_validate({"name": "a", "model": "bert", "labels": {"a": "a"}})
    with pytest.raises(ValidationError):
        JobBody.model_validate({"name": "a", "model": "bert", "labels": labels})
