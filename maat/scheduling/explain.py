"""Why each job got what it got, from the numbers that decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial


class ReasonCode(StrEnum):
    """Reasons, the most structural first; the first true one is the primary reason."""

    GRANTED = "GRANTED"
    PINNED = "PINNED"
    HELD_BY_USER = "HELD_BY_USER"
    DEPENDENCY_FAILED = "DEPENDENCY_FAILED"
    WAITING_DEPENDENCY = "WAITING_DEPENDENCY"
    HELD_BACK = "HELD_BACK"
    NO_COMPATIBLE_GPU_TYPE = "NO_COMPATIBLE_GPU_TYPE"
    EXCEEDS_CLUSTER = "EXCEEDS_CLUSTER"
    NO_CONFIGURATION = "NO_CONFIGURATION"
    EXCEEDS_QUOTA_LIMIT = "EXCEEDS_QUOTA_LIMIT"
    PROFILE_INCOMPLETE = "PROFILE_INCOMPLETE"
    IDLE_COSTS_LESS = "IDLE_COSTS_LESS"
    WAITING_QUOTA = "WAITING_QUOTA"
    WAITING_RESERVATION = "WAITING_RESERVATION"
    WAITING_CAPACITY = "WAITING_CAPACITY"
    FRAGMENTED = "FRAGMENTED"
    BEHIND_IN_ORDER = "BEHIND_IN_ORDER"
    SHARING_UNKNOWN = "SHARING_UNKNOWN"
    SHARING_NO_GAIN = "SHARING_NO_GAIN"
    NOT_SEARCHED = "NOT_SEARCHED"
    LOWER_GOODPUT_GAIN = "LOWER_GOODPUT_GAIN"
    SOLVER_FALLBACK = "SOLVER_FALLBACK"
    POLICY_FAILED = "POLICY_FAILED"
    NOT_CHOSEN = "NOT_CHOSEN"
    NOT_YET_CONSIDERED = "NOT_YET_CONSIDERED"


OF_TURN = frozenset(
    {
        ReasonCode.WAITING_QUOTA,
        ReasonCode.WAITING_CAPACITY,
        ReasonCode.BEHIND_IN_ORDER,
        ReasonCode.LOWER_GOODPUT_GAIN,
    }
)
"""Reasons for which it matters whose turn it is."""

NEVER_RUNS = frozenset(
    {
        ReasonCode.NO_COMPATIBLE_GPU_TYPE,
        ReasonCode.EXCEEDS_CLUSTER,
        ReasonCode.NO_CONFIGURATION,
        ReasonCode.EXCEEDS_QUOTA_LIMIT,
    }
)
"""Reasons that no waiting ends: as things stand, the job never runs."""

BLOCKED = frozenset(
    {
        ReasonCode.WAITING_CAPACITY,
        ReasonCode.BEHIND_IN_ORDER,
        ReasonCode.LOWER_GOODPUT_GAIN,
        ReasonCode.SHARING_UNKNOWN,
        ReasonCode.SHARING_NO_GAIN,
        ReasonCode.WAITING_QUOTA,
    }
)
"""Reasons for which it is other jobs that hold the GPUs, or the quota of its own team."""

_SAME = 1e-6  # relative: as close as a solver tells two values apart

_SENTENCES: Mapping[ReasonCode, str] = {
    ReasonCode.GRANTED: "It has what the policy chose for it.",
    ReasonCode.PINNED: (
        "It keeps what it has: it is starting or restarting, or it may not be preempted."
    ),
    ReasonCode.HELD_BY_USER: "It is paused: rounds leave it out until it is resumed.",
    ReasonCode.DEPENDENCY_FAILED: "A job that it was to follow has not succeeded.",
    ReasonCode.WAITING_DEPENDENCY: "It waits until other jobs have succeeded.",
    ReasonCode.HELD_BACK: "Its last attempt ended badly: it is started again after a pause.",
    ReasonCode.NO_COMPATIBLE_GPU_TYPE: "No GPU type of this cluster can run it.",
    ReasonCode.EXCEEDS_CLUSTER: "It needs more GPUs of one type than this cluster has in service.",
    ReasonCode.NO_CONFIGURATION: (
        "No configuration of the policy fits what it asks for: "
        "GPU counts, whole replicas, batch size per GPU."
    ),
    ReasonCode.EXCEEDS_QUOTA_LIMIT: "It needs more than its tenant's quota allows.",
    ReasonCode.PROFILE_INCOMPLETE: (
        "Its throughput is still being profiled, or waits to be: others are profiled first."
    ),
    ReasonCode.IDLE_COSTS_LESS: (
        "Leaving it idle costs the policy's objective no more than any GPUs that it could have."
    ),
    ReasonCode.WAITING_QUOTA: "Its tenant already holds all that its quota allows.",
    ReasonCode.WAITING_RESERVATION: "GPUs that it could use are reserved for others.",
    ReasonCode.WAITING_CAPACITY: "Other jobs hold the GPUs that it needs.",
    ReasonCode.FRAGMENTED: "Enough GPUs are free, but not together.",
    ReasonCode.BEHIND_IN_ORDER: "Jobs ahead of it in the policy's order hold the GPUs.",
    ReasonCode.SHARING_UNKNOWN: (
        "It could only share GPUs, and no slowdown is known of it beside the jobs that run."
    ),
    ReasonCode.SHARING_NO_GAIN: (
        "It could only share GPUs, and no running job is a good partner: "
        "memory has no room for both, or the two would end later on average."
    ),
    ReasonCode.NOT_SEARCHED: (
        "GPUs are free for it, but the policy's search may run no generation "
        "and found no place for it: set generations above 0."
    ),
    ReasonCode.LOWER_GOODPUT_GAIN: "Another job gains more from the GPUs that are left.",
    ReasonCode.SOLVER_FALLBACK: (
        "The solver gave no better answer in time; the present allocation stays."
    ),
    ReasonCode.POLICY_FAILED: (
        "The policy could not decide this round: what runs goes on, and nothing new starts. "
        "The next round asks it again."
    ),
    ReasonCode.NOT_CHOSEN: "The policy gave it no GPUs in this round, and no reason.",
    ReasonCode.NOT_YET_CONSIDERED: "No round has considered it yet.",
}


@dataclass(frozen=True, slots=True)
class Reasons:
    """The primary reason and the numbers behind it, units in their names.

    `also`: what holds besides, the most structural first; filled when a round is recorded
    (other_reasons.py).
    """

    primary: ReasonCode
    evidence: Mapping[str, float | int | str | None] = field(default_factory=dict)
    also: tuple[Reasons, ...] = ()

    @property
    def sentence(self) -> str:
        return sentence_of(self.primary, self.evidence)


class DeferredReasons(Mapping[str, Reasons]):
    """Reasons by job, some of which are computed when they are read.

    A simulation has many rounds whose reasons are never read.
    """

    def __init__(self, known: Mapping[str, Reasons]) -> None:
        self._by_job: dict[str, Reasons | Callable[[], Reasons]] = dict(known)

    def __setitem__(self, job_id: str, reasons: Reasons) -> None:
        self._by_job[job_id] = reasons

    def defer(self, job_id: str, work_out: Callable[[], Reasons]) -> None:
        """Set a reason that `work_out` computes; it must give the same at any time."""
        self._by_job[job_id] = work_out

    def add(self, job_id: str, evidence: Mapping[str, float | int | str | None]) -> None:
        """Add evidence to a reason, which stays as it is otherwise and is not computed for it."""
        self._by_job[job_id] = partial(_with, self._by_job[job_id], evidence)

    def __getitem__(self, job_id: str) -> Reasons:
        found = self._by_job[job_id]
        if not isinstance(found, Reasons):
            found = self._by_job[job_id] = found()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_job)

    def __len__(self) -> int:
        return len(self._by_job)


def _with(
    reasons: Reasons | Callable[[], Reasons], evidence: Mapping[str, float | int | str | None]
) -> Reasons:
    known = reasons if isinstance(reasons, Reasons) else reasons()
    return replace(known, evidence={**known.evidence, **evidence})


def placed_without_scores(reasons: Reasons) -> Reasons:
    """Return the reason of a job for which the placer left GPU scores out of account."""
    return replace(reasons, evidence={**reasons.evidence, "placed_without_scores": 1})


def sentence_of(code: str, evidence: Mapping[str, object]) -> str:
    """Return the sentence of a stored reason, completed by its evidence.

    The evidence names the holder of a reservation, or the penalty that would be enough.
    """
    match ReasonCode(code):
        case ReasonCode.GRANTED as reason if evidence.get("placed_without_scores"):
            return (
                f"{_SENTENCES[reason]} It is placed as if all GPUs were equally fast: by the "
                "scores of GPUs it would have no place, though enough are free."
            )
        case ReasonCode.WAITING_RESERVATION as reason:
            return _reserved(_SENTENCES[reason], evidence.get("binding_limit"))
        case ReasonCode.NO_COMPATIBLE_GPU_TYPE if isinstance(
            types := evidence.get("asked_gpu_types"), str
        ):
            if ", " in types:
                return f"None of its GPU types ({types}) is in this cluster."
            return f"Its GPU type {types} is not in this cluster."
        case ReasonCode.NO_CONFIGURATION if isinstance(
            offered := evidence.get("offered_gpus"), str
        ):
            return (
                f"The policy gives these numbers of GPUs: {offered}. "
                f"It asks for {evidence.get('asked_gpus')} and no other number."
            )
        case ReasonCode.PROFILE_INCOMPLETE as reason if isinstance(evidence.get("gpu_type"), str):
            return (
                f"It is being profiled on {evidence['gpu_type']}: "
                "its step times are measured for some seconds before it trains."
            )
        case ReasonCode.IDLE_COSTS_LESS as reason:
            return _idle(
                _SENTENCES[reason], evidence.get("idle_penalty"), evidence.get("idle_penalty_above")
            )
        case ReasonCode.WAITING_CAPACITY if isinstance(by := evidence.get("held_by"), str):
            return f"{by[:1].upper()}{by[1:]} hold the GPUs that it needs, or are to have them."
        case ReasonCode.WAITING_CAPACITY if _is_worth_no_more(evidence):
            return "Other jobs gain at least as much from the GPUs that it needs."
        case ReasonCode.NOT_YET_CONSIDERED if isinstance(why := evidence.get("reason"), str):
            ended = f"Its attempt {evidence.get('attempt')} ended: {why}".strip()
            return f"{ended} The next round considers it again."
        case ReasonCode.WAITING_QUOTA | ReasonCode.EXCEEDS_QUOTA_LIMIT as reason:
            return _quota(reason, evidence)
        case ReasonCode.BEHIND_IN_ORDER as reason:
            return _behind(_SENTENCES[reason], evidence)
        case ReasonCode.SHARING_UNKNOWN as reason:
            return _unknown_pairs(_SENTENCES[reason], evidence)
        case ReasonCode.SHARING_NO_GAIN as reason:
            return _not_shared(_SENTENCES[reason], evidence)
        case ReasonCode.DEPENDENCY_FAILED if isinstance(evidence.get("job"), str):
            return (
                f"Job {evidence['job']}, which it was to follow, is {evidence.get('state')}: "
                "release it to run it without that one, or cancel it."
            )
        case ReasonCode.WAITING_DEPENDENCY if isinstance(evidence.get("job"), str):
            return _follows(str(evidence["job"]), evidence.get("jobs"))
        case ReasonCode.PINNED as reason:
            return _pinned(_SENTENCES[reason], evidence)
        case ReasonCode.HELD_BACK as reason:
            return _held_back(_SENTENCES[reason], evidence)
        case reason:
            return _SENTENCES[reason]


def _is_worth_no_more(evidence: Mapping[str, object]) -> bool:
    """Return whether the GPUs would gain no more by this job than their price says they gain."""
    value, price = evidence.get("value"), evidence.get("price")
    if not isinstance(value, int | float) or not isinstance(price, int | float):
        return False
    return value <= price + _SAME * max(abs(value), abs(price), 1.0)


def _are_free(evidence: Mapping[str, object]) -> bool:
    free, needed = evidence.get("free_gpus"), evidence.get("needed_gpus")
    return isinstance(free, int) and isinstance(needed, int) and free >= needed > 0


def _behind(sentence: str, evidence: Mapping[str, object]) -> str:
    if isinstance(evidence.get("higher_class"), str):
        return (
            f"Jobs of its tenant of class {evidence['higher_class']} or above come first: "
            "they could use the GPUs that it lacks."
        )
    if _are_free(evidence):
        return (
            "Jobs ahead of it in the policy's order wait too. GPUs are free for it, but it "
            "does not overtake them."
        )
    if evidence.get("length_is_known") is False:
        return (
            "How long it runs is not known, so jobs of known length come first: they, and jobs "
            "that run already, hold the GPUs."
        )
    return sentence


def _not_shared(sentence: str, evidence: Mapping[str, object]) -> str:
    if "partner_slowdown" in evidence:
        return _parted(evidence)
    if evidence.get("length_is_known") is False:
        return (
            "How long it runs is not known, so it would share GPUs only where that pays at any "
            "length: no running job is such a partner. It gets idle GPUs after the jobs of known "
            "length."
        )
    return sentence


def _unknown_pairs(sentence: str, evidence: Mapping[str, object]) -> str:
    """Name the model of the job and of one that it could join, as far as the owner may know it."""
    model, partner = evidence.get("model"), evidence.get("partner_model")
    if not isinstance(model, str):
        return sentence
    other = partner if isinstance(partner, str) else "the jobs of other tenants there"
    more = " Beside other jobs it would gain nothing." if evidence.get("gains_nowhere_else") else ""
    return (
        "It could only share GPUs, and it is not known how much "
        f"{model} and {other} slow each other.{more}"
    )


def _parted(evidence: Mapping[str, object]) -> str:
    slowdowns = [evidence.get(name) for name in ("slowdown", "partner_slowdown")]
    numbers = [f"{xi:.2f}" for xi in slowdowns if isinstance(xi, int | float)]
    each = f" ({' and '.join(numbers)} times)" if numbers else ""
    return (
        "It shared GPUs with another job, and is parted from it: by what is known now they slow "
        f"each other so much{each} that sharing does not pay."
    )


def _reserved(sentence: str, limit: object) -> str:
    if not isinstance(limit, str):
        return sentence
    _, gpu_type, holders = limit.split(":", 2)
    return f"{sentence[:-1]}: {gpu_type} for {holders}."


def _quota(code: ReasonCode, evidence: Mapping[str, object]) -> str:
    """Complete the sentence by the row of the job's own tenant."""
    gpus, gpu_type = evidence.get("quota_gpus"), evidence.get("quota_gpu_type")
    if not isinstance(gpus, int) or not isinstance(gpu_type, str):
        return _SENTENCES[code]
    used = f"{evidence.get('quota_used_gpus')} in use"
    if code is ReasonCode.EXCEEDS_QUOTA_LIMIT:
        return f"It needs more than your team's quota of {gpus} {gpu_type} allows: {used}."
    if evidence.get("quota_by_weight"):
        held = f"Held by your team's share of {gpus} {gpu_type} in this round: {used}."
        return f"{held}{_of_guarantee(evidence.get('quota_guaranteed_gpus'))}"
    return f"Held by your team's quota of {gpus} {gpu_type}: {used}."


