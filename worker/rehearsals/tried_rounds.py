"""Plays a round of a live cluster and carries nothing out.

The same loop as a live step, on the state that the rows hold, with a store that writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from backend.models import Cluster as ClusterRow
from maat.scheduling.events import Event
from maat.scheduling.loop import RoundLoop
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.reservations import Reservation
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, StoredState
from worker.executors.numbering import renumbered_changes
from worker.executors.protocol import LiveExecutor, Restoration
from worker.jobs.pauses import without_paused
from worker.live.cluster import FixedClock


@dataclass(frozen=True)
class Rules:
    """What a round goes by besides the jobs: what policy and placer remember, and who may what."""

    stored: StoredState
    reservations: tuple[Reservation, ...] = ()
    quotas: tuple[TenantQuota, ...] = ()
    interference: Mapping[tuple[str, str, int], float] = field(default_factory=dict)


def played(
    row: ClusterRow,
    state: ClusterState,
    rules: Rules,
    *,
    at: float,
    outlives_policy: bool = True,
) -> RoundResult:
    """Return the round that policy and placer of `row` would make of this state.

    `outlives_policy`: as of the loop; else raises what the policy raises.
    """
    store = _Unwritten(rules.stored)
    policy, placer = row.parts.built_or_missing()
    RoundLoop(
        policy=policy,
        placer=placer,
        executor=_Standing(state),
        store=store,
        clock=FixedClock(at),
        reservations=rules.reservations,
        quotas=rules.quotas,
        interference=rules.interference,
        stability=row.stability,
        round_seconds=row.round_seconds,
        outlives_policy=outlives_policy,
    ).step()
    return store.planned


def observed(
    restore: Callable[[Restoration], LiveExecutor],
    begin: Restoration,
    unapplied: Sequence[Changes],
) -> ClusterState:
    """Return what the next round would see: the changes of the last one count as applied."""
    executor = restore(begin)
    for changes in unapplied:
        executor.apply(
            changes if begin.numbers is None else renumbered_changes(changes, begin.numbers)
        )
    return without_paused(executor.observe(), begin.news.paused).state


class _Unwritten:
    """A store that keeps a round in memory and writes nothing.

    It reports that another worker came first, so that the loop applies nothing.
    """

    planned: RoundResult

    def __init__(self, stored: StoredState) -> None:
        self._stored = stored

    def load(self) -> StoredState:
        return self._stored

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        self.planned = result
        return False

    def unapplied(self) -> Sequence[Changes]:
        return ()

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        """Do nothing: no changes were applied."""


@dataclass(frozen=True)
class _Standing:
    """An executor that shows one state and does nothing."""

    state: ClusterState

    def observe(self) -> ClusterState:
        return self.state

    def apply(self, changes: Changes) -> Sequence[Event]:
        return ()
