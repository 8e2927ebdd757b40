"""Every call of the REST API as data: method, path, query, body.

Sends nothing; both clients send the same calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar, Unpack
from urllib.parse import quote

from pydantic import BaseModel

from maat.api.attempts import AttemptOut, GradientSampleOut, LogOut, StepSampleOut
from maat.api.beliefs import BeliefOut
from maat.api.clusters import ClusterBody, ClusterChanges, ClusterOut, ClusterStateOut, NodeOut
from maat.api.commands import CommandOut
from maat.api.fields import Page
from maat.api.jobs import (
    AllocationSpanOut,
    BatchOut,
    ExplanationOut,
    JobBody,
    JobEventOut,
    JobOut,
    JobPage,
)
from maat.api.measurements import MeasurementBody, MeasurementOut
from maat.api.models import GoodputOut, ModelOut
from maat.api.operations import OperationOut
from maat.api.policies import DescribedOut, FidelityOut
from maat.api.reservations import ReservationBody, ReservationOut
from maat.api.rounds import RoundDetailOut, RoundOut, TimelineOut
from maat.api.service import HealthOut, MeOut
from maat.api.simulations import (
    Comparison,
    FiguresOut,
    RunResult,
    SimulationBody,
    SimulationOut,
)
from maat.api.sweeps import SweepBody, SweepDetail, SweepOut
from maat.vocabulary import FairnessRule, WorkloadKind

Answer = TypeVar("Answer")
Query = Mapping[str, object]
Fields = Mapping[str, Any]
"""A body as plain data; the service checks it."""
RawBody = dict[str, Any]
"""A body while it is built."""

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One request whose answer has the type `Answer`."""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class JobFilters(TypedDict, total=False):
    """The filters of the job list; rows, totals and state counts all use them."""

    cluster: str | None
    state: Sequence[str] | None
    tenant: Sequence[str] | None
    owner: str | None
    model: Sequence[str] | None
    gpu_type: Sequence[str] | None
    q: str | None
    submitted_after: str | None
    sort: str | None
    limit: int | None
    cursor: str | None
    count: str | None


def as_json(body: BaseModel | Fields) -> dict[str, Any]:
    """Return what is sent of a body: the fields that were set."""
    if isinstance(body, BaseModel):
        return body.model_dump(mode="json", exclude_unset=True)
    return dict(body)


def _path(*parts: object) -> str:
    return "/".join([PREFIX, *(quote(str(part), safe=":") for part in parts)])


def _given(**query: object) -> dict[str, object]:
    return {name: value for name, value in query.items() if value is not None and value != []}


