"""Calls about the service itself: its health, who asks, policies, and what was changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from maat.api.audit import AuditForm, AuditRecordOut
from maat.api.fields import Page
from maat.api.models import GoodputOut, ModelOut
from maat.api.operations import OperationOut, OperationState
from maat.api.policies import DescribedOut, FidelityOut
from maat.api.service import HealthOut, MeOut, ReadyOut
from maat.client.calls.core import (
    Call,
    given_of,
    path_of,
)
from maat.vocabulary import WorkloadKind


class AuditFilters(TypedDict, total=False):
    """Which records of changes: by name or id; `start` and `end` are wall time."""

    actor: str | None
    action: str | None
    target: str | None
    target_kind: str | None
    tenant: str | None
    start: str | None
    end: str | None


def health() -> Call[HealthOut]:
    return Call("GET", path_of("health"))


def ready() -> Call[ReadyOut]:
    """Ask whether all that Maat needs is there; if not, the error names what is missing."""
    return Call("GET", "/readyz")


def me() -> Call[MeOut]:
    return Call("GET", path_of("me"))


def audit(
    *, limit: int = 100, cursor: str | None = None, **filters: Unpack[AuditFilters]
) -> Call[Page[AuditRecordOut]]:
    """List what was changed, newest first."""
    return Call(
        "GET", path_of("audit"), {**_of_audit(filters), **given_of(limit=limit, cursor=cursor)}
    )


def audit_file(form: AuditForm | str, **filters: Unpack[AuditFilters]) -> Call[bytes]:
    """Return all records that match, as CSV or JSON."""
    return Call("GET", path_of("audit", "export", str(form)), _of_audit(filters))


def _of_audit(filters: AuditFilters) -> dict[str, object]:
    names = {"start": "from", "end": "to"}
    return given_of(**{names.get(name, name): value for name, value in filters.items()})


def policies() -> Call[Page[DescribedOut]]:
    return Call("GET", path_of("policies"))


def placers() -> Call[Page[DescribedOut]]:
    return Call("GET", path_of("placers"))


def fidelities() -> Call[Page[FidelityOut]]:
    return Call("GET", path_of("fidelities"))


def models() -> Call[Page[ModelOut]]:
    return Call("GET", path_of("models"))


def model(name: str) -> Call[ModelOut]:
    return Call("GET", path_of("models", name))


def goodput(
    model: str,
    *,
    gpu_types: Sequence[str] | None = None,
    max_gpus: int | None = None,
    progress: float | None = None,
    batch_size: int | None = None,
    workload_kind: WorkloadKind | None = None,
) -> Call[GoodputOut]:
    query = given_of(
        gpu_types=gpu_types,
        max_gpus=max_gpus,
        progress=progress,
        batch_size=batch_size,
        workload_kind=workload_kind,
    )
    return Call("GET", path_of("models", model, "goodput"), query)


def operations(
    *,
    state: Sequence[OperationState] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Page[OperationOut]]:
    """List long work, newest first. `state`: only in one of these."""
    asked = given_of(state=list(state or ()), limit=limit, cursor=cursor)
    return Call("GET", path_of("operations"), asked)


def operation(operation_id: str) -> Call[OperationOut]:
    return Call("GET", path_of("operations", operation_id))


def cancel_operation(operation_id: str) -> Call[OperationOut]:
    return Call("POST", path_of("operations", operation_id, "actions", "cancel"))
