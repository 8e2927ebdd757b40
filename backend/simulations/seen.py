"""A simulation as a principal may see it: of a cluster's history, other tenants' jobs are anonymous.

What is stored is whole, for those who see all tenants. To others a job that is not their tenant's shows when it came, ran and ended, on how many
GPUs of which type, so that every sum is that of the run; its name is a key of the answer, and all such jobs are of one model, `another tenant's`.
Keys number the jobs in the order of submission, so that the runs of a trace agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.sight import OTHER_MODEL, WHOLE, Sight, jobs_named_in, sight_of
from backend.simulations.models import Simulation, SimulationRun
from backend.simulations.requests import is_history, traces_of
from maat.simulation.iteration_models import shipped_models

Result = Mapping[str, Any]

_OF_ALL = ("fairness", "contention", "gpus_by_type", "policy_seconds", "definitions")
_OF_OTHERS = (
    "submit",
    "start",
    "finish",
    "jct",
    "restarts",
    "adaptivity",
    "interruptions",
    "lost_gpu_hours",
    "gpu_hours_by_type",
    "rho",
)
_NOT_TOLD = "Why is not shown."
_RESERVED = re.compile(r"(reserved for others: [^ ]+ for )(.+)\.$")


def simulations_sight(
    session: Session,
    principal: Principal,
    simulations: Iterable[Simulation],
    runs: Iterable[SimulationRun],
) -> Sight:
    """What a principal sees of the jobs that requests and summaries name."""
    told = [*([simulation.request] for simulation in simulations), *([run.summary] for run in runs)]
    return (
        WHOLE if principal.sees_all_tenants else sight_of(session, principal, jobs_named_in(told))
    )


def results_sight(
    session: Session, principal: Principal, simulation: Simulation, results: Iterable[Result]
) -> Sight:
    """What a principal sees of the jobs of these results."""
    if principal.sees_all_tenants or not any(map(is_history, traces_of(simulation.request))):
        return WHOLE
    return sight_of(
        session, principal, [job["name"] for result in results for job in result["jobs"]]
    )


def of_trace(simulation: Simulation, trace: int, sight: Sight) -> Sight:
    """What is seen of the jobs of one trace: all, where its requester brought it."""
    return sight if is_history(traces_of(simulation.request)[trace]) else WHOLE


def request_seen(request: Mapping[str, Any], sight: Sight) -> dict[str, Any]:
    """A stored request; GPUs of a history may be reserved for jobs and tenants of others."""
    reservations = request.get("reservations")
    if sight.is_whole or not reservations or not any(map(is_history, traces_of(request))):
        return dict(request)
    return {**request, "reservations": [_reservation(given, sight) for given in reservations]}


def _reservation(given: Mapping[str, Any], sight: Sight) -> dict[str, Any]:
    job, tenant = given.get("job"), given.get("tenant")
    return {
        **given,
        "job": None if job is None else sight.job(job),
        "tenant": None if tenant is None else sight.tenant(tenant),
    }


def summary_seen(summary: Mapping[str, Any], sight: Sight) -> dict[str, Any]:
    """Notes that name models are left out: they would tell which models others' jobs are of."""
    if sight.is_whole:
        return dict(summary)
    waiting: Mapping[str, str] = summary.get("unfinished_because") or {}
    told = {
        sight.job(name): _why(why, sight) if sight.may_see(name) else _NOT_TOLD
        for name, why in waiting.items()
    }
    return {
        **summary,
        "unfinished_because": told,
        "notes": [note for note in summary.get("notes") or () if not _names_a_model(note)],
    }


def _why(sentence: str, sight: Sight) -> str:
    """Its sentence may say for whom GPUs are reserved."""
    return _RESERVED.sub(lambda found: f"{found[1]}{sight.holders(found[2])}.", sentence)


def _names_a_model(note: str) -> bool:
    return any(word in shipped_models() for word in re.findall(r"[\w-]+", note))


def result_seen(result: Result, sight: Sight) -> dict[str, Any]:
    """A stored result. A member that is not known here is not shown."""
    if sight.is_whole:
        return dict(result)
    for job in sorted(result["jobs"], key=lambda job: (job["submit"], job["name"])):
        sight.job(job["name"])
    jobs = [_job(job, sight) for job in result["jobs"]]
    return {
        **{name: result[name] for name in _OF_ALL if name in result},
        "summary": summary_seen(result["summary"], sight),
        "jobs": jobs,
        "gpu_hours_by_model_type": _hours_by_model(jobs),
        "allocations": {
            sight.job(name): _stretches(name, given, sight)
            for name, given in result.get("allocations", {}).items()
        },
    }


def _job(job: Mapping[str, Any], sight: Sight) -> dict[str, Any]:
    if sight.may_see(job["name"]):
        return dict(job)
    return {
        "name": sight.job(job["name"]),
        "model": OTHER_MODEL,
        **{name: job[name] for name in _OF_OTHERS if name in job},
    }


def _stretches(name: str, given: Sequence[Mapping[str, Any]], sight: Sight) -> list[dict[str, Any]]:
    """Batch sizes tell models apart."""
    return [
        dict(stretch) if sight.may_see(name) else {**stretch, "total_batch_size": None}
        for stretch in given
    ]


def _hours_by_model(jobs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    hours: dict[str, dict[str, float]] = {}
    for job in jobs:
        of_model = hours.setdefault(job["model"], {})
        for kind, value in job["gpu_hours_by_type"].items():
            of_model[kind] = of_model.get(kind, 0.0) + value
    return hours
