"""A simulation as a principal may see it.

Other tenants' jobs of a cluster's history are anonymous. Stored results are whole, for users who
see all tenants. Others see of another tenant's job when it arrived, ran and ended, and on how many
GPUs of which type, so that every sum is the run's; its name is a key of the answer, and all such
jobs have one model, `another tenant's`. Keys number the jobs in the order of submission, so that
the runs of a trace agree. The mean efficiency is not shown to them: where one job trains, it is
that job's, which reveals its model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.sight import OTHER_MODEL, WHOLE, Sight, jobs_named_in, sight_of
from backend.simulations.measured_jobs import measured_jobs
from backend.simulations.models import Simulation, SimulationRun
from backend.simulations.stored import StoredConditions, why_unreadable
from maat.api.simulations import ClusterTrace, ConditionsBody, TraceReservationBody
from maat.laboratory.figures import RunFigures, never_run
from maat.laboratory.requested import shipped_models

Result = Mapping[str, Any]
Request = TypeVar("Request", bound=StoredConditions)

_OF_ALL = (
    "fairness",
    "contention",
    "gpus_by_type",
    "nodes",
    "policy_seconds",
    "definitions",
)
_OF_OTHERS = (
    "measured",
    "submit",
    "start",
    "finish",
    "jct",
    "waited",
    "restarts",
    "adaptivity",
    "interruptions",
    "lost_gpu_hours",
    "gpu_hours_by_type",
    "rho",
)
_OF_HOLDING = frozenset({"time", "end", "gpu_type", "gpu_count", "node_count"})
_HIDDEN = "The reason is not shown."
_RESERVED = re.compile(r"(reserved for others: [^ ]+ for )(.+)\.$")


def simulations_sight(
    session: Session,
    principal: Principal,
    simulations: Iterable[Simulation],
    runs: Iterable[SimulationRun],
) -> Sight:
    """Return what a principal sees of the jobs in requests and summaries."""
    if principal.sees_all_tenants:
        return WHOLE
    texts = [
        *(
            reserved_for(simulation.request)
            for simulation in simulations
            if why_unreadable(simulation.request) is None
        ),
        *([run.summary] for run in runs),
    ]
    return sight_of(session, principal, jobs_named_in(texts))


def results_sight(
    session: Session, principal: Principal, simulation: Simulation, results: Iterable[Result]
) -> Sight:
    """Return what a principal sees of the jobs of these results."""
    if principal.sees_all_tenants or not simulation.request.replays_a_cluster:
        return WHOLE
    return sight_of(
        session, principal, [job["name"] for result in results for job in result["jobs"]]
    )


def of_trace(simulation: Simulation, trace: int, sight: Sight) -> Sight:
    """Return what is seen of the jobs of a trace; all, if the requester supplied it."""
    if why_unreadable(simulation.request) is not None:
        return sight
    return sight if isinstance(simulation.request.traces[trace], ClusterTrace) else WHOLE


def reserved_for(request: ConditionsBody) -> list[str]:
    """Return the jobs for which GPUs are reserved."""
    return [given.job for given in request.reservations if given.job is not None]


def request_seen(request: Request, sight: Sight) -> Request:
    """Return a stored request.

    Others' jobs and tenants in it are anonymous, and their quotas are left out.
    """
    if sight.is_whole or not request.replays_a_cluster:
        return request
    hidden = [_reservation(given, sight) for given in request.reservations]
    own = [given for given in request.quotas or () if sight.tenant(given.tenant) == given.tenant]
    quotas = None if request.quotas is None else own
    return request.model_copy(update={"reservations": hidden, "quotas": quotas})


def _reservation(given: TraceReservationBody, sight: Sight) -> TraceReservationBody:
    seen = {
        "job": None if given.job is None else sight.job(given.job),
        "tenant": None if given.tenant is None else sight.tenant(given.tenant),
    }
    return given.model_copy(update=seen)


def summary_seen(summary: Mapping[str, Any], sight: Sight) -> dict[str, Any]:
    """Return a summary without notes that name models.

    They would reveal the models of other tenants' jobs.
    """
    if sight.is_whole:
        return dict(summary)
    waiting: Mapping[str, str] = summary.get("unfinished_because") or {}
    seen = {
        sight.job(name): _why(why, sight) if sight.may_see(name) else _HIDDEN
        for name, why in waiting.items()
    }
    notes = list(summary.get("notes") or ())
    never = never_run([RunFigures(summary.get("policy", ""), summary.get("placer", ""), summary)])
    if never:
        notes = notes[1:]  # the first says why, which may be another tenant's quota
    return {
        **summary,
        "unfinished_because": seen,
        "notes": [*never, *notes_seen(notes, sight)],
    }


def notes_seen(notes: Sequence[str], sight: Sight) -> list[str]:
    """Return notes without those that name models: they may be of other tenants' jobs."""
    return [note for note in notes if sight.is_whole or not _names_a_model(note)]


def _why(sentence: str, sight: Sight) -> str:
    """Hide for whom GPUs are reserved, which the sentence may say."""
    return _RESERVED.sub(lambda found: f"{found[1]}{sight.holders(found[2])}.", sentence)


def _names_a_model(note: str) -> bool:
    return any(word in shipped_models() for word in re.findall(r"[\w-]+", note))


def result_seen(result: Result, sight: Sight) -> dict[str, Any]:
    """Return a stored result. Unknown members are not shown."""
    if sight.is_whole:
        return dict(result)
    for job in sorted(result["jobs"], key=lambda job: (job["submit"], job["name"])):
        sight.job(job["name"])
    jobs = [_job(job, sight) for job in result["jobs"]]
    return {
        **{name: result[name] for name in _OF_ALL if name in result},
        "summary": summary_seen(result["summary"], sight),
        "jobs": jobs,
        "gpu_hours_by_model_type": _hours_by_model(measured_jobs(jobs)),
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
    """Return the allocations; others' batch sizes are hidden: they reveal models."""
    return [
        dict(stretch) if sight.may_see(name) else {**stretch, "total_batch_size": None}
        for stretch in given
    ]


def series_seen(series: Mapping[str, Any], sight: Sight) -> dict[str, Any]:
    """Return the series of jobs, as `result_seen` names them.

    Of others' jobs only when they held which GPUs: the rest reveals models.
    """
    return {
        sight.job(name): dict(columns) if sight.may_see(name) else _held_alone(columns)
        for name, columns in series.items()
    }


def _held_alone(columns: Mapping[str, Any]) -> dict[str, Any]:
    hidden = [None] * len(columns["time"])
    return {name: values if name in _OF_HOLDING else hidden for name, values in columns.items()}


def _hours_by_model(jobs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    hours: dict[str, dict[str, float]] = {}
    for job in jobs:
        of_model = hours.setdefault(job["model"], {})
        for kind, value in job["gpu_hours_by_type"].items():
            of_model[kind] = of_model.get(kind, 0.0) + value
    return hours
