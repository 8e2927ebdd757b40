"""The simulated executor of a live cluster, fed from the jobs table.

Writes nothing.

It is restored from the rows of the last round, or stays in memory from round to round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backend.jobs.declarations import declaration_of
from backend.models import Job as JobRow
from maat.models.catalog import load_catalog
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.scheduling.events import Event, EventKind
from maat.scheduling.job import Allocation, JobId, JobSpec
from maat.scheduling.rounds import Changes, ClusterState
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.world_models import Model
from maat.vocabulary import JobState
from worker.executor_rows import StoredExecutor, fit_once
from worker.step_seconds import OBSERVE, StepSeconds

LIVE_FIDELITY = FIDELITIES["paper"]


@dataclass
class FixedClock:
    """The cluster time of one step: all of it happens at once. The next step sets it."""

    seconds: float

    def now(self) -> float:
        return self.seconds

    def sleep_until(self, time: float) -> None:
        """Return at once: a live step is made when it is due and never waits."""


class LiveExecutor:
    """A live cluster's executor, step by step.

    Requests since the last round take effect when it is observed.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: FixedClock,
        rows: Sequence[JobRow],
        models: Mapping[str, Model],
        state: StoredExecutor | None,
        *,
        tenants: Mapping[str, str],
    ) -> None:
        """Restore from the rows.

        `rows`: every unfinished job; `tenants`: their names by id.
        """
        self.cluster, self._clock, self._models = cluster, clock, models
        self.simulated = SimulatedExecutor(cluster, clock, LIVE_FIDELITY, fitter=fit_once)
        self._unseen: list[Event] = []
        self._begun: list[Event] = []
        self._cancelled: list[JobId] = []
        self._numbers: Mapping[int, int] | None = None
        self._admit(rows, tenants)
        if state is not None:
            self.simulated.resume(
                state.now,
                {job_id: (job.standing, job.by_type) for job_id, job in state.jobs.items()},
            )
            self._numbers = new_numbers(state.nodes, cluster)
        self.was_renumbered = self._numbers is not None
        if self._numbers is not None:
            self._unseen += self._renumber(self._numbers)

    def go_on(
        self,
        now: float,
        rows: Sequence[JobRow],
        *,
        cancelled: Iterable[JobId],
        tenants: Mapping[str, str],
    ) -> None:
        """Begin another step from memory.

        `rows`: jobs submitted since the last one; `cancelled`: jobs that were asked to end.
        """
        self._clock.seconds = now
        self.was_renumbered = False
        self.simulated.forget_finished()
        self._cancelled += cancelled
        self._admit(rows, tenants)

    def observe(self) -> ClusterState:
        """Return the cluster now, with requests and node changes since the last round."""
        requested = [*self._unseen, *self._cancel(), *self._begun]
        self._unseen, self._begun, self._numbers = [], [], None
        observed = self.simulated.observe()
        return replace(observed, events=(*requested, *observed.events))

    def apply(self, changes: Changes) -> Sequence[Event]:
        """Apply a round.

        Changes left over from before nodes were added or removed have old GPU numbers.
        """
        return self.simulated.apply(
            changes if self._numbers is None else _renumbered(changes, self._numbers)
        )

    def head(self) -> dict[str, Any]:
        """Return the part of the state that belongs to no job, as JSON data."""
        return {"nodes": layout(self.cluster), "now": self.simulated.now}

    def _admit(self, rows: Iterable[JobRow], tenants: Mapping[str, str]) -> None:
        for row in rows:
            refused = self._submit(row, tenants[row.tenant_id])
            if refused is not None:
                self._unseen.append(refused)
            elif row.cancel_requested:
                self._cancelled.append(row.id)
            elif row.state == JobState.SUBMITTED:
                self._begun.append(
                    Event(row.submitted_seconds, row.id, EventKind.STATE, JobState.PROFILING)
                )

    def _submit(self, row: JobRow, tenant: str) -> Event | None:
        """Submit a job to the simulator.

        Returns an event if the job fails because it can never run.
        """
        try:
            model = _model(row, self._models)
            spec = job_spec(row, tenant=tenant)
        except InputError as error:
            problem = {"field": error.field, "problem": error.problem, "remedy": error.remedy}
            return Event(self._clock.now(), row.id, EventKind.STATE, JobState.FAILED, problem)
        self.simulated.submit(
            spec, model.truth, restart_seconds=model.restart_seconds, work_scale=row.work_scale
        )
        return None

    def _cancel(self) -> list[Event]:
        cancelled, self._cancelled = self._cancelled, []
        for job_id in cancelled:
            self.simulated.cancel(job_id)
        return [
            Event(self._clock.now(), job_id, EventKind.STATE, JobState.CANCELLED)
            for job_id in cancelled
        ]

    def _renumber(self, numbers: Mapping[int, int]) -> Iterable[Event]:
        """Give jobs the new numbers of their GPUs.

        A job whose node is gone loses its GPUs.
        """
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
                yield Event(
                    now,
                    job.spec.id,
                    EventKind.STATE,
                    JobState.PREEMPTED,
                    {"cause": EventKind.NODE_FAILED.value},
                )


class MeasuredExecutor:
    """An executor that measures the time to observe and to apply."""

    def __init__(self, executor: LiveExecutor, seconds: StepSeconds) -> None:
        self._executor, self._seconds = executor, seconds

    def observe(self) -> ClusterState:
        with self._seconds.part(OBSERVE):
            return self._executor.observe()

    def apply(self, changes: Changes) -> Sequence[Event]:
        with self._seconds.part(OBSERVE):
            return self._executor.apply(changes)


def job_spec(row: JobRow, *, tenant: str) -> JobSpec:
    """Return the owner's declaration with the catalog's facts.

    The tenant goes by name. Raises JobError if the model can never run it.
    """
    return load_catalog()[row.model].job_spec(
        declaration_of(row),
        id=row.id,
        submitted_at=row.submitted_seconds,
        owner=row.owner_id,
        tenant=tenant,
    )


def _model(row: JobRow, models: Mapping[str, Model]) -> Model:
    if row.model not in models:
        raise InputError(
            "is no longer a model of the catalog",
            field="model",
            value=row.model,
            remedy=f"Use one of: {', '.join(models)}.",
        )
    return models[row.model]


def layout(cluster: Cluster) -> list[list[Any]]:
    """Return name and GPU count of every node in order; they fix the GPU numbers."""
    return [[node.id, node.gpu_count] for node in cluster.nodes]


def new_numbers(before: Sequence[Sequence[Any]], cluster: Cluster) -> dict[int, int] | None:
    """Return old GPU number -> new one, by node name and index on the node.

    GPUs that no longer exist are left out. Returns None if nothing moved.
    """
    if [list(node) for node in before] == layout(cluster)[: len(before)]:
        return None
    first = dict(
        zip((node.id for node in cluster.nodes), cluster.node_offsets.tolist(), strict=False)
    )
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