def _keyed(idempotency_key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": idempotency_key} if idempotency_key else {}


def _if_match(version: int) -> dict[str, str]:
    return {"If-Match": f'"{version}"'}


def health() -> Call[HealthOut]:
    return Call("GET", _path("health"))


def me() -> Call[MeOut]:
    return Call("GET", _path("me"))


def policies() -> Call[Page[DescribedOut]]:
    return Call("GET", _path("policies"))


def placers() -> Call[Page[DescribedOut]]:
    return Call("GET", _path("placers"))


def fidelities() -> Call[Page[FidelityOut]]:
    return Call("GET", _path("fidelities"))


def models() -> Call[Page[ModelOut]]:
    return Call("GET", _path("models"))


def goodput(
    model: str,
    *,
    gpu_types: Sequence[str] | None = None,
    max_gpus: int | None = None,
    progress: float | None = None,
    batch_size: int | None = None,
    workload_kind: WorkloadKind | None = None,
) -> Call[GoodputOut]:
    query = _given(
        gpu_types=gpu_types,
        max_gpus=max_gpus,
        progress=progress,
        batch_size=batch_size,
        workload_kind=workload_kind,
    )
    return Call("GET", _path("models", model, "goodput"), query)


def clusters() -> Call[Page[ClusterOut]]:
    return Call("GET", _path("clusters"), {"limit": 100})


def cluster(cluster_id: str) -> Call[ClusterOut]:
    return Call("GET", _path("clusters", cluster_id))


def create_cluster(
    body: ClusterBody | Fields, *, idempotency_key: str | None = None
) -> Call[ClusterOut]:
    return Call("POST", _path("clusters"), body=as_json(body), headers=_keyed(idempotency_key))


def change_cluster(
    cluster_id: str, changes: ClusterChanges | Fields, *, version: int
) -> Call[ClusterOut]:
    return Call(
        "PATCH", _path("clusters", cluster_id), body=as_json(changes), headers=_if_match(version)
    )


def act_on_cluster(cluster_id: str, action: str, *, version: int | None = None) -> Call[ClusterOut]:
    """Act on a cluster. `version`: refused unless the cluster has this version."""
    return Call(
        "POST",
        _path("clusters", cluster_id, "actions", action),
        headers={} if version is None else _if_match(version),
    )


def cluster_state(cluster_id: str) -> Call[ClusterStateOut]:
    return Call("GET", _path("clusters", cluster_id, "state"))


def timeline(
    cluster_id: str, *, start: str | None = None, end: str | None = None, points: int | None = None
) -> Call[TimelineOut]:
    return Call(
        "GET",
        _path("clusters", cluster_id, "timeline"),
        _given(**{"from": start, "to": end, "points": points}),
    )


def nodes(cluster_id: str, *, limit: int = 500, cursor: str | None = None) -> Call[Page[NodeOut]]:
    return Call("GET", _path("clusters", cluster_id, "nodes"), _given(limit=limit, cursor=cursor))


def act_on_node(
    cluster_id: str, node_id: str, action: str, *, version: int | None = None
) -> Call[NodeOut]:
    """Act on a node. `version`: refused unless the node has this version."""
    headers = {} if version is None else _if_match(version)
    return Call(
        "POST", _path("clusters", cluster_id, "nodes", node_id, "actions", action), headers=headers
    )


def reservations(
    cluster_id: str, *, over: bool = False, limit: int = 100, cursor: str | None = None
) -> Call[Page[ReservationOut]]:
    """List present and future reservations; with `over`, past ones too."""
    return Call(
        "GET",
        _path("clusters", cluster_id, "reservations"),
        _given(over=over or None, limit=limit, cursor=cursor),
    )


def reserve(
    cluster_id: str, body: ReservationBody | Fields, *, idempotency_key: str | None = None
) -> Call[ReservationOut]:
    return Call(
        "POST",
        _path("clusters", cluster_id, "reservations"),
        body=as_json(body),
        headers=_keyed(idempotency_key),
    )


def remove_reservation(cluster_id: str, reservation_id: str) -> Call[None]:
    return Call("DELETE", _path("clusters", cluster_id, "reservations", reservation_id))


def rounds(
    cluster_id: str,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    after: str | None = None,
    before: str | None = None,
) -> Call[Page[RoundOut]]:
    return Call(
        "GET",
        _path("clusters", cluster_id, "rounds"),
        _given(limit=limit, cursor=cursor, after=after, before=before),
    )


def round_(cluster_id: str, number: int | str = "latest") -> Call[RoundDetailOut]:
    return Call("GET", _path("clusters", cluster_id, "rounds", number))


def jobs(**filters: Unpack[JobFilters]) -> Call[JobPage]:
    return Call("GET", _path("jobs"), _given(**filters))


def job(job_id: str) -> Call[JobOut]:
    return Call("GET", _path("jobs", job_id))


def submit_job(body: JobBody | Fields, *, idempotency_key: str | None = None) -> Call[JobOut]:
    return Call("POST", _path("jobs"), body=as_json(body), headers=_keyed(idempotency_key))


def submit_jobs(
    bodies: Sequence[JobBody | Fields], *, mode: str = "atomic", idempotency_key: str | None = None
) -> Call[BatchOut]:
    return Call(
        "POST",
        _path("jobs:batch"),
        body={"jobs": [as_json(body) for body in bodies], "mode": mode},
        headers=_keyed(idempotency_key),
    )


def add_demo_jobs(
    count: int,
    *,
    cluster_id: str | None = None,
    seed: int | None = None,
    idempotency_key: str | None = None,
) -> Call[BatchOut]:
    body = _given(count=count, cluster_id=cluster_id, seed=seed)
    return Call("POST", _path("jobs:demo"), body=body, headers=_keyed(idempotency_key))


def cancel_job(job_id: str) -> Call[JobOut]:
    return Call("POST", _path("jobs", job_id, "actions", "cancel"))


def job_command(job_id: str) -> Call[CommandOut]:
    return Call("GET", _path("jobs", job_id, "command"))


def attempts(
    job_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[AttemptOut]]:
    return Call("GET", _path("jobs", job_id, "attempts"), _given(limit=limit, cursor=cursor))


def samples(
    job_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[StepSampleOut]]:
    return Call("GET", _path("jobs", job_id, "samples"), _given(limit=limit, cursor=cursor))


def gradients(
    job_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[GradientSampleOut]]:
    return Call("GET", _path("jobs", job_id, "gradients"), _given(limit=limit, cursor=cursor))


def belief(job_id: str) -> Call[BeliefOut]:
    """Ask what was learnt of a job: step times by GPU type, the parts of a restart."""
    return Call("GET", _path("jobs", job_id, "belief"))


def log(
    job_id: str, attempt: int, rank: int = 0, *, offset: int = 0, limit: int | None = None
) -> Call[LogOut]:
    """Read a part of a rank's log; the next begins at `next_offset`."""
    return Call(
        "GET",
        _path("jobs", job_id, "attempts", attempt, "logs", rank),
        _given(offset=offset, limit=limit),
    )


def allocations(job_id: str) -> Call[Page[AllocationSpanOut]]:
    return Call("GET", _path("jobs", job_id, "allocations"), {"limit": 500})


def events(job_id: str, *, limit: int = 500) -> Call[Page[JobEventOut]]:
    return Call("GET", _path("jobs", job_id, "events"), {"limit": limit})


def explanation(job_id: str) -> Call[ExplanationOut]:
    return Call("GET", _path("jobs", job_id, "explanation"))


def measurements(
    *, kind: str | None = None, limit: int = 500, cursor: str | None = None
) -> Call[Page[MeasurementOut]]:
    """List measurements, newest first."""
    return Call("GET", _path("measurements"), _given(kind=kind, limit=limit, cursor=cursor))


def upload_measurement(
    body: MeasurementBody | Fields, *, idempotency_key: str | None = None
) -> Call[MeasurementOut]:
    return Call("POST", _path("measurements"), body=as_json(body), headers=_keyed(idempotency_key))


def delete_measurement(measurement_id: str) -> Call[None]:
    """Delete measurements; operations that use them keep them."""
    return Call("DELETE", _path("measurements", measurement_id))


def simulations(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[SimulationOut]]:
    return Call("GET", _path("simulations"), _given(limit=limit, cursor=cursor))


def simulation(simulation_id: str) -> Call[SimulationOut]:
    return Call("GET", _path("simulations", simulation_id))


def simulate(
    body: SimulationBody | Fields, *, idempotency_key: str | None = None
) -> Call[SimulationOut]:
    return Call("POST", _path("simulations"), body=as_json(body), headers=_keyed(idempotency_key))


def run_result(
    simulation_id: str,
    run_id: str,
    *,
    jobs: Sequence[str] = (),
    fairness_rule: FairnessRule | None = None,
) -> Call[RunResult]:
    """Get a run's result. `jobs`: names of jobs whose allocations to return."""
    asked = _given(jobs=list(jobs) or None, fairness_rule=fairness_rule)
    return Call("GET", _path("simulations", simulation_id, "runs", run_id, "result"), asked)


def figures(
    simulation_id: str, *, runs: Sequence[str] = (), fairness_rule: FairnessRule | None = None
) -> Call[FiguresOut]:
    """Get figures. `runs`: ids of runs; by default the first finished ones."""
    return Call(
        "GET",
        _path("simulations", simulation_id, "figures"),
        _given(runs=list(runs) or None, fairness_rule=fairness_rule),
    )


def comparison(
    simulation_id: str, *, baseline: int | None = None, fairness_rule: FairnessRule | None = None
) -> Call[Comparison]:
    """Compare contestants. `baseline`: number of the one to compare the others with."""
    return Call(
        "GET",
        _path("simulations", simulation_id, "comparison"),
        _given(baseline=baseline, fairness_rule=fairness_rule),
    )


def sweeps(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[SweepOut]]:
    return Call("GET", _path("sweeps"), _given(limit=limit, cursor=cursor))


def sweep(sweep_id: str, *, fairness_rule: FairnessRule | None = None) -> Call[SweepDetail]:
    return Call("GET", _path("sweeps", sweep_id), _given(fairness_rule=fairness_rule))


def start_sweep(
    body: SweepBody | Fields, *, idempotency_key: str | None = None
) -> Call[SweepDetail]:
    return Call("POST", _path("sweeps"), body=as_json(body), headers=_keyed(idempotency_key))


def operation(operation_id: str) -> Call[OperationOut]:
    return Call("GET", _path("operations", operation_id))


def cancel_operation(operation_id: str) -> Call[OperationOut]:
    return Call("POST", _path("operations", operation_id, "actions", "cancel"))
