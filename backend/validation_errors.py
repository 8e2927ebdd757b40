"""Turns pydantic's errors into field errors with a place and a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend.near_fields import meant_field
from backend.problems import FieldError

_COMMAND = "run"
_SECRETS = {"secret_env", "secret"}  # what stands in them is not shown again
_PASSWORD = "password"  # noqa: S105  (part of members' names; what they hold is not shown)
_NAME = "[key]"  # pydantic's place of a member's name
_PARAMETERS = ("query", "path", "header", "cookie")
_PLACES = ("body", *_PARAMETERS)


def field_error(found: Mapping[str, Any], schema: object = None) -> FieldError:
    """Return pydantic's error as a field error. `schema`: of the body, if it is known."""
    location = [str(part) for part in found["loc"]]
    parts = location[1:] if location and location[0] in _PLACES else location
    if parts and parts[-1] == _NAME:
        parts = parts[:-1]
    if location and location[0] in _PARAMETERS:
        parts = parts[:1]  # one that is given several times has no entries in the address
    pointer = "".join("/" + pointer_part(part) for part in parts)
    hidden = found["type"] == "missing" or _may_hold_secrets(parts, found)
    value = None if hidden else found.get("input")
    message, remedy = _own_words(found) or (_message(found), _remedy(found))
    meant = meant_field(schema, parts) if parts and found["type"] == "extra_forbidden" else None
    if meant is not None:
        remedy = f"Did you mean {meant}? Else leave it out: this field does not exist here."
    return FieldError(pointer, found["type"], f"{message}.", remedy, value)


def _own_words(found: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return message and remedy of an error that a schema raises itself, as `message: remedy`.

    Without a colon it is the remedy alone.
    """
    if found["type"] != "value_error":
        return None
    message, _, remedy = found["msg"].removeprefix("Value error, ").rstrip(".").partition(": ")
    if not remedy:
        message, remedy = "This value cannot be used", message
    return message, f"{remedy[0].upper()}{remedy[1:]}."


def _message(found: Mapping[str, Any]) -> str:
    """Return pydantic's message, but not one that lists what the remedy lists."""
    if found["type"] in ("enum", "literal_error"):
        return "There is no such value"
    return str(found["msg"])


def _may_hold_secrets(parts: Sequence[str], found: Mapping[str, Any]) -> bool:
    """Return whether the wrong value is a password, or could be a command's secret elsewhere."""
    if any(_PASSWORD in part for part in parts):
        return True
    is_misplaced = found["type"] == "extra_forbidden" or isinstance(found.get("input"), dict | list)
    return not _SECRETS.isdisjoint(parts) or (_COMMAND in parts and is_misplaced)


def _is_model_of_command(found: Mapping[str, Any]) -> bool:
    given = found.get("input")
    return found["loc"][-1] == "model" and isinstance(given, dict) and bool(given.get("run"))


def pointer_part(name: str) -> str:
    """Escape a member's name for a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _remedy(found: Mapping[str, Any]) -> str:
    limits = found.get("ctx", {})
    match found["type"]:
        case "missing" if _is_model_of_command(found):
            return 'Give any name for what the command trains, such as "model": "my-net".'
        case "missing":
            return "Give this field."
        case "extra_forbidden":
            return "Leave it out: this field does not exist here."
        case "literal_error" | "enum":
            return f"Use one of {limits.get('expected')}."
        case "greater_than_equal" | "greater_than":
            least = limits.get("ge", limits.get("gt"))
            return f"Give {'at least' if 'ge' in limits else 'more than'} {least}."
        case "less_than_equal" | "less_than":
            most = limits.get("le", limits.get("lt"))
            return f"Give {'at most' if 'le' in limits else 'less than'} {most}."
        case "string_too_long":
            return f"Give at most {limits.get('max_length')} characters."
        case "string_too_short":
            return f"Give at least {limits.get('min_length')} characters."
        case "too_long":
            return f"Give at most {limits.get('max_length')} entries."
        case "too_short":
            return f"Give at least {limits.get('min_length')} entries."
        case "string_pattern_mismatch":
            return f"Give a text of the form {limits.get('pattern')}."
        case "finite_number":
            return "Give a finite number."
        case "float_parsing" | "float_type":
            return "Give a number."
        case "int_parsing" | "int_type" | "int_from_float":
            return "Give a whole number."
        case "bool_parsing" | "bool_type":
            return "Give true or false."
        case "string_type":
            return "Give a text."
        case "list_type":
            return "Give a list."
        case "dict_type" | "model_type" | "model_attributes_type":
            return "Give an object."
        case _:
            return "The schema at /docs shows what is expected."
