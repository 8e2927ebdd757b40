"""What must be asked before records can be read, and the answers that were given.

A guess that may be wrong without a sign is a question: the command line exits with its choices, the
REST API answers problem+json, and the page shows it beside the field of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.dates import DayOrder, zone_of
from maat.workloads.formats.foreign.numbers import Decimal
from maat.workloads.formats.foreign.units import Unit


class TraceQuestion(TraceError):
    """A file that can be read in several ways. `field`: the setting whose value is the answer.

    `about`: of the settings `mapping` and `units`, the meaning of a column; else "". `choices`: the
    values that the setting may have here.
    """

    def __init__(
        self,
        problem: str,
        *,
        field: str,
        about: str = "",
        choices: Sequence[str],
        value: object = None,
        remedy: str | None = None,
        source: str | None = None,
        row: int | None = None,
    ) -> None:
        self.about, self.choices = about, tuple(choices)
        self._is_default = remedy is None
        option = {"mapping": "--map", "units": "--unit"}.get(field, f"--{field}")
        answers = [f"{option} {about}={each}" if about else f"{option} {each}" for each in choices]
        remedy = remedy or f"Say which it is: {' or '.join(answers)}."
        super().__init__(problem, field=field, value=value, remedy=remedy, source=source, row=row)

    @property
    def remedy_in_request(self) -> str:
        """The remedy for who asked by the REST API, which has fields and no options."""
        if not self._is_default:
            return self.remedy
        named = f"{self.field}.{self.about}" if self.about else self.field
        return f"Say which it is: {named} is {' or '.join(self.choices)}."


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """The answers.

    Attributes:
        zone: Of times without one, such as Europe/Berlin; None: UTC, and the report says so.
        dates: Which number of 02/03/2026 is the day.
        decimal: What stands before the decimals of a number.
        units: Of numbers of `duration`, `submit`, `start` and `end`.
    """

    zone: str | None = None
    dates: DayOrder | None = None
    decimal: Decimal | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)

    def tzinfo(self) -> tzinfo:
        """Return the zone. Raises TraceError if there is none of its name."""
        if self.zone is None:
            return UTC
        zone = zone_of(self.zone)
        if zone is None:
            raise TraceError(
                "is no time zone",
                field="zone",
                value=self.zone,
                remedy="Write a name such as Europe/Berlin, or an offset such as +01:00.",
            )
        return zone
