"""Use and cost of a cluster: GPU-hours, utilisation, waits, prices."""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from typing_extensions import TypedDict

from maat.api.fields import Body, GpuTypeName, Timestamp
from maat.api.periods import PeriodOut

OTHER_TENANTS = "other tenants"
"""Stands for all tenants whose rows the reader may not see."""

FORMULAS = {
    "allocated": "GPUs held × hours; a GPU that k jobs share counts 1/k for each",
    "used": "allocated less profiles and less restarts: the hours in which jobs ran",
    "lost": "used after the last checkpoint before a failure",
    "useful": "(used - lost) × efficiency; efficiency = effective samples / samples processed, "
    "at most 1, and 1 where nobody measured it",
    "idle": "usable GPUs × hours, less allocated",
    "utilisation": "allocated / (usable GPUs × hours)",
    "fragmented": "free GPUs × hours while jobs waited for lack of a fitting shape, at most what "
    "these jobs asked for",
    "reserved_idle": "free GPUs × hours that were reserved for a holder who did not use them",
    "waits": "from submission to the first GPU, of the jobs first started in the period; quantiles "
    "to 1 %",
    "cost": "allocated × the price of the GPU type that was valid on the day",
}
"""The definition of each figure, in words. docs/usage.md has them with symbols."""


class UsageBy(StrEnum):
    """What a report's rows are."""

    TENANT = "tenant"
    USER = "user"
    GPU_TYPE = "gpu_type"
    MODEL = "model"
    LABEL = "label"
    DAY = "day"


class WaitsOut(TypedDict):
    """How long jobs waited for their first GPU. Null without a job."""

    jobs: Annotated[int, Field(description="First started in the period.")]
    mean_seconds: float | None
    median_seconds: Annotated[float | None, Field(description="To 1 %.")]
    p90_seconds: Annotated[float | None, Field(description="To 1 %.")]
    longest_seconds: float | None


class UsageFigures(TypedDict):
    """GPU-hours and what they cost.

    allocated = profile + restart + used. used = lost + useful + what inefficiency takes.
    """

    allocated_gpu_hours: float
    profile_gpu_hours: Annotated[float, Field(description="Held to measure step times.")]
    restart_gpu_hours: Annotated[float, Field(description="Held while starting or ending.")]
    used_gpu_hours: float
    lost_gpu_hours: Annotated[float, Field(description="Spent on what a failure undid.")]
    useful_gpu_hours: Annotated[float, Field(description="(used - lost) x efficiency.")]
    unmeasured_gpu_hours: Annotated[
        float, Field(description="Part of useful whose efficiency was not measured, and counts 1.")
    ]
    cost: Annotated[
        str | None, Field(description="A decimal; null if no hour of these has a price.")
    ]
    unpriced_gpu_hours: float


class UsageRow(TypedDict):
    """The use of one tenant, user, GPU type, model, label or day.

    `name`: of a label `key=value`; of a day such as 2026-11-20.
    """

    name: str
    figures: UsageFigures
    waits: Annotated[WaitsOut | None, Field(description="By tenant, model and day.")]
    allocated_gpu_hours_by_day: Annotated[
        list[float] | None, Field(description="One for each of `days`; only with per_day.")
    ]


class TypeUse(TypedDict):
    """How far the GPUs of a type were used, by all tenants together.

    `utilisation`: allocated / capacity; null without capacity. `*_cost`: at the type's price.
    """

    gpu_type: str
    capacity_gpu_hours: float
    allocated_gpu_hours: float
    used_gpu_hours: float
    useful_gpu_hours: float
    idle_gpu_hours: float
    fragmented_gpu_hours: float
    reserved_idle_gpu_hours: float
    utilisation: float | None
    price_per_gpu_hour: Annotated[
        str | None, Field(description="At the end of the period; null without one.")
    ]
    idle_cost: str | None
    fragmented_cost: str | None
    reserved_idle_cost: str | None


class DayUse(TypedDict):
    """One day of the period; `is_partial`: not all of it has passed, or belongs to the period."""

    day: str
    is_partial: bool
    figures: UsageFigures
    capacity_gpu_hours: float


class UsageOut(TypedDict):
    """What a cluster's GPUs were used for in a period of its own time.

    `rows`: what the reader may see; `others`: the sum of all other tenants, null for those who see
    all. `total`: both. Labels overlap, so their rows do not add up.
    """

    cluster_id: str
    cluster: str
    period: PeriodOut
    as_of: Annotated[Timestamp, Field(description="The cluster's present time.")]
    by: UsageBy
    currency: str | None
    total: UsageFigures
    waits: WaitsOut
    rows: list[UsageRow]
    others: UsageRow | None
    gpu_types: list[TypeUse]
    days: list[DayUse]
    formulas: dict[str, str]


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PRICE = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,6})?")


def _read_day(given: object) -> object:
    if not isinstance(given, str) or not _DATE.fullmatch(given):
        raise ValueError("This is not a day: write for example 2026-11-20")
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise ValueError("This day does not exist: write for example 2026-11-20") from None


def _price(text: str) -> str:
    if not _PRICE.fullmatch(text):
        raise ValueError("This is not a price: write a decimal such as 2.50, with 6 places at most")
    if text.startswith("-"):
        raise ValueError("A price is not negative: write 0 or more")
    return text


def _currency(text: str) -> str:
    if not re.fullmatch("[A-Z]{3}", text):
        raise ValueError("This is not a currency: write its three letters, such as EUR")
    return text


Day = Annotated[
    date, BeforeValidator(_read_day), Field(description="A day in UTC, such as 2026-11-20.")
]
"""A day in a request."""
Price = Annotated[
    str,
    Field(description="Per GPU-hour: a decimal as text, such as 2.50."),
    AfterValidator(_price),
]
Currency = Annotated[str, Field(description="ISO 4217, such as EUR."), AfterValidator(_currency)]


class PriceBody(Body):
    """What a GPU-hour of a type costs from a day on.

    All prices of a cluster are in one currency.
    """

    gpu_type: GpuTypeName
    price_per_gpu_hour: Price
    currency: Currency
    valid_from: Day | None = Field(default=None, description="Default: today, in cluster time.")


class PriceChange(Body):
    """What to correct of a price; what is left out stays."""

    price_per_gpu_hour: Price | None = None
    valid_from: Day | None = None


class PriceOut(TypedDict):
    """A price. `valid_until`: the first day on which the next one counts; null for the last."""

    id: str
    cluster_id: str
    gpu_type: str
    price_per_gpu_hour: str
    currency: str
    valid_from: str
    valid_until: str | None
    is_valid_now: bool
    version: int
    created_at: Timestamp
