"""What GPU time costs by a price list, exactly: in whole GPU milliseconds and millionths. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal

from backend.usage.models import GpuPrice

MS_PER_HOUR = 3_600_000
MICROS = 1_000_000
_CENT = Decimal("0.01")


@dataclass(frozen=True)
class Cost:
    """An amount, as millionths x GPU milliseconds, and the GPU milliseconds without a price."""

    amount: int = 0
    unpriced_ms: int = 0
    is_priced: bool = False

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.amount + other.amount,
            self.unpriced_ms + other.unpriced_ms,
            self.is_priced or other.is_priced,
        )

    @property
    def text(self) -> str | None:
        """The amount in units of the currency, to the cent; None if nothing of it has a price."""
        return decimal_text(self.amount, MICROS * MS_PER_HOUR) if self.is_priced else None


@dataclass(frozen=True)
class Era:
    """Days within which no price changes: from `first` up to and with `last`."""

    first: date
    last: date
    micros: Mapping[str, int]

    def cost(self, gpu_type: str, milliseconds: int) -> Cost:
        price = self.micros.get(gpu_type)
        if price is None:
            return Cost(unpriced_ms=milliseconds)
        return Cost(price * milliseconds, is_priced=milliseconds > 0)


def eras(prices: Sequence[GpuPrice], first: date, last: date) -> Iterator[Era]:
    """Part days into eras, in order. `prices`: of one cluster."""
    starts = sorted({first, *(one.valid_from for one in prices if first < one.valid_from <= last)})
    for at, start in enumerate(starts):
        end = last if at + 1 == len(starts) else date.fromordinal(starts[at + 1].toordinal() - 1)
        yield Era(start, end, prices_on(prices, start))


def prices_on(prices: Iterable[GpuPrice], day: date) -> dict[str, int]:
    """Return the price of each type that counts on a day, in millionths."""
    valid = sorted((one for one in prices if one.valid_from <= day), key=lambda one: one.valid_from)
    return {one.gpu_type: one.micros for one in valid}


def micros_of(text: str) -> int:
    return int(Decimal(text) * MICROS)


def price_text(micros: int) -> str:
    """Write a price with two places, or with as many as it needs."""
    value = (Decimal(micros) / MICROS).normalize()
    return str(max(value, value.quantize(_CENT), key=lambda one: -int(one.as_tuple().exponent)))


def decimal_text(amount: int, per_unit: int) -> str:
    return str((Decimal(amount) / per_unit).quantize(_CENT, ROUND_HALF_EVEN))
