"""Every call of the REST API as data: method, path, query, body. Sends nothing; the two clients send the same calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

from maat.client.laboratory import (
    Comparison,
    Fidelity,
    Figures,
    Measurement,
    MeasurementBody,
    Operation,
    RunResult,
    Simulation,
    SimulationBody,
    Sweep,
    SweepBody,
    SweepHead,
)
from maat.client.resources import (
    AllocationSpan,
    BatchResult,
    Cluster,
    ClusterBody,
    ClusterState,
    Described,
    Explanation,
    GoodputPreview,
    Health,
    Job,
    JobBody,
    JobEvent,
    Me,
    Model,
    Node,
    Page,
    Reservation,
    ReservationBody,
    Round,
    RoundSummary,
    Timeline,
    WorkloadKind,
)

Answer = TypeVar("Answer")
Query = Mapping[str, object]

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
    """The predicate of the job list; rows, totals and state counts all follow it."""

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


def _path(*parts: object) -> str:
    return "/".join([PREFIX, *(quote(str(part), safe=":") for part in parts)])


def _given(**query: object) -> dict[str, object]:
    return {name: value for name, value in query.items() if value is not None and value != []}


def _keyed(idempotency_key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": idempotency_key} if idempotency_key else {}


def _if_match(version: int) -> dict[str, str]:
    return {"If-Match": f'"{version}"'}


# ---- the service ------------------------------------------------------------------------------------------------------------------


def health() -> Call[Health]:
    return Call("GET", _path("health"))


def me() -> Call[Me]:
    return Call("GET", _path("me"))


def policies() -> Call[Page[Described]]:
    return Call("GET", _path("policies"))


def placers() -> Call[Page[Described]]:
    return Call("GET", _path("placers"))


def fidelities() -> Call[Page[Fidelity]]:
    return Call("GET", _path("fidelities"))


def models() -> Call[Page[Model]]:
    return Call("GET", _path("models"))


def goodput(
    model: str,
    *,
    gpu_types: Sequence[str] | None = None,
    max_gpus: int | None = None,
    progress: float | None = None,
    batch_size: int | None = None,
    workload_kind: WorkloadKind | None = None,
) -> Call[GoodputPreview]:
    query = _given(
        gpu_types=gpu_types,
        max_gpus=max_gpus,
        progress=progress,
        batch_size=batch_size,
        workload_kind=workload_kind,
    )
    return Call("GET", _path("models", model, "goodput"), query)


# ---- clusters, nodes, rounds ------------------------------------------------------------------------------------------------------


def clusters() -> Call[Page[Cluster]]:
    return Call("GET", _path("clusters"), {"limit": 100})


def cluster(cluster_id: str) -> Call[Cluster]:
    return Call("GET", _path("clusters", cluster_id))


def create_cluster(body: ClusterBody, *, idempotency_key: str | None = None) -> Call[Cluster]:
    return Call("POST", _path("clusters"), body=body, headers=_keyed(idempotency_key))


def change_cluster(cluster_id: str, changes: ClusterBody, *, version: int) -> Call[Cluster]:
    return Call("PATCH", _path("clusters", cluster_id), body=changes, headers=_if_match(version))


def act_on_cluster(cluster_id: str, action: str, *, version: int | None = None) -> Call[Cluster]:
    """`version`: done only while it is this one."""
    return Call(
        "POST",
        _path("clusters", cluster_id, "actions", action),
        headers={} if version is None else _if_match(version),
    )


def cluster_state(cluster_id: str) -> Call[ClusterState]:
    return Call("GET", _path("clusters", cluster_id, "state"))


def timeline(
    cluster_id: str, *, start: str | None = None, end: str | None = None, points: int | None = None
) -> Call[Timeline]:
    return Call(
        "GET",
        _path("clusters", cluster_id, "timeline"),
        _given(**{"from": start, "to": end, "points": points}),
    )


def nodes(cluster_id: str, *, limit: int = 500, cursor: str | None = None) -> Call[Page[Node]]:
    return Call("GET", _path("clusters", cluster_id, "nodes"), _given(limit=limit, cursor=cursor))


def act_on_node(
    cluster_id: str, node_id: str, action: str, *, version: int | None = None
) -> Call[Node]:
    """`version`: done only while it is this one."""
    headers = {} if version is None else _if_match(version)
    return Call(
        "POST", _path("clusters", cluster_id, "nodes", node_id, "actions", action), headers=headers
    )


def reservations(
    cluster_id: str, *, over: bool = False, limit: int = 100, cursor: str | None = None
) -> Call[Page[Reservation]]:
    """Those that hold or will; with `over`, all there ever were."""
    return Call(
        "GET",
        _path("clusters", cluster_id, "reservations"),
        _given(over=over or None, limit=limit, cursor=cursor),
    )


def reserve(
    cluster_id: str, body: ReservationBody, *, idempotency_key: str | None = None
) -> Call[Reservation]:
    return Call(
        "POST",
        _path("clusters", cluster_id, "reservations"),
        body=body,
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
) -> Call[Page[RoundSummary]]:
    return Call(
        "GET",
        _path("clusters", cluster_id, "rounds"),
        _given(limit=limit, cursor=cursor, after=after, before=before),
    )


def round_(cluster_id: str, number: int | str = "latest") -> Call[Round]:
    return Call("GET", _path("clusters", cluster_id, "rounds", number))


# ---- jobs -------------------------------------------------------------------------------------------------------------------------


def jobs(filters: JobFilters) -> Call[Page[Job]]:
    return Call("GET", _path("jobs"), _given(**filters))


def job(job_id: str) -> Call[Job]:
    return Call("GET", _path("jobs", job_id))


def submit_job(body: JobBody, *, idempotency_key: str | None = None) -> Call[Job]:
    return Call("POST", _path("jobs"), body=body, headers=_keyed(idempotency_key))


def submit_jobs(
    bodies: Sequence[JobBody], *, mode: str = "atomic", idempotency_key: str | None = None
) -> Call[BatchResult]:
    return Call(
        "POST",
        _path("jobs:batch"),
        body={"jobs": list(bodies), "mode": mode},
        headers=_keyed(idempotency_key),
    )


def add_demo_jobs(
    *,
    count: int,
    cluster_id: str | None = None,
    seed: int | None = None,
    idempotency_key: str | None = None,
) -> Call[BatchResult]:
    body = _given(count=count, cluster_id=cluster_id, seed=seed)
    return Call("POST", _path("jobs:demo"), body=body, headers=_keyed(idempotency_key))


def cancel_job(job_id: str) -> Call[Job]:
    return Call("POST", _path("jobs", job_id, "actions", "cancel"))


def allocations(job_id: str) -> Call[Page[AllocationSpan]]:
    return Call("GET", _path("jobs", job_id, "allocations"), {"limit": 500})


def events(job_id: str, *, limit: int = 500) -> Call[Page[JobEvent]]:
    return Call("GET", _path("jobs", job_id, "events"), {"limit": limit})


def explanation(job_id: str) -> Call[Explanation]:
    return Call("GET", _path("jobs", job_id, "explanation"))


# ---- measurements -----------------------------------------------------------------------------------------------------------------


def measurements(
    *, kind: str | None = None, limit: int = 500, cursor: str | None = None
) -> Call[Page[Measurement]]:
    """Newest first."""
    return Call("GET", _path("measurements"), _given(kind=kind, limit=limit, cursor=cursor))


def upload_measurement(
    body: MeasurementBody, *, idempotency_key: str | None = None
) -> Call[Measurement]:
    return Call("POST", _path("measurements"), body=body, headers=_keyed(idempotency_key))


def delete_measurement(measurement_id: str) -> Call[None]:
    """What was asked for with it keeps it."""
    return Call("DELETE", _path("measurements", measurement_id))


# ---- simulations and operations ---------------------------------------------------------------------------------------------------


def simulations(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[Simulation]]:
    return Call("GET", _path("simulations"), _given(limit=limit, cursor=cursor))


def simulation(simulation_id: str) -> Call[Simulation]:
    return Call("GET", _path("simulations", simulation_id))


def simulate(body: SimulationBody, *, idempotency_key: str | None = None) -> Call[Simulation]:
    return Call("POST", _path("simulations"), body=body, headers=_keyed(idempotency_key))


def run_result(simulation_id: str, run_id: str, *, jobs: Sequence[str] = ()) -> Call[RunResult]:
    """`jobs`: names of those whose allocations over time are wanted."""
    return Call(
        "GET",
        _path("simulations", simulation_id, "runs", run_id, "result"),
        _given(jobs=list(jobs) or None),
    )


def figures(simulation_id: str, *, runs: Sequence[str] = ()) -> Call[Figures]:
    """`runs`: ids of those that are drawn, the first that have finished where there are none."""
    return Call(
        "GET", _path("simulations", simulation_id, "figures"), _given(runs=list(runs) or None)
    )


def comparison(simulation_id: str, *, baseline: int | None = None) -> Call[Comparison]:
    """`baseline`: number of the contestant that the others are set against."""
    return Call("GET", _path("simulations", simulation_id, "comparison"), _given(baseline=baseline))


def sweeps(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[SweepHead]]:
    return Call("GET", _path("sweeps"), _given(limit=limit, cursor=cursor))


def sweep(sweep_id: str) -> Call[Sweep]:
    return Call("GET", _path("sweeps", sweep_id))


def start_sweep(body: SweepBody, *, idempotency_key: str | None = None) -> Call[Sweep]:
    return Call("POST", _path("sweeps"), body=body, headers=_keyed(idempotency_key))


def operation(operation_id: str) -> Call[Operation]:
    return Call("GET", _path("operations", operation_id))


def cancel_operation(operation_id: str) -> Call[Operation]:
    return Call("POST", _path("operations", operation_id, "actions", "cancel"))
