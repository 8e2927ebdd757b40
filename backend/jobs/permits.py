"""Which priorities and weights a principal may give a job."""

from __future__ import annotations

from backend.accounts.identity import Principal
from backend.accounts.permissions import Permission
from backend.problems import Forbidden
from maat.vocabulary import HEAVY_WEIGHT, PriorityClass, priority_class

_ASK = "or ask a manager of your tenant, who may (jobs:urgent)."


def permit_priority(principal: Principal, priority: int) -> None:
    """Raise Forbidden if the job would be urgent and the principal may not submit such jobs."""
    urgent = priority_class(priority) is PriorityClass.URGENT
    if urgent and not _may_go_before_others(principal):
        raise Forbidden(
            f"You may not submit urgent jobs: priority {priority} is urgent. Give high (10) or "
            f"less, {_ASK}"
        )


def permit_weight(principal: Principal, weight: float) -> None:
    """Raise Forbidden if the job would be heavy and the principal may not submit such jobs."""
    if weight > HEAVY_WEIGHT and not _may_go_before_others(principal):
        raise Forbidden(
            f"You may not give a job the weight {weight:g}. Give {HEAVY_WEIGHT:g} or less, {_ASK}"
        )


def _may_go_before_others(principal: Principal) -> bool:
    return Permission.JOBS_URGENT in principal.permissions
