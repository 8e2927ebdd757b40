"""A job alone on an equal share of a GPU type: the yardstick of finish-time fairness.

Sia section 5.5. These rules hold for every policy, so that all are measured by one yardstick. Who
the job is, and how fast it trains, is a `LoneJob`'s business: the laboratory has the true job
(maat.laboratory.fairness), a live cluster what was believed of it (believed_life.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.configuration import Configuration, ConfigurationTable
from maat.scheduling.restart import restart_factor
from maat.vocabulary import FairnessRule

ROUND_SECONDS = 60.0


class LoneJob(Protocol):
    """A job without any other, on GPUs of one type. Time counts from its submission."""

    @property
    def finished_at(self) -> float | None:
        """The time at which it finished; None while it has not."""
        ...

    @property
    def is_restarting(self) -> bool: ...

    @property
    def restarts(self) -> int: ...

    @property
    def restart_seconds(self) -> float:
        """The seconds of a restart, as a scheduler estimates them."""
        ...

    def move(self, to: Configuration, now: float) -> None:
        """Take these GPUs; starting on them costs a restart."""
        ...

    def advance(self, now: float, until: float) -> None: ...

    def goodput(self, usable: Sequence[Configuration]) -> FloatArray:
        """Return its goodput in each configuration as it is now, shape (C,).

        The same array as before, as long as nothing has changed.
        """
        ...

    def steady_seconds(self) -> float:
        """Return how long nothing changes while it stays where it is; 0 if that is not known."""
        ...


def fair_shares(gpus: Mapping[str, int], contention: float, rule: FairnessRule) -> dict[str, float]:
    """Return the GPUs of each type that a job alone may grow into.

    N / n_avg of each type in turn, or N_g / n_avg under the rule SHARE_OF_TYPE. `gpus`: N_g;
    `contention`: n_avg.
    """
    whole = sum(gpus.values())
    return {
        g: (count if rule is FairnessRule.SHARE_OF_TYPE else whole) / contention
        for g, count in gpus.items()
    }


def of_type(table: ConfigurationTable, gpu_type: str) -> list[Configuration]:
    """Return the configurations of one type, the fewest GPUs first."""
    return [c for c in table.configurations if c.gpu_type == gpu_type]


def is_allowed(gpu_count: int, *, least: int, most: int | None, replica_gpus: int) -> bool:
    """Return whether a job that may have `least` to `most` GPUs may have this many."""
    return (
        least <= gpu_count and (most is None or gpu_count <= most) and not gpu_count % replica_gpus
    )


def seconds_at_share(
    run: Callable[[Sequence[Configuration]], float], usable: Sequence[Configuration], share: float
) -> float:
    """Return the JCT alone on a share of GPUs that need not be whole.

    Between whole shares it is interpolated; a share below the job's fewest GPUs takes
    proportionally longer.

    `run`: the JCT of the job if it may grow into these configurations. `usable`: those that it may
    have, the fewest GPUs first.
    """
    least = usable[0].gpu_count
    if share < least:
        return run(usable[:1]) * least / share
    whole = (math.floor(share), math.ceil(share))
    seconds = [run([c for c in usable if c.gpu_count <= count]) for count in whole]
    return float(np.interp(share, whole, seconds))


def seconds_on_request(seconds: float, gpu_count: int, share: float) -> float:
    """Return the JCT of a job that runs on `gpu_count` GPUs only, on a share of GPUs.

    `seconds`: its JCT on them. On a smaller share it takes proportionally longer.
    """
    return seconds * max(gpu_count / share, 1.0)


def seconds_alone(
    lone: LoneJob,
    usable: Sequence[Configuration],
    *,
    young_move_freely: bool = False,
    look: Callable[[], object] = lambda: None,
) -> float:
    """Return the seconds from submission to the end of training.

    It starts on the first configuration of `usable`, at most doubles its GPUs each round and pays
    for its restarts, as under Sia.

    `look` is called between rounds; what it raises ends the run.
    """
    now, at = 0.0, 0
    lone.move(usable[0], now)
    goodput, settled = lone.goodput(usable), False
    while lone.finished_at is None:
        look()
        rounds = math.floor(lone.steady_seconds() / ROUND_SECONDS) if settled else 1
        until = now + max(rounds, 1) * ROUND_SECONDS
        lone.advance(now, until)
        now = until
        fresh = lone.goodput(usable)
        if fresh is not goodput:
            goodput, settled = fresh, False
        if settled or lone.is_restarting or lone.finished_at is not None:
            continue
        best = _best(lone, usable, goodput, at, now, young_move_freely=young_move_freely)
        settled = best == at and _is_best_of_all(goodput, at)
        if best != at:
            at = best
            lone.move(usable[at], now)
    return lone.finished_at


def _best(
    lone: LoneJob,
    usable: Sequence[Configuration],
    goodput: FloatArray,
    at: int,
    now: float,
    *,
    young_move_freely: bool,
) -> int:
    """The index in `usable` that a scheduler without other jobs would choose.

    It has the most `goodput` (C,), with moves discounted by Sia eq. 3.
    """
    most = 2 * usable[at].gpu_count
    reach = np.array([i for i, c in enumerate(usable) if c.gpu_count <= most or i == at])
    offered = goodput[reach]
    age, restarts, seconds = (
        np.array(float(x)) for x in (now, lone.restarts, lone.restart_seconds)
    )
    worth = offered * np.where(
        reach == at,
        1.0,
        restart_factor(age, restarts, seconds, young_move_freely=young_move_freely),
    )
    return int(reach[np.argmax(worth)])


def _is_best_of_all(goodput: FloatArray, at: int) -> bool:
    """Whether no move gains anything, even if it were free."""
    return bool((goodput[:at] < goodput[at]).all() and (goodput[at + 1 :] <= goodput[at]).all())
