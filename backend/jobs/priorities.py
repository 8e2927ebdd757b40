"""Which priorities a principal may give a job."""

from __future__ import annotations

from backend.accounts.identity import Principal
from backend.accounts.permissions import Permission
from backend.problems import Forbidden
from maat.vocabulary import PriorityClass, priority_class


def permit_priority(principal: Principal, priority: int) -> None:
    """Raise Forbidden if the job would be urgent and the principal may not submit such jobs."""
    urgent = priority_class(priority) is PriorityClass.URGENT
    if urgent and Permission.JOBS_URGENT not in principal.permissions:
        raise Forbidden(
            f"You may not submit urgent jobs: priority {priority} is urgent. Give high (10) or "
            "less, or ask a manager of your tenant, who may (jobs:urgent)."
        )
