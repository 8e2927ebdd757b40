"""Which GPU types of a cluster the jobs of a trace can use: the others are refused or told.

And whether the models of its jobs are there at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from maat.models.catalog import shipped_catalog
from maat.models.gpu_types import GPU_TYPES
from maat.models.known_types import check_known_types
from maat.scheduling.errors import ProfileError
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import Model
from maat.vocabulary import Adaptivity
from maat.workloads.workloads import TraceJob


def check_models(scenario: Scenario) -> None:
    """Raise ProfileError if jobs are of models that the scenario's models lack."""
    lacking = {job.model for job in scenario.workload.jobs} - scenario.models.keys()
    if lacking:
        raise ProfileError(
            "lack models of the trace's jobs",
            field="profiles",
            value=", ".join(sorted(lacking)),
            remedy=f"They have {', '.join(sorted(scenario.models))}: choose a trace of these, or "
            "profiles of those.",
        )


def check_gpu_types(scenario: Scenario) -> None:
    """Refuse a GPU type that nobody knows: catalog, models, trace, nor Maat by its name.

    Raises ClusterError, which names the type that may have been meant.
    """
    catalog, of_trace = shipped_catalog().gpu_types, _of_trace(scenario)
    known = {*GPU_TYPES, *catalog, *of_trace}
    for model in scenario.models.values():
        known.update(model.memory)
    check_known_types(
        scenario.cluster.type_names,
        known,
        offered=dict.fromkeys([*of_trace, *catalog]),
        by="neither the catalog, the profiles nor the trace know",
    )


def _of_trace(scenario: Scenario) -> list[str]:
    """Return the types on which the trace's jobs can run, and those that it binds jobs to."""
    jobs = scenario.workload.jobs
    models = dict.fromkeys(job.model for job in jobs)
    measured = [name for model in models for name in scenario.models[model].memory]
    return [*measured, *sorted(scenario.workload.gpu_types)]


def idle_type_notes(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence for each GPU type of the cluster that no job of the trace can ever use."""
    cluster, jobs = scenario.cluster, scenario.workload.jobs
    for name, gpus in zip(cluster.type_names, cluster.usable_gpus.tolist(), strict=True):
        if jobs and not any(_can_use(job, scenario.models[job.model], name, gpus) for job in jobs):
            stay = "1 GPU stays" if gpus == 1 else f"{gpus} GPUs stay"
            yield f"No job of the trace can run on {name}: its {stay} idle."


def _can_use(job: TraceJob, model: Model, gpu_type: str, gpus: int) -> bool:
    """Whether that many GPUs of the type are enough for the least that the job runs on."""
    if not model.runs_on(gpu_type) or (job.gpu_types and gpu_type not in job.gpu_types):
        return False
    least = job.gpu_count if job.adaptivity is Adaptivity.RIGID else job.min_gpus
    return max(least, model.gpus_per_replica.get(gpu_type, 1)) <= gpus
