"""A job as the scheduler sees it.

JobDeclaration is what its owner says; JobSpec adds what is known of its model; Job is its state in
this round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from maat.scheduling.belief import Belief
from maat.scheduling.errors import JobError
from maat.scheduling.regimes import DeclaredRegimes
from maat.vocabulary import Adaptivity, WorkloadKind

JobId = str


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Per-GPU batch sizes that a GPU type can hold, samples.

    `fills_gpu`: True if the largest takes all of a GPU's memory; False if it is only the largest
    that was measured, which says nothing of memory.
    """

    smallest_per_gpu: int
    largest_per_gpu: int
    fills_gpu: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDeclaration:
    """What the owner says of a job: the one list of these fields.

    Requests, rows, traces and specs have fields of the same names, so that `declared` carries all
    of them from one to the other.

    Attributes:
        adaptivity: None if the source leaves it open.
        gpu_count: What a rigid job asks for, or the request that an ordering policy honours.
        batch_size: Total, in samples.
        max_batch_size: The most that the scheduler may plan with; None takes the model's.
        work_scale: Share of the model's standard training.
        promised_seconds: Time in which latency-bound inference answers `batch_size` requests that
            it serves together, spread over its replicas.
        gpu_types: Those that it may use; None for all on which its model runs.
        priority: Its class (`priority_class`) comes before lower ones; FIFO also orders by the
            number.
        weight: Above zero. Policies that weigh jobs (`Policy.weighs_jobs`) count one of weight w as
            w jobs like it.
        least_stay_seconds, most_moves_per_hour: Bounds on how soon and how often rounds move it
            (stability.py); None for the cluster's alone.
        labels: Each `key=value`: by them the owner's use is summed up; no policy reads them.
    """

    name: str = ""
    model: str
    adaptivity: Adaptivity | None = None
    gpu_count: int | None = None
    min_gpus: int = 1
    max_gpus: int | None = None
    batch_size: int | None = None
    max_batch_size: int | None = None
    work_scale: float = 1.0
    workload_kind: WorkloadKind = WorkloadKind.TRAINING
    promised_seconds: float | None = None
    preemptible: bool = True
    gpu_types: tuple[str, ...] | None = None
    priority: int = 0
    weight: float = 1.0
    least_stay_seconds: float | None = None
    most_moves_per_hour: int | None = None
    labels: tuple[str, ...] = ()


DECLARED = tuple(field.name for field in fields(JobDeclaration))


def declared(source: object) -> dict[str, Any]:
    """Return the declaration's fields of an object that has them all, by name."""
    return {name: getattr(source, name) for name in DECLARED}


