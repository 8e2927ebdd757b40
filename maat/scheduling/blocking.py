"""Which jobs keep another from the GPUs that it needs, and why each of them stays. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Stay(StrEnum):
    """Why a job stays on its GPUs. All but `kept` stay whatever a policy prefers."""

    NOT_PREEMPTIBLE = "not-preemptible"
    STARTING = "starting"
    RESTARTING = "restarting"
    PROFILED = "profiled"
    BOUND = "must-stay"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Holder:
    """A job that holds GPUs of a type. `ends_at`: by its forecast; None if there is none."""

    job_id: str
    gpus: frozenset[int]
    stay: Stay
    ends_at: float | None

    @property
    def gpu_count(self) -> int:
        return len(self.gpus)


@dataclass(frozen=True, slots=True)
class Blocking:
    """The jobs that hold `in_service` GPUs of a type, of which another job needs `needed`.

    `by`: those that keep it from them, most GPUs first. `fixed`: no policy could give it enough,
    as these jobs may not be moved now; else the policy could, and keeps the GPUs where they are.
    `places`: how many jobs a GPU must hold to be kept from it. `free`, `kept_gpus`: the GPUs that
    hold fewer of all jobs, and as many of those in `by`.
    """

    gpu_type: str
    needed: int
    in_service: int
    free: int
    fixed: bool
    by: tuple[Holder, ...]
    places: int = 1

    @property
    def kept_gpus(self) -> int:
        return len(_full(self.by, self.places))

    @property
    def possible_at(self) -> float | None:
        """When enough of the fixed jobs have ended, by their forecasts; None if nobody knows.

        A job that starts, restarts, is profiled or stays for a time may be moved soon: it sets no
        time.
        """
        if not self.fixed or any(one.stay is not Stay.NOT_PREEMPTIBLE for one in self.by):
            return None
        for ends_at in sorted(one.ends_at for one in self.by if one.ends_at is not None):
            left = [one for one in self.by if one.ends_at is None or one.ends_at > ends_at]
            if self.in_service - len(_full(left, self.places)) >= self.needed:
                return ends_at
        return None


def blocking(
    holders: Sequence[Holder], *, gpu_type: str, needed: int, in_service: int, places: int = 1
) -> Blocking | None:
    """Return who keeps a job from `needed` GPUs of a type; None if enough of them are free.

    A GPU is free while it holds fewer than `places` jobs.
    """
    full = _full(holders, places)
    free = in_service - len(full)
    if free >= needed or needed > in_service:
        return None
    fixed = [one for one in holders if one.stay is not Stay.KEPT]
    fixed_gpus = _full(fixed, places)
    stays = in_service - len(fixed_gpus) < needed
    by = (
        [one for one in fixed if one.gpus & fixed_gpus]
        if stays
        else [one for one in holders if one.stay is Stay.KEPT and one.gpus & full]
    )
    largest_first = sorted(by, key=lambda one: (-one.gpu_count, one.job_id))
    return Blocking(gpu_type, needed, in_service, max(free, 0), stays, tuple(largest_first), places)


def _full(holders: Sequence[Holder], places: int) -> frozenset[int]:
    """Return the GPUs that so many of these jobs hold."""
    on_gpu = Counter(gpu for one in holders for gpu in one.gpus)
    return frozenset(gpu for gpu, jobs in on_gpu.items() if jobs >= places)
