"""A cluster's history as the trace of a request: jobs of all tenants take part, so that sums stay true; only the requester's are spoken of.

A request is refused over another tenant's job without saying which one, or of which model: what is wrong with the requester's own is told first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from backend.accounts.identity import Principal
from backend.problems import FieldError, Invalid, invalid_input
from backend.simulations.requests import is_history
from maat.scheduling.errors import InputError
from maat.workloads.workloads import Workload

_MESSAGE = "A job of another tenant in the cluster's history cannot be simulated so."
_REMEDY = "Simulate the GPU types of the cluster itself, without tables that lack its models; or ask somebody who sees all tenants."


def hides_others(workload: Workload, trace: Mapping[str, Any], principal: Principal) -> bool:
    """Whether jobs take part that the principal may not see."""
    return (
        is_history(trace)
        and not principal.sees_all_tenants
        and any(job.tenant != principal.tenant_name for job in workload.jobs)
    )


def own_part(workload: Workload, principal: Principal) -> Workload:
    """The jobs of the principal's tenant alone."""
    return replace(
        workload, jobs=tuple(job for job in workload.jobs if job.tenant == principal.tenant_name)
    )


@contextmanager
def without_naming() -> Iterator[None]:
    """What is refused inside is refused over another tenant's job: where, and no more."""
    try:
        yield
    except InputError as error:
        raise unnamed(error) from None
    except Invalid as problem:
        raise unnamed(problem) from None


def unnamed(error: InputError | Invalid) -> Invalid:
    """The same refusal without what it says of the job."""
    errors = (
        invalid_input(error, f"/{error.field}").errors
        if isinstance(error, InputError)
        else error.errors
    )
    pointer = errors[0].pointer if errors else ""
    return Invalid(
        f"{_MESSAGE} {_REMEDY}",
        errors=[FieldError(pointer, "another_tenants_job", _MESSAGE, _REMEDY)],
    )
