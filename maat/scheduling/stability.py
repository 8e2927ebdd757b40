"""How long jobs stay where they are: a least stay and a most of moves an hour.

Decides nothing: the round loop pins the jobs that must stay (pins.py), and no policy knows of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from maat.scheduling.cluster import Cluster
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Job, JobDeclaration, JobId
from maat.scheduling.rounds import Decision, RequiredStay, RoundInput
from maat.scheduling.stay_bounds import least_stay_of, most_moves_of

HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Stability:
    """The bounds of a cluster, or of a job. None: no bound. Raises ParameterError.

    Attributes:
        least_stay_seconds: A round leaves a job on its GPUs until it has held them for so long.
        most_moves_per_hour: A round leaves a job on its GPUs while it was moved so often within
            the last hour. A first start is no move.
    """

    least_stay_seconds: float | None = None
    most_moves_per_hour: int | None = None

    def __post_init__(self) -> None:
        least_stay_of(self.least_stay_seconds)
        most_moves_of(self.most_moves_per_hour)

    def with_those_of(self, declared: JobDeclaration) -> Stability:
        """Return the stricter bounds of these and those that a job's owner asks for."""
        if declared.least_stay_seconds is None and declared.most_moves_per_hour is None:
            return self
        stays = (self.least_stay_seconds, declared.least_stay_seconds)
        moves = (self.most_moves_per_hour, declared.most_moves_per_hour)
        return Stability(
            max((stay for stay in stays if stay is not None), default=None),
            min((most for most in moves if most is not None), default=None),
        )

    @property
    def most_moves_per_second(self) -> float:
        """How often rounds may move a job on average over a long time; inf without a bound."""
        stay, moves = self.least_stay_seconds, self.most_moves_per_hour
        by_stay = math.inf if not stay else 1.0 / stay
        return by_stay if moves is None else min(by_stay, moves / HOUR_SECONDS)


NO_BOUNDS = Stability()


def required_stays(
    jobs: Sequence[Job], cluster: Cluster, *, now: float, stability: Stability
) -> Mapping[JobId, RequiredStay]:
    """Return the jobs that must stay on their GPUs at `now`, and until when.

    A job whose GPUs leave service, or that may no longer use what it holds, need not stay.
    """
    stays = {}
    for job in jobs:
        if job.allocation is None:
            continue
        required = _required(job, now, stability.with_those_of(job.spec))
        if required is not None and _may_stay(job, cluster):
            stays[job.id] = required
    return stays


def _required(job: Job, now: float, stability: Stability) -> RequiredStay | None:
    """Return the later end of the two bounds; None if neither holds the job."""
    by_stay, by_moves = _least_stay(job, stability), _most_moves(job, now, stability)
    later = max((one for one in (by_stay, by_moves) if one is not None), key=_end, default=None)
    return later if later is not None and now < later.until else None


def _end(stay: RequiredStay) -> float:
    return stay.until


def _least_stay(job: Job, stability: Stability) -> RequiredStay | None:
    least = stability.least_stay_seconds
    if least is None or job.held_since is None:
        return None
    return RequiredStay(job.held_since + least, least_stay_seconds=least)


def _most_moves(job: Job, now: float, stability: Stability) -> RequiredStay | None:
    most = stability.most_moves_per_hour
    recent = [at for at in job.moved_at if at + HOUR_SECONDS > now]
    if most is None or len(recent) < most:
        return None
    # From then on, fewer than `most` of them lie within an hour.
    return RequiredStay(sorted(recent)[-most] + HOUR_SECONDS, moves_in_last_hour=len(recent))


def _may_stay(job: Job, cluster: Cluster) -> bool:
    """Return whether all that the job holds is in service, and still what it may have."""
    held, spec = job.allocation, job.spec
    if held is None or not cluster.gpu_available[list(held.gpus)].all():
        return False
    within = spec.min_gpus <= held.gpu_count <= (spec.max_gpus or held.gpu_count)
    as_asked = not spec.is_rigid or held.gpu_count == spec.gpu_count
    return within and as_asked and spec.may_use(held.gpu_type)


def with_stays(decision: Decision, round_input: RoundInput) -> Decision:
    """Return the decision, whose reasons say how long jobs must stay, and why."""
    if not round_input.stays:
        return decision
    return replace(decision, reasons=_Staying(decision.reasons, round_input))


@dataclass(frozen=True)
class _Staying(Mapping[JobId, Reasons]):
    """Reasons with the stays of pinned jobs; each is computed when it is read."""

    of_policy: Mapping[JobId, Reasons]
    round_input: RoundInput

    def __getitem__(self, job_id: JobId) -> Reasons:
        why, stay = self.of_policy[job_id], self.round_input.stays.get(job_id)
        if stay is None or why.primary is not ReasonCode.PINNED:
            return why
        return replace(why, evidence={**why.evidence, **stay.evidence(self.round_input.now)})

    def __iter__(self) -> Iterator[JobId]:
        return iter(self.of_policy)

    def __len__(self) -> int:
        return len(self.of_policy)
