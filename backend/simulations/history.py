"""A cluster's history as the trace of a request.

Jobs of all tenants take part, so that sums are correct; answers mention only the requester's. If a
request is refused because of another tenant's job, the refusal does not identify it or its model;
errors in the requester's own jobs are reported first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from backend.accounts.identity import Principal
from backend.problems import FieldError, Invalid, invalid_input
from maat.scheduling.errors import InputError
from maat.workloads.workloads import Workload

_MESSAGE = "in the cluster's history cannot be simulated under these conditions."
_REMEDY = "Simulate the GPU types of the cluster itself, without tables that lack its models"


def hides_others(history: Workload, principal: Principal) -> bool:
    """Return whether jobs take part in a cluster's history that the principal may not see."""
    return not principal.sees_all_tenants and any(
        job.tenant != principal.tenant_name for job in history.jobs
    )


def own_part(workload: Workload, principal: Principal) -> Workload:
    """Return the workload with only the jobs of the principal's tenant."""
    return replace(
        workload, jobs=tuple(job for job in workload.jobs if job.tenant == principal.tenant_name)
    )


@contextmanager
def without_naming() -> Iterator[None]:
    """Turn errors inside into refusals that do not identify another tenant's job."""
    try:
        yield
    except InputError as error:
        raise unnamed(error) from None
    except Invalid as problem:
        raise unnamed(problem) from None


def unnamed(error: InputError | Invalid, *, of_another: bool = True) -> Invalid:
    """Return the same refusal without details of the job.

    `of_another`: the job is known to be another tenant's.
    """
    errors = (
        invalid_input(error, f"/{error.field}").errors
        if isinstance(error, InputError)
        else error.errors
    )
    pointer = errors[0].pointer if errors else ""
    which, more = (
        ("Another tenant's job", "ask a user who sees all tenants")
        if of_another
        else ("A job", "see the worker's log, which names the job")
    )
    message, remedy = f"{which} {_MESSAGE}", f"{_REMEDY}; or {more}."
    return Invalid(
        f"{message} {remedy}",
        errors=[FieldError(pointer, "another_tenants_job", message, remedy)],
    )
