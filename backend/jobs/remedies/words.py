"""A remedy that was found to work, as the API answers it."""

from __future__ import annotations

from typing import Literal

from backend.jobs.dependencies import hold_of
from backend.jobs.models import Job
from backend.jobs.remedies.stage import Start
from backend.jobs.remedies.wishes import Wish
from maat.api.job_answers import Remedy, StartOut
from maat.vocabulary import priority_class


def remedy_of(job: Job, wish: Wish, start: Start | None, *, tenant_weight: float) -> Remedy:
    """Return the remedy, with what changes and what the tried round gave the job.

    `start`: None if the job would fit, and wait its turn.
    """
    before = (
        {"weight": tenant_weight}
        if wish.of_tenant
        else {name: getattr(job, name) for name in wish.changes}
    )
    changed = {name: value for name, value in wish.changes.items() if value != before[name]}
    return Remedy(
        code=wish.code,
        action=_action(wish),
        field=wish.field,
        sentence=f"{_words(job, wish)}: {_then(start)}",
        changes=changed,
        before={name: before[name] for name in changed},
        targets=[node.id for node in wish.nodes],
        permitted=True,
        starts_with=None
        if start is None
        else StartOut(
            gpu_type=start.gpu_type, gpu_count=start.gpu_count, node_count=start.node_count
        ),
    )


def _action(wish: Wish) -> Literal["change-job", "change-tenant", "restore-nodes"]:
    if wish.nodes:
        return "restore-nodes"
    return "change-tenant" if wish.of_tenant else "change-job"


def _then(start: Start | None) -> str:
    if start is None:
        return "the cluster then has enough GPUs for it, and it waits its turn."
    return f"at present, the next round would start it on {start.gpu_count} × {start.gpu_type}."


def plain_remedy(code: str, action: str, sentence: str) -> Remedy:
    """Return a remedy that changes no field."""
    return Remedy(
        code=code,
        action=action,  # type: ignore[typeddict-item]
        sentence=sentence,
        field=None,
        changes={},
        before={},
        targets=[],
        permitted=True,
        starts_with=None,
    )


def remedy_of_forerunner(held: Job) -> Remedy:
    """Return the remedy of a job that waits for this one, which waits for a person."""
    why, action = hold_of(held)
    sentence = f"{action.capitalize()} job {held.name}, which {why}: this job follows it."
    return Remedy({**plain_remedy(f"{action}_{held.id}", action, sentence), "targets": [held.id]})


def _words(job: Job, wish: Wish) -> str:
    changes = wish.changes
    match wish.code:
        case "return_nodes":
            names = [node.name for node in wish.nodes]
            return f"Return node{'' if len(names) == 1 else 's'} {', '.join(names)} to service"
        case "lower_gpu_count":
            return f"Ask for {_gpus(changes['gpu_count'])} instead of {job.gpu_count}"
        case "lower_min_gpus":
            return f"Let it start with {_gpus(changes['min_gpus'])} instead of {job.min_gpus}"
        case "allow_more_types":
            return f"Let it use {changes['gpu_types'][-1]} too"
        case "make_adaptive_on_more_types":
            return "Let Maat choose its GPU type, GPU count and batch size"
        case "raise_job_weight":
            return f"Raise its weight to {changes['weight']:g}, at the cost of other jobs"
        case "raise_priority":
            return (
                f"Raise its priority to {priority_class(changes['priority'])}, so that it comes "
                "before others"
            )
        case "raise_weight":
            return (
                f"Raise the weight of its tenant to {changes['weight']:g}, at the cost of other "
                "tenants"
            )
        case _:
            return "Let it adapt, so that Maat chooses its GPU count" + (
                "" if changes["batch_size"] else " and batch size"
            )


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
