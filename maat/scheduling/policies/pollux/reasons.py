"""Why each job got what Pollux granted it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from maat.scheduling.arrays import FloatArray
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.free_capacity import exceeds, never_fits, waiting_for
from maat.scheduling.job import Job, JobId
from maat.scheduling.limits import Limit
from maat.scheduling.moving import with_moves
from maat.scheduling.pins import why_pinned
from maat.scheduling.policies.pollux.homogeneous_view import AllocationOptions
from maat.scheduling.rounds import Grant, RoundInput


def reasons_of(
    round_input: RoundInput,
    jobs: Sequence[Job],
    known: AllocationOptions,
    grants: Mapping[JobId, Grant],
    goodput: Mapping[JobId, float | None],
    *,
    evolved: bool,
) -> dict[JobId, Reasons]:
    """Return why each job got what it got.

    `evolved`: whether the search may run any generation. Exchanges alone find nothing if no job
    holds GPUs.
    """
    reasons = {job_id: why_pinned(round_input.job_by_id[job_id]) for job_id in round_input.pinned}
    speedup = known.speedup()
    for j, job in enumerate(jobs):
        grant = grants.get(job.id)
        if grant is None:
            reasons[job.id] = _waiting(
                round_input, job, grants, promise_broken=not speedup[j].any(), evolved=evolved
            )
            continue
        spread = int((grant.node_count or 1) > 1)
        evidence: dict[str, float | int | str | None] = {
            "gpu_type": grant.gpu_type,
            "gpu_count": grant.gpu_count,
            "goodput_samples_per_second": goodput[job.id],
            "speedup_over_fair_share": float(
                speedup[j, min(grant.gpu_count, speedup.shape[1] - 1), spread]
            ),
        }
        usable = round_input.cluster.usable_gpus[round_input.cluster.type_index[grant.gpu_type]]
        possible = speedup[j, : int(usable) + 1]
        evidence |= _alone(grant.gpu_type, possible, goodput[job.id], evidence)
        reasons[job.id] = Reasons(ReasonCode.GRANTED, with_moves(job, evidence))
    return reasons


def _alone(
    gpu_type: str,
    speedup: FloatArray,
    goodput: float | None,
    evidence: Mapping[str, float | int | str | None],
) -> dict[str, float | int | str | None]:
    """Describe the count of most speedup to a job, on one node or several, whatever others want.

    `speedup`, (C + 1, 2): of the job on the type that it was granted. The search compares whole
    allocations of all jobs, so that no single job has a runner-up.
    """
    count = int(speedup.max(axis=1).argmax())
    now = evidence["speedup_over_fair_share"]
    if not count:
        return {}
    known = goodput is not None and isinstance(now, float) and now > 0
    return {
        "alone_gpu_type": gpu_type,
        "alone_gpu_count": count,
        "alone_goodput_samples_per_second": float(goodput * speedup[count].max() / now)
        if known
        else None,
    }


def _waiting(
    round_input: RoundInput,
    job: Job,
    grants: Mapping[JobId, Grant],
    *,
    promise_broken: bool,
    evolved: bool,
) -> Reasons:
    """Return why a job got nothing.

    It never fits, a limit has no places for its smallest count, nothing was searched, or others
    gain more. `promise_broken`: no allocation here would keep the latency that the job promises.
    """
    needed = job.spec.requested_gpus if job.spec.is_rigid else job.spec.min_gpus
    cluster = round_input.cluster
    smallest = {
        name: least
        for t, name in enumerate(cluster.type_names)
        if (least := _least(job, name)) is not None
        and least <= cluster.usable_gpus[t]
        and job.spec.may_use(name)
    }
    if not smallest or (promise_broken and job.spec.promised_seconds is not None):
        return never_fits(job, round_input, needed=needed)
    rows = {
        name: [limit for limit in round_input.limits if limit.counts(job.spec, name, least)]
        for name, least in smallest.items()
    }
    too_small = {
        name: [limit for limit in rows[name] if limit.places < smallest[name]] for name in smallest
    }
    if all(too_small.values()):
        return exceeds(next(iter(too_small.values())))
    name = next(name for name in smallest if not too_small[name])
    lacking = next(
        (
            limit
            for limit in rows[name]
            if limit.places - _used(limit, round_input, grants) < smallest[name]
        ),
        None,
    )
    if lacking is None:
        why = ReasonCode.LOWER_GOODPUT_GAIN if evolved else ReasonCode.NOT_SEARCHED
        return Reasons(why, {"needed_gpus": smallest[name], "gpu_type": name})
    return Reasons(
        waiting_for(lacking),
        {"needed_gpus": smallest[name], "gpu_type": name, "binding_limit": lacking.name},
    )


def _least(job: Job, name: str) -> int | None:
    """Return the fewest GPUs of a type that the job may have, or None."""
    spec, unit = job.spec, job.spec.replica_gpus(name)
    least = spec.requested_gpus if spec.is_rigid else -(-spec.min_gpus // unit) * unit
    fits = least % unit == 0 and (spec.max_gpus is None or least <= spec.max_gpus)
    return least if fits else None


def _used(limit: Limit, round_input: RoundInput, grants: Mapping[JobId, Grant]) -> int:
    counted = ((round_input.job_by_id[job_id].spec, grant) for job_id, grant in grants.items())
    return sum(
        grant.gpu_count
        for spec, grant in counted
        if limit.counts(spec, grant.gpu_type, grant.gpu_count)
    )
