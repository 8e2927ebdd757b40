"""Fields that several nouns share. Strict: the text "4" is not a number."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ModelWrapValidatorHandler,
    WithJsonSchema,
    model_validator,
)
from typing_extensions import TypedDict

from maat.api.mistakes import checked
from maat.shown_text import is_shown
from maat.vocabulary import (
    LARGEST_INTEGER,
    LEAST_ROUND_SECONDS,
    MAX_GPUS,
    MAX_MOVES_PER_HOUR,
    MAX_STAY_SECONDS,
    MAX_TEXT,
    MOST_ROUND_SECONDS,
)

Item = TypeVar("Item")

LARGEST_BATCH = LARGEST_INTEGER

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_ID = re.compile(r"[a-z]+_[0-9a-z]{26}", re.IGNORECASE)
_LIKE_THIS = (
    "write for example 2026-11-20T12:00:00Z or 2026-11-20T13:00:00+01:00 (in an address, + is %2B)"
)
_TOO_LATE = datetime(9999, 1, 1, tzinfo=UTC)  # sums with a cluster's time must still be dates


class Body(BaseModel):
    """A request with exactly these fields, of exactly these types.

    What is wrong with one is told without what was given, which may be a secret.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, value: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        return checked(value, check)


class Page(TypedDict, Generic[Item]):
    """One page of a list. `next_cursor` is null on the last."""

    items: list[Item]
    next_cursor: Annotated[
        str | None,
        Field(description="Pass it as `cursor` for the next page; null on the last."),
    ]


def _shown(text: str) -> str:
    if text != text.strip():
        raise ValueError("The text begins or ends with white space: leave that out")
    if not is_shown(text):
        raise ValueError(
            "The text holds characters that cannot be shown: use letters, digits, spaces and signs"
        )
    return text


def _addressable(name: str) -> str:
    if not name.isprintable():
        raise ValueError(
            "The name stands in addresses: leave out joiners and marks that turn the direction of "
            "writing"
        )
    if "/" in name or name in (".", ".."):
        raise ValueError(
            "The name stands in addresses: leave out /, and do not call it . or .. alone"
        )
    if _ID.fullmatch(name):
        raise ValueError("The name looks like an id, and both find the same: give another name")
    return name


Name = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(_shown)]
ModelName = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_shown)]
NameInAddresses = Annotated[Name, AfterValidator(_addressable)]
"""The name of what is addressed by its id or by its name."""
GpuTypeName = Annotated[str, Field(min_length=1, max_length=48)]
GpuCount = Annotated[int, Field(ge=1, le=MAX_GPUS)]
BatchSize = Annotated[int, Field(ge=1, le=LARGEST_BATCH)]
RoundSeconds = Annotated[float, Field(ge=LEAST_ROUND_SECONDS, le=MOST_ROUND_SECONDS)]
LeastStay = Annotated[float, Field(ge=0, le=MAX_STAY_SECONDS)]
MostMoves = Annotated[int, Field(ge=1, le=MAX_MOVES_PER_HOUR)]
LEAST_STAY = (
    "A round leaves a job on its GPUs until it has held them for so many seconds. Default: no "
    "bound."
)
MOST_MOVES = (
    "A round leaves a job on its GPUs while it was moved so often within the last hour; a first "
    "start is no move. Default: no bound."
)
NO_BOUND = "Null takes the bound away."
Parameters = Annotated[dict[str, Any], Field(max_length=100)]


def _not_null(given: object) -> object:
    if given is None:
        raise ValueError("Null changes nothing: give a value, or leave the field out")
    return given


NEVER_NULL = BeforeValidator(_not_null)
"""Of a field that may be left out, which is None in code."""


def _read_moment(given: object) -> object:
    """Read RFC 3339 only: pydantic alone would accept a number as seconds since 1970."""
    if not isinstance(given, str) or not _RFC3339.fullmatch(given):
        raise ValueError(f"This is not a time: {_LIKE_THIS}")
    try:
        moment = datetime.fromisoformat(given.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"This time does not exist: {_LIKE_THIS}") from None
    if moment >= _TOO_LATE:
        raise ValueError("The time is too far in the future: give one before the year 9999")
    return moment


Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_read_moment),
    Field(description="RFC 3339 with an offset, such as 2026-11-20T12:00:00Z."),
]
"""A time in a request."""

Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in an answer, as `rfc3339` writes it."""

AsStored = GetPydanticSchema(lambda _source, schema: schema(dict[str, Any] | None))
"""Marks a part of an answer that was stored as JSON: it is passed on unchecked."""


def rfc3339(moment: datetime) -> str:
    """Write a time in UTC with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class FieldWarning(TypedDict):
    """Why no round starts a job as its cluster stands, at the field that could be changed.

    Told when a job is submitted or tried, and of a stored job as long as it is its reason.
    `message` is the sentence of that reason; `field` is the last name of `pointer`.
    """

    pointer: str
    field: str
    code: str
    message: str
    remedy: str
    value: Any
