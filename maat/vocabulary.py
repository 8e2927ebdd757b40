"""Words and bounds that the engine and the REST API share: enumerations, largest values.

Standard library only, so that the API's schemas need no numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

LARGEST_INTEGER = 2**31 - 1
"""Of what a column of four bytes takes: `sa.Integer` on PostgreSQL."""
LARGEST_COUNT = 2**53
"""Of what JSON holds exactly. It needs a column of eight bytes (BigCount, backend/columns.py)."""
MAX_TEXT = 200
"""Characters of a name."""
MAX_PRIORITY = 1000
"""Largest priority of a job; the smallest is its negative."""
LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0
"""Of a tenant, and of a job."""
HEAVY_WEIGHT = 2.0
"""A job that weighs more needs a permission of its own."""
MAX_GPUS = 1_000_000
MOST_LABELS = 20
"""Labels of a job."""
LABEL_KEY, LABEL_VALUE = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}", r"[A-Za-z0-9._/@:-]{1,63}"
"""What a label's key and value look like: no spaces, no equals sign."""
LEAST_ROUND_SECONDS, MOST_ROUND_SECONDS = 1.0, 86_400.0
LEAST_SPEED, MOST_SPEED = 0.001, 100_000.0
"""Cluster seconds per wall second. At the least a round of a minute takes most of a day."""
MAX_GPUS_PER_NODE = 64
MAX_JOBS_PER_GPU = 8
MAX_LIVE_JOBS_PER_GPU = 2
"""On live clusters: sharing policies pair jobs."""
MAX_STAY_SECONDS = 30 * 86_400.0
MAX_MOVES_PER_HOUR = 3600
UNBOUNDED = "none"
"""How people write that no bound holds jobs where they are."""
"""The largest bounds on how long jobs stay and how often they move."""
MAX_SECONDS = 1e10
"""Largest time in a trace."""
MAX_HOURS = 8784.0
"""Longest generated workload: a leap year."""
MAX_SLOWDOWN = 1000.0
MOST_RACK_PENALTY = 100.0
MOST_LOCALITY_PENALTY = 100.0
"""That an owner may declare across nodes."""
MOST_CONTENTION = 0.99
"""Of its speed, what a distributed job may lose to others on its nodes."""
LEAST_MTBF_HOURS = 0.1
"""With less time between failures jobs do little but restart, and a simulation does not end."""
SYNTHETIC = "synthetic"
"""The name of the interference table that ships with Maat."""
MEASURED = "measured"
"""In place of a locality penalty: what the models' own step times across nodes show."""


class Role(StrEnum):
    """What a user may do; the service's permissions say it in full."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    TENANT_MANAGER = "tenant_manager"
    CLUSTER_ADMIN = "cluster_admin"
    AUDITOR = "auditor"


class PriorityClass(StrEnum):
    """How urgent a job is. URGENT needs a permission of its own."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"


PRIORITIES: Mapping[PriorityClass, int] = {
    PriorityClass.LOW: -10,
    PriorityClass.NORMAL: 0,
    PriorityClass.HIGH: 10,
    PriorityClass.URGENT: 20,
}
"""The number that a class stands for, the lowest first. A class reaches up to the next one."""


def priority_class(priority: int) -> PriorityClass:
    """Return the class of a number: 12 is high, all below 0 are low."""
    reached = [kind for kind, least in PRIORITIES.items() if priority >= least]
    return reached[-1] if reached else PriorityClass.LOW


class UserKind(StrEnum):
    """A person signs in; a service account has tokens and no password."""

    PERSON = "person"
    SERVICE = "service"


class ActorKind(StrEnum):
    """Who changed something: a user, a program of Maat, or a visitor who is not signed in."""

    USER = "user"
    PROGRAM = "program"
    VISITOR = "visitor"


class TargetKind(StrEnum):
    """What was changed. `none`: nothing that has a row, as by a sign-in that was refused."""

    USER = "user"
    TENANT = "tenant"
    TOKEN = "token"  # noqa: S105  (a word, not a secret)
    SESSION = "session"
    CLUSTER = "cluster"
    NODE = "node"
    RESERVATION = "reservation"
    PRICE = "price"
    REPORT_SCHEDULE = "report-schedule"
    WEBHOOK = "webhook"
    JOB = "job"
    NONE = "none"


