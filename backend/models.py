"""Every table in one import, for comparison by migrations.

Each noun defines its own tables.
"""

from sqlmodel import SQLModel

from backend.accounts.models import ApiToken, BrowserSession, SignInTries, Tenant, User
from backend.attempts.models import (
    AttemptRow,
    ForgottenPast,
    GpuHold,
    GpuScore,
    GradientSample,
    JobFit,
    JobMemory,
    SharedModel,
    SharingSample,
    StepSample,
)
from backend.audit.models import AuditRecord
from backend.clusters.models import Cluster, ClusterRuntime, ExecutorJob, ExecutorSamples, Node
from backend.commands.models import JobCommand, JobSecret
from backend.experiments.models import Experiment
from backend.fairness.models import (
    EndedBelief,
    EndedDay,
    JobFairness,
    RhoDay,
    ShareDay,
    WaitReason,
    WeightChange,
)
from backend.forecasts.models import (
    ClusterForecast,
    ForecastInterest,
    ForecastPromise,
    JobForecastRow,
    WhatIf,
)
from backend.health.models import WorkerHeartbeat
from backend.idempotency_models import IdempotencyKey
from backend.jobs.models import (
    AllocationReading,
    BatchChange,
    Job,
    JobAllocation,
    JobCount,
    JobDependency,
    JobEvent,
    JobFlag,
    JobPause,
)
from backend.laboratory.models import LaboratoryUse
from backend.marginal_values.models import MarginalValueDay, SummedRounds
from backend.measurements.models import Measurement, MeasurementFiles, MeasurementUse
from backend.operations.models import Operation, OperationState
from backend.papers.models import PaperRun, ReproducedItem, ReproducedRun, Reproduction
from backend.previews.models import RoundPreview
from backend.quotas.models import GpuQuota
from backend.reports.models import Report, ReportDelivery, ReportSchedule
from backend.reservations.models import ClusterReservation
from backend.rounds.models import OutboxMessage, Round
from backend.simulations.models import Simulation, SimulationRun
from backend.sweeps.models import Sweep, SweepMember, SweepPoint
from backend.usage.models import CapacityDay, GpuPrice, SummedDay, UsageDay, UsageMonth, WaitDay
from backend.webhooks.models import Webhook, WebhookDelivery, WebhookNotice

metadata = SQLModel.metadata

__all__ = [
    "AllocationReading",
    "BatchChange",
    "ApiToken",
    "AttemptRow",
    "AuditRecord",
    "BrowserSession",
    "CapacityDay",
    "Cluster",
    "ClusterForecast",
    "ClusterReservation",
    "ClusterRuntime",
    "EndedBelief",
    "EndedDay",
    "ExecutorJob",
    "ExecutorSamples",
    "Experiment",
    "ForecastInterest",
    "ForecastPromise",
    "ForgottenPast",
    "GpuHold",
    "GpuPrice",
    "GpuQuota",
    "GpuScore",
    "GradientSample",
    "IdempotencyKey",
    "Job",
    "JobAllocation",
    "JobCommand",
    "JobCount",
    "JobDependency",
    "JobEvent",
    "JobFairness",
    "JobFit",
    "JobForecastRow",
    "JobFlag",
    "JobMemory",
    "JobPause",
    "JobSecret",
    "LaboratoryUse",
    "MarginalValueDay",
    "Measurement",
    "MeasurementFiles",
    "MeasurementUse",
    "Node",
    "Operation",
    "OperationState",
    "OutboxMessage",
    "PaperRun",
    "Report",
    "ReportDelivery",
    "ReportSchedule",
    "ReproducedItem",
    "ReproducedRun",
    "Reproduction",
    "RhoDay",
    "Round",
    "RoundPreview",
    "ShareDay",
    "SharedModel",
    "SharingSample",
    "SignInTries",
    "Simulation",
    "SimulationRun",
    "StepSample",
    "SummedDay",
    "SummedRounds",
    "Sweep",
    "SweepMember",
    "SweepPoint",
    "Tenant",
    "UsageDay",
    "UsageMonth",
    "User",
    "WaitDay",
    "WaitReason",
    "Webhook",
    "WebhookDelivery",
    "WebhookNotice",
    "WeightChange",
    "WhatIf",
    "WorkerHeartbeat",
    "metadata",
]
