"""Leaves out the jobs of a trace that no GPU type of the cluster runs, and says what is lost.

Their models were measured on other types, or their replicas do not make up the GPUs that they are
bound to. A job that its owner bound to types that the cluster lacks is none of them: it is
submitted, and does not finish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from maat.laboratory.fairness import IsolatedRuns
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, TraceError
from maat.simulation.conditions import Conditions
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.workloads.workloads import TraceJob, Workload

_GPUS_PER_NODE = 8  # of the GPUs on which a job that is left out would have run


def with_runnable_jobs(scenario: Scenario) -> Scenario:
    """Return the scenario without jobs that no GPU type runs, which a note of its workload names.

    If no job can run, it stays as it is: the World refuses it.
    """
    world = World.of(scenario)
    refused = refusals(world)
    kept = tuple(job for job in scenario.workload.jobs if job.name not in refused)
    if not refused or not kept:
        return scenario
    lost = [job for job in world.jobs if job.name in refused]
    words = Counter((job.model, _reason(refused[job.name])) for job in lost)
    named = "; ".join(f"{model} ({_jobs(n)}){reason}" for (model, reason), n in words.items())
    note = (
        f"{len(lost):,} of {len(scenario.workload):,} jobs of the trace "
        f"{'was' if len(lost) == 1 else 'were'} left out, {_hours(scenario, lost)}: {named}."
    )
    notes = (*scenario.workload.notes, note)
    return replace(scenario, workload=replace(scenario.workload, jobs=kept, notes=notes))


def refusals(world: World) -> Mapping[str, TraceError]:
    """Return why jobs cannot run, by name. It is computed once for all jobs that ask for the same.

    The time that a job takes does not matter, and no draw does: only jobs that run in any number of
    replicas may be drawn as rigid.
    """
    known: dict[tuple[object, ...], TraceError | None] = {}
    refused = {}
    for job in world.jobs:
        is_tuned, adaptivity = job.name in world.tuned_jobs, world.adaptivity[job.name]
        key = (job.model, job.gpu_types, job.gpu_count, job.regimes, adaptivity, is_tuned)
        if key not in known:
            known[key] = world.refusal(job)
        error = known[key]
        if error is not None:
            refused[job.name] = error
    return refused


def _reason(error: TraceError) -> str:
    """Return the reason in words that go on behind the model."""
    what = "" if error.field == "application" else f": {error.field} {error.value}"
    remedy = f"{error.remedy[:1].lower()}{error.remedy[1:].removesuffix('.')}"
    return f"{what} {error.problem}; {remedy}"


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _hours(scenario: Scenario, lost: Sequence[TraceJob]) -> str:
    """Say the GPU-hours of jobs on the GPUs that they ask for, of the fastest type for each."""
    known = [hours for hours in _gpu_hours(scenario, lost) if hours is not None]
    if not known:
        return f"{'its' if len(lost) == 1 else 'their'} GPU-hours unknown"
    unknown = len(lost) - len(known)
    more = f", and those of {unknown} unknown" if unknown else ""
    return f"with about {sum(known):,.3g} GPU-hours on GPUs that run them{more}"


def _gpu_hours(scenario: Scenario, lost: Sequence[TraceJob]) -> Iterator[float | None]:
    """Yield each job's GPU-hours alone, without restarts; None if its GPUs were not measured.

    Jobs that differ in their length alone are computed once: an effective sample is worth as much
    in each.
    """
    seconds: dict[tuple[object, ...], float | None] = {}
    for job in lost:
        scale = 1.0 if job.regimes else job.work_scale
        whole = replace(job, work_scale=job.work_scale / scale, gpu_types=None)
        asked = (job.gpu_count, job.batch_size, job.max_batch_size)
        key = (job.model, *asked, job.regimes, job.work_scale / scale)
        if key not in seconds:
            seconds[key] = _fastest(scenario, whole)
        known = seconds[key]
        yield None if known is None else known * scale * job.gpu_count / 3600.0


def _fastest(scenario: Scenario, job: TraceJob) -> float | None:
    """Return the seconds alone on the type that is fastest; None if none was measured for it."""
    nodes = -(-job.gpu_count // _GPUS_PER_NODE)
    found: list[float] = []
    for gpu_type in scenario.models[job.model].memory:
        alone = replace(
            scenario,
            workload=Workload("alone", (job,), scenario.workload.format),
            cluster=Cluster.parse(f"{gpu_type}={nodes}x{_GPUS_PER_NODE}"),
            conditions=Conditions(fidelity=scenario.conditions.fidelity),
        )
        try:
            found += IsolatedRuns(alone).on_request(job).values()
        except InputError:  # not measured on so many GPUs
            continue
    return min(found, default=None)
