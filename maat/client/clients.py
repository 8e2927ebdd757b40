"""The two clients: the same calls, sent at once (`Client`) or awaited (`AsyncClient`). What the calls are is said in calls.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

import httpx

from maat.client import calls
from maat.client.calls import Call, JobFilters
from maat.client.errors import ApiError, Unreachable
from maat.client.laboratory import (
    Comparison,
    FairnessRule,
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
    SweepPoint,
    SweepRow,
)
from maat.client.resources import (
    BatchResult,
    Cluster,
    ClusterBody,
    ClusterState,
    Health,
    Job,
    JobBody,
    Page,
    Reservation,
    ReservationBody,
    Round,
    RoundSummary,
)

Answer = TypeVar("Answer")

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 30.0


def _headers(token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    return {"Accept": "application/json", **(headers or {}), **authorization}


def _request(call: Call[Any]) -> dict[str, Any]:
    request: dict[str, Any] = {
        "method": call.method,
        "url": call.path,
        "params": call.query,
        "headers": call.headers,
    }
    return request if call.body is None else {**request, "json": call.body}


def _answer(response: httpx.Response) -> Any:
    if response.is_error or response.is_redirect:
        raise ApiError.of(response)
    return response.json() if response.content else None


class Client:
    """Talks to a Maat service and waits for each answer. Raises ApiError where the service refuses, Unreachable if there is none."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.url = url
        self._http = httpx.Client(
            base_url=url,
            headers=_headers(token, headers),
            transport=transport,
            timeout=timeout_seconds,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, call: Call[Answer]) -> Answer:
        """Send any call of `maat.client.calls`."""
        try:
            response = self._http.request(**_request(call))
        except httpx.TransportError as error:
            raise Unreachable(
                f"No answer from {self._http.base_url}: {error}. Is Maat running there?"
            ) from error
        return cast(Answer, _answer(response))

    def health(self) -> Health:
        return self.send(calls.health())

    def clusters(self) -> list[Cluster]:
        return self.send(calls.clusters())["items"]

    def create_cluster(
        self, *, idempotency_key: str | None = None, **body: Unpack[ClusterBody]
    ) -> Cluster:
        return self.send(calls.create_cluster(body, idempotency_key=idempotency_key))

    def cluster_state(self, cluster_id: str) -> ClusterState:
        return self.send(calls.cluster_state(cluster_id))

    def reservations(self, cluster_id: str, *, over: bool = False) -> list[Reservation]:
        """Those that hold or will; with `over`, all there ever were."""
        return self.send(calls.reservations(cluster_id, over=over))["items"]

    def reserve(
        self,
        cluster_id: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[ReservationBody],
    ) -> Reservation:
        return self.send(calls.reserve(cluster_id, body, idempotency_key=idempotency_key))

    def remove_reservation(self, cluster_id: str, reservation_id: str) -> None:
        self.send(calls.remove_reservation(cluster_id, reservation_id))

    def rounds(
        self, cluster_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[RoundSummary]:
        return self.send(calls.rounds(cluster_id, limit=limit, cursor=cursor))

    def round(self, cluster_id: str, number: int | str = "latest") -> Round:
        return self.send(calls.round_(cluster_id, number))

    def jobs(self, **filters: Unpack[JobFilters]) -> Page[Job]:
        return self.send(calls.jobs(filters))

    def every_job(self, **filters: Unpack[JobFilters]) -> Iterator[Job]:
        """All jobs that match, page after page."""
        while True:
            page = self.jobs(**filters)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            filters["cursor"] = page["next_cursor"]

    def job(self, job_id: str) -> Job:
        return self.send(calls.job(job_id))

    def submit_job(self, *, idempotency_key: str | None = None, **body: Unpack[JobBody]) -> Job:
        return self.send(calls.submit_job(body, idempotency_key=idempotency_key))

    def submit_jobs(
        self, bodies: Sequence[JobBody], *, mode: str = "atomic", idempotency_key: str | None = None
    ) -> BatchResult:
        return self.send(calls.submit_jobs(bodies, mode=mode, idempotency_key=idempotency_key))

    def add_demo_jobs(
        self,
        count: int,
        *,
        cluster_id: str | None = None,
        seed: int | None = None,
        idempotency_key: str | None = None,
    ) -> BatchResult:
        given = calls.add_demo_jobs(
            count=count, cluster_id=cluster_id, seed=seed, idempotency_key=idempotency_key
        )
        return self.send(given)

    def cancel_job(self, job_id: str) -> Job:
        return self.send(calls.cancel_job(job_id))

    def measurements(self, *, kind: str | None = None) -> list[Measurement]:
        """Newest first."""
        return self.send(calls.measurements(kind=kind))["items"]

    def upload_measurement(
        self, *, idempotency_key: str | None = None, **body: Unpack[MeasurementBody]
    ) -> Measurement:
        return self.send(calls.upload_measurement(body, idempotency_key=idempotency_key))

    def delete_measurement(self, measurement_id: str) -> None:
        """What was asked for with it keeps it."""
        self.send(calls.delete_measurement(measurement_id))

    def simulate(
        self, *, idempotency_key: str | None = None, **body: Unpack[SimulationBody]
    ) -> Simulation:
        return self.send(calls.simulate(body, idempotency_key=idempotency_key))

    def simulation(self, simulation_id: str) -> Simulation:
        return self.send(calls.simulation(simulation_id))

    def comparison(
        self,
        simulation_id: str,
        *,
        baseline: int | None = None,
        fairness_rule: FairnessRule | None = None,
    ) -> Comparison:
        """Means with their spread, and everybody against the baseline job by job."""
        return self.send(
            calls.comparison(simulation_id, baseline=baseline, fairness_rule=fairness_rule)
        )

    def figures(
        self,
        simulation_id: str,
        *,
        runs: Sequence[str] = (),
        fairness_rule: FairnessRule | None = None,
    ) -> Figures:
        """What charts draw of these runs: distributions of JCT and of finish-time fairness, sums and short series."""
        return self.send(calls.figures(simulation_id, runs=runs, fairness_rule=fairness_rule))

    def run_result(
        self,
        simulation_id: str,
        run_id: str,
        *,
        jobs: Sequence[str] = (),
        fairness_rule: FairnessRule | None = None,
    ) -> RunResult:
        return self.send(
            calls.run_result(simulation_id, run_id, jobs=jobs, fairness_rule=fairness_rule)
        )

    def start_sweep(
        self, *, idempotency_key: str | None = None, **body: Unpack[SweepBody]
    ) -> Sweep:
        return self.send(calls.start_sweep(body, idempotency_key=idempotency_key))

    def sweep(self, sweep_id: str, *, fairness_rule: FairnessRule | None = None) -> Sweep:
        """With its points, and the means over the seeds of those that have ended."""
        return self.send(calls.sweep(sweep_id, fairness_rule=fairness_rule))

    def sweeps(self, *, limit: int | None = None, cursor: str | None = None) -> Page[SweepHead]:
        """Newest first, without their points."""
        return self.send(calls.sweeps(limit=limit, cursor=cursor))

    def sweep_points(
        self, sweep_id: str, *, fairness_rule: FairnessRule | None = None
    ) -> list[SweepPoint]:
        """In order; `figures` of those that have ended."""
        return self.sweep(sweep_id, fairness_rule=fairness_rule)["points"]

    def sweep_rows(
        self, sweep_id: str, *, fairness_rule: FairnessRule | None = None
    ) -> list[SweepRow]:
        """Mean and spread of every combination of settings that has ended for a seed."""
        return self.sweep(sweep_id, fairness_rule=fairness_rule)["rows"]

    def cancel_sweep(self, sweep_id: str) -> Operation:
        """Points that have ended stay."""
        return self.cancel_operation(self.sweep(sweep_id)["operation_id"])

    def operation(self, operation_id: str) -> Operation:
        return self.send(calls.operation(operation_id))

    def cancel_operation(self, operation_id: str) -> Operation:
        return self.send(calls.cancel_operation(operation_id))


class AsyncClient:
    """The same, awaited. Calls without a method of their own go through `send(calls.…)`."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.url = url
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=_headers(token, headers),
            transport=transport,
            timeout=timeout_seconds,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, call: Call[Answer]) -> Answer:
        """Send any call of `maat.client.calls`."""
        try:
            response = await self._http.request(**_request(call))
        except httpx.TransportError as error:
            raise Unreachable(
                f"No answer from {self._http.base_url}: {error}. Is Maat running there?"
            ) from error
        return cast(Answer, _answer(response))

    async def health(self) -> Health:
        return await self.send(calls.health())

    async def clusters(self) -> list[Cluster]:
        return (await self.send(calls.clusters()))["items"]

    async def jobs(self, **filters: Unpack[JobFilters]) -> Page[Job]:
        return await self.send(calls.jobs(filters))

    async def every_job(self, **filters: Unpack[JobFilters]) -> AsyncIterator[Job]:
        """All jobs that match, page after page."""
        while True:
            page = await self.jobs(**filters)
            for job in page["items"]:
                yield job
            if page["next_cursor"] is None:
                return
            filters["cursor"] = page["next_cursor"]

    async def job(self, job_id: str) -> Job:
        return await self.send(calls.job(job_id))

    async def submit_job(
        self, *, idempotency_key: str | None = None, **body: Unpack[JobBody]
    ) -> Job:
        return await self.send(calls.submit_job(body, idempotency_key=idempotency_key))

    async def cancel_job(self, job_id: str) -> Job:
        return await self.send(calls.cancel_job(job_id))

    async def round(self, cluster_id: str, number: int | str = "latest") -> Round:
        return await self.send(calls.round_(cluster_id, number))

    async def measurements(self, *, kind: str | None = None) -> list[Measurement]:
        """Newest first."""
        return (await self.send(calls.measurements(kind=kind)))["items"]

    async def upload_measurement(
        self, *, idempotency_key: str | None = None, **body: Unpack[MeasurementBody]
    ) -> Measurement:
        return await self.send(calls.upload_measurement(body, idempotency_key=idempotency_key))

    async def delete_measurement(self, measurement_id: str) -> None:
        """What was asked for with it keeps it."""
        await self.send(calls.delete_measurement(measurement_id))

    async def simulate(
        self, *, idempotency_key: str | None = None, **body: Unpack[SimulationBody]
    ) -> Simulation:
        return await self.send(calls.simulate(body, idempotency_key=idempotency_key))

    async def simulation(self, simulation_id: str) -> Simulation:
        return await self.send(calls.simulation(simulation_id))

    async def reservations(self, cluster_id: str, *, over: bool = False) -> list[Reservation]:
        """Those that hold or will; with `over`, all there ever were."""
        return (await self.send(calls.reservations(cluster_id, over=over)))["items"]

    async def reserve(
        self,
        cluster_id: str,
        *,
        idempotency_key: str | None = None,
        **body: Unpack[ReservationBody],
    ) -> Reservation:
        return await self.send(calls.reserve(cluster_id, body, idempotency_key=idempotency_key))

    async def remove_reservation(self, cluster_id: str, reservation_id: str) -> None:
        await self.send(calls.remove_reservation(cluster_id, reservation_id))

    async def start_sweep(
        self, *, idempotency_key: str | None = None, **body: Unpack[SweepBody]
    ) -> Sweep:
        return await self.send(calls.start_sweep(body, idempotency_key=idempotency_key))

    async def sweep(self, sweep_id: str, *, fairness_rule: FairnessRule | None = None) -> Sweep:
        """With its points, and the means over the seeds of those that have ended."""
        return await self.send(calls.sweep(sweep_id, fairness_rule=fairness_rule))

    async def sweeps(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[SweepHead]:
        """Newest first, without their points."""
        return await self.send(calls.sweeps(limit=limit, cursor=cursor))

    async def sweep_points(
        self, sweep_id: str, *, fairness_rule: FairnessRule | None = None
    ) -> list[SweepPoint]:
        """In order; `figures` of those that have ended."""
        return (await self.sweep(sweep_id, fairness_rule=fairness_rule))["points"]

    async def sweep_rows(
        self, sweep_id: str, *, fairness_rule: FairnessRule | None = None
    ) -> list[SweepRow]:
        """Mean and spread of every combination of settings that has ended for a seed."""
        return (await self.sweep(sweep_id, fairness_rule=fairness_rule))["rows"]

    async def cancel_sweep(self, sweep_id: str) -> Operation:
        """Points that have ended stay."""
        return await self.send(calls.cancel_operation((await self.sweep(sweep_id))["operation_id"]))

    async def operation(self, operation_id: str) -> Operation:
        return await self.send(calls.operation(operation_id))
