"""Which operations use which measurements, and what the library reads from them.

The worker calls it too. Commits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.answers import answer_of
from backend.measurements.contents import (
    interference_of,
    locality_of,
    profiles_of,
    variability_of,
)
from backend.measurements.models import Measurement, MeasurementUse
from backend.measurements.repository import get_measurement, named, texts_of
from backend.problems import FieldError, Invalid, NotFound, invalid_input
from maat.api.measurements import UsedOut
from maat.api.simulations import ConditionsBody
from maat.laboratory.requested import (
    Interference,
    LocalityTable,
    Model,
    Variability,
    shipped_models,
)
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError, InputError
from maat.vocabulary import MEASURED, SYNTHETIC, MeasurementKind


@dataclass(frozen=True)
class Measured:
    """What a request takes from uploaded measurements; None if it names none."""

    variability: Variability | None = None
    interference: Interference | None = None
    profiles: Mapping[str, Model] | None = None
    locality: LocalityTable | None = None

    @property
    def models(self) -> Mapping[str, Model]:
        """The models that jobs have: those of the profiles, else all that Maat ships."""
        return shipped_models() if self.profiles is None else self.profiles


NOTHING_MEASURED = Measured()


def find_uses(
    session: Session, principal: Principal, request: ConditionsBody
) -> list[MeasurementUse]:
    """Find the measurements that a request names by id or name.

    `NAME#TYPE` chooses one GPU type from a table of pairs for several. The measurements are of the
    requester's own tenant, since all of that tenant may read the result. The operation id is set
    later. Raises Invalid if there are none of this kind and name.
    """
    named_by_kind = {
        MeasurementKind.VARIABILITY: request.variability,
        MeasurementKind.INTERFERENCE: request.interference,
        MeasurementKind.PROFILES: request.profiles,
        MeasurementKind.LOCALITY: None
        if request.locality_penalty == MEASURED  # by the steps of the models, not by an upload
        else request.locality_penalty,
    }
    return find_named(
        session,
        principal,
        {
            kind: given
            for kind, given in named_by_kind.items()
            if isinstance(given, str) and given != SYNTHETIC
        },
    )


def find_named(
    session: Session, principal: Principal, given: Mapping[MeasurementKind, str | None]
) -> list[MeasurementUse]:
    """Find the measurements of these kinds by id or name, as `find_uses` does. Raises Invalid."""
    return [
        _use(session, principal, kind, name) for kind, name in given.items() if name is not None
    ]


def find_profiles(
    session: Session, principal: Principal, given: str | None
) -> list[MeasurementUse]:
    """Find the profiles of this id or name, if any, as `find_uses` does. Raises Invalid."""
    return find_named(session, principal, {MeasurementKind.PROFILES: given})


def keep_uses(session: Session, uses: Sequence[MeasurementUse], operation_id: str) -> None:
    for use in uses:
        use.operation_id = operation_id
        session.add(use)
    session.flush()


def uses_of(session: Session, operation_id: str) -> Sequence[MeasurementUse]:
    return session.exec(
        select(MeasurementUse).where(MeasurementUse.operation_id == operation_id)
    ).all()


class OnCluster(Protocol):
    """A request whose cluster says of which GPU types measurements are read."""

    @property
    def cluster(self) -> str: ...


def measured(session: Session, uses: Sequence[MeasurementUse], request: OnCluster) -> Measured:
    """Read the measurements.

    Raises Invalid at a field whose measurements do not apply.
    """
    found = NOTHING_MEASURED
    for use in uses:
        try:
            found = _with(found, session, use, request)
        except InputError as error:
            raise invalid_input(error, _pointer_of(MeasurementKind(use.kind))) from None
    return found


def shown_uses(session: Session, operation_ids: Sequence[str]) -> dict[str, list[UsedOut]]:
    """Show the measurements that every operation uses, deleted ones too."""
    shown: dict[str, list[UsedOut]] = {operation_id: [] for operation_id in operation_ids}
    statement = (
        select(MeasurementUse, Measurement)
        .join(Measurement)
        .where(col(MeasurementUse.operation_id).in_(operation_ids))
    )
    for use, row in session.exec(statement.order_by(col(MeasurementUse.kind))):
        shown[use.operation_id].append(
            answer_of(UsedOut, row, gpu_type=use.gpu_type, deleted=row.deleted_at is not None)
        )
    return shown


def _use(
    session: Session, principal: Principal, kind: MeasurementKind, given: str
) -> MeasurementUse:
    name, gpu_type = given, ""
    if kind is MeasurementKind.INTERFERENCE:  # the others are of all GPU types
        name, _, gpu_type = given.partition("#")
    found = named_measurement(session, principal, kind, name)
    return MeasurementUse(
        operation_id="", kind=kind.value, measurement_id=found.id, gpu_type=gpu_type or None
    )


def named_measurement(
    session: Session,
    principal: Principal,
    kind: MeasurementKind,
    given: str,
    *,
    pointer: str | None = None,
) -> Measurement:
    """Find measurements of the requester's tenant by id or name.

    Raises Invalid at `pointer`; None: at the field of a request that names this kind.
    """
    found = _by_id(session, principal, kind, given) or named(
        session, principal.tenant_id, kind, given
    )
    if found is None:
        message = f"There are no measurements of {kind} of this name."
        remedy = (
            f"Use the name or id of one of GET /api/v1/measurements?kind={kind}, "
            "or upload them first."
        )
        raise Invalid(
            message,
            errors=[
                FieldError(
                    pointer or _pointer_of(kind), "unknown_measurement", message, remedy, given
                )
            ],
        )
    return found


def _by_id(
    session: Session, principal: Principal, kind: MeasurementKind, given: str
) -> Measurement | None:
    try:
        found = get_measurement(session, principal, given)
    except NotFound:
        return None
    return found if found.kind == kind.value and found.tenant_id == principal.tenant_id else None


def _with(found: Measured, session: Session, use: MeasurementUse, request: OnCluster) -> Measured:
    texts, types = texts_of(session, use.measurement_id), _types(request.cluster)
    if use.kind == MeasurementKind.VARIABILITY:
        return replace(found, variability=variability_of(texts, gpu_types=types))
    if use.kind == MeasurementKind.LOCALITY:
        return replace(found, locality=locality_of(texts))
    if use.kind == MeasurementKind.PROFILES:
        return replace(found, profiles=profiles_of(texts, gpu_types=types))
    name = session.get_one(Measurement, use.measurement_id).name
    table = interference_of(texts, name=name, gpu_type=use.gpu_type)
    return replace(found, interference=table)


def _pointer_of(kind: MeasurementKind) -> str:
    return "/locality_penalty" if kind is MeasurementKind.LOCALITY else f"/{kind}"


def _types(cluster: str) -> Sequence[str] | None:
    """Return the types of a cluster; None for an invalid shape (refused elsewhere)."""
    try:
        return Cluster.parse(cluster, racks=True).type_names
    except ClusterError:
        return None
