"""What a job's owner could do about what keeps it waiting. The reason itself comes from the round that decided; this only reads it."""

from __future__ import annotations

from collections.abc import Mapping

from backend.jobs.models import Job
from backend.jobs.resources import show_reason
from backend.jobs.schemas import ExplanationOut, Remedy
from maat.scheduling.explain import ReasonCode

_FEWER = Remedy(code="lower_min_gpus", field="min_gpus", sentence="Let it start with fewer GPUs: submit it with a lower minimum.")
_MORE_TYPES = Remedy(code="allow_more_types", field="gpu_types", sentence="Let it use more GPU types: submit it without that restriction.")
_ADAPT = Remedy(code="make_adaptive", field="adaptivity", sentence="Let the scheduler choose its GPU count: submit it as adaptive.")
_WAIT = Remedy(code="wait", sentence="Nothing needs to be done: every round considers it again.")

_REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    ReasonCode.NO_COMPATIBLE_GPU_TYPE: (_MORE_TYPES,),
    ReasonCode.EXCEEDS_CLUSTER: (_FEWER, _ADAPT),
    ReasonCode.WAITING_CAPACITY: (_WAIT, _FEWER, _MORE_TYPES),
    ReasonCode.WAITING_RESERVATION: (_WAIT, _FEWER, _MORE_TYPES),
    ReasonCode.FRAGMENTED: (_WAIT, _FEWER),
    ReasonCode.BEHIND_IN_ORDER: (_WAIT, _FEWER),
    ReasonCode.SHARING_NO_GAIN: (_WAIT, _FEWER),
    ReasonCode.LOWER_GOODPUT_GAIN: (_WAIT, _MORE_TYPES),
    ReasonCode.SOLVER_FALLBACK: (_WAIT,),
    ReasonCode.NOT_YET_CONSIDERED: (_WAIT,),
    ReasonCode.PROFILE_INCOMPLETE: (_WAIT,),
}


def explain(job: Job) -> ExplanationOut:
    """Why it has what it has, and which of its own declarations would change that."""
    reason = show_reason(job)
    remedies = [remedy for remedy in _REMEDIES.get(job.reason_code, ()) if _applies(remedy, job)]
    return ExplanationOut(primary=reason, reasons=[reason], remedies=remedies, as_of_round=job.as_of_round)


def _applies(remedy: Remedy, job: Job) -> bool:
    if job.finished_seconds is not None:
        return False
    match remedy.field:
        case "min_gpus":
            return job.min_gpus > 1
        case "gpu_types":
            return job.gpu_types is not None
        case "adaptivity":
            return job.adaptivity != "adaptive"
        case _:
            return True
