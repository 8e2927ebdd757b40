"""Slurm's JSON: what an answer holds, and the forms in which versions write one value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from maat.scheduling.errors import InputError, MaatError


class UnreadableAnswer(MaatError):
    """An answer of Slurm is not what it should be. The text says how."""


class SlurmSays(UnreadableAnswer):
    """An answer of Slurm is an error, told in its words."""


def answer_in(text: str) -> Mapping[str, Any]:
    """Return an answer. Raises UnreadableAnswer, and SlurmSays if it is an error."""
    data = mapping_in(text)
    if words := errors_of(data):
        raise SlurmSays(f"Slurm says: {words}. See whether slurmctld runs: `scontrol ping`.")
    return data


def errors_of(data: Mapping[str, Any]) -> str:
    """Return the errors that an answer tells, in Slurm's words; "" if it tells none."""
    return _words(data["errors"]) if data.get("errors") else ""


def mapping_in(text: str) -> Mapping[str, Any]:
    """Return an answer with whatever errors it tells. Raises UnreadableAnswer."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableAnswer(f"is no JSON: {error}") from None
    if not isinstance(data, Mapping):
        raise UnreadableAnswer("is no answer in JSON")
    return data


@contextmanager
def reading() -> Iterator[None]:
    """Turn what goes wrong while an answer is read into UnreadableAnswer."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        what = f"has no {error.args[0]}" if isinstance(error, KeyError) else "has another form"
        raise UnreadableAnswer(what) from None
    except InputError as error:
        raise UnreadableAnswer(str(error)) from None


def number(value: object) -> int:
    """Return a number, which versions since 23.02 wrap; 0 if it is not set, or infinite."""
    value = _unwrapped(value)
    return int(value) if isinstance(value, int | float) else 0


def number_text(value: object) -> str:
    """Return a number as a table shows it; what is none as it is written, empty if not set."""
    value = _unwrapped(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else text_of(value)


def _unwrapped(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    is_finite = value.get("set", True) and not value.get("infinite", False)
    return value.get("number") if is_finite else 0


def text_of(value: object) -> str:
    """Return a text, which some versions wrap with who wrote it; empty if there is none."""
    if isinstance(value, Mapping):
        value = value.get("description")
    return "" if value is None else str(value)


def _words(errors: object) -> str:
    """`Unspecified error`: what a list of errors says, each once."""
    listed = errors if isinstance(errors, list) else [errors]
    texts = [
        str(each.get("description") or each.get("error") or each)
        if isinstance(each, Mapping)
        else str(each)
        for each in listed
    ]
    return "; ".join(dict.fromkeys(texts))[:300]
