"""Which field was meant by one that does not exist: the nearest name of the same object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

_NEAR = 0.75  # of difflib's ratio: max_gpu and max_gpus have 0.93


def meant_field(schema: object, parts: Sequence[str]) -> str | None:
    """Return the field nearest to the last of `parts`, which lead there from a schema's object."""
    objects = list(_models(schema))
    for part in parts[:-1]:
        if part.isdigit():
            continue  # an entry of a list is an object of the list's own schema
        objects = [
            inner
            for model in objects
            if part in model.model_fields
            for inner in _models(model.model_fields[part].annotation)
        ]
    names = [name for model in objects for name in _names(model)]
    return next(iter(get_close_matches(parts[-1], names, n=1, cutoff=_NEAR)), None)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the schemas that an annotation names: itself, or those inside of it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Union, UnionType, Annotated, list, tuple, dict):
        for inner in get_args(annotation):
            yield from _models(inner)


def _names(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name