class WebhookEvent(StrEnum):
    """What a webhook can be told.

    JOB_STARTED: it got its first GPUs. JOB_DEADLINE: a round found that it will miss its deadline.
    JOB_CHECKPOINT: it could not save, or a checkpoint was damaged. JOB_FLAGGED: what
    its agent says is unlikely. REPORT_READY: a report was kept.
    CLUSTER_FAULT: the engine of a cluster does not answer. NODE_FAULT: a node cannot be used.
    """

    JOB_SUBMITTED = "job.submitted"
    JOB_STARTED = "job.started"
    JOB_PREEMPTED = "job.preempted"
    JOB_PAUSED = "job.paused"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    JOB_DEADLINE = "job.deadline"
    JOB_CHECKPOINT = "job.checkpoint"
    JOB_FLAGGED = "job.flagged"
    REPORT_READY = "report.ready"
    CLUSTER_FAULT = "cluster.fault"
    CLUSTER_RECOVERED = "cluster.recovered"
    NODE_FAULT = "node.fault"
    NODE_RECOVERED = "node.recovered"


class Doubted(StrEnum):
    """What is unlikely of what a job's agent says (maat/scheduling/plausibility.py).

    SPEED: its steps leave nearly all of its time unexplained. PACE: more progress than its steps
    can have made. KIND: steps much faster than is usual of its model and GPU type. WORK: it goes on
    beyond the work that it named. END: finished with a small part of that work.
    """

    SPEED = "speed"
    PACE = "pace"
    KIND = "kind"
    WORK = "work"
    END = "end"


class Adaptivity(StrEnum):
    """What may vary of a job besides its GPU type (Sia section 3.4).

    Nothing; the GPU count; the GPU count and the batch size.
    """

    RIGID = "rigid"
    STRONG_SCALING = "strong-scaling"
    ADAPTIVE = "adaptive"


class WorkloadKind(StrEnum):
    """What a job does, which decides what counts as its goodput (Sia sections 3 and 6).

    Training: effective samples/s. Batch inference: samples/s. Latency-bound inference: 1 if it
    keeps its promised latency, else 0.
    """

    TRAINING = "training"
    BATCH_INFERENCE = "batch-inference"
    LATENCY_INFERENCE = "latency-inference"


class JobState(StrEnum):
    """The life of a job. events.py lists which state may follow which.

    PAUSED: it takes no part in rounds and holds no GPU, until it is resumed. A job that is held
    before it ever ran is paused too.
    """

    SUBMITTED = "submitted"
    PROFILING = "profiling"
    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    PAUSED = "paused"
    PREEMPTED = "preempted"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ExecutorKind(StrEnum):
    """What runs the jobs of a live cluster. worker/executors has a line for each.

    SIMULATED: nothing runs; jobs advance by the true step times of their models. LOCAL: jobs are
    commands that run on the worker's own machine. SLURM: jobs are commands that a Slurm cluster
    runs, which also says what nodes there are.
    """

    SIMULATED = "simulated"
    LOCAL = "local"
    SLURM = "slurm"

    @property
    def runs_commands(self) -> bool:
        return self is not ExecutorKind.SIMULATED


class AttemptState(StrEnum):
    """One life of a job's processes on one allocation. worker/training/attempts.py has the rules.

    ORDERED: a round wants it. QUEUED: its GPUs are held, and the engine is to start it. STARTING:
    its processes live. RUNNING: it has reported, or no reports are expected. STOPPING: it was asked
    to end. ENDED: no process of it lives, and it holds no GPU.
    """

    ORDERED = "ordered"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


class AttemptKind(StrEnum):
    """What an attempt is for.

    TRAIN: to train. PROFILE: to measure step times on one GPU of a type, for seconds, before the
    job trains; nothing of it is kept but the measurements.
    """

    TRAIN = "train"
    PROFILE = "profile"


class Outcome(StrEnum):
    """How an attempt ended.

    STOPPED: Maat asked for it. FAILED: a process of it failed, or it fell silent. LOST: its node or
    its supervisor was lost. CANCELLED: in the engine, not by Maat. REFUSED: the engine could not
    start it. NEVER_STARTED: a newer round replaced it before it held GPUs.
    """

    SUCCEEDED = "succeeded"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    NEVER_STARTED = "never-started"


class StopReason(StrEnum):
    """Why Maat asked an attempt to end.

    PAUSED: its job was paused. PROFILED: it had the time of a profile, and did not end by itself.
    NO_AGENT: it was to be measured, and its script does not use maat.agent.
    """

    MOVED = "moved"
    PREEMPTED = "preempted"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    SILENT = "silent"
    NOT_STARTED = "not-started"
    PROFILED = "profiled"
    NO_AGENT = "no-agent"


class ProfilingMode(StrEnum):
    """What the scheduler knows of a job before it has run (Sia section 5.7).

    ORACLE: step times at every configuration. BOOTSTRAP: step times on one GPU of every type.
    TWO_COUNTS: on one GPU and on two of every type. NO_PROFILE: nothing. REQUESTED: its true pace,
    calibration included, at the GPU count and batch size that it asks for, on every type, free of
    charge. REQUEST_ORACLE: step times at the batch size that it asks for on any number of GPUs,
    filled node by node, and how many optimiser steps of that batch size remain (Pollux section 5.2,
    Optimus+Oracle).
    """

    ORACLE = "oracle"
    REQUESTED = "requested"
    BOOTSTRAP = "bootstrap"
    TWO_COUNTS = "two-counts"
    NO_PROFILE = "no-profile"
    REQUEST_ORACLE = "request-oracle"


