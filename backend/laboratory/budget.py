"""The CPU budget of tenants in the laboratory: what is left of it, and who is refused."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.models import Tenant
from backend.accounts.principals import Principal
from backend.clocktime import utc_now
from backend.laboratory.models import LaboratoryUse
from backend.laboratory.use import WINDOW, hour_of
from backend.problems import Problem
from backend.settings import Settings
from maat.api.fields import rfc3339
from maat.api.laboratory import KindUseOut, LaboratoryUseOut

T = TypeVar("T")


class BudgetUsed(Problem):
    """The tenant has used its CPU budget of the last 24 hours."""

    remedy = "Wait as long as Retry-After says, or ask an operator for a larger budget."
    slug, title, status = "cpu-budget-used", "The CPU budget is used", 429
    retryable = True


@dataclass(frozen=True)
class Use:
    """CPU seconds of a tenant in the window, by hour and kind. `most`: its budget; inf: none."""

    seconds: Mapping[tuple[datetime, str], float]
    most: float

    @property
    def used(self) -> float:
        return sum(self.seconds.values())

    @property
    def left(self) -> float:
        return max(self.most - self.used, 0.0)

    def free_at(self) -> datetime | None:
        """Return when so much is too old to count that something is left; None: now."""
        used = self.used
        if used < self.most:
            return None
        for (hour, _), seconds in sorted(self.seconds.items()):
            used -= seconds
            if used < self.most:
                return hour + WINDOW
        return None


def most_seconds(hours: float) -> float:
    """Return a setting of hours in seconds; 0: no limit."""
    return hours * 3600.0 if hours else math.inf


def uses_of(session: Session, settings: Settings, *which: sa.ColumnElement[bool]) -> dict[str, Use]:
    """Return what tenants have used in the window."""
    found: dict[str, dict[tuple[datetime, str], float]] = defaultdict(dict)
    in_window = col(LaboratoryUse.hour) > hour_of(utc_now()) - WINDOW
    for row in session.exec(select(LaboratoryUse).where(in_window, *which)):
        found[row.tenant_id][row.hour, row.kind] = row.cpu_seconds
    most = most_seconds(settings.laboratory_cpu_hours)
    return {tenant_id: Use(seconds, most) for tenant_id, seconds in found.items()}


def without_budget(session: Session, settings: Settings) -> set[str]:
    """Return the tenants whose runs wait until some of what they used is a day old."""
    if not settings.laboratory_cpu_hours:
        return set()
    return {tenant for tenant, use in uses_of(session, settings).items() if use.left <= 0}


def check_budget(session: Session, principal: Principal, settings: Settings) -> None:
    """Raise BudgetUsed if the principal's tenant has nothing left."""
    mine = col(LaboratoryUse.tenant_id) == principal.tenant_id
    use = uses_of(session, settings, mine).get(principal.tenant_id)
    free_at = None if use is None else use.free_at()
    if use is None or free_at is None:
        return
    seconds = max(math.ceil((free_at - utc_now()).total_seconds()), 1)
    raise BudgetUsed(
        f"The tenant {principal.tenant_name} has used {use.used / 3600:.2f} of the "
        f"{use.most / 3600:g} CPU hours that a tenant has within 24 hours; 0 are left. "
        f"It is free again at {free_at:%Y-%m-%d %H:%M} UTC.",
        headers={"Retry-After": str(seconds)},
    )


def within_budget(
    principal: Principal, settings: Settings, prepare: Callable[[Session], T]
) -> Callable[[Session], T]:
    """Return `prepare` with a look at the budget before; it raises BudgetUsed."""

    def checked(session: Session) -> T:
        check_budget(session, principal, settings)
        return prepare(session)

    return checked


def shown_uses(
    session: Session, principal: Principal, settings: Settings
) -> list[LaboratoryUseOut]:
    """Return the use of the principal's tenant, then of others that used any and may be seen."""
    mine = (col(LaboratoryUse.tenant_id) == principal.tenant_id,)
    which = () if principal.sees_all_tenants else mine
    none = Use({}, most_seconds(settings.laboratory_cpu_hours))
    uses = {principal.tenant_id: none} | uses_of(session, settings, *which)
    named = select(Tenant.id, Tenant.name).where(col(Tenant.id).in_(uses))
    names: Sequence[tuple[str, str]] = session.exec(named).all()
    mine_first = sorted(names, key=lambda one: (one[0] != principal.tenant_id, one[1]))
    run = most_seconds(settings.run_cpu_hours)
    return [_shown(tenant_id, name, uses[tenant_id], run) for tenant_id, name in mine_first]


def _shown(tenant_id: str, name: str, use: Use, run: float) -> LaboratoryUseOut:
    free_at = use.free_at()
    by_kind: dict[str, float] = defaultdict(float)
    for (_, kind), seconds in use.seconds.items():
        by_kind[kind] += seconds
    return LaboratoryUseOut(
        tenant_id=tenant_id,
        tenant=name,
        used_cpu_seconds=use.used,
        budget_cpu_seconds=_finite(use.most),
        left_cpu_seconds=_finite(use.left),
        free_at=None if free_at is None else rfc3339(free_at),
        run_cpu_seconds=_finite(run),
        by_kind=[KindUseOut(kind=kind, cpu_seconds=used) for kind, used in sorted(by_kind.items())],
    )


def _finite(seconds: float) -> float | None:
    return None if math.isinf(seconds) else seconds
