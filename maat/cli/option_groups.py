"""Options that several commands share.

A command takes a dataclass of options, and typer shows each field as an option of its own.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the groups in a command's signature by their fields, which typer reads.

    A group is a parameter whose type is a dataclass: its fields are annotated as typer's options
    and have defaults. They replace it in their order; the call builds the group from them.
    """
    hints = typing.get_type_hints(command, include_extras=True)
    groups = {
        name: kind
        for name, kind in hints.items()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
    }
    options = {name: tuple(_options(kind)) for name, kind in groups.items()}

    def ungrouped(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{option.name: given.pop(option.name) for option in options[name]})
        command(**given)

    own = [
        option
        for parameter in inspect.signature(command).parameters.values()
        for option in options.get(
            parameter.name, (_option(parameter.name, hints[parameter.name], parameter.default),)
        )
    ]
    ungrouped.__name__, ungrouped.__doc__, ungrouped.__module__ = (
        command.__name__,
        command.__doc__,
        command.__module__,
    )
    ungrouped.__annotations__ = {option.name: option.annotation for option in own} | {
        "return": None
    }
    # inspect and typer read it.
    ungrouped.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return ungrouped


def _options(group: type) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(group, include_extras=True)
    return [
        _option(field.name, hints[field.name], field.default) for field in dataclasses.fields(group)
    ]


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )
