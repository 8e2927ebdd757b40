"""How near promises came to what happened. A promise may be held, and say little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from maat.api.forecasts import SharpnessOut

MINUTE = 60.0


@dataclass(frozen=True)
class Aimed:
    """A promised time beside what happened, cluster seconds. None: later than known."""

    p50: float | None
    p90: float | None
    actual: float | None

    def was_near(self, seconds: float, now: float) -> bool | None:
        """Return whether P50 came so near, before or after; None while that is not known."""
        if self.actual is not None:
            return self.p50 is not None and abs(self.p50 - self.actual) <= seconds
        return None if self.p50 is None or self.p50 + seconds > now else False


def sharpness_of(
    quantity: Literal["start", "end"], aimed: Sequence[Aimed], now: float
) -> SharpnessOut:
    widths = [one.p90 - one.p50 for one in aimed if one.p50 is not None and one.p90 is not None]
    errors = [
        abs(one.p50 - one.actual) for one in aimed if one.p50 is not None and one.actual is not None
    ]
    return SharpnessOut(
        quantity=quantity,
        promises=len(_hits_within(aimed, 10 * MINUTE, now)),
        within_1_minute=_share(_hits_within(aimed, MINUTE, now)),
        within_10_minutes=_share(_hits_within(aimed, 10 * MINUTE, now)),
        median_error_seconds=median(errors) if errors else None,
        median_width_seconds=median(widths) if widths else None,
    )


def _hits_within(aimed: Sequence[Aimed], seconds: float, now: float) -> list[bool]:
    return [near for one in aimed if (near := one.was_near(seconds, now)) is not None]


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
