"""Fields of requests that several nouns share: text without control characters, finite numbers, times. Strict: "4" is no number."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from maat.scheduling.cluster import MAX_GPUS
from maat.scheduling.job import MAX_TEXT

LARGEST_BATCH = 2**31 - 1


class Body(BaseModel):
    """What a request may hold: exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _printable(text: str) -> str:
    if text != text.strip():
        raise ValueError("It begins or ends with white space: leave that out")
    if not text.isprintable():
        raise ValueError("It holds characters that cannot be shown: use letters, digits, spaces and signs")
    return text


Name = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(_printable)]
GpuCount = Annotated[int, Field(ge=1, le=MAX_GPUS)]
BatchSize = Annotated[int, Field(ge=1, le=LARGEST_BATCH)]

Moment = Annotated[AwareDatetime, Field(description="RFC 3339 with an offset, such as 2026-11-20T12:00:00Z.")]


def _read_moment(given: object) -> object:
    """A body is strict, and JSON has no times: text is read here, anything else is refused."""
    if not isinstance(given, str):
        raise ValueError("It is no text with a time: write for example 2026-11-20T12:00:00Z")
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        raise ValueError("It is no time: write for example 2026-11-20T12:00:00Z") from None


BodyMoment = Annotated[Moment, BeforeValidator(_read_moment)]


def rfc3339(moment: datetime) -> str:
    """UTC with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[datetime, PlainSerializer(rfc3339, return_type=str)]
