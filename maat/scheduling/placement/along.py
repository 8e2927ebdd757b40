"""Place grants one by one in a given order; the caller's rule chooses the GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from maat.scheduling.job import Job, JobId
from maat.scheduling.placeable import held_as_granted
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.outcome import outcome
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput

# Takes GPUs for a job's grant and returns them; None, with nothing taken, if there are too few.
Choose = Callable[[FreeGpus, Job, Grant], Sequence[int] | None]


def place_along(
    decision: Decision,
    round_input: RoundInput,
    choose: Choose,
    *,
    sticky: bool,
    order: Iterable[JobId] | None = None,
) -> PlacementResult:
    """Place grants one after the other with `choose`.

    Args:
        order: Jobs in order of placement; by default the order of the decision.
        sticky: If True, a job that holds exactly what it was granted keeps it. If a job finds no
            room, later jobs lose their GPUs, the last of the order first, until it does; they
            look for GPUs again at their own turn. If False, only pinned jobs keep their GPUs.
    """
    free = FreeGpus(round_input.cluster)
    turn = list(decision.grants if order is None else order)
    found = _kept(decision.grants, round_input, free, sticky=sticky)
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
        if gpus is not None:
            found[job_id] = gpus
    return outcome(decision.grants, found)


def _kept(
    grants: Mapping[JobId, Grant], round_input: RoundInput, free: FreeGpus, *, sticky: bool
) -> dict[JobId, Sequence[int]]:
    kept: dict[JobId, Sequence[int]] = {}
    for job_id, grant in grants.items():
        held = held_as_granted(round_input, job_id, grant)
        stays = sticky or job_id in round_input.pinned
        if stays and held is not None and free.are_free(held):
            free.take(held)
            kept[job_id] = held
    return kept


def _evicting(
    free: FreeGpus,
    found: dict[JobId, Sequence[int]],
    victims: Sequence[JobId],
    attempt: Callable[[], Sequence[int] | None],
) -> Sequence[int] | None:
    """Evict victims one by one until the attempt succeeds; restore all if it fails."""
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
