"""What placers that follow the order of the grants share: who keeps its GPUs, whose turn it is, who gives way. Chooses no GPU itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Job, JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput

# Takes GPUs for a job's grant and names them; None, with nothing taken, where there are not enough.
Choose = Callable[[FreeGpus, Job, Grant], Sequence[int] | None]


def place_along(
    decision: Decision,
    round_input: RoundInput,
    choose: Choose,
    *,
    sticky: bool,
    order: Iterable[JobId] | None = None,
) -> PlacementResult:
    """Place grants one after the other in `order` (that of the decision where none is given).

    Sticky: a job that holds just what it was granted keeps it; where a job finds no room, those behind it give way, the last of the order first,
    and look for room again at their own turn. Not sticky: only pinned jobs keep their GPUs.
    """
    free = FreeGpus(round_input.cluster)
    turn = list(decision.grants if order is None else order)
    found = _kept(decision.grants, round_input, free, sticky=sticky)
    unplaced = {}
    for position, job_id in enumerate(turn):
        if job_id in found:
            continue
        job, grant = round_input.job_by_id[job_id], decision.grants[job_id]
        gpus = choose(free, job, grant)
        if gpus is None:
            behind = [
                other
                for other in reversed(turn[position + 1 :])
                if other in found and other not in round_input.pinned
            ]
            gpus = _evicting(free, found, behind, partial(choose, free, job, grant))
        if gpus is None:
            unplaced[job_id] = Reasons(
                ReasonCode.FRAGMENTED, {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count}
            )
        else:
            found[job_id] = gpus
    return PlacementResult(
        Placement.of({job_id: found[job_id] for job_id in decision.grants if job_id in found}),
        unplaced,
    )


def _kept(
    grants: Mapping[JobId, Grant], round_input: RoundInput, free: FreeGpus, *, sticky: bool
) -> dict[JobId, Sequence[int]]:
    kept: dict[JobId, Sequence[int]] = {}
    for job_id, grant in grants.items():
        held = round_input.job_by_id[job_id].allocation
        stays = sticky or job_id in round_input.pinned
        if (
            stays
            and held is not None
            and (held.gpu_type, held.gpu_count) == (grant.gpu_type, grant.gpu_count)
            and free.are_free(held.gpus)
        ):
            free.take(held.gpus)
            kept[job_id] = held.gpus
    return kept


def _evicting(
    free: FreeGpus,
    found: dict[JobId, Sequence[int]],
    victims: Sequence[JobId],
    attempt: Callable[[], Sequence[int] | None],
) -> Sequence[int] | None:
    """Try again after each victim in turn gave its GPUs back; nobody loses any where it does not help."""
    evicted: dict[JobId, Sequence[int]] = {}
    for victim in victims:
        evicted[victim] = found.pop(victim)
        free.give_back(evicted[victim])
        gpus = attempt()
        if gpus is not None:
            return gpus
    for job_id, gpus in evicted.items():
        free.take(gpus)
        found[job_id] = gpus
    return None
