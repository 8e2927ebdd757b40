"""The options for the interval of rounds: of all policies, or of one compared policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer

from maat.cli.numbers import number_option
from maat.library.numbers import number_reader
from maat.scheduling.errors import ParameterError
from maat.vocabulary import LEAST_ROUND_SECONDS, MOST_ROUND_SECONDS

RoundSeconds = Annotated[
    float | None,
    number_option(
        "--round-seconds",
        least=LEAST_ROUND_SECONDS,
        most=MOST_ROUND_SECONDS,
        help="Seconds between rounds; default: the policy's own.",
    ),
]
RoundsOfEach = Annotated[
    list[str] | None,
    typer.Option(
        "--round-seconds",
        help="Seconds between rounds: NUMBER for all policies, or POLICY=NUMBER for one, by its "
        "name or label. May be repeated; default: each policy's own.",
    ),
]

_read = number_reader("round_seconds", least=LEAST_ROUND_SECONDS, most=MOST_ROUND_SECONDS)


@dataclass(frozen=True)
class Rounds:
    """Seconds between rounds. `of_all` None: each policy's own; `by_label`: of one policy."""

    of_all: float | None = None
    by_label: Mapping[str, float] = field(default_factory=dict)


def read_rounds(texts: Sequence[str]) -> Rounds:
    """Read NUMBER for all policies, or LABEL=NUMBER for one. Raises ParameterError."""
    found: dict[str, float] = {}
    for text in texts:
        label, equals, seconds = (part.strip() for part in text.rpartition("="))
        if equals and not label:
            raise ParameterError(
                "has no policy before the =",
                field="round_seconds",
                value=text,
                remedy=f"Write {seconds} for all policies, or for example sia={seconds}.",
            )
        if label in found:
            raise ParameterError(
                "is given twice", field="round_seconds", value=text, remedy="Give each once."
            )
        found[label] = _read(seconds)
    return Rounds(found.pop("", None), found)
