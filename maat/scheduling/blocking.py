"""Which jobs keep another from the GPUs that it needs, and why each of them stays. Pure."""

from __future__ import annotations

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
    gpu_count: int
    stay: Stay
    ends_at: float | None


@dataclass(frozen=True, slots=True)
class Blocking:
    """The jobs that hold `in_service` GPUs of a type, of which another job needs `needed`.

    `by`: those that keep it from them, most GPUs first. `fixed`: no policy could give it enough,
    as these jobs may not be moved now; else the policy could, and keeps the GPUs where they are.
    """

    gpu_type: str
    needed: int
    in_service: int
    free: int
    fixed: bool
    by: tuple[Holder, ...]

    @property
    def possible_at(self) -> float | None:
        """When enough of the fixed jobs have ended, by their forecasts; None if nobody knows.

        A job that starts, restarts, is profiled or stays for a time may be moved soon: it sets no
        time.
        """
        if not self.fixed or any(one.stay is not Stay.NOT_PREEMPTIBLE for one in self.by):
            return None
        spare = self.in_service - sum(one.gpu_count for one in self.by)
        known = [(one.ends_at, one.gpu_count) for one in self.by if one.ends_at is not None]
        for ends_at, gpu_count in sorted(known):
            spare += gpu_count
            if spare >= self.needed:
                return ends_at
        return None


def blocking(
    holders: Sequence[Holder], *, gpu_type: str, needed: int, in_service: int
) -> Blocking | None:
    """Return who keeps a job from `needed` GPUs of a type; None if enough of them are free."""
    free = in_service - sum(one.gpu_count for one in holders)
    if free >= needed or needed > in_service:
        return None
    fixed = [one for one in holders if one.stay is not Stay.KEPT]
    stays = in_service - sum(one.gpu_count for one in fixed) < needed
    by = fixed if stays else [one for one in holders if one.stay is Stay.KEPT]
    largest_first = sorted(by, key=lambda one: (-one.gpu_count, one.job_id))
    return Blocking(gpu_type, needed, in_service, max(free, 0), stays, tuple(largest_first))
