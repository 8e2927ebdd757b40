"""The rules that every decision and every placement must keep.

They are checked in production too: a faulty policy must not reach a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from maat.scheduling.errors import ContractViolation
from maat.scheduling.gpu_places import places_by_gpu
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput


def check_decision(decision: Decision, round_input: RoundInput) -> None:
    """Check a decision against limits, pins, job declarations and named GPUs.

    Raises:
        ContractViolation: The grants exceed a limit or change a pin; a rigid job gets another
            count than it asked for; a job gets GPUs that it cannot use; or a named GPU is not
            available.
    """
    for job_id, grant in decision.grants.items():
        _check_grant(job_id, grant, round_input)
    _check_named_gpus(decision, round_input)
    for job_id, pin in round_input.pinned.items():
        got = decision.grants.get(job_id)
        if got is None or (got.gpu_type, got.gpu_count) != (pin.gpu_type, pin.gpu_count):
            raise ContractViolation(
                f"job {job_id} is pinned to {pin.gpu_count} {pin.gpu_type} and was granted {got}"
            )
    _check_limits(decision, round_input)


def check_placement(placed: PlacementResult, decision: Decision, round_input: RoundInput) -> None:
    """Check that every GPU of a placement may be held as the decision grants it.

    Raises:
        ContractViolation: A GPU does not exist, is drained, of another type than granted, or held
            by more jobs than it may; or a job holds another number of GPUs than granted.
    """
    cluster, gpus = round_input.cluster, placed.placement.gpus
    if len(gpus) and (gpus.min() < 0 or gpus.max() >= cluster.gpu_count):
        raise ContractViolation("a placement names a GPU that the cluster does not have")
    if not cluster.gpu_available[gpus].all():
        raise ContractViolation("a placement uses a drained GPU")
    jobs_on = np.bincount(gpus, minlength=cluster.gpu_count)
    if (jobs_on > places_by_gpu(round_input)).any():
        raise ContractViolation("a placement gives one place to two jobs")
    type_of = cluster.gpu_type_of.tolist()
    for job_id, held in placed.placement.by_job.items():
        grant = decision.grants.get(job_id)
        if grant is None or len(held) != grant.gpu_count or len(set(held)) != len(held):
            raise ContractViolation(f"job {job_id} was granted {grant} and placed on GPUs {held}")
        if {type_of[gpu] for gpu in held} != {cluster.type_index.get(grant.gpu_type)}:
            raise ContractViolation(
                f"job {job_id} was granted {grant.gpu_type} and placed on other types"
            )
        if placed.as_named and grant.gpus is not None and held != tuple(sorted(grant.gpus)):
            raise ContractViolation(
                f"job {job_id} was granted GPUs {grant.gpus} and placed on {held}"
            )
    missing = set(decision.grants) - set(placed.placement.by_job) - set(placed.unplaced)
    if missing:
        raise ContractViolation(f"granted, neither placed nor explained: {sorted(missing)}")


def _check_grant(job_id: str, grant: Grant, round_input: RoundInput) -> None:
    job = round_input.job_by_id.get(job_id)
    if job is None:
        raise ContractViolation(f"a grant to {job_id}, which is not in this round")
    if job_id in round_input.pinned:
        return
    spec = job.spec
    if grant.gpu_count < 1 or not spec.may_use(grant.gpu_type):
        raise ContractViolation(f"job {job_id} cannot use {grant.gpu_count} {grant.gpu_type}")
    if spec.is_rigid and grant.gpu_count != spec.gpu_count:
        raise ContractViolation(
            f"rigid job {job_id} asks for {spec.gpu_count} GPUs and was granted {grant.gpu_count}"
        )
    if grant.gpu_count < spec.min_gpus or (
        spec.max_gpus is not None and grant.gpu_count > spec.max_gpus
    ):
        raise ContractViolation(
            f"job {job_id} was granted {grant.gpu_count} GPUs "
            f"outside its {spec.min_gpus} to {spec.max_gpus}"
        )
    if grant.gpu_count % spec.replica_gpus(grant.gpu_type):
        raise ContractViolation(
            f"job {job_id} needs whole replicas of {spec.replica_gpus(grant.gpu_type)} GPUs, "
            f"granted {grant.gpu_count}"
        )


def _check_named_gpus(decision: Decision, round_input: RoundInput) -> None:
    """Check the GPU numbers in grants.

    They must exist, be usable, of the granted type and number, and none may be named by more jobs
    than it may hold.
    """
    cluster, named = round_input.cluster, Counter[int]()
    for job_id, grant in decision.grants.items():
        if grant.gpus is None:
            continue
        inside = all(0 <= gpu < cluster.gpu_count for gpu in grant.gpus)
        if (
            not inside
            or len(set(grant.gpus)) != grant.gpu_count
            or len(grant.gpus) != grant.gpu_count
        ):
            raise ContractViolation(
                f"job {job_id} was granted {grant.gpu_count} GPUs named {grant.gpus}"
            )
        if any(
            not cluster.gpu_available[g]
            or cluster.type_names[cluster.gpu_type_of[g]] != grant.gpu_type
            for g in grant.gpus
        ):
            raise ContractViolation(
                f"job {job_id} was granted GPUs {grant.gpus}, "
                f"not all of them usable {grant.gpu_type}"
            )
        named.update(grant.gpus)
    if max(named.values(), default=0) > cluster.jobs_per_gpu:
        raise ContractViolation("grants name a GPU for more jobs than it may hold")


def _check_limits(decision: Decision, round_input: RoundInput) -> None:
    used = _places_by_limit(decision.grants, round_input)
    pinned = _places_by_limit(round_input.pinned, round_input)
    for r, limit in enumerate(round_input.limits):
        if used[r] > max(limit.places, pinned[r]):
            raise ContractViolation(
                f"limit {limit.name} allows {limit.places} places; the decision takes {used[r]}"
            )


def _places_by_limit(grants: Mapping[str, Grant], round_input: RoundInput) -> Counter[int]:
    """Return the places that grants take, by number of the limit."""
    used: Counter[int] = Counter()
    for job_id, grant in grants.items():
        spec = round_input.job_by_id[job_id].spec
        for r in round_input.limit_index.of(spec, grant.gpu_type, grant.gpu_count):
            used[r] += round_input.limits[r].places_of(grant.gpu_count)
    return used
