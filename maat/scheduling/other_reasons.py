"""What else keeps a job waiting, besides the reason that decided.

Whatever the policy: the limits of the round, beside what it has granted. A reason holds if, on each
GPU type that the job could use, a limit of that kind has too few places left for the fewest GPUs
that the job takes. So it would still wait if the deciding reason alone were gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.free_capacity import waiting_for
from maat.scheduling.job import Job, JobId
from maat.scheduling.limits import Limit, LimitKind
from maat.scheduling.rounds import Grant, RoundInput
from maat.vocabulary import priority_class

_GPUS_TAKEN = {
    ReasonCode.EXCEEDS_CLUSTER,
    ReasonCode.WAITING_CAPACITY,
    ReasonCode.LOWER_GOODPUT_GAIN,
}
_FAMILIES = (
    _GPUS_TAKEN,
    {ReasonCode.EXCEEDS_QUOTA_LIMIT, ReasonCode.WAITING_QUOTA},
)
_NO_ROUND_HELPS = {
    ReasonCode.GRANTED,
    ReasonCode.PINNED,
    ReasonCode.NO_COMPATIBLE_GPU_TYPE,
    ReasonCode.NO_CONFIGURATION,
}


def with_others(
    round_input: RoundInput, grants: Mapping[JobId, Grant], reasons: Mapping[JobId, Reasons]
) -> dict[JobId, Reasons]:
    """Return every job's reason, with the others that hold too, the most structural first."""
    rest, jobs = _Rest(round_input, grants), round_input.job_by_id
    return {
        job_id: replace(why, also=tuple(rest.of(jobs[job_id], why)))
        if why.primary not in _NO_ROUND_HELPS and job_id in jobs
        else why
        for job_id, why in reasons.items()
    }


class _Rest:
    """The places that a round has left."""

    def __init__(self, round_input: RoundInput, grants: Mapping[JobId, Grant]) -> None:
        self._input, self._grants = round_input, grants

    @cached_property
    def _free(self) -> list[int]:
        """The places that each limit has left beside all grants."""
        round_input, free = self._input, [limit.places for limit in self._input.limits]
        for job_id, grant in self._grants.items():
            spec = round_input.job_by_id[job_id].spec
            for r in round_input.limit_index.of(spec, grant.gpu_type, grant.gpu_count):
                free[r] -= round_input.limits[r].places_of(grant.gpu_count)
        return free

    def of(self, job: Job, why: Reasons) -> Iterator[Reasons]:
        """Yield the other reasons of a waiting job."""
        by_type = [self._lacking(job, name, count) for name, count in self._least(job, why)]
        if not by_type or job.id in self._grants:
            return
        known = _family(why.primary)
        held = set.intersection(*(set(lacking) for lacking in by_type))
        for code in ReasonCode:
            if code in held and code not in known:
                yield by_type[0][code]

    def _least(self, job: Job, why: Reasons) -> Iterable[tuple[str, int]]:
        """Yield the types that the job could use, with the fewest GPUs that it takes there."""
        spec, needed = job.spec, why.evidence.get("needed_gpus")
        asked = needed if isinstance(needed, int) else None
        for name in self._input.cluster.type_names:
            if spec.may_use(name):
                unit = spec.replica_gpus(name)
                least = spec.requested_gpus if spec.is_rigid else -(-spec.min_gpus // unit) * unit
                yield name, least if asked is None else asked

    def _lacking(self, job: Job, name: str, count: int) -> Mapping[ReasonCode, Reasons]:
        """Return the reasons that limits give on one type, by code."""
        found: dict[ReasonCode, Reasons] = {}
        for r in self._input.limit_index.of(job.spec, name, count):
            limit, free = self._input.limits[r], max(self._free[r], 0)
            if free < limit.places_of(count):
                code = self._code(limit, limit.places_of(count))
                evidence: dict[str, float | int | str | None] = {
                    "needed_gpus": count,
                    "free_gpus": free,
                    "binding_limit": limit.name,
                }
                if limit.below_priority is not None:
                    evidence["higher_class"] = priority_class(limit.below_priority)
                found.setdefault(code, Reasons(code, evidence))
        return found

    def _code(self, limit: Limit, needed: int) -> ReasonCode:
        if limit.below_priority is not None:
            return ReasonCode.BEHIND_IN_ORDER
        if limit.kind is LimitKind.QUOTA and needed > self._ceiling(limit):
            return ReasonCode.EXCEEDS_QUOTA_LIMIT
        if limit.kind is LimitKind.CAPACITY and needed > limit.places:
            return ReasonCode.EXCEEDS_CLUSTER
        return waiting_for(limit)

    def _ceiling(self, limit: Limit) -> float:
        """Return the most that a quota will ever allow; a share of this round may grow."""
        if not self._input.quotas or limit.gpu_type is None:
            return limit.places
        ceilings = {quota.tenant: quota.ceiling for quota in self._input.quotas}
        return ceilings.get(limit.tenant or "", {}).get(limit.gpu_type, float("inf"))


def _family(code: ReasonCode) -> set[ReasonCode]:
    """Return the reasons that say the same of a job, more or less exactly."""
    return next((family for family in _FAMILIES if code in family), {code})
