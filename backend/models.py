"""Every table in one import, for comparison by migrations.

Each noun defines its own tables.
"""

from sqlmodel import SQLModel

from backend.accounts.models import ApiToken, Tenant, User
from backend.attempts.models import (
    AttemptRow,
    GpuHold,
    GpuScore,
    GradientSample,
    JobFit,
    JobMemory,
    SharingSample,
    StepSample,
)
from backend.clusters.models import Cluster, ClusterRuntime, ExecutorJob, ExecutorSamples, Node
from backend.commands.models import JobCommand, JobSecret
from backend.idempotency_models import IdempotencyKey
from backend.jobs.models import Job, JobAllocation, JobCount, JobEvent
from backend.measurements.models import Measurement, MeasurementFiles, MeasurementUse
from backend.operations.models import Operation, OperationState
from backend.reservations.models import ClusterReservation
from backend.rounds.models import OutboxMessage, Round
from backend.simulations.models import Simulation, SimulationRun
from backend.sweeps.models import Sweep, SweepMember, SweepPoint

metadata = SQLModel.metadata

__all__ = [
    "ApiToken",
    "AttemptRow",
    "Cluster",
    "ClusterReservation",
    "ClusterRuntime",
    "ExecutorJob",
    "ExecutorSamples",
    "GpuHold",
    "GpuScore",
    "GradientSample",
    "IdempotencyKey",
    "Job",
    "JobAllocation",
    "JobCommand",
    "JobCount",
    "JobEvent",
    "JobFit",
    "JobMemory",
    "JobSecret",
    "Measurement",
    "MeasurementFiles",
    "MeasurementUse",
    "Node",
    "Operation",
    "OperationState",
    "OutboxMessage",
    "Round",
    "SharingSample",
    "Simulation",
    "SimulationRun",
    "StepSample",
    "Sweep",
    "SweepMember",
    "SweepPoint",
    "Tenant",
    "User",
    "metadata",
]
