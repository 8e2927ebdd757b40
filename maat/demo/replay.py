"""The same jobs once more, in the simulator: models from what the run measured, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from maat.demo.recording import Job, Life, Recording
from maat.models.catalog import CatalogFit, CatalogModel
from maat.scheduling.cluster import Cluster, GpuType, Node
from maat.scheduling.throughput import ThroughputParameters
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.failures import NodeFailure
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import model_of
from maat.workloads.workloads import TraceJob, Workload

LACKS = (
    "a restart takes the job's mean time, whatever the number of replicas that start at once",
    "steps take what the fitted model says, without scatter",
    "progress is known at every moment, and not only at reports",
    "a node's failure is seen at once, and costs the work since the last epoch's end",
    "profiles hold no GPUs: a job is submitted when its last one has ended",
)
"""What the simulator does not know of a live run."""


@dataclass(frozen=True)
class Compared:
    """Seconds of the live run and of the simulated one."""

    what: str
    live: float
    simulated: float

    @property
    def error(self) -> float:
        """The simulated value over the live one, less 1."""
        return self.simulated / self.live - 1.0


def compare(recording: Recording) -> list[Compared]:
    """Simulate a recorded run; return average JCT, makespan, and the JCT of each job."""
    result = replay(recording)
    finished = {each.name: each.finish for each in result.records}
    unfinished = [name for name, finish in finished.items() if finish is None]
    if unfinished:
        raise RuntimeError(f"The simulation did not finish {', '.join(unfinished)}.")
    by_job = [
        Compared(f"JCT of {job.name}", job.jct, (finished[job.name] or 0.0) - job.submitted)
        for job in recording.jobs
    ]
    makespan = max(finish or 0.0 for finish in finished.values())
    return [
        Compared("Average JCT", _mean(by_job, "live"), _mean(by_job, "simulated")),
        Compared("Makespan", recording.makespan, makespan),
        *by_job,
    ]


def replay(recording: Recording) -> SimulationResult:
    """Simulate the jobs of a recorded run on its cluster, with its outages.

    A job is submitted when it was profiled.
    """
    nodes = [Node(name, kind, recording.gpus_per_node) for name, kind in recording.nodes.items()]
    kinds = tuple(GpuType(kind) for kind in dict.fromkeys(recording.nodes.values()))
    jobs = tuple(
        TraceJob(
            name=job.name,
            model=job.name,
            submit_seconds=profiled_at(job),
            gpu_count=1,
            max_gpus=recording.gpus_per_node,
        )
        for job in recording.jobs
    )
    fidelity = replace(FIDELITIES["paper"], profiling_seconds_per_type=0.0)
    failures = tuple(NodeFailure(down, node, up - down) for node, down, up in recording.outages)
    return simulate(
        Scenario(
            Workload("recorded run", jobs, "recording"),
            {job.name: model_of(catalog_model(job)) for job in recording.jobs},
            Cluster(tuple(nodes), kinds),
            policy="sia",
            conditions=Conditions(fidelity=fidelity, failures=failures),
            round_seconds=recording.round_seconds,
        )
    )


def catalog_model(job: Job) -> CatalogModel:
    """Return a job's model as the run's own measurements have it."""
    fits = {
        fit["gpu_type"]: CatalogFit(
            gpu_type=fit["gpu_type"],
            throughput_parameters=ThroughputParameters(*fit["parameters"].values()),
            smallest_per_gpu_batch_size=1,
            largest_per_gpu_batch_size=job.max_batch_size,
            gpus_per_replica=1,
            reference_samples_per_second=0.0,
            points=fit["sample_count"],
            largest_measured_gpus=0,
            fit_error=None,
            provenance="derived from a live run",
        )
        for fit in job.belief["types"]
    }
    return CatalogModel(
        name=job.name,
        title=job.name,
        task="",
        dataset="",
        optimizer="",
        learning_rate_rule="",
        initial_batch_size=job.batch_size,
        max_batch_size=job.max_batch_size,
        epochs=job.epochs,
        work=job.work,
        restart_seconds=restart_seconds(job),
        slowdown=1.0,
        noise_scale_curve=noise_curve(job),
        fits=fits,
        provenance="derived from a live run",
    )


def noise_curve(job: Job) -> tuple[tuple[float, float], ...]:
    """Return (share of the work done, noise scale in samples), ascending."""
    points = {min(row["progress"] / job.work, 1.0): row["noise_scale"] for row in job.noise}
    return tuple(sorted(points.items())) or ((0.0, 0.0),)


def restart_seconds(job: Job) -> float:
    """Return the mean time without steps at a start: to end the attempt before it, and to start."""
    lives = [life for life in job.lives if life.kind == "train"]
    waits = [
        life.trained - life.queued + (0.0 if before is None else _ending_seconds(before))
        for before, life in zip([None, *lives], lives, strict=False)
        if life.trained is not None and life.queued is not None
    ]
    return fmean(waits) if waits else float(job.belief["restart_seconds"])


def _ending_seconds(life: Life) -> float:
    """Return the time from the order to stop to the end; 0 for one that ended by itself."""
    return 0.0 if life.stopped is None else life.ended - life.stopped


def profiled_at(job: Job) -> float:
    """Return when a job could be started: when its last profile before it trained had ended."""
    starts = [life.queued for life in job.lives if life.kind == "train" and life.queued is not None]
    first = min(starts, default=job.finished)
    ends = [life.ended for life in job.lives if life.kind == "profile" and life.ended <= first]
    return max(ends, default=job.submitted)


def _mean(rows: Sequence[Compared], field: str) -> float:
    return fmean(getattr(row, field) for row in rows)