UNKNOWN_WORK = 1e9 + 0.5
"""Effective samples of a job until its owner or its script says: others look shorter. No whole
number: what somebody says is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(JobDeclaration):
    """A declaration completed by what is known of the model, as policies see it.

    Raises JobError, which names the field, on a combination that can never run.

    Attributes:
        work: Effective samples to train: iterations at the initial batch size x that size.
        gpus_per_replica: GPUs that one replica spans, by type (hybrid-parallel jobs); 1 by
            default.
        restart_seconds: Checkpoint + stop + start + restore, as the policy estimates it.
        variability_class: Which of the cluster's GPU scores apply to it; None if none do.
        locality_penalty: Factor on the time of an iteration across nodes, beyond what its step
            times show.
        step_penalty: The factor that its step times do show, by GPU type, as measured or declared;
            a type that is not named has 1.
        rack_penalty: Further factor across racks.
        regimes: Set if the job changes its own batch size between epochs; `batch_size` is its
            first.
        shares_as: Its name in tables of sharing slowdowns; None takes the model's.
        most_gpus_by_type: The most GPUs of a type on which its step times are known: a policy that
            chooses counts offers it no more. A type that is not named has no such limit.
        rounds_batch_up: Whether rounding to whole samples per GPU may exceed `max_batch_size` in
            what a policy believes of a plan, as in published simulators.
    """

    id: JobId
    submitted_at: float
    owner: str = "local"
    tenant: str = "default"
    adaptivity: Adaptivity = Adaptivity.ADAPTIVE
    work: float
    initial_batch_size: int
    max_batch_size: int
    memory: Mapping[str, MemoryLimits]
    gpus_per_replica: Mapping[str, int] = field(default_factory=dict)
    restart_seconds: float = 30.0
    variability_class: str | None = None
    locality_penalty: float = 1.0
    step_penalty: Mapping[str, float] = field(default_factory=dict)
    rack_penalty: float = 1.0
    regimes: DeclaredRegimes | None = None
    shares_as: str | None = None
    most_gpus_by_type: Mapping[str, int] = field(default_factory=dict)
    rounds_batch_up: bool = False

    @property
    def work_is_known(self) -> bool:
        """Whether `work` was said by its owner, its script or the catalog."""
        return self.work != UNKNOWN_WORK

    def __post_init__(self) -> None:
        for name in ("work", "submitted_at", "restart_seconds"):
            value = getattr(self, name)
            if not (value >= 0 and value < float("inf")):
                raise JobError(
                    "is not a finite number of at least zero",
                    field=name,
                    value=value,
                    remedy="Give a number from 0 up.",
                )
        if not 0 < self.weight < float("inf"):
            raise JobError(
                "is not a finite number above zero",
                field="weight",
                value=self.weight,
                remedy="Give a number above 0, such as 2.",
            )
        for name in ("min_gpus", "initial_batch_size", "max_batch_size", "gpu_count", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise JobError(
                    "must be at least 1",
                    field=name,
                    value=value,
                    remedy="Give a whole number from 1 up.",
                )
        if self.max_batch_size < self.initial_batch_size:
            raise JobError(
                "is below the initial batch size",
                field="max_batch_size",
                value=self.max_batch_size,
                remedy=f"Give at least {self.initial_batch_size}.",
            )
        if self.max_gpus is not None and self.max_gpus < self.min_gpus:
            raise JobError(
                "is below min_gpus",
                field="max_gpus",
                value=self.max_gpus,
                remedy=f"Give at least {self.min_gpus}, or leave it out.",
            )
        if self.gpu_count is not None and not self.min_gpus <= self.gpu_count <= (
            self.max_gpus or self.gpu_count
        ):
            raise JobError(
                "is not between min_gpus and max_gpus",
                field="gpu_count",
                value=self.gpu_count,
                remedy=f"Give {self.min_gpus} to {self.max_gpus or 'any number'}.",
            )
        if self.adaptivity is Adaptivity.RIGID and self.gpu_count is None:
            raise JobError(
                "is missing for a rigid job",
                field="gpu_count",
                remedy="Say how many GPUs it needs.",
            )
        if self.has_fixed_batch and self.batch_size is None:
            raise JobError(
                "is missing for a job of fixed batch size",
                field="batch_size",
                remedy="Give the total batch size.",
            )
        for name, factor in (
            ("locality_penalty", self.locality_penalty),
            ("rack_penalty", self.rack_penalty),
            *(("step_penalty", factor) for factor in self.step_penalty.values()),
        ):
            if not 1 <= factor < float("inf"):
                raise JobError(
                    "is no factor of at least 1",
                    field=name,
                    value=factor,
                    remedy="Give 1 for none, or a factor such as 1.7.",
                )
        self._check_promise()

    def _check_promise(self) -> None:
        promised = self.promised_seconds
        bound = self.workload_kind is WorkloadKind.LATENCY_INFERENCE
        if bound and promised is None:
            raise JobError(
                "is missing for latency-bound inference",
                field="promised_seconds",
                remedy="Give the seconds in which it answers batch_size requests together; "
                "workload_kind latency-inference needs them.",
            )
        if not bound and promised is not None:
            raise JobError(
                "is for latency-bound inference only",
                field="promised_seconds",
                value=promised,
                remedy="Give it with workload_kind latency-inference, else leave it out.",
            )
        if promised is not None and not 0 < promised < float("inf"):
            raise JobError(
                "is not a time above zero",
                field="promised_seconds",
                value=promised,
                remedy="Give seconds, such as 0.1.",
            )

    @property
    def interference_name(self) -> str:
        """Return the job's name in `RoundInput.interference`."""
        return self.model if self.shares_as is None else self.shares_as

    @property
    def is_rigid(self) -> bool:
        return self.adaptivity is Adaptivity.RIGID

    @property
    def has_fixed_batch(self) -> bool:
        return (
            self.adaptivity is not Adaptivity.ADAPTIVE
            or self.workload_kind is WorkloadKind.LATENCY_INFERENCE
        )

    @property
    def rounds_batch_down(self) -> bool:
        """Return whether the batch that its owner fixed is rounded down to whole samples per GPU.

        A promise is of answers to all requests, so that their number is rounded up. Published
        simulators round up (`rounds_batch_up`).
        """
        return (
            self.batch_size is not None
            and self.adaptivity is not Adaptivity.ADAPTIVE
            and self.workload_kind is not WorkloadKind.LATENCY_INFERENCE
            and not self.rounds_batch_up
        )

    def most_samples(self, total: int) -> int:
        """Return the most samples that a plan for this total batch size may have."""
        return total if self.rounds_batch_down else max(self.max_batch_size, total)

    @property
    def learns(self) -> bool:
        """Return whether a sample of a larger batch may have less value.

        That is so in training only.
        """
        return self.workload_kind is WorkloadKind.TRAINING

    @property
    def requested_batch_size(self) -> int:
        """Return the total batch size of a job that does not adapt it.

        That is the one it asks for, or else its initial one.
        """
        return self.batch_size if self.batch_size is not None else self.initial_batch_size

    @property
    def requested_gpus(self) -> int:
        """Return the GPUs that a policy without a choice of counts gives this job."""
        return self.gpu_count if self.gpu_count is not None else self.min_gpus

    def penalty_across_nodes(self, gpu_type: str) -> float:
        """Return PAL's L_across: what a step across nodes takes over one within a node."""
        return self.locality_penalty * self.step_penalty.get(gpu_type, 1.0)

    def replica_gpus(self, gpu_type: str) -> int:
        return self.gpus_per_replica.get(gpu_type, 1)

    def may_use(self, gpu_type: str) -> bool:
        """Return whether the job fits a GPU of this type and its owner allows it."""
        return gpu_type in self.memory and (self.gpu_types is None or gpu_type in self.gpu_types)


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a job holds: GPU numbers of the cluster, ascending, all of one type."""

    gpu_type: str
    gpus: tuple[int, ...]

    @property
    def gpu_count(self) -> int:
        return len(self.gpus)


@dataclass(frozen=True, slots=True)
class Job:
    """The state of a job at the beginning of a round.

    Attributes:
        remaining_work: Effective samples.
        attained_gpu_seconds: Service so far, by type.
        restarting: Its checkpoint-restore is not over, so its grant is pinned.
        remaining_steps: Optimiser steps left at the batch size that it asks for; None if unknown.
        epochs_begun: Of a job with regimes, by total batch size, the present epoch included.
        held_since: When it got the GPUs that it holds (cluster time); None if that is unknown.
        moved_at: When rounds took or changed GPUs that it held, as far back as an hour at least.
    """

    spec: JobSpec
    belief: Belief
    remaining_work: float
    allocation: Allocation | None = None
    attained_gpu_seconds: Mapping[str, float] = field(default_factory=dict)
    restarts: int = 0
    restarting: bool = False
    started_at: float | None = None
    remaining_steps: float | None = None
    epochs_begun: Mapping[int, int] = field(default_factory=dict)
    held_since: float | None = None
    moved_at: tuple[float, ...] = ()

    @property
    def id(self) -> JobId:
        return self.spec.id

    def age_seconds(self, now: float) -> float:
        """Return the seconds since submission, queueing included."""
        return max(now - self.spec.submitted_at, 0.0)