def _of_guarantee(guaranteed: object) -> str:
    """Say why a team has less in a round than it is guaranteed."""
    if not isinstance(guaranteed, int):
        return ""
    return (
        f" It is guaranteed {guaranteed}: what it lacks of these is out of service, or held by "
        "jobs that may not be moved now, and comes back in the first round in which they may."
    )


def _held_back(sentence: str, evidence: Mapping[str, object]) -> str:
    why, pause = evidence.get("reason"), evidence.get("wait_seconds")
    if not isinstance(why, str) or not isinstance(pause, int | float):
        return sentence
    number, failures = evidence.get("attempt"), evidence.get("failures")
    then = f"It is started again after a pause of {pause:g} s."
    match evidence.get("outcome"):
        case "cancelled":
            ended = "Its last two attempts were cancelled in the engine, not by Maat"
            return f"{ended}: {why} {then} If it is not to run, cancel it in Maat."
        case "refused":
            return f"The engine did not take its attempt {number}: {why} {then}"
        case _ if evidence.get("crash_loop"):
            return (
                f"It crashes in a loop: {failures} attempts in a row failed in the same way, "
                f"without progress in between. The last one: {why} {then}"
            )
        case _:
            return f"Its attempt {number} failed: {why} {then}"


def _pinned(sentence: str, evidence: Mapping[str, object]) -> str:
    """Name what pins it; rounds of earlier versions may not have said it."""
    holds = {
        "it is starting": evidence.get("starting") == 1,
        "it is restarting": evidence.get("restarting") == 1,
        "it may not be preempted": evidence.get("preemptible") == 0,
    }
    causes = [cause for cause, does in holds.items() if does] + _stays(evidence)
    return f"It keeps what it has: {' and '.join(causes)}." if causes else sentence


def _stays(evidence: Mapping[str, object]) -> list[str]:
    """Say for how long it must stay, and by which bound."""
    left, least = evidence.get("stays_for_seconds"), evidence.get("least_stay_seconds")
    moves = evidence.get("moves_in_last_hour")
    if not isinstance(left, int | float):
        return []
    for_ = f"for {_minutes(left)}"
    if isinstance(least, int | float):
        return [f"it stays {for_} more (least stay {_minutes(least)})"]
    times = "once" if moves == 1 else f"{moves} times"
    return [f"it was moved {times} in the last hour, the most it may be, and stays {for_} more"]


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.0f} min"


def _follows(job: str, count: object) -> str:
    more = count - 1 if isinstance(count, int) else 0
    others = "" if more < 1 else " and 1 other" if more == 1 else f" and {more} others"
    return f"It waits until {job}{others} {'has' if more < 1 else 'have'} succeeded."


def _idle(sentence: str, given: object, above: object) -> str:
    if not isinstance(given, int | float) or not isinstance(above, int | float):
        return sentence
    costs = "leaving it idle costs the objective no more than any GPUs that it could have"
    return (
        f"With the policy's idle_penalty of {given:g}, {costs}: set idle_penalty above {above:g}."
    )