class TuningRule(StrEnum):
    """Which pairs of GPU count and batch size a tuned job may ask for.

    ANY_PAIR: every batch size on every GPU count (Sia). BEST_BATCH: the best batch size of each GPU
    count (Pollux).
    """

    ANY_PAIR = "any-pair"
    BEST_BATCH = "best-batch"


class ScoreDraw(StrEnum):
    """How slow a simulated GPU is.

    MEDIANS: as the median of a measured GPU, none drawn twice. ROWS: as any single measurement, as
    in the published code.
    """

    MEDIANS = "medians"
    ROWS = "rows"


class MeasurementKind(StrEnum):
    """What an upload describes: unequal GPUs, sharing, steps across nodes, models, or a trace."""

    VARIABILITY = "variability"
    INTERFERENCE = "interference"
    LOCALITY = "locality"
    PROFILES = "profiles"
    TRACE = "trace"


class PenaltyOrigin(StrEnum):
    """Whence a locality penalty is known.

    DECLARED: the job's owner says so. MEASURED: by steps within a node and across nodes. ASSUMED:
    by nothing; it is 1.
    """

    DECLARED = "declared"
    MEASURED = "measured"
    ASSUMED = "assumed"


class FairnessRule(StrEnum):
    """What a job's JCT is compared with for finish-time fairness, and how rho follows.

    MEAN_OF_RATIOS: the mean of the ratios by GPU type (Sia eq. 6); alone, the job has its share
    N / n_avg of all GPUs, of each type in turn, as in the published script. RATIO_TO_MEAN: the
    published script's ratio to the mean of these JCTs, which is never larger. SHARE_OF_TYPE: eq. 6
    with "only the N_g GPUs of type g" (section 5.5) taken literally: alone, the job has N_g / n_avg
    GPUs of type g, and mostly takes longer.
    """

    MEAN_OF_RATIOS = "mean-of-ratios"
    RATIO_TO_MEAN = "ratio-to-mean"
    SHARE_OF_TYPE = "share-of-type"


class FairnessState(StrEnum):
    """How far rho of a job that has ended is.

    WAITING, WORKING: on its way. DONE: it has a rho. LEFT_OUT: it has none, by a rule. FAILED: it
    could not be worked out. SKIPPED: an operator said that it need not be.
    """

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    LEFT_OUT = "left-out"
    FAILED = "failed"
    SKIPPED = "skipped"


class WorseOff(StrEnum):
    """What took most of the time by which a job was later than alone on an equal share.

    FEW_GPUS: it ran on fewer GPUs than its equal share. SLOW_GPUS: it held as many, and they took
    it further more slowly: of a slower type, or spread over nodes.
    """

    WAITED = "waited"
    STARTED = "started"
    FEW_GPUS = "few-gpus"
    SLOW_GPUS = "slow-gpus"


class WithoutRho(StrEnum):
    """Why a job that has ended has no rho: the first five leave it out, the others are failures.

    NOT_SUCCEEDED: it failed or was cancelled. LATENCY_BOUND: its value is not a completion time.
    NO_MODEL: no step time of it was measured. UNKNOWN_WORK: nobody said how much work it was.
    NO_TYPE: alone it could run on no GPU type.
    """

    NOT_SUCCEEDED = "not-succeeded"
    LATENCY_BOUND = "latency-bound"
    NO_MODEL = "no-model"
    UNKNOWN_WORK = "unknown-work"
    NO_TYPE = "no-type"
    TIME_LIMIT = "time-limit"
    FAULT = "fault"
    SKIPPED = "skipped"


class ForecastBasis(StrEnum):
    """What the end of a job is drawn from.

    WORK: what is left of its work, at its measured or published step times. RUNS: nobody knows its
    work; jobs like it ran so long. GUESS: nobody knows its work, and no job like it has ended after
    running longer.
    """

    WORK = "work"
    RUNS = "runs"
    GUESS = "guess"


class PromiseKind(StrEnum):
    """When a forecast was made that is kept.

    SUBMISSION: the first one of a job. HOURLY: the first one of an hour of cluster time.
    """

    SUBMISSION = "submission"
    HOURLY = "hourly"


class SlowdownSource(StrEnum):
    """Where the slowdown of two jobs on a GPU is from.

    MEASURED: by the cluster, on jobs like them. DECLARED: it is what the cluster declares.
    """

    MEASURED = "measured"
    DECLARED = "declared"


BEST_SCORES = 5
"""How many of a search's trials its score is the mean of, at most."""
