"""The interference that a cluster declares: the shipped table, one slowdown, or an uploaded table.

The row has `synthetic`, a number, or the id of measurements with `#TYPE` if they distinguish GPU
types. Commits nothing; the worker calls it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.clusters.models import Cluster
from backend.measurements.contents import declared_interference
from backend.measurements.models import Measurement
from backend.measurements.repository import texts_of
from backend.measurements.uses import named_measurement
from backend.problems import invalid_input
from maat.api.clusters import ClusterBody, ClusterChanges
from maat.api.previews import RoundPreviewBody
from maat.scheduling.errors import InputError
from maat.scheduling.interference import DeclaredSlowdowns
from maat.vocabulary import SYNTHETIC, ExecutorKind, MeasurementKind

_FIRST_GUESS = 1.25
"""Of two commands that have not shared a GPU yet: about where sharing by first fit breaks even."""

_POINTER = "/interference"


def with_measurements(
    session: Session, principal: Principal, body: ClusterBody | ClusterChanges | RoundPreviewBody
) -> Any:
    """Return the request with the id of the measurements that it names. Raises Invalid."""
    given = body.interference
    if given is None or given == SYNTHETIC or isinstance(given, float):
        return body
    name, sharp, gpu_type = str(given).partition("#")
    found = named_measurement(session, principal, MeasurementKind.INTERFERENCE, name)
    stored = found.id + sharp + gpu_type
    try:
        _read(session, stored)
    except InputError as error:
        raise invalid_input(error, _POINTER) from None
    return body.model_copy(update={"interference": stored})


def stored_interference(
    given: str | float | None, *, executor: str, jobs_per_gpu: int
) -> str | None:
    """Return what the row keeps: a first guess where GPUs may be shared and nothing was given."""
    if given is not None:
        return f"{given:g}" if isinstance(given, float) else given
    if jobs_per_gpu == 1:
        return None
    return SYNTHETIC if executor == ExecutorKind.SIMULATED else f"{_FIRST_GUESS:g}"


def interference_of(session: Session, cluster: Cluster) -> DeclaredSlowdowns | None:
    """Return what the cluster declares; None if its GPUs run one job each."""
    if cluster.jobs_per_gpu == 1 or cluster.interference is None:
        return None
    return _read(session, cluster.interference)


def shown_interference(session: Session, clusters: Iterable[Cluster]) -> Mapping[str, Any]:
    """Return what each cluster declares as requests name it, by the cluster's id."""
    stored = {one.id: one.interference for one in clusters if one.interference is not None}
    ids = {value.partition("#")[0] for value in stored.values() if not _is_plain(value)}
    rows = select(Measurement.id, Measurement.name).where(col(Measurement.id).in_(ids))
    names = dict(session.exec(rows).all()) if ids else {}
    return {cluster_id: _shown(value, names) for cluster_id, value in stored.items()}


def _read(session: Session, stored: str) -> DeclaredSlowdowns:
    """Raises InputError for measurements that do not distinguish this GPU type."""
    if _is_plain(stored):
        return declared_interference(stored)
    measurement_id, _, gpu_type = stored.partition("#")
    name = session.get_one(Measurement, measurement_id).name
    ((_, text),) = texts_of(session, measurement_id).items()
    return declared_interference(stored, text=text, name=name, gpu_type=gpu_type or None)


def _is_plain(stored: str) -> bool:
    return not stored.startswith("mea_")


def _shown(stored: str, names: Mapping[str, str]) -> str | float:
    if stored == SYNTHETIC:
        return stored
    if _is_plain(stored):
        return float(stored)
    measurement_id, sharp, gpu_type = stored.partition("#")
    return names.get(measurement_id, measurement_id) + sharp + gpu_type
