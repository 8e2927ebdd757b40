"""What tenants compute for simulations and other work that they ask for."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Timestamp


class KindUseOut(TypedDict):
    """CPU seconds of one kind of work, as of operations."""

    kind: str
    cpu_seconds: float


class LaboratoryUseOut(TypedDict):
    """What a tenant has computed within the last 24 hours, and what it has left."""

    tenant_id: str
    tenant: str
    used_cpu_seconds: float
    budget_cpu_seconds: Annotated[
        float | None, Field(description="Of a tenant within 24 hours; null: there is no limit.")
    ]
    left_cpu_seconds: float | None
    free_at: Annotated[
        Timestamp | None,
        Field(description="When requests are taken again, if nothing is left now."),
    ]
    run_cpu_seconds: Annotated[
        float | None, Field(description="The most that one run may take; null: there is no limit.")
    ]
    by_kind: list[KindUseOut]


def use_words(use: LaboratoryUseOut) -> str:
    """Return what a tenant has used and what it has left, as a sentence."""
    used, budget = use["used_cpu_seconds"] / 3600, use["budget_cpu_seconds"]
    if budget is None:
        return f"{use['tenant']} has used {used:.2f} CPU hours within 24 hours."
    left = (use["left_cpu_seconds"] or 0.0) / 3600
    of = f"{use['tenant']} has used {used:.2f} of {budget / 3600:g} CPU hours within 24 hours"
    if use["free_at"] is None:
        return f"{of}; {left:.2f} are left."
    return f"{of}. Its runs wait, and requests are refused, until {use['free_at']}."
