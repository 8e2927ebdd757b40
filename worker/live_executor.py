"""The simulated executor of a live cluster: fed from the jobs table, restored from the state of the last round. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from backend.models import Job as JobRow
from maat.scheduling.arrays import FloatArray
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.scheduling.events import Event, EventKind, JobState
from maat.scheduling.fitting import Sample, fit_throughput
from maat.scheduling.job import Adaptivity, Allocation, JobSpec, WorkloadKind
from maat.scheduling.rounds import Changes, Clock, ClusterState
from maat.simulation.catalog import load_catalog
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.models import Model

LIVE_FIDELITY = FIDELITIES["paper"]


@lru_cache(maxsize=20_000)
def fit_once(samples: tuple[Sample, ...]) -> FloatArray:
    """The fitted model of these samples: an executor is restored every round, its models need not be fitted anew."""
    found = fit_throughput(samples)
    found.setflags(write=False)
    return found


@dataclass(frozen=True)
class FixedClock:
    """The cluster time of one step: everything in it happens at once."""

    seconds: float

    def now(self) -> float:
        return self.seconds

    def sleep_until(self, time: float) -> None:
        """A live step never waits: it is made when it is due."""


class LiveExecutor:
    """One step's view of a live cluster: what was asked for since the last round happens when it is observed."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        rows: Iterable[JobRow],
        models: Mapping[str, Model],
        state: Mapping[str, Any] | None,
        *,
        tenants: Mapping[str, str],
    ) -> None:
        """`tenants`: their names by id."""
        self.cluster, self._clock, self._tenants = cluster, clock, tenants
        self._rows = list(rows)
        self.simulated = SimulatedExecutor(cluster, clock, LIVE_FIDELITY, fitter=fit_once)
        self._unseen = [refused for row in self._rows if (refused := self._submit(row, models)) is not None]
        self._refused = {event.job_id for event in self._unseen}
        self._numbers: Mapping[int, int] | None = None
        if state is not None:
            self.simulated.load(state["executor"])
            self._numbers = new_numbers(state["nodes"], cluster)
        self.was_renumbered = self._numbers is not None
        if self._numbers is not None:
            self._unseen += self._renumber(self._numbers)

    def observe(self) -> ClusterState:
        """The cluster now; with what its owners asked for, and what happened to its nodes, since the last round."""
        asked = [*self._unseen, *self._cancel(), *self._begin_profiling()]
        self._unseen, self._numbers = [], None
        observed = self.simulated.observe()
        return replace(observed, events=(*asked, *observed.events))

    def apply(self, changes: Changes) -> Sequence[Event]:
        """Carry out a round. One that was left over from before nodes came or went speaks of GPUs by their old numbers."""
        return self.simulated.apply(changes if self._numbers is None else _renumbered(changes, self._numbers))

    def state(self) -> dict[str, Any]:
        """What the next step goes on from, as JSON data."""
        return {"nodes": layout(self.cluster), "executor": self.simulated.dump()}

    def _submit(self, row: JobRow, models: Mapping[str, Model]) -> Event | None:
        """Hand a job to the simulator; the event of its failure where it can never run."""
        try:
            model = _model(row, models)
            spec = job_spec(row, tenant=self._tenants[row.tenant_id])
        except InputError as error:
            problem = {"field": error.field, "problem": error.problem, "remedy": error.remedy}
            return Event(self._clock.now(), row.id, EventKind.STATE, JobState.FAILED, problem)
        self.simulated.submit(spec, model.truth, restart_seconds=model.restart_seconds, work_scale=row.work_scale)
        return None

    def _cancel(self) -> Iterable[Event]:
        for row in self._rows:
            if row.cancel_requested and row.id not in self._refused:
                self.simulated.cancel(row.id)
                yield Event(self._clock.now(), row.id, EventKind.STATE, JobState.CANCELLED)

    def _begin_profiling(self) -> Iterable[Event]:
        for row in self._rows:
            if row.state == JobState.SUBMITTED and not row.cancel_requested and row.id not in self._refused:
                yield Event(row.submitted_seconds, row.id, EventKind.STATE, JobState.PROFILING)

    def _renumber(self, numbers: Mapping[int, int]) -> Iterable[Event]:
        """Give jobs their GPUs under the numbers of today; a job whose node is gone has lost them."""
        now = self._clock.now()
        for job in self.simulated.jobs.values():
            held = job.allocation
            if held is None:
                continue
            if all(gpu in numbers for gpu in held.gpus):
                moved = Allocation(held.gpu_type, tuple(sorted(numbers[gpu] for gpu in held.gpus)))
                job.hold(moved, job.shape, job.fixed_plan, restarts=False, now=now)
            else:
                job.hold(None, (), None, restarts=False, now=now)
                yield Event(now, job.spec.id, EventKind.STATE, JobState.PREEMPTED, {"cause": EventKind.NODE_FAILED.value})


def job_spec(row: JobRow, *, tenant: str) -> JobSpec:
    """What the owner declared, with what the catalog knows of the model; the tenant by its name. Raises JobError where that can never run."""
    return load_catalog()[row.model].job_spec(
        id=row.id,
        name=row.name,
        owner=row.owner_id,
        tenant=tenant,
        submitted_at=row.submitted_seconds,
        work_scale=row.work_scale,
        adaptivity=Adaptivity(row.adaptivity),
        gpu_count=row.gpu_count,
        min_gpus=row.min_gpus,
        max_gpus=row.max_gpus,
        batch_size=row.batch_size,
        max_batch_size=row.max_batch_size,
        preemptible=row.preemptible,
        gpu_types=None if row.gpu_types is None else tuple(row.gpu_types),
        workload_kind=WorkloadKind(row.workload_kind),
        promised_seconds=row.promised_seconds,
    )


def _model(row: JobRow, models: Mapping[str, Model]) -> Model:
    if row.model not in models:
        raise InputError("is no model of the catalog any more", field="model", value=row.model, remedy=f"Use one of: {', '.join(models)}.")
    return models[row.model]


# ---- GPU numbers ------------------------------------------------------------------------------------------------------------------


def layout(cluster: Cluster) -> list[list[Any]]:
    """Name and GPU count of every node, in order: what the numbers of GPUs follow from."""
    return [[node.id, node.gpu_count] for node in cluster.nodes]


def new_numbers(before: Sequence[Sequence[Any]], cluster: Cluster) -> dict[int, int] | None:
    """Old GPU number -> new one, by node name and place on the node; GPUs that are gone are left out. None: nothing moved."""
    if [list(node) for node in before] == layout(cluster)[: len(before)]:
        return None
    first = dict(zip((node.id for node in cluster.nodes), cluster.node_offsets.tolist(), strict=False))
    size = {node.id: node.gpu_count for node in cluster.nodes}
    numbers: dict[int, int] = {}
    old = 0
    for name, count in before:
        numbers |= {old + i: first[name] + i for i in range(min(count, size.get(name, 0)))}
        old += count
    return numbers


def _renumbered(changes: Changes, numbers: Mapping[int, int]) -> Changes:
    items = []
    for change in changes.items:
        if change.after is None:
            items.append(change)
        elif all(gpu in numbers for gpu in change.after.gpus):
            gpus = tuple(sorted(numbers[gpu] for gpu in change.after.gpus))
            items.append(replace(change, after=Allocation(change.after.gpu_type, gpus)))
    return replace(changes, items=tuple(items))
